"""A 0-9-1 connection as a program sees it: channels, publishers, transactions, blocking by the server (0-9-1, class connection).

What it has in common with a connection of 10.3 is in ``connection_base``, what happens after a loss in ``recovery``.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar

import trio

from trio_amqp10.amqp091.events import Arrival, Blocked, SecretAccepted, Unblocked
from trio_amqp10.amqp091.spec import ConnectionUpdateSecretOk

from .channel import Channel
from .connection_base import DEFAULT_PREFETCH, ConnectionBase, ConnectionStatistics
from .opening import ChannelOpening
from .publisher import Publisher
from .reply import Reply, TransportLostError
from .requester import RequesterOpening
from .transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.events import Event

__all__ = ["Connection", "ConnectionStatistics"]

_log = logging.getLogger("trio_amqp10.amqp091")


class Connection(ConnectionBase[Channel]):
    """One connection; made by ``open_connection``.

    Attributes:
        engine, pump: of the transport that there is now, or was last.
        close_timeout: seconds to wait for the server's answer when something is closed.
        recovery: brings it back; None without ``reconnect``.
        topology, records: what was declared on it.
        channels: those that are not closed.
        loss: why it was lost last; None if it never was.
        blocked: why the server takes no publishes now, such as ``"low on memory"``; None if it does. Publishes wait meanwhile.
    """

    def __init__(self, close_timeout: float) -> None:
        super().__init__(close_timeout)
        self._secrets: deque[Reply] = deque()

    # -- what it is -------------------------------------------------------------------------

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The extensions that the server says it has, such as ``publisher_confirms``."""
        return self.engine.capabilities

    # -- what a program does ----------------------------------------------------------------

    def open_channel(self, *, prefetch: int | None = DEFAULT_PREFETCH) -> ChannelOpening[Channel]:
        """Open a channel: ``async with connection.open_channel() as channel`` (0-9-1, channel.open).

        Args:
            prefetch: unsettled deliveries under way for each of its consumers, 1 to 65535; None for no limit.

        Raises (on entering):
            LocalProtocolError: as many channels as were agreed are open, or the prefetch is out of its range.
            ConnectionClosedError: the connection is gone.
        """
        return ChannelOpening(lambda: Channel(self, prefetch))

    def open_publisher(
        self, *, window: int = 1000, republish: bool = True, prefetch: int | None = DEFAULT_PREFETCH
    ) -> ChannelOpening[Publisher]:
        """Open a channel whose publishes are confirmed (RabbitMQ's confirm.select).

        Leaving its block waits until every publish has ended, and raises the first failure that no program asked for.

        Args:
            window: publishes that may wait for their confirm.
            republish: if the connection is lost and comes back, publish again what was not confirmed (at least once); False:
                that is in doubt, and raises ``PublishInDoubtError``.
            prefetch: as for ``open_channel``.

        Raises (on entering): as ``open_channel``.
        """
        return ChannelOpening(lambda: Publisher(self, prefetch, window=window, republish=republish))

    def open_transaction(self, *, prefetch: int | None = DEFAULT_PREFETCH) -> ChannelOpening[Transaction]:
        """Open a channel with transactions (0-9-1, tx.select): leaving commits, or rolls back after an exception.

        Raises (on entering): as ``open_channel``.
        """
        return ChannelOpening(lambda: Transaction(self, prefetch))

    def open_requester(self, routing_key: str, exchange: str = "") -> RequesterOpening:
        """Send requests and wait for replies, over RabbitMQ's direct reply-to.

        Args:
            routing_key: with the default exchange, the queue that takes the requests.
            exchange: another exchange.

        Raises (on entering): as ``open_channel``.
        """
        return RequesterOpening(self, routing_key, exchange)

    async def update_secret(self, secret: bytes, reason: str = "") -> None:
        """Give the server a new token, where the login was one (RabbitMQ's connection.update-secret).

        A connection that reconnects logs in with what it was opened with: give it a mechanism that fetches tokens. If it is
        lost before the answer and comes back, the server is given the token again.

        Raises:
            ConnectionClosedError: the server refuses it, which ends the connection; or the connection is gone.

        Cancelled: the server may have it or not.
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
        """Wait until the server takes publishes.

        Raises:
            ConnectionClosedError: the connection is gone.

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
        """As of ``ConnectionBase``."""
        return Channel(self, None)

    def fail_requests(self, failure: Exception) -> None:
        """As of ``ConnectionBase``: new secrets that the server has not taken."""
        while self._secrets:
            self._secrets.popleft().fail(failure)

    # -- what the engine reports ------------------------------------------------------------

    def _on_blocked(self, event: Blocked) -> None:
        self.blocked = event.reason or "no reason given"
        _log.warning("the server takes no publishes for now: %s", self.blocked)
        self.wake_all()

    def _on_unblocked(self, _event: Unblocked) -> None:
        self.blocked = None
        _log.info("the server takes publishes again")
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
