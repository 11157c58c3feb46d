"""Addresses of exchanges in a container: ``/exchanges/NAME`` and ``/exchanges/NAME/KEY``, in percent-encoding.

Knows how they are written; does not know what is there.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

__all__ = ["exchange_address", "parse_exchange"]

_EXCHANGES: Final = "/exchanges/"


def exchange_address(name: str, key: str | None = None) -> str:
    """The address of an exchange, where messages have this routing key if there is one."""
    return f"{_EXCHANGES}{quote(name, safe='')}" + ("" if key is None else f"/{quote(key, safe='')}")


def parse_exchange(address: str) -> tuple[str, str] | None:
    """The exchange and the routing key that an address names; None if it does not name both."""
    if not address.startswith(_EXCHANGES):
        return None
    name, slash, key = address.removeprefix(_EXCHANGES).partition("/")
    return (unquote(name), unquote(key)) if slash and "/" not in key else None
