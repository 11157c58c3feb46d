"""FaultError: why a request cannot be done, in the manner of HTTP."""

from __future__ import annotations

__all__ = ["FaultError"]


class FaultError(Exception):
    """The answer to a request is this status, with this description."""

    def __init__(self, status: int, description: str) -> None:
        self.status = status
        self.description = description
        super().__init__(description)
