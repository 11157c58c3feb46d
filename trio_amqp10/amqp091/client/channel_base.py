"""The parts that channels of the 0-9-1 and 10.3 clients share (0-9-1, 2.2.5).

Requests wait for their answers. Publishes, acknowledgements and refusals are written with the next write of the
connection, and acknowledgements are merged before: one ``basic.ack`` with ``multiple`` covers all up to the
first that is still unsettled. Methods are created by name, from the method table of the version that the
connection uses.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar, cast

import trio

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.events import Arrival
from trio_amqp10.amqp091.engine.states import ChannelState
from trio_amqp10.core.arguments import check_text
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.errors import fresh_copy
from trio_amqp10.net.waiters import CheckpointThrottle, Waiter

from .delivery import DeliveryBase
from .errors import ConnectionClosedError, DeliveryLostError, ReturnedMessage, channel_closed
from .reply import Reply, TransportLostError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.engine.channel import Channel as EngineChannel
    from trio_amqp10.amqp091.engine.events import ChannelClosed
    from trio_amqp10.amqp091.wire.content import Content
    from trio_amqp10.amqp091.wire.methods import Method

    from .connection_base import ConnectionBase
    from .consumer import ConsumerBase
    from .topology import QueueName

D = TypeVar("D", bound=DeliveryBase)
_log = logging.getLogger("trio_amqp10.amqp091")

_RETURNS: Final = 100
"""Returned messages kept for the program; more drop the oldest, with a log line."""

_OPENED: Final = Arrival(spec.ChannelOpenOk())


def checked_prefetch(prefetch: object) -> int | None:
    """Return ``prefetch`` if it is valid.

    Raises:
        LocalProtocolError: it is not 1 to 65535 (0 would mean no limit in the protocol).
    """
    if prefetch is None or (isinstance(prefetch, int) and 1 <= prefetch <= 0xFFFF):
        return prefetch
    raise LocalProtocolError(f"prefetch={prefetch!r}: expected 1 to 65535, or None for no limit")


class ChannelBase(Waiter, trio.abc.AsyncResource, Generic[D]):
    """One channel, with the parts that both versions share.

    Every call raises ``ChannelClosedError`` after the server closed the channel, ``ConnectionClosedError``
    after the connection is lost for good, and ``trio.ClosedResourceError`` after the channel was closed here.
    While a connection that reconnects is down, calls wait until it is back. A call sends its request once,
    unless the connection is lost before the answer, and restored: then the call sends the request again, so
    the server may carry it out twice. If that makes a difference, the documentation of the call describes it.
    If the server closed the connection because of the request, the call raises ``ConnectionClosedError``, and
    the connection is restored without it.

    Attributes:
        connection: its connection.
        engine: the engine's channel; replaced when the connection is restored.
        epoch: how often the connection was lost. Delivery tags of an earlier epoch are not valid any more.
        pace: limits how often cheap calls execute a checkpoint.
    """

    restores: bool = True
    """Whether the channel is opened again after a reconnect."""

    delivery_type: ClassVar[type[Any]]
    """The class of the deliveries that a program receives."""

    deliver_method: ClassVar[type[Method]]
    ack_method: ClassVar[type[Method]]
    """The acknowledging method; a class attribute because it is used so often."""

    def __init__(self, connection: ConnectionBase[Any], prefetch: int | None) -> None:
        super().__init__()
        self.connection = connection
        self.engine: EngineChannel = cast("EngineChannel", None)
        self.epoch: int = 0
        self.pace: CheckpointThrottle = CheckpointThrottle()
        self.prefetch: int | None = checked_prefetch(prefetch)
        self._replies: dict[int, tuple[Method, Reply]] = {}
        # The engine does not match a flow-ok with the request, so flow replies have a list of their own.
        self._flows: deque[Reply] = deque()
        self._paused = False
        self._opened = Reply()
        self._consumers: dict[str, ConsumerBase[D]] = {}
        self._numbered = 0
        self._acks: dict[int, None] = {}
        self._returned: deque[ReturnedMessage] = deque()
        self._returns = Waiter()
        self._attached = False
        self._closed = False
        self._failure: Exception | None = None
        self._failure_was_raised = False

    @property
    def number(self) -> int:
        """The channel number on the connection, from 1."""
        return self.engine.number

    @property
    def unsettled(self) -> int:
        """The number of unsettled deliveries, received by the program or not."""
        return len(self.engine.numbers.deliveries) - len(self._acks) if self._attached else 0

    # -- opening and closing ----------------------------------------------------------------

    async def open(self) -> None:
        """Open the channel on the server."""
        connection = self.connection
        await connection.wait_recovered()
        connection.channels[self] = None
        connection.expect()
        try:
            with contextlib.suppress(TransportLostError):
                for reply in self.attach():
                    await reply.result()
            await self._until_usable()  # the transport may be lost with the last answer
        finally:
            connection.expect_no_more()

    def attach(self) -> list[Reply]:
        """Open an engine channel. Return the replies to wait for until it is usable."""
        self.engine = self.connection.engine.open_channel(**self.opening())
        self.connection.attached[self.engine] = self
        self.engine.on_touch = self._on_touch
        self._attached = True
        self._acks.clear()
        self._opened = Reply()
        self.connection.wake_writer()
        return [self._opened, *(self.ask(method) for method in self.setup())]

    def opening(self) -> Mapping[str, Any]:
        """Return the arguments of channel.open, for versions that have some."""
        return {}

    def setup(self) -> list[Method]:
        """Return the requests to send when the channel is opened, also after a loss."""
        return []

    async def leave(self, *, failed: bool) -> None:
        """Finish and close the channel at the end of its block.

        Args:
            failed: whether the block ends with an exception; then nothing is finished, and no channel error is
                raised.
        """
        try:
            if not failed:
                await self.finish()
        finally:
            await self.aclose()
        if not failed and self._failure is not None and not self._failure_was_raised:
            self._failure_was_raised = True
            raise fresh_copy(self._failure)

    async def finish(self) -> None:
        """Complete pending work before the block ends without an exception."""

    async def aclose(self) -> None:
        """Close the channel (0-9-1, channel.close).

        The server puts back messages that were delivered and not settled. The call waits for the server's
        answer, at most ``close_timeout`` seconds.

        Cancelled: the close is sent, and the answer is not awaited.
        """
        if self._closed:
            await trio.lowlevel.checkpoint()
            return
        self._closed = True
        connection = self.connection
        connection.channels.pop(self, None)
        try:
            if self._attached and self._failure is None and connection.is_live:
                self.flush_acks()
                self.engine.close()
                connection.wake_writer()
                self._fail_replies(trio.ClosedResourceError(f"channel {self.number} was closed"))
                for consumer in self._consumers.values():
                    connection.release(consumer)
                await self._until_closed()
            else:
                await trio.lowlevel.checkpoint()
        finally:
            self.shut(None)

    async def _until_closed(self) -> None:
        connection = self.connection
        connection.expect()
        try:
            with trio.move_on_after(connection.close_timeout):
                while self.engine.state is not ChannelState.CLOSED:
                    await self.wait()
        finally:
            connection.expect_no_more()

    def shut(self, failure: Exception | None) -> None:
        """End all calls, consumers and replies of the channel.

        Args:
            failure: the reason; None if the channel was closed here.
        """
        if self._failure is None:
            self._failure = failure
        self._closed = self._closed or failure is None
        self.connection.channels.pop(self, None)
        if self._attached:
            self.connection.attached.pop(self.engine, None)
        gone = failure or trio.ClosedResourceError("the channel was closed")
        self._acks.clear()
        self._fail_replies(gone)
        for consumer in list(self._consumers.values()):
            self.connection.release(consumer)
            consumer.fail(gone)
        self._consumers.clear()
        self.wake()
        self._returns.wake()

    def _fail_replies(self, failure: Exception) -> None:
        replies, self._replies = self._replies, {}
        for _, reply in replies.values():
            reply.fail(failure)
        while self._flows:
            self._flows.popleft().fail(failure)
        self._opened.fail(failure)

    def check(self) -> None:
        """Raise the reason if the channel is closed."""
        if self._closed:
            raise trio.ClosedResourceError("the channel is closed")
        if self._failure is not None:
            self._failure_was_raised = True
            raise fresh_copy(self._failure)

    def note_raised(self) -> None:
        """Note that a call raised the failure, if there is one: ``leave`` does not."""
        self._failure_was_raised = self._failure is not None

    # -- requests ---------------------------------------------------------------------------

    @property
    def is_usable(self) -> bool:
        """Whether methods can be sent now."""
        return self._attached and self.connection.is_up

    async def _until_usable(self) -> None:
        while True:
            self.check()
            if self.is_usable:
                return
            await self.wait()

    def make(self, name: str, /, **arguments: Any) -> Any:
        """Create a method by its name, in the version that the connection uses.

        Raises:
            LocalProtocolError: the version has no method of this name.
        """
        return self.connection.engine.methods.make(name, **arguments)

    def ask(self, method: Method, late: Callable[[Arrival], None] | None = None) -> Reply:
        """Send a request, and return the reply to wait for.

        Raises:
            LocalProtocolError: the request cannot be sent; nothing was sent.
        """
        self.flush_acks()
        self.engine.send(method)
        reply = Reply(late)
        self._replies[id(method)] = (method, reply)  # keeps the method alive, so that its id stays unique
        self.connection.wake_writer()
        return reply

    async def call(
        self, make: Callable[[], Method], late: Callable[[Arrival], None] | None = None
    ) -> Arrival:
        """Send a request and wait for its answer.

        If the connection is lost before the answer, and restored, the request is sent again.

        Cancelled: the server may have carried out the request; its answer is passed to ``late``.
        """
        while True:
            arrival = await self.attempt(lambda: self.ask(make(), late))
            if arrival is not None:
                return arrival

    async def attempt(self, ask: Callable[[], Reply]) -> Arrival | None:
        """Send a request once the channel is usable, and wait for its answer.

        Return None if the transport is lost before the answer, and the connection will be restored.

        Cancelled: the server may have carried out the request.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        self.connection.expect()
        try:
            await self._until_usable()
            return await self.connection.pump.write_at_once(ask).result()
        except TransportLostError:
            return None
        except trio.BrokenResourceError:
            self.note_raised()
            raise
        finally:
            self.connection.expect_no_more()

    # -- exchanges and queues ---------------------------------------------------------------

    async def make_exchange(self, name: str, **arguments: Any) -> None:
        """Create or check an exchange; see ``declare_exchange``."""
        method = self.make("exchange.declare", exchange=name, **arguments)
        await self.call(lambda: method)
        self.connection.topology.exchange_declared(method)

    async def delete_exchange(self, name: str, *, if_unused: bool = False) -> None:
        """Delete an exchange and its bindings (0-9-1, exchange.delete).

        Raises:
            PreconditionFailedError: ``if_unused`` is set, and the exchange has bindings.

        Cancelled: the exchange may have been deleted or not.
        """
        await self.call(lambda: self.make("exchange.delete", exchange=name, if_unused=if_unused))
        self.connection.topology.exchange_deleted(name)

    async def make_queue(self, name: str, **arguments: Any) -> tuple[QueueName, int, int]:
        """Create or check a queue; return its name, message count and consumer count.

        See ``declare_queue``.
        """
        check_text("name", name)
        method = self.make("queue.declare", queue=name, **arguments)
        topology = self.connection.topology
        try:
            while (arrival := await self.attempt(lambda: self.ask(method))) is None:
                # For a while the server may regard the old connection as the owner of an exclusive queue. The
                # recovery waits for the end of that, so let the recovery declare the queue.
                topology.expect_queue(method)
        except BaseException:
            topology.forget_expected(method)
            raise
        answer: Any = arrival.method
        known = topology.queue_declared(method, answer.queue)
        return known, answer.message_count, answer.consumer_count

    # -- publishing -------------------------------------------------------------------------

    async def wait_unblocked(self) -> None:
        """Wait until a publish can be written; always execute a checkpoint."""
        if self._is_clear():
            await self.pace.checkpoint()
        while True:
            self.check()
            if self._is_clear():
                return
            await self.wait()
            self.pace.blocked()

    def _is_clear(self) -> bool:
        connection = self.connection
        return (
            self._attached
            and not self._closed
            and connection.is_up
            and connection.blocked is None
            and self.engine.flowing
            and connection.engine.has_room
        )

    def returns(self) -> Returns:
        """Iterate over returned messages (0-9-1, basic.return).

        The server returns a mandatory message that it can route to no queue. A publisher reports its own
        returned messages by ``ReturnedError``. At most 100 messages wait here; the oldest are dropped.
        """
        return Returns(self)

    async def next_returned(self) -> ReturnedMessage:
        """Return the next returned message. Cancelled: no message is lost."""
        await trio.lowlevel.checkpoint()
        while not self._returned:
            self.check()
            await self._returns.wait()
        return self._returned.popleft()

    # -- consuming --------------------------------------------------------------------------

    def new_consumer_tag(self) -> str:
        """Return a consumer tag that the channel has not generated before."""
        self._numbered += 1
        return f"consumer-{self._numbered}"

    def before_consume(self, consumer: ConsumerBase[D]) -> None:
        """Send requests that a consumer needs before its basic.consume."""

    async def start_consumer(self, consumer: ConsumerBase[D]) -> None:
        """Ask for deliveries, and wait until the server confirms the consumer.

        After a loss of the connection the recovery starts all registered consumers again, including this one.
        """
        self.check()
        if consumer.tag in self._consumers:
            raise LocalProtocolError(f"the channel has a consumer {consumer.tag!r} already")
        self._consumers[consumer.tag] = consumer
        try:
            await self._until_usable()
            while (
                not self._is_known(consumer)
                and await self.attempt(lambda: self._ask_to_consume(consumer)) is None
            ):
                await self._until_usable()
        except BaseException:
            self.drop_consumer(consumer)
            if self._is_known(consumer):
                self._ask_to_cancel(consumer.tag)
            consumer.put_back()
            raise

    def _is_known(self, consumer: ConsumerBase[D]) -> bool:
        """Whether the server has confirmed the consumer on the current transport."""
        return (
            self._attached
            and self.engine.state is ChannelState.OPEN
            and consumer.tag in self.engine.numbers.consumers
        )

    def _ask_to_consume(self, consumer: ConsumerBase[D]) -> Reply:
        self.before_consume(consumer)
        return self.ask(consumer.request())

    def _ask_to_cancel(self, tag: str) -> Reply:
        return self.ask(self.make("basic.cancel", consumer_tag=tag))

    def restart_consumers(self) -> list[Reply]:
        """Start all consumers again after a reconnect; return the replies to wait for."""
        flow = [self._ask_for_flow(active=False)] if self._paused else []
        held = [consumer for consumer in self._consumers.values() if not consumer.closing]
        return [*flow, *map(self._ask_to_consume, held)]

    async def cancel(self, consumer: ConsumerBase[D]) -> None:
        """Stop the deliveries of a consumer (0-9-1, basic.cancel).

        The call waits for the server's answer, at most ``close_timeout`` seconds.
        """
        if not self._is_known(consumer) or self._closed or self._failure is not None:
            self.drop_consumer(consumer)  # if its consume-ok comes later, the consumer is cancelled then
            await trio.lowlevel.checkpoint()
            return
        reply = self._ask_to_cancel(consumer.tag)
        self.connection.expect()
        try:
            with trio.move_on_after(self.connection.close_timeout):
                await reply.result()
        except (TransportLostError, trio.ClosedResourceError, trio.BrokenResourceError):
            return  # the consumer has ended together with its channel or transport
        finally:
            self.connection.expect_no_more()

    def forget_consumer(self, consumer: ConsumerBase[D]) -> None:
        """Forget an auto-delete queue if ``consumer`` was its last consumer here.

        Deliveries that are already under way still reach the consumer.
        """
        if not any(
            each.queue.name == consumer.queue.name
            for each in self._consumers.values()
            if each is not consumer
        ):
            self.connection.topology.queue_unused(consumer.queue.name)

    def drop_consumer(self, consumer: ConsumerBase[D]) -> None:
        """Remove a consumer. In 0-9-1 later deliveries for it are put back into the queue."""
        if self._consumers.get(consumer.tag) is consumer:
            del self._consumers[consumer.tag]

    async def flow(self, active: bool) -> None:
        """Stop or resume the server's deliveries on this channel (0-9-1, channel.flow).

        RabbitMQ refuses to stop them (540), which ends the connection; use ``qos`` with RabbitMQ. If the
        connection is lost and restored, deliveries that were stopped stay stopped.

        Cancelled: the change may be in force or not.
        """
        while await self.attempt(lambda: self._ask_for_flow(active=active)) is None:
            pass
        self._paused = not active

    def _ask_for_flow(self, *, active: bool) -> Reply:
        self.engine.flow(active)
        reply = Reply()
        self._flows.append(reply)
        self.connection.wake_writer()
        return reply

    # -- settling ---------------------------------------------------------------------------

    def is_unsettled(self, tag: int, epoch: int) -> bool:
        """Whether the program may still settle this delivery."""
        return (
            epoch == self.epoch
            and self._attached
            and tag in self.engine.numbers.deliveries
            and tag not in self._acks
        )

    def ack(self, tag: int, epoch: int, multiple: bool) -> None:
        """Acknowledge a delivery; see ``Delivery.ack``."""
        acks = self._acks
        if epoch != self.epoch or tag in acks or tag not in self.engine.numbers.deliveries or self._closed:
            self._refuse(tag, epoch)
        if multiple:
            self.flush_acks()
            self.engine.send(self.make("basic.ack", delivery_tag=tag, multiple=True))
            self.connection.wake_writer()
            return
        if not acks:
            self.connection.engine.unflushed[self] = None
            self.connection.wake_writer()
        acks[tag] = None

    def reject(self, tag: int, epoch: int, requeue: bool) -> None:
        """Reject a delivery; see ``Delivery.reject``."""
        self.settle(tag, epoch, self.make("basic.reject", delivery_tag=tag, requeue=requeue))

    def put_back(self, delivery: D) -> None:
        """Return a delivery to the queue that the program has not received.

        Versions that could do that only by closing the channel do nothing here.
        """

    def settle(self, tag: int, epoch: int, method: Method) -> None:
        """Settle a delivery by ``method``, after all earlier acknowledgements."""
        if not self.is_unsettled(tag, epoch) or self._closed:
            self._refuse(tag, epoch)
        self.flush_acks()
        self.engine.send(method)
        self.connection.wake_writer()

    def _refuse(self, tag: int, epoch: int) -> None:
        """Raise the reason why a delivery cannot be settled."""
        self.check()
        if epoch != self.epoch:
            raise DeliveryLostError(
                f"delivery {tag} came before the connection was lost: the server delivers the message again"
            )
        raise LocalProtocolError(f"delivery {tag} is settled already, or came with no_ack")

    def flush_acks(self) -> None:
        """Write the pending acknowledgements in as few methods as possible."""
        acks = self._acks
        if not acks:
            return
        send, deliveries = self.engine.send, self.engine.numbers.deliveries
        ack: Any = self.ack_method
        last = deliveries.front(acks)
        if last:
            send(ack(delivery_tag=last, multiple=True))
        for tag in acks:
            if tag in deliveries:
                send(ack(delivery_tag=tag))
        acks.clear()

    def flush_acks_if_possible(self) -> None:
        """Write the pending acknowledgements if the channel is still open."""
        if self.is_usable and self.engine.state is ChannelState.OPEN:
            self.flush_acks()

    # -- what the engine and the connection report ------------------------------------------

    def _on_touch(self) -> None:
        self._take_arrivals()
        if self._parked is not None:
            self.wake()

    def _take_arrivals(self) -> None:
        next_arrival, takes, consumers = self.engine.next_arrival, self.takes, self._consumers
        deliver, delivery_type = self.deliver_method, self.delivery_type
        while (arrival := next_arrival()) is not None:
            method: Any = arrival.method
            if arrival.method.__class__ is deliver:  # the most frequent case first
                delivery: D = delivery_type(self, method, arrival.content)
                consumer = consumers.get(method.consumer_tag)
                if consumer is None:
                    # The consumer was cancelled while this delivery was under way.
                    self.put_back(delivery)
                else:
                    consumer.take(delivery)
                continue
            take = takes.get(type(arrival.method))
            if take is None:
                self.take_answer(arrival)
            else:
                take(self, arrival)

    def take_answer(self, arrival: Arrival) -> None:
        """Settle the reply of the request that ``arrival`` answers."""
        found = self._replies.pop(id(arrival.request), None)
        if found is not None:
            found[1].settle(arrival)

    def take_consume_ok(self, arrival: Arrival) -> None:
        """Take a basic.consume-ok; cancel the consumer if the program has given it up."""
        method: Any = arrival.method
        if method.consumer_tag not in self._consumers and self.engine.state is ChannelState.OPEN:
            self._ask_to_cancel(method.consumer_tag)
        self.take_answer(arrival)

    def take_flow_ok(self, arrival: Arrival) -> None:
        """Settle the reply of the oldest channel.flow."""
        if self._flows:
            self._flows.popleft().settle(arrival)

    def take_return(self, arrival: Arrival) -> None:
        """Take a returned message (basic.return)."""
        method: Any = arrival.method
        content = arrival.content
        assert content is not None
        self.on_returned(ReturnedMessage(method, content.properties, content.body), content)

    def on_returned(self, message: ReturnedMessage, content: Content) -> None:
        """Queue a returned message for ``returns``; drop the oldest if there are too many."""
        _ = content
        if len(self._returned) >= _RETURNS:
            dropped = self._returned.popleft()
            _log.warning("dropped %r: more than %d returned messages wait in returns()", dropped, _RETURNS)
        self._returned.append(message)
        self._returns.wake()

    def on_opened(self) -> None:
        """Settle the reply of channel.open."""
        self._opened.settle(_OPENED)

    def on_closed(self, event: ChannelClosed) -> None:
        """React to a closed channel, after all methods that came before the close.

        The server closed it, or the engine closed it for an error of the server, or the program did.
        """
        self._take_arrivals()
        if event.close.reply_code != 200 or not self._closed:
            failure = self._failure or channel_closed(
                self.number, event.close, event.by_peer, self.connection.engine.methods
            )
            self.connection.attached.pop(event.channel, None)
            if self.connection.sits_out(failure):
                self._attached = False
                # The recovery waits for these replies; their failure makes it reconnect once more.
                self._fail_replies(failure)
                return
            self.shut(failure)

    def on_lost(self, failure: Exception | None) -> None:
        """React to the loss of the transport, after all methods that came before.

        Args:
            failure: the reason if the connection will not be restored; otherwise None.
        """
        if self._attached:
            self._take_arrivals()  # before the epoch changes, because each delivery keeps the current epoch
        self._attached = False
        self.epoch += 1
        self._acks.clear()
        if failure is None and not self.restores:
            failure = self.connection.loss
        if failure is not None:
            self.shut(failure)
            return
        for consumer in self._consumers.values():
            consumer.on_lost()
        self._fail_causes()
        self._fail_replies(TransportLostError("the transport was lost"))
        self.wake()

    def _fail_causes(self) -> None:
        """Fail the requests that the server names as the cause of its close.

        See 0-9-1, connection.close. Sent again, they would end the next connection too.
        """
        loss = self.connection.loss
        if isinstance(loss, ConnectionClosedError) and loss.method is not None:
            for method, reply in self._replies.values():
                if method.plan.name == loss.method:
                    reply.fail(loss)

    def on_restored(self) -> None:
        """Wake all calls: the connection, its declarations and consumers are back."""
        self.wake()

    takes: ClassVar[Mapping[type[Method], Callable[[Any, Arrival], None]]]
    """The methods that are not answers to requests, without basic.deliver."""

    def __repr__(self) -> str:
        number = self.engine.number if self._attached else "none"
        return f"<{type(self).__name__} {number}, {len(self._consumers)} consumers>"


class Returns:
    """Iterates over the returned messages of a channel.

    The iteration ends when the channel is closed here. It raises if the server closed the channel, or the
    connection is lost for good.
    """

    __slots__ = ("_channel",)

    def __init__(self, channel: ChannelBase[Any]) -> None:
        self._channel = channel

    def __aiter__(self) -> Returns:
        return self

    async def __anext__(self) -> ReturnedMessage:
        """Return the next message.

        Raises as calls of ``Channel`` if the channel is closed. Cancelled: no message is lost.
        """
        try:
            found = await self._channel.next_returned()
        except trio.ClosedResourceError:
            raise StopAsyncIteration from None
        return found
