"""Reconnect after a loss: dial, declare, consume and publish again.

0-9-1 and 10.3 leave this to clients. The order is: the connection; its channels; exchanges, queues and
bindings; consumers, with their former prefetch; then calls go on, and publishers publish unconfirmed messages
again.

* If the server refuses a declaration now, the refusal is logged and the declaration is left out, because the
  queue may have been changed meanwhile. If the server refuses a consumer, only the channel of that consumer
  ends.
* The server may not have noticed the loss yet. Then an exclusive queue still belongs to the old connection
  (405), and a queue may still have the old exclusive consumer (403, ``in exclusive use``). In both cases the
  whole connection is retried, for three heartbeat intervals and for at least three minutes: a server regards a
  silent client as lost after two intervals. After that, both codes are refusals like any other.
* A channel that the server closed for an error stays closed, and so does a transaction whose connection was
  lost.

Of the reply codes only 320 (connection-forced), 506 and 541 (failures of the server) are retried. Other codes are final, as
are errors of security, and URLs or options that are not valid.
"""

from __future__ import annotations

import logging
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final

import trio

from trio_amqp10.net.recovery_base import RecoveryBase

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

    from trio_amqp10.amqp091.wire.methods import Method

    from .channel_base import ChannelBase

_AHEAD: Final = 256
"""Declarations that are sent before the first of them is answered."""

_PATIENCE: Final = 180.0
"""The least number of seconds to retry while the old connection holds a queue."""
_INTERVALS: Final = 3
"""The same in heartbeat intervals: a server drops a silent client after two."""
_IN_USE: Final = "in exclusive use"
"""Part of the reply-text of servers if a queue has an exclusive consumer."""


class Recovery(RecoveryBase[ConnectionBase[Any]]):
    """The recovery of a connection of 0-9-1 or 10.3; see ``RecoveryBase``."""

    log: ClassVar[logging.Logger] = logging.getLogger("trio_amqp10.amqp091")
    closed_error: ClassVar[type[ConnectionClosedError]] = ConnectionClosedError

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._restoring = False
        self._locked_since: float | None = None

    def exhausted(self, last: BaseException | None) -> ConnectionClosedError:
        return connection_lost(f"{self._attempts} to reconnect have failed, the last with: {last}", last)

    def passed(self, loss: Exception) -> None:
        if isinstance(loss, ConnectionClosedError):
            self._connection.loss = loss

    def sits_out(self, refusal: Exception) -> bool:
        """Whether the old connection still holds the queue, and it is not too late."""
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
        """Wait for an answer; if only one channel ended, log that and go on."""
        try:
            await call()
        except (ChannelClosedError, trio.ClosedResourceError) as failure:
            if self.sits_out(failure):
                raise
            self.log.warning("could not reopen a channel: %s", failure)
        except TransportLostError as lost:
            raise connection_lost("while it was brought back", lost) from lost

    async def _declare(self) -> None:
        """Declare exchanges and queues, then bindings, many before the first answer.

        A refusal closes the channel, and the server drops all requests after the refused one, which is
        therefore the first without an answer. The requests after it are sent again, at first one by one, so
        that consecutive refusals cost one request each.
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
        """Send requests, and remove each declared one from ``left``; return a refusal."""
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
