"""SASLprep: normalise user names and passwords (RFC 4013).

Strings count as *stored strings* (RFC 5802, section 2.2): code points that Unicode 3.2 did not
assign are refused, for what they normalise to may change yet. Among them are most emoji.

Knows no mechanism, and quotes nothing of a string that it refuses: it may be a password.
"""

from __future__ import annotations

import stringprep
import unicodedata
from typing import TYPE_CHECKING, Final

from trio_amqp10.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PREPARED_LIMIT", "prepare", "saslprep"]

PREPARED_LIMIT: Final = 255
"""Octets of a prepared user name or password: what goes into a key derivation stays short."""

_PROHIBITED: Final[tuple[tuple[Callable[[str], bool], str], ...]] = (
    (stringprep.in_table_c21_c22, "a control character"),
    (stringprep.in_table_c3, "a private-use character"),
    (stringprep.in_table_c4, "a non-character"),
    (stringprep.in_table_c5, "a lone surrogate"),
    (stringprep.in_table_c6, "a character that is no plain text"),
    (stringprep.in_table_c7, "an ideographic description character"),
    (stringprep.in_table_c8, "a character that changes how others are displayed"),
    (stringprep.in_table_c9, "a tagging character"),
    (stringprep.in_table_a1, "a character that Unicode 3.2 has not"),
)
"""RFC 4013, sections 2.3 and 2.5; C.1.2 is not here because the mapping leaves none."""


def saslprep(text: str, what: str = "text") -> str:
    """``text`` in the one form in which it is compared and hashed; it may come out empty.

    Args:
        text: what was typed.
        what: what it is, for the error.

    Raises:
        LocalProtocolError: it holds what RFC 4013 prohibits; the text itself is not quoted.
    """
    mapped = "".join(
        " " if stringprep.in_table_c12(char) else char for char in text if not stringprep.in_table_b1(char)
    )
    # Unicode 3.2's tables, as stringprep wants; later ones normalise some characters to others.
    normal = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    for char in normal:
        for is_prohibited, name in _PROHIBITED:
            if is_prohibited(char):
                raise LocalProtocolError(f"the {what} holds {name} (RFC 4013, 2.3)")
    if any(map(stringprep.in_table_d1, normal)) and not _may_be_right_to_left(normal):
        raise LocalProtocolError(f"the {what} mixes directions of writing (RFC 4013, 2.4)")
    return normal


def _may_be_right_to_left(text: str) -> bool:
    """RFC 3454, section 6: such a string begins and ends so, and has nothing from left to right."""
    return (
        stringprep.in_table_d1(text[0])
        and stringprep.in_table_d1(text[-1])
        and not any(map(stringprep.in_table_d2, text))
    )


def prepare(text: str, what: str, *, empty: bool = False) -> str:
    """``saslprep`` for what goes into an exchange: bounded, and not empty unless ``empty``.

    Raises:
        LocalProtocolError: prohibited characters, nothing left, or more than 255 octets of UTF-8.
    """
    prepared = saslprep(text, what)
    size = len(prepared.encode())
    if size > PREPARED_LIMIT or not (size or empty):
        raise LocalProtocolError(f"a {what} has 1 to {PREPARED_LIMIT} octets, not {size}")
    return prepared
