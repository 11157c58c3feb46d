"""Brings a connection back after a loss: dial again, declare again, consume again, publish again (0-9-1 and 10.3 leave it to clients).

In this order: the connection; its channels; exchanges, queues and bindings; consumers, with the prefetch that they had; then
calls go on, and publishers publish again what was not confirmed.

* A declaration that the server refuses now is logged, and left out: its queue may have been changed meanwhile. A consumer that
  it refuses ends its channel, and no other.
* The server may not have noticed the loss yet. Then an exclusive queue is still that of the old connection (405), and so is a
  queue whose consumer is exclusive (403, ``in exclusive use``). Both are tried again with the whole connection, for three
  heartbeat intervals and three minutes at least: a server gives up a silent client after two intervals. After that they are
  refusals like any other.
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
from .errors import (
    AccessRefusedError,
    ChannelClosedError,
    ConnectionClosedError,
    ResourceLockedError,
    connection_lost,
)
from .reply import TransportLostError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio_amqp10.amqp091.methods import Method

    from .channel_base import ChannelBase

__all__ = ["Recovery"]

_AHEAD: Final = 256
"""Declarations that are sent before the first of them is answered."""

_PATIENCE: Final = 180.0
"""Seconds, at least, in which what the old connection holds on the server is tried again."""
_INTERVALS: Final = 3
"""The same in intervals of the heartbeat: two until the server gives a silent client up, and one more."""
_IN_USE: Final = "in exclusive use"
"""What servers say of a queue whose consumer is exclusive."""


class Recovery(RecoveryBase[ConnectionBase[Any]]):
    """See ``RecoveryBase``."""

    log: ClassVar[logging.Logger] = logging.getLogger("trio_amqp10.amqp091")
    closed_error: ClassVar[type[Any]] = ConnectionClosedError

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._restoring = False
        self._locked_since: float | None = None

    def lost(self, reason: str, cause: BaseException | None = None) -> ConnectionClosedError:
        return connection_lost(reason, cause)

    def sits_out(self, refusal: Exception) -> bool:
        """As of ``RecoveryBase``: the old connection still holds something on the server, and not for too long."""
        is_held = isinstance(refusal, ResourceLockedError) or (
            isinstance(refusal, AccessRefusedError) and _IN_USE in refusal.text
        )
        if not (self._restoring and is_held):
            return False
        now = trio.current_time()
        if self._locked_since is None:
            self._locked_since = now
        return now < self._locked_since + max(_PATIENCE, _INTERVALS * self._connection.heartbeat)

    async def restore(self) -> None:
        self._restoring = True
        self._connection.expect()
        try:
            await self._restore()
        finally:
            self._connection.expect_no_more()
            self._restoring = False
        self._locked_since = None

    async def _restore(self) -> None:
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
        except (ChannelClosedError, trio.ClosedResourceError) as failure:
            if self.sits_out(failure):
                raise
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
            except ChannelClosedError as refusal:
                if self.sits_out(refusal):
                    raise
                return refusal
            left.popleft()
            if method.plan.name == "queue.declare":
                self._connection.topology.renamed(method, answer.queue)
        return None
