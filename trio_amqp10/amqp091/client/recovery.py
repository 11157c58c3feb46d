"""Brings a connection back after a loss: dial again, declare again, consume again, publish again (0-9-1 leaves it to clients).

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
from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.amqp091 import spec
from trio_amqp10.errors import LocalProtocolError, SecurityError
from trio_amqp10.net.redial import AttemptsUsedUpError
from trio_amqp10.peer.recovery_events import Change

from .channel import Channel
from .errors import ChannelClosedError, ConnectionClosedError, ResourceLockedError, connection_lost
from .reply import TransportLostError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio_amqp10.amqp091.methods import Method
    from trio_amqp10.net.redial import Redial
    from trio_amqp10.peer.recovery_events import Changes, Watchers

    from .connection import Connection

__all__ = ["Recovery", "is_final", "log"]

log = logging.getLogger("trio_amqp10.amqp091")

_AHEAD: Final = 256
"""Declarations that are sent before the first of them is answered."""


def is_final(failure: Exception) -> bool:
    """Whether dialling again would only bring the same failure again."""
    if isinstance(failure, SecurityError | LocalProtocolError):
        return True
    return isinstance(failure, ConnectionClosedError) and not failure.may_retry


class Recovery:
    """Brings one connection back for as long as that makes sense.

    Args:
        connection: which.
        dial: makes a transport and goes through the handshake; returns where it leads.
        redial: makes the attempts.
        watchers: what happens is reported to them.

    Attributes:
        stopped: whether it has given up, or was stopped.
    """

    def __init__(
        self,
        connection: Connection,
        dial: Callable[[], Awaitable[str]],
        redial: Redial,
        watchers: Watchers,
    ) -> None:
        assert redial.attempts is not None
        self._connection = connection
        self._dial = dial
        self._redial = redial
        self._attempts = redial.attempts
        self._watchers = watchers
        self._scope = trio.CancelScope(shield=True)
        self.stopped = False

    def covers(self, loss: Exception) -> bool:
        """Whether a loss is not the end."""
        return not self.stopped and not is_final(loss)

    def stop(self) -> None:
        """The connection is closed here."""
        self._end(None)
        self._scope.cancel()

    def changes(self, *, attempts: bool = False) -> Changes:
        """What happens from now on."""
        return self._watchers.changes(attempts=attempts)

    async def run(self) -> None:
        """Watch over the connection until it is stopped."""
        connection = self._connection
        with self._scope:
            while not self.stopped:
                await connection.pump.finished.wait()
                loss = connection.loss or connection_lost("the transport ended")
                if not self.covers(loss):
                    self._stop(loss)
                    break
                log.warning("the connection was lost, and will be dialled again: %s", loss)
                self._watchers.tell(Change("lost", loss))
                await self._come_back(loss)

    async def _come_back(self, loss: Exception) -> None:
        connection = self._connection
        if self._attempts.lasted(trio.current_time()):
            self._attempts.end()
        try:
            url = await self._redial.again(self._dial_and_restore, loss, self._clean_up)
        except AttemptsUsedUpError as used_up:
            last = used_up.__cause__
            self._stop(
                connection_lost(f"{self._attempts} to bring it back have failed, the last with: {last}", last)
            )
        except Exception as failure:
            self._stop(failure)
        else:
            self._attempts.reached(trio.current_time())
            connection.on_ready()
            log.info("the connection is back, at %s", url)
            self._watchers.tell(Change("restored", url=url))

    async def _dial_and_restore(self) -> str:
        """One attempt; where it leads."""
        url = await self._dial()
        await self._restore()
        return url

    async def _clean_up(self, failure: Exception) -> None:
        """An attempt has failed."""
        await self._connection.pump.abort()
        if isinstance(failure, ConnectionClosedError) and not is_final(failure):
            self._connection.loss = failure

    # -- what was there ---------------------------------------------------------------------

    async def _restore(self) -> None:
        """Have everything as it was. Raises what keeps it from that."""
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
            log.warning("a channel could not be brought back: %s", failure)
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
                    channel = channel or self._channel_of_our_own()
                    sent = list(islice(left, width))
                    refusal = await self._declared(channel, sent, left)
                    width = min(2 * width, _AHEAD)
                    if refusal is not None:
                        log.warning("%r could not be declared again: %s", left.popleft(), refusal)
                        width, channel = 1, None
            if channel is not None:
                await channel.aclose()
        finally:
            if channel is not None:
                self._connection.channels.pop(channel, None)

    def _channel_of_our_own(self) -> Channel:
        channel = Channel(self._connection, None)
        self._connection.channels[channel] = None
        channel.attach()
        return channel

    async def _declared(
        self, channel: Channel, sent: list[Method], left: deque[Method]
    ) -> ChannelClosedError | None:
        """Send requests, and take from ``left`` what was declared; the refusal that ended it, if one did."""
        for method, reply in [(method, channel.ask(method)) for method in sent]:
            try:
                answer = (await reply.result()).method
            except TransportLostError as lost:
                raise connection_lost("while it was brought back", lost) from lost
            except ResourceLockedError:
                raise
            except ChannelClosedError as refusal:
                return refusal
            left.popleft()
            if isinstance(method, spec.QueueDeclare) and isinstance(answer, spec.QueueDeclareOk):
                self._connection.topology.renamed(method, answer.queue)
        return None

    # -- the end ----------------------------------------------------------------------------

    def _stop(self, failure: Exception) -> None:
        log.warning("the connection is given up: %s", failure)
        self._end(failure)
        self._connection.fail(failure)

    def _end(self, failure: Exception | None) -> None:
        if not self.stopped:
            self.stopped = True
            self._watchers.tell(Change("stopped", failure))
