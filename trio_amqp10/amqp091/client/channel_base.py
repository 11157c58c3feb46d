"""What channels of 0-9-1 and of 10.3 have in common for a program: requests, consumers, settling (0-9-1, 2.2.5).

Requests wait for their answers; publishes, acknowledgements and refusals are written with the next pass of the connection.
Acknowledgements of one pass are merged: ``basic.ack`` with ``multiple`` for all up to the first that is still unsettled. Methods
are made by their names, out of the table of the version that the connection speaks.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeVar, cast

import trio

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.events import Arrival
from trio_amqp10.amqp091.states import ChannelState
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.net.waiters import CheckpointThrottle, Waiter

from .delivery import DeliveryBase
from .errors import DeliveryLostError, ReturnedMessage, channel_closed
from .reply import Reply, TransportLostError, anew
from .returns import Returns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.channel import Channel as EngineChannel
    from trio_amqp10.amqp091.content import Content
    from trio_amqp10.amqp091.events import ChannelClosed
    from trio_amqp10.amqp091.methods import Method

    from .connection_base import ConnectionBase
    from .topology import QueueName

__all__ = ["ChannelBase", "D", "checked_prefetch"]

D = TypeVar("D", bound=DeliveryBase)
D_contra = TypeVar("D_contra", contravariant=True)
"""What comes from a queue."""

_log = logging.getLogger("trio_amqp10.amqp091")

_RETURNS: Final = 100
"""Returned messages that wait for a program to take them; the oldest are dropped, and that is logged."""

_OPENED: Final = Arrival(spec.ChannelOpenOk())


def checked_prefetch(prefetch: int | None) -> int | None:
    """Give back a prefetch if it can be one.

    Raises:
        LocalProtocolError: it is 0, which would mean no limit, or not within 16 bits.
    """
    if prefetch is not None and not 1 <= prefetch <= 0xFFFF:
        raise LocalProtocolError(f"a prefetch is 1 to 65535, or None for no limit: {prefetch}")
    return prefetch


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class ChannelConsumer(Protocol[D_contra]):
    """What a channel asks of a consumer."""

    tag: str
    no_ack: bool
    prefetch: int | None

    @property
    def queue(self) -> _Named:
        """Where its deliveries come from."""
        ...

    def request(self) -> Method:
        """What the server is sent, so that deliveries come."""
        ...

    def take(self, delivery: D_contra, /) -> None:
        """A delivery came."""

    @property
    def closing(self) -> bool:
        """Whether the program has closed it, so that no server is asked for it again."""
        ...

    def put_back(self) -> None:
        """What has come and was not received is given back."""

    def on_cancelled(self) -> None:
        """The server has cancelled it."""

    def on_lost(self) -> None:
        """The transport was lost, and what came by it is void."""

    def fail(self, failure: Exception, /) -> None:
        """No delivery comes any more."""


class ChannelBase(Waiter, trio.abc.AsyncResource, Generic[D]):
    """One channel, with what versions have in common.

    Every call raises ``ChannelClosedError`` after the server closed the channel, ``ConnectionClosedError`` after the connection
    is gone for good, and ``trio.ClosedResourceError`` after it was closed here. While a connection that reconnects is down,
    calls wait until it is back. What a call sends it sends once, unless the connection is lost before the answer and comes
    back: then it is sent again, so the server may carry it out twice. Each call whose second execution makes a difference
    says which.

    Attributes:
        connection: its connection.
        engine: the engine's channel; another one after the connection came back.
        epoch: how often the connection was lost: tags of earlier deliveries mean nothing now.
        pace: checkpoints for calls that are cheaper than one.
    """

    restores: bool = True
    """Whether it comes back with its connection."""

    delivery_type: ClassVar[type[Any]]
    """What is made of each delivery."""

    deliver_method: ClassVar[type[Method]]
    ack_method: ClassVar[type[Method]]
    """The methods that come and go with nearly every message."""

    def __init__(self, connection: ConnectionBase[Any], prefetch: int | None) -> None:
        super().__init__()
        self.connection = connection
        self.engine: EngineChannel = cast("EngineChannel", None)
        self.epoch: int = 0
        self.pace: CheckpointThrottle = CheckpointThrottle()
        self.prefetch: int | None = checked_prefetch(prefetch)
        self._replies: dict[int, tuple[Method, Reply]] = {}
        self._flows: deque[Reply] = (
            deque()
        )  # a flow-ok is no answer to a method that the engine matches by object
        self._paused = False
        self._opened = Reply()
        self._consumers: dict[str, ChannelConsumer[D]] = {}
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
        """Its number on the connection, from 1."""
        return self.engine.number

    @property
    def unsettled(self) -> int:
        """Deliveries that are not settled, received or not."""
        return len(self.engine.numbers.deliveries) - len(self._acks) if self._attached else 0

    # -- opening and closing ----------------------------------------------------------------

    async def open(self) -> None:
        """Open it on the server; ``ChannelOpening`` calls this."""
        connection = self.connection
        await connection.wait_recovered()
        connection.channels[self] = None
        connection.expect()
        try:
            for reply in self.attach():
                try:
                    await reply.result()
                except TransportLostError:
                    await self._until_usable()
                    return
        finally:
            connection.expect_no_more()

    def attach(self) -> list[Reply]:
        """Open a channel of the engine; the answers to what was sent for that."""
        self.engine = self.connection.engine.open_channel(**self.opening())
        self.connection.attached[self.engine] = self
        self.engine.on_touch = self._on_touch
        self._attached = True
        self._acks.clear()
        self._opened = Reply()
        self.connection.wake_writer()
        return [self._opened, *(self.ask(method) for method in self.setup())]

    def opening(self) -> Mapping[str, Any]:
        """The arguments of channel.open, in versions that have any."""
        return {}

    def setup(self) -> list[Method]:
        """What is sent when the channel is opened, the first time and after each loss."""
        return []

    async def leave(self, *, failed: bool) -> None:
        """The program leaves the channel's block, with an exception or without."""
        try:
            if not failed:
                await self.finish()
        finally:
            await self.aclose()
        if not failed and self._failure is not None and not self._failure_was_raised:
            self._failure_was_raised = True
            raise anew(self._failure)

    async def finish(self) -> None:
        """What is waited for before a block is left without an exception."""

    async def aclose(self) -> None:
        """Close it (0-9-1, channel.close). The server puts back what was delivered and not settled.

        Waits for the server's answer, ``close_timeout`` seconds at most.

        Cancelled: the close is sent, and the answer is not waited for.
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
        """Nothing can be done on it any more; ``failure`` says why, None after our own close."""
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
        """Raise if the channel is over."""
        if self._closed:
            raise trio.ClosedResourceError("the channel is closed")
        if self._failure is not None:
            self._failure_was_raised = True
            raise anew(self._failure)

    def note_raised(self) -> None:
        """A call has raised the channel's failure, so leaving it does not."""
        self._failure_was_raised = True

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
        """A method of the version that the connection speaks, by its name.

        Raises:
            LocalProtocolError: the version has none of this name.
        """
        return self.connection.engine.methods.make(name, **arguments)

    def ask(self, method: Method, late: Callable[[Arrival], None] | None = None) -> Reply:
        """Send a request; its answer is to come.

        Raises:
            LocalProtocolError: it cannot be sent; nothing was.
        """
        self.flush_acks()
        self.engine.send(method)
        reply = Reply(late)
        self._replies[id(method)] = (method, reply)  # the method too: while it lives, its id is no other's
        self.connection.wake_writer()
        return reply

    async def call(
        self, make: Callable[[], Method], late: Callable[[Arrival], None] | None = None
    ) -> Arrival:
        """Send a request and wait for its answer; again if the connection is lost meanwhile, and comes back.

        Cancelled: the request may have been carried out; its answer goes to ``late``.
        """
        while True:
            arrival = await self.attempt(lambda: self.ask(make(), late))
            if arrival is not None:
                return arrival

    async def attempt(self, ask: Callable[[], Reply]) -> Arrival | None:
        """Send a request once the channel can be used, and wait for its answer; None if the transport is lost before.

        Cancelled: the request may have been carried out.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        self.connection.expect()
        try:
            await self._until_usable()
            return await ask().result()
        except TransportLostError:
            return None
        except trio.BrokenResourceError:
            self.note_raised()
            raise
        finally:
            self.connection.expect_no_more()

    # -- exchanges and queues ---------------------------------------------------------------

    async def make_exchange(self, name: str, **arguments: Any) -> None:
        """Have an exchange made, or find that it is there; see ``declare_exchange``."""
        method = self.make("exchange.declare", exchange=name, **arguments)
        await self.call(lambda: method)
        self.connection.topology.exchange_declared(method)

    async def delete_exchange(self, name: str, *, if_unused: bool = False) -> None:
        """Delete an exchange and its bindings (0-9-1, exchange.delete).

        Raises:
            PreconditionFailedError: ``if_unused``, and it has bindings.

        Cancelled: it may have been deleted or not.
        """
        await self.call(lambda: self.make("exchange.delete", exchange=name, if_unused=if_unused))
        self.connection.topology.exchange_deleted(name)

    async def make_queue(self, name: str, **arguments: Any) -> tuple[QueueName, int, int]:
        """Have a queue made, or find that it is there: its name, messages and consumers; see ``declare_queue``."""
        method = self.make("queue.declare", queue=name, **arguments)
        topology = self.connection.topology
        try:
            while (arrival := await self.attempt(lambda: self.ask(method))) is None:
                # The server may take the old connection for the owner for a while, which the recovery sits out.
                topology.expect_queue(method)
        except BaseException:
            topology.forget_expected(method)
            raise
        answer: Any = arrival.method
        known = topology.queue_declared(method, answer.queue)
        return known, answer.message_count, answer.consumer_count

    # -- publishing -------------------------------------------------------------------------

    async def wait_unblocked(self) -> None:
        """Wait until a publish can be written; a checkpoint in any case."""
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
        """Iterate over messages that came back: mandatory ones that no queue got (0-9-1, basic.return).

        A publisher reports its own by ``ReturnedError``. At most 100 wait here; the oldest are dropped.
        """
        return Returns(self)

    async def next_returned(self) -> ReturnedMessage:
        """The next message that came back. Cancelled: none is lost."""
        await trio.lowlevel.checkpoint()
        while not self._returned:
            self.check()
            await self._returns.wait()
        return self._returned.popleft()

    # -- consuming --------------------------------------------------------------------------

    def new_consumer_tag(self) -> str:
        """A name for a consumer, which no other of the channel has unless a program chose it."""
        self._numbered += 1
        return f"consumer-{self._numbered}"

    def before_consume(self, consumer: ChannelConsumer[D]) -> None:
        """What is to be sent before a consumer begins."""

    async def start_consumer(self, consumer: ChannelConsumer[D]) -> None:
        """Ask for deliveries. After a loss the recovery asks for those of all consumers that are held, of this one too."""
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

    def _is_known(self, consumer: ChannelConsumer[D]) -> bool:
        """Whether the server has confirmed the consumer on the transport that there is now."""
        return (
            self._attached
            and self.engine.state is ChannelState.OPEN
            and consumer.tag in self.engine.numbers.consumers
        )

    def _ask_to_consume(self, consumer: ChannelConsumer[D]) -> Reply:
        self.before_consume(consumer)
        return self.ask(consumer.request())

    def _ask_to_cancel(self, tag: str) -> Reply:
        return self.ask(self.make("basic.cancel", consumer_tag=tag))

    def restart_consumers(self) -> list[Reply]:
        """Ask again for the deliveries of all consumers that are held, after the connection came back."""
        flow = [self._ask_for_flow(active=False)] if self._paused else []
        held = [consumer for consumer in self._consumers.values() if not consumer.closing]
        return [*flow, *map(self._ask_to_consume, held)]

    async def cancel(self, consumer: ChannelConsumer[D]) -> None:
        """Have the server stop the deliveries of a consumer."""
        if not self._is_known(consumer) or self._closed or self._failure is not None:
            self.drop_consumer(consumer)  # so that it is cancelled if its consume-ok is still to come
            await trio.lowlevel.checkpoint()
            return
        reply = self._ask_to_cancel(consumer.tag)
        self.connection.expect()
        try:
            with trio.move_on_after(self.connection.close_timeout):
                await reply.result()
        except (TransportLostError, trio.ClosedResourceError, trio.BrokenResourceError):
            return  # it is gone with its channel
        finally:
            self.connection.expect_no_more()

    def forget_consumer(self, consumer: ChannelConsumer[D]) -> None:
        """It is not to be started again; deliveries that are under way still come to it."""
        if not any(
            each.queue.name == consumer.queue.name
            for each in self._consumers.values()
            if each is not consumer
        ):
            self.connection.topology.queue_unused(consumer.queue.name)

    def drop_consumer(self, consumer: ChannelConsumer[D]) -> None:
        """Its deliveries are put back from now on."""
        if self._consumers.get(consumer.tag) is consumer:
            del self._consumers[consumer.tag]

    async def flow(self, active: bool) -> None:
        """Stop the server's deliveries on this channel, or let them go on (0-9-1, channel.flow).

        RabbitMQ refuses to stop them (540), which ends the connection: limit them with ``qos`` there. What was stopped stays
        stopped if the connection is lost and comes back.

        Cancelled: it may hold already or not.
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
        """Whether the server waits for an answer to a delivery."""
        return (
            epoch == self.epoch
            and self._attached
            and tag in self.engine.numbers.deliveries
            and tag not in self._acks
        )

    def ack(self, tag: int, epoch: int, multiple: bool) -> None:
        """See ``Delivery.ack``."""
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
        """See ``Delivery.reject``."""
        self.settle(tag, epoch, self.make("basic.reject", delivery_tag=tag, requeue=requeue))

    def put_back(self, delivery: D) -> None:
        """Return a delivery that no program has seen, if the version can do that without the end of the channel."""

    def settle(self, tag: int, epoch: int, method: Method) -> None:
        """Settle a delivery by a method, behind what was acknowledged before."""
        if not self.is_unsettled(tag, epoch) or self._closed:
            self._refuse(tag, epoch)
        self.flush_acks()
        self.engine.send(method)
        self.connection.wake_writer()

    def _refuse(self, tag: int, epoch: int) -> None:
        """Raise why a delivery cannot be settled."""
        self.check()
        if epoch != self.epoch:
            raise DeliveryLostError(
                f"delivery {tag} came before the connection was lost: the server gives the message out again"
            )
        raise LocalProtocolError(f"delivery {tag} is settled already, or came with no_ack")

    def flush_acks(self) -> None:
        """Write the acknowledgements that wait, in as few methods as can be."""
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
        """Write the acknowledgements that wait, before the connection is closed."""
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
            if arrival.method.__class__ is deliver:  # by far most of them
                delivery: D = delivery_type(self, method, arrival.content)
                consumer = consumers.get(method.consumer_tag)
                if (
                    consumer is None
                ):  # it was cancelled, and this was under way: the server gets it behind the cancel
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
        """An answer to a request, which settles its reply."""
        found = self._replies.pop(id(arrival.request), None)
        if found is not None:
            found[1].settle(arrival)

    def take_consume_ok(self, arrival: Arrival) -> None:
        """A basic.consume-ok. A consumer that the program has given up meanwhile is cancelled: nobody holds it."""
        method: Any = arrival.method
        if method.consumer_tag not in self._consumers and self.engine.state is ChannelState.OPEN:
            self._ask_to_cancel(method.consumer_tag)
        self.take_answer(arrival)

    def take_flow_ok(self, arrival: Arrival) -> None:
        """A channel.flow-ok."""
        if self._flows:
            self._flows.popleft().settle(arrival)

    def take_return(self, arrival: Arrival) -> None:
        """A basic.return."""
        method: Any = arrival.method
        content = arrival.content
        assert content is not None
        self.on_returned(ReturnedMessage(method, content.properties, content.body), content)

    def on_returned(self, message: ReturnedMessage, content: Content) -> None:
        """A message came back."""
        _ = content
        if len(self._returned) >= _RETURNS:
            dropped = self._returned.popleft()
            _log.warning("%r is dropped: more than %d returned messages wait in returns()", dropped, _RETURNS)
        self._returned.append(message)
        self._returns.wake()

    def on_opened(self) -> None:
        """The server opened it."""
        self._opened.settle(_OPENED)

    def on_closed(self, event: ChannelClosed) -> None:
        """The server closed it, or we did for an error of the server's; what came before that counts."""
        self._take_arrivals()
        if event.close.reply_code != 200 or not self._closed:
            failure = self._failure or channel_closed(
                self.number, event.close, event.by_peer, self.connection.engine.methods
            )
            self.connection.attached.pop(event.channel, None)
            if self.connection.sits_out(failure):
                self._attached = False
                self._fail_replies(failure)  # to the recovery, which brings the whole connection back again
                return
            self.shut(failure)

    def on_lost(self, failure: Exception | None) -> None:
        """The transport is lost, for good if there is a ``failure``; what came before that counts."""
        if self._attached:
            self._take_arrivals()  # now: a delivery that is made later would have the next epoch
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
        self._fail_replies(TransportLostError("the transport was lost"))
        self.wake()

    def on_restored(self) -> None:
        """The connection is back, and all declarations and consumers."""
        self.wake()

    takes: ClassVar[Mapping[type[Method], Callable[[Any, Arrival], None]]]
    """What is no answer to a request, but for deliveries; all else is."""

    def __repr__(self) -> str:
        number = self.engine.number if self._attached else "none"
        return f"<{type(self).__name__} {number}, {len(self._consumers)} consumers>"
