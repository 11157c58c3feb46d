"""Addresses of exchanges in a container: ``/exchanges/NAME`` and ``/exchanges/NAME/KEY``, in percent-encoding.

Names and keys of 0-9-1 are octets; those that are no UTF-8 have lone surrogates in their place, and keep their octets here.

Knows how they are written; does not know what is there.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

__all__ = ["exchange_address", "parse_exchange"]

_EXCHANGES: Final = "/exchanges/"


def exchange_address(name: str, key: str | None = None) -> str:
    """The address of an exchange, where messages have this routing key if there is one."""
    return f"{_EXCHANGES}{_quoted(name)}" + ("" if key is None else f"/{_quoted(key)}")


def parse_exchange(address: str) -> tuple[str, str] | None:
    """The exchange and the routing key that an address names; None if it does not name both."""
    if not address.startswith(_EXCHANGES):
        return None
    name, slash, key = address.removeprefix(_EXCHANGES).partition("/")
    return (_unquoted(name), _unquoted(key)) if slash and "/" not in key else None


def _quoted(text: str) -> str:
    return quote(text, safe="", errors="surrogateescape")


def _unquoted(text: str) -> str:
    return unquote(text, errors="surrogateescape")
