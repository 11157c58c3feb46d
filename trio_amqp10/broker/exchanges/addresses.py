"""Addresses of exchanges: ``/exchanges/NAME`` and ``/exchanges/NAME/KEY``.

Names and keys are percent-encoded. A binding of an exchange has an address for permissions only: ``/exchanges/NAME/KEY`` with
the key of the binding, in which ``*`` and ``#`` are not encoded. ``/exchanges/NAME/#`` means all keys. The default exchange has
an empty name: ``/exchanges//#``.

Names and keys of 0-9-1 are octets. Octets that are not UTF-8 are lone surrogates in a ``str``, and keep their value here.

Knows the spelling of addresses; does not know which exchanges exist.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

EXCHANGES: Final = "/exchanges/"
"""The prefix of the addresses of exchanges."""

TEMPORARY: Final = "temporary/"
"""The prefix of addresses that the container generates."""

RESERVED: Final = ("$", "amq.", TEMPORARY, EXCHANGES)
"""The prefixes of addresses that no peer may choose for a node."""

_ENCODED: Final = re.compile("%[0-9A-Fa-f]{2}")
_ALONE: Final = re.compile("%(?![0-9A-Fa-f]{2})")


def exchange_address(name: str, key: str | None = None) -> str:
    """Return the address of an exchange, or of an exchange with a routing key."""
    return f"{EXCHANGES}{_quoted(name)}" + ("" if key is None else f"/{_quoted(key)}")


def parse_exchange(address: str) -> tuple[str, str] | None:
    """Return the exchange and the routing key in an address, or None.

    None also for an address without a key.
    """
    if not address.startswith(EXCHANGES):
        return None
    name, slash, key = address.removeprefix(EXCHANGES).partition("/")
    return (_unquoted(name), _unquoted(key)) if slash and "/" not in key else None


def exchange_named(address: str) -> str | None:
    """Return the name in the address of an exchange, or None.

    None also for an address with a key.
    """
    name = address.removeprefix(EXCHANGES)
    return None if name == address or "/" in name else _unquoted(name)


def binding_address(name: str, key: str = "#") -> str:
    """Return the address of the messages that a binding with this key forwards.

    Without a key, the address of all messages that the exchange forwards.
    """
    return f"{EXCHANGES}{_quoted(name)}/{quote(key, safe='*#', errors='surrogateescape')}"


def spell_exchange(address: str) -> str:
    """Return the canonical spelling of the address of an exchange.

    Any of its octets may be percent-encoded or not.
    """
    if address.isascii() and address.replace("/", "").isalnum():
        return address
    return quote(_ALONE.sub("%25", _ENCODED.sub(_spelt, address)), safe="/%*#", errors="surrogateescape")


def _spelt(encoded: re.Match[str]) -> str:
    """Return an encoded octet as a character, if that needs no encoding."""
    character = chr(int(encoded[0][1:], 16))
    return character if character.isascii() and _quoted(character) == character else encoded[0].upper()


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="surrogateescape")


def _unquoted(text: str) -> str:
    return unquote(text, errors="surrogateescape")
