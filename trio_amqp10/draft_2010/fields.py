"""Types of declared fields that only the draft of 2010 has: several values, and options (3; Book III, 8.13).

Knows no composite.
"""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.wire import codes
from trio_amqp10.wire.decode import TABLE, Reader
from trio_amqp10.wire.encode import below, write_compound
from trio_amqp10.wire.fields import FieldType, InvalidFieldError, Named, symbol_map

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trio_amqp10.wire.decode_budget import Budget

__all__ = ["Options", "several"]

Options: TypeAlias = Annotated[symbol_map, Named("options")]
"""What modifies a type, by name. A name that is not known and does not begin with ``x-opt-`` is an error (D 1508-1514)."""

_DESCRIBED_TRUE: Final = bytes((codes.DESCRIBED, codes.TRUE))


def several(each: Any) -> Any:
    """Zero or more of ``each``: null, one of them as it is, or a list of them under the descriptor true (D 466).

    Args:
        each: a name of ``wire.fields``, or a composite.
    """
    base = typing.cast("FieldType", getattr(each, "__amqp_field__", None) or typing.get_args(each)[1])

    def one(read: Reader) -> Reader:
        def read_one(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
            value, pos = read(buf, pos, budget)
            return (value,), pos

        return read_one

    single = base.readers.get(codes.DESCRIBED)

    def read_described(buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        if buf[pos] == codes.TRUE:
            return _read_list(base, buf, pos + 1, budget)
        if single is None:
            raise InvalidFieldError(f"{base.name} expected, got a described value")
        value, pos = single(buf, pos, budget)
        return (value,), pos

    def write(out: bytearray, value: Any, depth: int) -> None:
        if isinstance(value, (str, bytes)):
            raise LocalProtocolError(f"several of {base.name} are a tuple, not {value!r}")
        values: Sequence[Any] = value
        if len(values) == 1:
            base.write(out, values[0], depth)
            return
        depth = below(depth, 2)
        body = bytearray()
        for item in values:
            base.write(body, item, depth)
        out += _DESCRIBED_TRUE
        write_compound(out, codes.LIST8, codes.LIST32, len(values), body)

    readers = {code: one(read) for code, read in base.readers.items()} | {codes.DESCRIBED: read_described}
    return FieldType(base.name, readers, write, base.requires)


def _read_list(base: FieldType, buf: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
    """The list behind the descriptor true: its elements are all of the field's type."""
    start = pos
    items, end = TABLE[buf[pos]](buf, pos + 1, budget)
    if items.__class__ is not list:
        raise InvalidFieldError(f"several of {base.name} are a list, not what {buf[start]:#04x} constructs")
    if not items:
        return (), end
    pos = start + (3 if buf[start] == codes.LIST8 else 9)
    values: list[Any] = []
    for _ in items:
        reader = base.readers.get(buf[pos])
        if reader is None:
            raise InvalidFieldError(f"{base.name} expected in a list of several, got {buf[pos]:#04x}")
        value, pos = reader(buf, pos + 1, budget)
        values.append(value)
    return tuple(values), end
