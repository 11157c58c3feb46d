"""Recovery of a lost connection, which RFC 006 leaves to clients.

Restores in this order: the connection; its channels, each with its handles and their subscriptions. Then calls continue, and
messages that were sent but not confirmed are sent again. A transacted channel stays closed. If the server refuses a handle, only
this handle is closed.

A reason that would only occur again ends the connection for good: security errors, and reply codes other than 320 (the server
still counts the lost client as active), 506 and 541 (failures of the server). A server that closes without a reason during the
login counts as a loss, because the first login succeeded.
"""

from __future__ import annotations

import logging
from typing import ClassVar

import trio

from trio_amqp10.net.recovery_base import RecoveryBase

from .connection import Connection
from .errors import ChannelClosedError, ConnectionClosedError, TransportLostError


class Recovery(RecoveryBase[Connection]):
    """Recovery of AMQP/Fast; see ``RecoveryBase``."""

    log: ClassVar[logging.Logger] = logging.getLogger("trio_amqp10.amqp_fast")
    closed_error: ClassVar[type[ConnectionClosedError]] = ConnectionClosedError

    def exhausted(self, last: BaseException | None) -> ConnectionClosedError:
        closed = ConnectionClosedError(
            None, f"{self._attempts} to bring it back have failed, the last with: {last}"
        )
        closed.__cause__ = last
        return closed

    def passed(self, loss: Exception) -> None:
        if isinstance(loss, ConnectionClosedError):
            self._connection.loss = loss

    async def restore(self) -> None:
        channels = list(self._connection.channels)
        for channel in channels:
            channel.attach()
        for channel in channels:
            try:
                await channel.restore()
            except (ChannelClosedError, trio.ClosedResourceError) as refusal:
                self.log.warning("%r could not be restored: %s", channel, refusal)
            except TransportLostError as lost:
                raise ConnectionClosedError(
                    None, "the transport was lost while the connection was being restored"
                ) from lost
