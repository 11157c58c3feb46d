"""A log of the octets that pumps read and write, above TLS and WebSockets.

Who logs says so once, for all pumps that are made from then on, of every dialect. Knows no dialect, and not what is logged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OctetLog", "log_octets", "new_octet_log"]


class OctetLog(Protocol):
    """The log of one pump. Its methods must not raise."""

    def read(self, octets: bytes) -> None:
        """The engine is given these octets of the peer."""
        ...

    def written(self, octets: bytes) -> None:
        """These octets of the engine are to be written."""
        ...


_makers: Final[list[Callable[[], OctetLog | None]]] = []


def log_octets(make: Callable[[], OctetLog | None]) -> None:
    """Have this asked for the log of each new pump, in place of what was asked before; None for a pump without a log."""
    _makers[:] = [make]


def new_octet_log() -> OctetLog | None:
    """The log of a new pump."""
    return _makers[0]() if _makers else None
