"""Brings a connection back after a loss: dial again, open again, subscribe again (RFC 006 leaves it to clients).

In this order: the connection; its channels, each with its handles and their subscriptions; then calls go on, and what was sent and
not confirmed is sent again. A transacted channel stays closed. A handle that the server refuses now is closed, and no other.

What would only come again is final: errors of security, and reply codes other than 320 (the server still sees the client that was
lost), 506 and 541 (the server's own failures). A login that ends without a word counts as a loss here: the first one has succeeded.
"""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import trio

from trio_amqp10.peer.recovery_base import RecoveryBase

from .connection import Connection
from .errors import ChannelClosedError, ConnectionClosedError, TransportLostError

__all__ = ["Recovery"]


class Recovery(RecoveryBase[Connection]):
    """See ``RecoveryBase``."""

    log: ClassVar[logging.Logger] = logging.getLogger("trio_amqp10.amqp_fast")
    closed_error: ClassVar[type[Any]] = ConnectionClosedError

    def lost(self, reason: str, cause: BaseException | None = None) -> ConnectionClosedError:
        closed = ConnectionClosedError(None, reason)
        closed.__cause__ = cause
        return closed

    async def restore(self) -> None:
        channels = list(self._connection.channels)
        for channel in channels:
            channel.attach()
        for channel in channels:
            try:
                await channel.restore()
            except (ChannelClosedError, trio.ClosedResourceError) as refusal:
                self.log.warning("%r could not be brought back: %s", channel, refusal)
            except TransportLostError as lost:
                raise self.lost("while it was brought back") from lost
