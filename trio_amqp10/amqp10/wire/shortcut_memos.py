"""Exceptions and memos of the fast paths for reading and writing messages.

Strings and symbols in declared fields have few values in practice, so they are remembered; ids are not. See
``message.header_and_properties_generated``, ``message.readers_shortcut`` and ``message.writers_shortcut``. This module does not
know sections.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

from . import codes
from .bounded_memo import BoundedMemo
from .encode import WRITERS
from .values import Symbol

if TYPE_CHECKING:
    from collections.abc import Callable

READ_FAULTS: Final = (IndexError, KeyError, UnicodeDecodeError, struct.error, RemoteProtocolError)
"""Exceptions of a fast reader if the octets do not have the usual shape."""

WRITE_FAULTS: Final = (IndexError, UnicodeEncodeError, struct.error, LocalProtocolError)
"""Exceptions of a fast writer if a value is too long, or cannot be sent at all."""


def encoder(name: str) -> Callable[[Any], bytes]:
    """Return a function that encodes values of a type, with constructor."""
    write = WRITERS[name]

    def octets(value: Any) -> bytes:
        out = bytearray()
        write(out, value, 0)
        return bytes(out)

    return octets


ENCODED_STRINGS: Final = BoundedMemo[str, bytes](encoder("string"))
"""Encoded strings, by text: addresses, subjects and keys of maps."""

STRING_HEADS: Final = [bytes((codes.STRING8, size)) for size in range(256)]
"""Constructor and size of a short string, by size."""

ENCODED_SYMBOLS: Final = BoundedMemo[str, bytes](encoder("symbol"))
"""Encoded symbols, by text; apart from strings, because a symbol equals its text."""

SYMBOLS: Final = BoundedMemo[bytes, Symbol](lambda octets: Symbol(octets.decode("ascii")))
"""Symbols, by their octets without constructor and size."""
