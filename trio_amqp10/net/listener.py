"""Listener: the handle of one listening address, with its URL and ``aclose``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Listener"]


@dataclass(frozen=True, slots=True)
class Listener:
    """Where ``serve`` listens.

    Attributes:
        url: what to dial, with the real port and without a path.
        port: the real port; 0 for a Unix socket.
    """

    url: str
    port: int
    _close: Callable[[], object] = field(default=lambda: None, repr=False, compare=False)

    def close(self) -> None:
        """Listen no more: who dials is refused, who is connected stays. The second time does nothing."""
        self._close()
