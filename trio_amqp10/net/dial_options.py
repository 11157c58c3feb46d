"""The options of dialling that every protocol has.

These are the permission to send a password in the clear, the time-out of a close, and reconnection. Knows no protocol.
"""

from __future__ import annotations

from dataclasses import dataclass

from .backoff import Backoff


@dataclass(frozen=True, kw_only=True)
class CommonDialOptions:
    """Options of every ``open_connection``.

    Has no slots, so that another options class can inherit it together with other options.
    """

    allow_plaintext_password: bool = False
    close_timeout: float = 5.0
    reconnect: bool | Backoff = False

    @property
    def backoff(self) -> Backoff | None:
        """When to dial again; None for never."""
        return Backoff() if self.reconnect is True else self.reconnect or None
