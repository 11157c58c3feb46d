"""The connection of the 0-9-1 client (0-9-1, class connection).

It opens channels, publishers and transactions, and handles blocking by the server. ``connection_base`` has the
parts that a connection of 10.3 has too; ``recovery`` reconnects after a loss.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar

import trio

from trio_amqp10.amqp091.engine.events import Arrival, Blocked, SecretAccepted, Unblocked
from trio_amqp10.amqp091.spec import ConnectionUpdateSecretOk

from .channel import Channel
from .channel_opening import ChannelOpening
from .connection_base import DEFAULT_PREFETCH, ConnectionBase, ConnectionStatistics
from .publisher import Publisher
from .reply import Reply, TransportLostError
from .requester import RequesterOpening
from .transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.engine.events import Event

__all__ = ["Connection", "ConnectionStatistics"]

_log = logging.getLogger("trio_amqp10.amqp091")


class Connection(ConnectionBase[Channel]):
    """One connection; made by ``open_connection``.

    Attributes:
        engine, pump: those of the current transport, or of the last one.
        close_timeout: seconds to wait for the server's answer when something is closed.
        recovery: the task that reconnects; None without ``reconnect``.
        topology: the declarations of this connection, which are repeated after a reconnect.
        channels: the channels that are not closed.
        loss: the reason of the last loss; None if the connection was never lost.
        blocked: the reason why the server accepts no publishes now, such as ``"low on memory"``; otherwise
            None. Publishes wait meanwhile.
    """

    def __init__(self, close_timeout: float) -> None:
        super().__init__(close_timeout)
        self._secrets: deque[Reply] = deque()

    # -- what it is -------------------------------------------------------------------------

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The extensions that the server announces, such as ``publisher_confirms``."""
        return self.engine.capabilities

    # -- what a program does ----------------------------------------------------------------

    def open_channel(self, *, prefetch: int | None = DEFAULT_PREFETCH) -> ChannelOpening[Channel]:
        """Open a channel: ``async with connection.open_channel() as channel``.

        This is channel.open of 0-9-1.

        Args:
            prefetch: unsettled deliveries under way for each of its consumers, 1 to 65535; None for no limit.

        Raises (on entering):
            LocalProtocolError: the agreed number of channels is already open, or ``prefetch`` is out of its
                range.
            ConnectionClosedError: the connection is closed or lost.
        """
        return ChannelOpening(lambda: Channel(self, prefetch))

    def open_publisher(
        self, *, window: int = 1000, republish: bool = True, prefetch: int | None = DEFAULT_PREFETCH
    ) -> ChannelOpening[Publisher]:
        """Open a channel whose publishes are confirmed (RabbitMQ's confirm.select).

        Leaving its block waits until every publish has ended, and raises the first failure that the program has
        not asked for.

        Args:
            window: publishes that may wait for their confirm.
            republish: if the connection is lost and restored, publish unconfirmed messages again (at least
                once). If False, they are in doubt and raise ``PublishInDoubtError``.
            prefetch: as for ``open_channel``.

        Raises (on entering): as ``open_channel``.
        """
        return ChannelOpening(lambda: Publisher(self, prefetch, window=window, republish=republish))

    def open_transaction(self, *, prefetch: int | None = DEFAULT_PREFETCH) -> ChannelOpening[Transaction]:
        """Open a channel with transactions (0-9-1, tx.select).

        Leaving its block commits, or rolls back after an exception.

        Raises (on entering): as ``open_channel``.
        """
        return ChannelOpening(lambda: Transaction(self, prefetch))

    def open_requester(self, routing_key: str, exchange: str = "") -> RequesterOpening:
        """Open a requester, which sends requests and waits for replies.

        It uses RabbitMQ's direct reply-to.

        Args:
            routing_key: with the default exchange, the queue that receives the requests.
            exchange: the exchange to publish to; empty for the default exchange.

        Raises (on entering): as ``open_channel``.
        """
        return RequesterOpening(self, routing_key, exchange)

    async def update_secret(self, secret: bytes, reason: str = "") -> None:
        """Send a new token to a server that authenticated the connection by token.

        This is RabbitMQ's connection.update-secret. A connection that reconnects logs in with its original
        ``sasl`` argument: pass a mechanism that fetches tokens. If the connection is lost before the answer, and
        restored, the token is sent again.

        Raises:
            ConnectionClosedError: the server refuses the token, which ends the connection; or the connection is
                lost.

        Cancelled: the server may have the token or not.
        """
        self.expect()
        try:
            while True:
                await self.wait_recovered()
                reply = Reply()
                self.engine.update_secret(secret, reason)
                self._secrets.append(reply)
                self.wake_writer()
                try:
                    await reply.result()
                except TransportLostError:
                    continue
                return
        finally:
            self.expect_no_more()

    async def wait_unblocked(self) -> None:
        """Wait until the server accepts publishes.

        Raises:
            ConnectionClosedError: the connection is lost.

        Cancelled: nothing has happened.
        """
        await trio.lowlevel.checkpoint()
        while True:
            await self.wait_recovered()
            if self.blocked is None:
                return
            await self.wait()

    # -- what its channels use --------------------------------------------------------------

    def declaring_channel(self) -> Channel:
        """Return a channel that is not opened yet, on which recovery declares again."""
        return Channel(self, None)

    def fail_requests(self, failure: Exception) -> None:
        """Fail the token updates that the server has not answered."""
        while self._secrets:
            self._secrets.popleft().fail(failure)

    # -- what the engine reports ------------------------------------------------------------

    def _on_blocked(self, event: Blocked) -> None:
        self.blocked = event.reason or "no reason given"
        _log.warning("the server blocks publishes for now: %s", self.blocked)
        self.wake_all()

    def _on_unblocked(self, _event: Unblocked) -> None:
        self.blocked = None
        _log.info("the server accepts publishes again")
        self.wake_all()

    def _on_secret_accepted(self, _event: SecretAccepted) -> None:
        if self._secrets:
            self._secrets.popleft().settle(Arrival(ConnectionUpdateSecretOk()))

    REACTIONS: ClassVar[Mapping[type[Event], Callable[[Any, Any], None]]] = {
        **ConnectionBase.REACTIONS,
        Blocked: _on_blocked,
        Unblocked: _on_unblocked,
        SecretAccepted: _on_secret_accepted,
    }
