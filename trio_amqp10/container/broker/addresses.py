"""Addresses of exchanges in a container: ``/exchanges/NAME`` and ``/exchanges/NAME/KEY``, in percent-encoding.

A binding of an exchange has an address for permissions alone: ``/exchanges/NAME/KEY`` with the key of the binding, in which
``*`` and ``#`` stay as they are. ``/exchanges/NAME/#`` stands for all keys. The default exchange has no name: ``/exchanges//#``.

Names and keys of 0-9-1 are octets; those that are no UTF-8 have lone surrogates in their place, and keep their octets here.

Knows how they are written; does not know what is there.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

__all__ = [
    "EXCHANGES",
    "RESERVED",
    "TEMPORARY",
    "binding_address",
    "exchange_address",
    "parse_exchange",
    "spell_exchange",
]

EXCHANGES: Final = "/exchanges/"
"""How the addresses of exchanges begin."""

TEMPORARY: Final = "temporary/"
"""How the addresses begin that the container makes up."""

RESERVED: Final = ("$", "amq.", TEMPORARY, EXCHANGES)
"""How the addresses begin that no peer may choose for a node."""

_ENCODED: Final = re.compile("%[0-9A-Fa-f]{2}")
_ALONE: Final = re.compile("%(?![0-9A-Fa-f]{2})")


def exchange_address(name: str, key: str | None = None) -> str:
    """The address of an exchange, where messages have this routing key if there is one."""
    return f"{EXCHANGES}{_quoted(name)}" + ("" if key is None else f"/{_quoted(key)}")


def parse_exchange(address: str) -> tuple[str, str] | None:
    """The exchange and the routing key that an address names; None if it does not name both."""
    if not address.startswith(EXCHANGES):
        return None
    name, slash, key = address.removeprefix(EXCHANGES).partition("/")
    return (_unquoted(name), _unquoted(key)) if slash and "/" not in key else None


def binding_address(name: str, key: str = "#") -> str:
    """The address of what an exchange hands on by a binding with this key; of all that it hands on, without a key."""
    return f"{EXCHANGES}{_quoted(name)}/{quote(key, safe='*#', errors='surrogateescape')}"


def spell_exchange(address: str) -> str:
    """The one spelling of the address of an exchange, whose octets may be percent-encoded or not."""
    if address.isascii() and address.replace("/", "").isalnum():
        return address
    return quote(_ALONE.sub("%25", _ENCODED.sub(_spelt, address)), safe="/%*#", errors="surrogateescape")


def _spelt(encoded: re.Match[str]) -> str:
    """An octet of the percent-encoding: as a character, if that needs no encoding."""
    character = chr(int(encoded[0][1:], 16))
    return character if character.isascii() and _quoted(character) == character else encoded[0].upper()


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="surrogateescape")


def _unquoted(text: str) -> str:
    return unquote(text, errors="surrogateescape")
