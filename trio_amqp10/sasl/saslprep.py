"""SASLprep: the normal form of user names and passwords (RFC 4013).

Strings are treated as *stored strings* (RFC 5802, section 2.2): code points that Unicode 3.2 did not
assign are refused, because their normal form was not defined yet. Among them are most emoji.

Knows no mechanism, and quotes nothing of a refused string, because it may be a password.
"""

from __future__ import annotations

import stringprep
import unicodedata
from typing import TYPE_CHECKING, Final

from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

PREPARED_LIMIT: Final = 255
"""Octets of a prepared user name or password: bounds the key derivation."""

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
"""RFC 4013, sections 2.3 and 2.5; without C.1.2, which the mapping removes."""


def saslprep(text: str, what: str = "text") -> str:
    """Return ``text`` in the form in which it is compared and hashed.

    The result may be empty.

    Args:
        text: as the user typed it.
        what: its kind, for the error.

    Raises:
        LocalProtocolError: RFC 4013 prohibits a character; the text itself is not quoted.
    """
    mapped = "".join(
        " " if stringprep.in_table_c12(char) else char for char in text if not stringprep.in_table_b1(char)
    )
    # stringprep requires the tables of Unicode 3.2; later ones normalise some characters differently.
    normal = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    for char in normal:
        for is_prohibited, name in _PROHIBITED:
            if is_prohibited(char):
                raise LocalProtocolError(f"the {what} contains {name} (RFC 4013, 2.3)")
    if any(map(stringprep.in_table_d1, normal)) and not _may_be_right_to_left(normal):
        raise LocalProtocolError(f"the {what} mixes directions of writing (RFC 4013, 2.4)")
    return normal


def _may_be_right_to_left(text: str) -> bool:
    """Whether a text with right-to-left characters is valid (RFC 3454, section 6).

    It must begin and end with such a character, and contain no left-to-right one.
    """
    return (
        stringprep.in_table_d1(text[0])
        and stringprep.in_table_d1(text[-1])
        and not any(map(stringprep.in_table_d2, text))
    )


def prepare(text: str, what: str, *, empty: bool = False) -> str:
    """Return ``text`` prepared for an exchange.

    Args:
        text: as the user typed it.
        what: its kind, for the error.
        empty: whether the result may be empty.

    Raises:
        LocalProtocolError: prohibited characters, an empty result, or more than 255 octets of UTF-8.
    """
    prepared = saslprep(text, what)
    size = len(prepared.encode())
    if size > PREPARED_LIMIT or not (size or empty):
        raise LocalProtocolError(f"a {what} must have 1 to {PREPARED_LIMIT} octets, not {size}")
    return prepared
