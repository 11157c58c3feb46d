"""Brings a connection back after a loss: dial again, declare again, consume again, publish again (0-9-1 and 10.3 leave it to clients).

In this order: the connection; its channels; exchanges, queues and bindings; consumers, with the prefetch that they had; then
calls go on, and publishers publish again what was not confirmed.

* A declaration that the server refuses now is logged, and left out: its queue may have been changed meanwhile. One that is
  locked (405) is tried again with the whole connection, because the server may not have noticed the loss yet, and then a queue
  that is exclusive is still that of the old connection.
* A consumer that the server refuses ends its channel, and no other.
* A channel that the server closed for an error stays closed, and so does a transaction whose connection was lost.

What would only come again is final: errors of security, a URL or an option that cannot be, and reply codes other than 320
(forced), 506 and 541 (the server's own failures).
"""

from __future__ import annotations

import logging
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final

import trio

from trio_amqp10.peer.recovery_base import RecoveryBase

from .connection_base import ConnectionBase
from .errors import ChannelClosedError, ConnectionClosedError, ResourceLockedError, connection_lost
from .reply import TransportLostError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio_amqp10.amqp091.methods import Method

    from .channel_base import ChannelBase

__all__ = ["Recovery"]

_AHEAD: Final = 256
"""Declarations that are sent before the first of them is answered."""


class Recovery(RecoveryBase[ConnectionBase[Any]]):
    """See ``RecoveryBase``."""

    log: ClassVar[logging.Logger] = logging.getLogger("trio_amqp10.amqp091")
    closed_error: ClassVar[type[Any]] = ConnectionClosedError

    def lost(self, reason: str, cause: BaseException | None = None) -> ConnectionClosedError:
        return connection_lost(reason, cause)

    async def restore(self) -> None:
        connection = self._connection
        channels = [channel for channel in connection.channels if channel.restores]
        replies = [reply for channel in channels for reply in channel.attach()]
        for reply in replies:
            await self._result_of(reply.result)
        await self._declare()
        channels = [channel for channel in channels if channel in connection.channels]  # not closed meanwhile
        for reply in [reply for channel in channels for reply in channel.restart_consumers()]:
            await self._result_of(reply.result)

    async def _result_of(self, call: Callable[[], Awaitable[object]]) -> None:
        """Wait for an answer; the end of one channel is its own affair."""
        try:
            await call()
        except ResourceLockedError:
            raise
        except (ChannelClosedError, trio.ClosedResourceError) as failure:
            self.log.warning("a channel could not be brought back: %s", failure)
        except TransportLostError as lost:
            raise connection_lost("while it was brought back", lost) from lost

    async def _declare(self) -> None:
        """Exchanges and queues, then bindings, many of them before the first is answered.

        A refusal closes the channel, and the server drops what was sent behind the request that it refused: that is the first
        one without an answer. What is behind it is sent again, at first singly, so that refusals in a row cost one request each.
        """
        width, channel = _AHEAD, None
        try:
            for stage in self._connection.topology.stages():
                left = deque(stage)
                while left:
                    channel = channel or await self._channel_of_our_own()
                    sent = list(islice(left, width))
                    refusal = await self._declared(channel, sent, left)
                    width = min(2 * width, _AHEAD)
                    if refusal is not None:
                        self.log.warning("%r could not be declared again: %s", left.popleft(), refusal)
                        width, channel = 1, None
            if channel is not None:
                await channel.aclose()
        finally:
            if channel is not None:
                self._connection.channels.pop(channel, None)

    async def _channel_of_our_own(self) -> ChannelBase[Any]:
        channel: ChannelBase[Any] = self._connection.declaring_channel()
        self._connection.channels[channel] = None
        for reply in channel.attach():
            await self._result_of(reply.result)
        return channel

    async def _declared(
        self, channel: ChannelBase[Any], sent: list[Method], left: deque[Method]
    ) -> ChannelClosedError | None:
        """Send requests, and take from ``left`` what was declared; the refusal that ended it, if one did."""
        for method, reply in [(method, channel.ask(method)) for method in sent]:
            try:
                answer: Any = (await reply.result()).method
            except TransportLostError as lost:
                raise connection_lost("while it was brought back", lost) from lost
            except ResourceLockedError:
                raise
            except ChannelClosedError as refusal:
                return refusal
            left.popleft()
            if method.plan.name == "queue.declare":
                self._connection.topology.renamed(method, answer.queue)
        return None
