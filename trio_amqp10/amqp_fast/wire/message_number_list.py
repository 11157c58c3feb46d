"""Lists of message numbers in HANDLE INDEX: ``0 5 9 15-40 80`` (RFC 006, 3.5.12)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from trio_amqp10.core.reply_codes import ReplyCodeRfc011

from .faults import ReplyError

if TYPE_CHECKING:
    from collections.abc import Iterable

_TERM: Final = re.compile(rb"([0-9]{1,10})(?:-([0-9]{1,10}))?")
_MOST: Final = 0xFFFFFFFF


def write_list(numbers: Iterable[int], largest: int = 0xFFFF) -> tuple[bytes, int]:
    """Encode numbers in ascending order; consecutive numbers become ranges.

    Args:
        numbers: 0 to 2**32 - 1.
        largest: maximum octets of the list.

    Returns:
        The list, and 0; if there was no room for all numbers, the highest number in it instead of 0.
    """
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    terms: list[bytes] = []
    size = highest = 0
    for first, last in ranges:
        term = b"%d" % first if first == last else b"%d-%d" % (first, last)
        size += len(term) + bool(terms)
        if size > largest:
            return b" ".join(terms), highest
        terms.append(term)
        highest = last
    return b" ".join(terms), 0


def read_list(octets: bytes) -> list[range]:
    """Decode a list to ranges, in their order in the list.

    Raises:
        ReplyError: 502: the list is malformed.
    """
    found: list[range] = []
    for term in octets.split():
        match = _TERM.fullmatch(term)
        first, last = (0, -1) if match is None else (int(match[1]), int(match[2] or match[1]))
        if match is None or not first <= last <= _MOST:
            raise ReplyError(
                ReplyCodeRfc011.SYNTAX_ERROR, f"message-list: {term[:30]!r} is not a number or a range"
            )
        found.append(range(first, last + 1))
    return found
