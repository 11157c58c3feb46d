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
from typing import TYPE_CHECKING
from weakref import WeakSet

import trio

from trio_amqp10.amqp091 import spec
from trio_amqp10.errors import LocalProtocolError, SecurityError
from trio_amqp10.peer.changes import Change, Changes

from .channel import Channel
from .errors import ChannelClosedError, ConnectionClosedError, ResourceLockedError, connection_lost
from .reply import TransportLostError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from trio_amqp10.net.backoff import Backoff

    from .connection import Connection

__all__ = ["Recovery", "is_final"]

_log = logging.getLogger("trio_amqp10.amqp091")


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
        backoff: how often to try.

    Attributes:
        stopped: whether it has given up, or was stopped.
    """

    def __init__(self, connection: Connection, dial: Callable[[], Awaitable[str]], backoff: Backoff) -> None:
        self._connection = connection
        self._dial = dial
        self._backoff = backoff
        self._scope = trio.CancelScope(shield=True)
        self._watchers: WeakSet[Changes] = WeakSet()
        self._row: Iterator[float] | None = None
        self._pause = 0.0
        self._since = trio.current_time()
        self.stopped = False

    def covers(self, loss: Exception) -> bool:
        """Whether a loss is not the end."""
        return not self.stopped and not is_final(loss)

    def stop(self) -> None:
        """The connection is closed here."""
        self._end(None)
        self._scope.cancel()

    def changes(self) -> Changes:
        """What happens from now on."""
        watcher = Changes(ended=self.stopped)
        self._watchers.add(watcher)
        return watcher

    async def run(self) -> None:
        """Watch over the connection until it is stopped."""
        connection = self._connection
        with self._scope:
            while not self.stopped:
                await connection.pump.finished.wait()
                loss = connection.loss or connection_lost("the transport ended")
                if not self.covers(loss):
                    self._give_up(loss)
                    break
                _log.warning("the connection was lost, and will be dialled again: %s", loss)
                self._tell(Change("lost", loss))
                await self._come_back()

    async def _come_back(self) -> None:
        connection = self._connection
        if trio.current_time() - self._since > self._pause:
            self._row = None  # it has lasted, so the next pause is a short one
        while not self.stopped:
            if self._row is None:
                self._row = self._backoff.pauses()
            pause = next(self._row, None)
            if pause is None:
                self._give_up(self._exhausted())
                return
            self._pause = pause
            await trio.sleep(pause)
            try:
                url = await self._dial()
                await self._restore()
            except Exception as failure:
                await connection.hang_up()
                if is_final(failure):
                    self._give_up(failure)
                    return
                _log.warning("the connection could not be brought back: %s", failure)
                if isinstance(failure, ConnectionClosedError):
                    connection.loss = failure
            else:
                self._since = trio.current_time()
                connection.on_ready()
                _log.info("the connection is back, at %s", url)
                self._tell(Change("restored", url=url))
                return

    # -- what was there ---------------------------------------------------------------------

    async def _restore(self) -> None:
        """Have everything as it was. Raises what keeps it from that."""
        connection = self._connection
        channels = [channel for channel in connection.channels if channel.restores]
        replies = [reply for channel in channels for reply in channel.attach()]
        for reply in replies:
            await self._result_of(reply.result)
        await self._declare()
        for channel in channels:
            if channel not in connection.channels:
                continue  # the server has closed it meanwhile
            for reply in channel.restart_consumers():
                await self._result_of(reply.result)

    async def _result_of(self, call: Callable[[], Awaitable[object]]) -> None:
        """Wait for an answer; the end of one channel is its own affair."""
        try:
            await call()
        except ResourceLockedError:
            raise
        except (ChannelClosedError, trio.ClosedResourceError) as failure:
            _log.warning("a channel could not be brought back: %s", failure)
        except TransportLostError as lost:
            raise connection_lost("while it was brought back", lost) from lost

    async def _declare(self) -> None:
        """Exchanges, queues and bindings, on channels of their own: an error closes a channel."""
        connection = self._connection
        channel: Channel | None = None
        try:
            for method in connection.topology.requests():
                if channel is None:
                    channel = Channel(connection, None)
                    connection.channels[channel] = None
                    channel.attach()
                try:
                    answer = (await channel.ask(method).result()).method
                except TransportLostError as lost:
                    raise connection_lost("while it was brought back", lost) from lost
                except ResourceLockedError:
                    raise
                except ChannelClosedError as failure:
                    _log.warning("%r could not be declared again: %s", method, failure)
                    channel = None
                    continue
                if isinstance(method, spec.QueueDeclare) and isinstance(answer, spec.QueueDeclareOk):
                    connection.topology.renamed(method, answer.queue)
            if channel is not None:
                await channel.aclose()
        finally:
            if channel is not None:
                connection.channels.pop(channel, None)

    # -- the end ----------------------------------------------------------------------------

    def _exhausted(self) -> ConnectionClosedError:
        loss = self._connection.loss
        return connection_lost(
            f"{self._backoff.attempts} attempts to bring it back have failed, the last with: {loss}", loss
        )

    def _give_up(self, failure: Exception) -> None:
        _log.warning("the connection is given up: %s", failure)
        self._end(failure)
        self._connection.give_up(failure)

    def _end(self, failure: Exception | None) -> None:
        if not self.stopped:
            self.stopped = True
            self._tell(Change("stopped", failure))

    def _tell(self, change: Change) -> None:
        for watcher in list(self._watchers):
            watcher.add(change)
