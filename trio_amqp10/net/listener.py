"""Listener: the handle of one listening address, with its URL and ``close``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Listener:
    """One address at which ``serve`` listens.

    Attributes:
        url: the URL to dial, with the real port and without a path.
        port: the real port; 0 for a Unix socket.
    """

    url: str
    port: int
    _close: Callable[[], object] = field(default=lambda: None, repr=False, compare=False)

    def close(self) -> None:
        """Stop listening: new connections are refused, existing ones continue.

        A second call does nothing.
        """
        self._close()
