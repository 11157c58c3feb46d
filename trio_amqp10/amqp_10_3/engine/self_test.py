"""Answers to the class test: a self-test of data types (10.3, C 1603-1716).

Either peer may ask, and the other answers, so that a monitor can check whether values of every type arrive (C 1605). The class
reference names the results but not the operations; these are reconstructed:

=========  =================  ===============
operation  of integers        of strings
=========  =================  ===============
1          the sum            all of them, joined
2          the lowest         the shortest
3          the highest        the longest
=========  =================  ===============

Sums and negative numbers are modulo 2**64. In a table only its own integers and strings count, not those of nested tables;
without any, the result is 0 or empty. Among strings of equal length the first counts. The checksum of a content is the sum of
the octets of its body modulo 2**32, and the answer returns the content unchanged (C 1712).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.core.reply_codes import ReplyCode091

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from trio_amqp10.amqp091.wire.content import Content
    from trio_amqp10.amqp091.wire.methods import Method

_NUMBERS: Final = 1 << 64
_CHECKSUMS: Final = 1 << 32


def _joined(strings: Iterable[bytes]) -> bytes:
    return b"".join(strings)


def _shortest(strings: Iterable[bytes]) -> bytes:
    return min(strings, key=len, default=b"")


def _longest(strings: Iterable[bytes]) -> bytes:
    return max(strings, key=len, default=b"")


def _lowest(numbers: Iterable[int]) -> int:
    return min(numbers, default=0)


def _highest(numbers: Iterable[int]) -> int:
    return max(numbers, default=0)


_OF_INTEGERS: Final[Mapping[int, Callable[[Sequence[int]], int]]] = {1: sum, 2: _lowest, 3: _highest}
_OF_STRINGS: Final[Mapping[int, Callable[[Sequence[bytes]], bytes]]] = {1: _joined, 2: _shortest, 3: _longest}


def _integer(operation: int, numbers: Sequence[int]) -> int:
    operate = _OF_INTEGERS.get(operation)
    if operate is None:
        raise _unknown(operation)
    return operate(numbers) % _NUMBERS


def _string(operation: int, strings: Sequence[bytes]) -> bytes:
    operate = _OF_STRINGS.get(operation)
    if operate is None:
        raise _unknown(operation)
    return operate(strings)


def _unknown(operation: int) -> ReplyError:
    return ReplyError(ReplyCode091.SYNTAX_ERROR, f"operation {operation} of a test is unknown: use 1 to 3")


def _octets(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


def _answer_integer(method: Any, _content: None) -> tuple[Method, None]:
    numbers = (method.integer_1, method.integer_2, method.integer_3, method.integer_4)
    return spec.TestIntegerOk(result=_integer(method.operation, numbers)), None


def _answer_string(method: Any, _content: None) -> tuple[Method, None]:
    strings = (_octets(method.string_1), method.string_2)
    return spec.TestStringOk(result=_string(method.operation, strings)), None


def _answer_table(method: Any, _content: None) -> tuple[Method, None]:
    values = method.table.values()
    return spec.TestTableOk(
        integer_result=_integer(method.integer_op, [each for each in values if type(each) is int]),
        string_result=_string(
            method.string_op, [_octets(each) for each in values if isinstance(each, str | bytes)]
        ),
    ), None


def _answer_content(_method: Method, content: Content | None) -> tuple[Method, Content]:
    assert content is not None
    return spec.TestContentOk(content_checksum=sum(content.body) % _CHECKSUMS), content


ANSWERS: Final[Mapping[str, Callable[[Any, Any], tuple[Method, Content | None]]]] = {
    "test.integer": _answer_integer,
    "test.string": _answer_string,
    "test.table": _answer_table,
    "test.content": _answer_content,
}
"""The function that answers each request, by the name of the request.

An unknown operation ends the connection with 502.
"""
