"""What the short ways of reading and writing have in common: their faults, and the octets that they remember.

Strings and symbols of declared fields are few in practice, and remembered; ids are not. Knows no section: see
``message.header_and_properties``, ``message.usual_readers`` and ``message.usual_writers``.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError

from . import codes
from .bounded_memo import BoundedMemo
from .encode import WRITERS
from .values import Symbol

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ENCODED_STRINGS",
    "ENCODED_SYMBOLS",
    "READ_FAULTS",
    "STRING_HEADS",
    "SYMBOLS",
    "WRITE_FAULTS",
    "encoder",
]

READ_FAULTS: Final = (IndexError, KeyError, UnicodeDecodeError, struct.error, RemoteProtocolError)
"""What a short way of reading meets where octets are not of the usual shape."""

WRITE_FAULTS: Final = (IndexError, UnicodeEncodeError, struct.error, LocalProtocolError)
"""What a short way of writing meets where a value is too long for it, or none that can be sent."""


def encoder(name: str) -> Callable[[Any], bytes]:
    """The octets of a value of the type ``name``, constructor first."""
    write = WRITERS[name]

    def octets(value: Any) -> bytes:
        out = bytearray()
        write(out, value, 0)
        return bytes(out)

    return octets


ENCODED_STRINGS: Final = BoundedMemo[str, bytes](encoder("string"))
"""The octets of a string by its text: of addresses, subjects and the keys of maps."""

STRING_HEADS: Final = [bytes((codes.STRING8, size)) for size in range(256)]
"""Constructor and size of a short string, by its size."""

ENCODED_SYMBOLS: Final = BoundedMemo[str, bytes](encoder("symbol"))
"""Those of a symbol likewise: a memo of its own, for a symbol equals the string of its text."""

SYMBOLS: Final = BoundedMemo[bytes, Symbol](lambda octets: Symbol(octets.decode("ascii")))
"""Symbols by their octets, without constructor and size."""
