"""A channel as a program sees it: declarations, publishes, consumers, settling (0-9-1, 2.2.5; classes channel to basic).

Requests wait for their answers; publishes, acknowledgements and refusals are written with the next pass of the connection.
Acknowledgements of one pass are merged: ``basic.ack`` with ``multiple`` for all up to the first that is still unsettled.

Longer than 400 lines: what a program can do on a channel stands in one class.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, Final, Unpack, cast

import trio

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.events import Arrival
from trio_amqp10.amqp091.states import ChannelState
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.net.waiters import CheckpointThrottle, Waiter

from .consumer import Consumer, Consuming
from .delivery import Delivery
from .errors import DeliveryLostError, ReturnedMessage, channel_closed
from .messages import content_of
from .queues import DEFAULT, Default, Exchange, Queue
from .reply import Reply, TransportLostError, anew

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.channel import Channel as EngineChannel
    from trio_amqp10.amqp091.content import BasicProperties, Content
    from trio_amqp10.amqp091.events import ChannelClosed
    from trio_amqp10.amqp091.methods import Method

    from .connection import Connection
    from .messages import PublishProperties
    from .opening import Returns

__all__ = ["Channel"]

_log = logging.getLogger("trio_amqp10.amqp091")

_RETURNS: Final = 100
"""Returned messages that wait for a program to take them; the oldest are dropped, and that is logged."""

_FLOW: Final = 0
"""Where the answer to a channel.flow is awaited: it is no answer to a method that the engine matches by object."""

_OPENED: Final = Arrival(spec.ChannelOpenOk())


def checked_prefetch(prefetch: int | None) -> int | None:
    """Give back a prefetch if it can be one.

    Raises:
        LocalProtocolError: it is 0, which would mean no limit, or not within 16 bits.
    """
    if prefetch is not None and not 1 <= prefetch <= 0xFFFF:
        raise LocalProtocolError(f"a prefetch is 1 to 65535, or None for no limit: {prefetch}")
    return prefetch


class Channel(Waiter, trio.abc.AsyncResource):
    """One channel; made by ``Connection.open_channel``.

    Every call raises ``ChannelClosedError`` after the server closed the channel, ``ConnectionClosedError`` after the connection
    is gone for good, and ``trio.ClosedResourceError`` after it was closed here. While a connection that reconnects is down,
    calls wait until it is back. What a call sends it sends once, unless the connection comes back before the answer: then
    it is sent again, which harms no declaration.

    Attributes:
        connection: its connection.
        engine: the engine's channel; another one after the connection came back.
        epoch: how often the connection was lost: tags of earlier deliveries mean nothing now.
        pace: checkpoints for calls that are cheaper than one.
    """

    restores: ClassVar[bool] = True
    """Whether it comes back with its connection."""

    def __init__(self, connection: Connection, prefetch: int | None) -> None:
        super().__init__()
        self.connection = connection
        self.engine: EngineChannel = cast("EngineChannel", None)
        self.epoch = 0
        self.pace = CheckpointThrottle()
        self.prefetch = checked_prefetch(prefetch)
        self._replies: dict[int, tuple[Method, Reply]] = {}
        self._opened = Reply()
        self._consumers: dict[str, Consumer] = {}
        self._numbered = 0
        self._acks: dict[int, None] = {}
        self._qos: int | None = None  # what consumers that start now have, as the server knows it
        self._shared_qos: int | None = None
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
        self.engine = self.connection.engine.open_channel()
        self.connection.attached[self.engine] = self
        self.engine.on_touch = self._on_touch
        self._attached = True
        self._qos = None
        self._acks.clear()
        self._opened = Reply()
        self.connection.ring()
        return [self._opened, *(self.ask(method) for method in self.setup())]

    def setup(self) -> list[Method]:
        """What is sent when the channel is opened, the first time and after each loss."""
        if self._shared_qos is None:
            return []
        return [spec.BasicQos(prefetch_count=self._shared_qos, global_=True)]

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
                connection.ring()
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

    def ask(self, method: Method, late: Callable[[Arrival], None] | None = None) -> Reply:
        """Send a request; its answer is to come.

        Raises:
            LocalProtocolError: it cannot be sent; nothing was.
        """
        self.flush_acks()
        self.engine.send(method)
        reply = Reply(late)
        self._replies[id(method)] = (method, reply)  # the method too: while it lives, its id is no other's
        self.connection.ring()
        return reply

    async def call(
        self, make: Callable[[], Method], late: Callable[[Arrival], None] | None = None
    ) -> Arrival:
        """Send a request and wait for its answer; again if the connection is lost meanwhile, and comes back.

        Cancelled: the request may have been carried out; its answer goes to ``late``.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        self.connection.expect()
        try:
            while True:
                await self._until_usable()
                try:
                    return await self.ask(make(), late).result()
                except TransportLostError:
                    continue
                except trio.BrokenResourceError:
                    self.note_raised()
                    raise
        finally:
            self.connection.expect_no_more()

    # -- exchanges and queues ---------------------------------------------------------------

    async def declare_exchange(
        self,
        name: str,
        type: str = "direct",  # noqa: A002 - the name that the specification gives it
        *,
        passive: bool = False,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> Exchange:
        """Make an exchange, or find that it is there (0-9-1, exchange.declare).

        Args:
            name: up to 255 octets; not beginning with ``amq.``.
            type: ``direct``, ``fanout``, ``topic``, ``headers``, or one that the server has besides.
            passive: only look whether it is there.
            durable: it outlives a restart of the server.
            auto_delete: it goes with the last binding from it.
            internal: only other exchanges publish to it.
            arguments: such as ``alternate-exchange``.

        Raises:
            NotFoundError: passive, and it is not there.
            PreconditionFailedError: it is there, and is another kind.
            AccessRefusedError: the user may not, or the name is reserved.

        Cancelled: it may have been made or not.
        """
        method = spec.ExchangeDeclare(
            exchange=name,
            type=type,
            passive=passive,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=dict(arguments or {}),
        )
        await self.call(lambda: method)
        self.connection.topology.exchange_declared(method)
        return Exchange.of(self, name)

    async def delete_exchange(self, name: str, *, if_unused: bool = False) -> None:
        """Delete an exchange and its bindings (0-9-1, exchange.delete).

        Raises:
            PreconditionFailedError: ``if_unused``, and it has bindings.

        Cancelled: it may have been deleted or not.
        """
        await self.call(lambda: spec.ExchangeDelete(exchange=name, if_unused=if_unused))
        self.connection.topology.exchange_deleted(name)

    async def bind_exchange(
        self,
        destination: str,
        source: str,
        routing_key: str = "",
        *,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        """Have messages of exchange ``source`` go to exchange ``destination`` (RabbitMQ's exchange.bind).

        Raises:
            NotFoundError: one of them does not exist.

        Cancelled: it may have been bound or not.
        """
        method = spec.ExchangeBind(
            destination=destination,
            source=source,
            routing_key=routing_key,
            arguments=dict(arguments or {}),
        )
        await self.call(lambda: method)
        self.connection.topology.bound(method)

    async def unbind_exchange(
        self,
        destination: str,
        source: str,
        routing_key: str = "",
        *,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        """Undo ``bind_exchange`` (RabbitMQ's exchange.unbind). Cancelled: it may have been unbound or not."""
        method = spec.ExchangeUnbind(
            destination=destination,
            source=source,
            routing_key=routing_key,
            arguments=dict(arguments or {}),
        )
        await self.call(lambda: method)
        self.connection.topology.unbound(method)

    async def declare_queue(
        self,
        name: str = "",
        *,
        passive: bool = False,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> Queue:
        """Make a queue, or find that it is there (0-9-1, queue.declare).

        Args:
            name: up to 255 octets; not beginning with ``amq.``; empty: the server chooses one. If the connection is lost
                and comes back, such a queue is declared again, and has another name then.
            passive: only look whether it is there.
            durable: it outlives a restart of the server.
            exclusive: only this connection uses it, and it goes with the connection.
            auto_delete: it goes with its last consumer.
            arguments: such as ``x-queue-type``, ``x-max-length``, ``x-message-ttl``.

        Raises:
            NotFoundError: passive, and it is not there.
            PreconditionFailedError: it is there with other properties or arguments.
            ResourceLockedError: it is another connection's.
            AccessRefusedError: the user may not, or the name is reserved.

        Cancelled: it may have been made or not.
        """
        method = spec.QueueDeclare(
            queue=name,
            passive=passive,
            durable=durable,
            exclusive=exclusive,
            auto_delete=auto_delete,
            arguments=dict(arguments or {}),
        )
        answer = (await self.call(lambda: method)).method
        assert isinstance(answer, spec.QueueDeclareOk)
        known = self.connection.topology.queue_declared(method, answer.queue)
        return Queue(self, known, answer.message_count, answer.consumer_count)

    def queue(self, name: str) -> Queue:
        """The queue of this name, without asking the server: no right to declare is needed."""
        return Queue(self, self.connection.topology.name_of(name))

    async def delete_queue(self, name: str, *, if_unused: bool = False, if_empty: bool = False) -> int:
        """Delete a queue; as ``Queue.delete``. Cancelled: it may have been deleted or not."""
        return await self.queue(name).delete(if_unused=if_unused, if_empty=if_empty)

    # -- publishing -------------------------------------------------------------------------

    async def publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes,
        *,
        mandatory: bool = False,
        properties: BasicProperties | None = None,
        **fields: Unpack[PublishProperties],
    ) -> None:
        """Publish a message (0-9-1, basic.publish), and wait only until there is room to write it.

        Whether it arrives is not known: ``Connection.open_publisher`` confirms it.

        Args:
            exchange: its name, or an ``Exchange``; empty for the default exchange, which routes by the queue's name.
            routing_key: up to 255 octets.
            body: any octets.
            mandatory: have it returned if no queue gets it; see ``returns``.
            properties: all properties as one object, which may be used for many messages.
            fields: single properties, such as ``delivery_mode=2``, ``headers={...}``, ``expiration="60000"`` (milliseconds).

        Raises:
            LocalProtocolError: a property or name does not fit its type; both ``properties`` and ``fields``.

        It waits while the server blocks the connection (``Connection.blocked``), while it stops the channel's flow, and while
        the connection is down and will come back.

        Cancelled: nothing was sent.
        """
        content = content_of(body, properties, fields)
        await self.wait_unblocked()
        self.engine.publish(exchange, routing_key, content, mandatory=mandatory)
        self.connection.ring()

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
        from .opening import Returns

        return Returns(self)

    async def next_returned(self) -> ReturnedMessage:
        """The next message that came back. Cancelled: none is lost."""
        await trio.lowlevel.checkpoint()
        while not self._returned:
            self.check()
            await self._returns.wait()
        return self._returned.popleft()

    # -- consuming --------------------------------------------------------------------------

    async def qos(self, prefetch: int | None, *, global_: bool = False) -> None:
        """Limit the unsettled deliveries under way (0-9-1, basic.qos).

        Args:
            prefetch: how many, 1 to 65535; None for no limit.
            global_: for all consumers of the channel together; otherwise for each consumer that starts later.

        Raises:
            LocalProtocolError: prefetch is 0 or out of its range.

        Cancelled: it may hold already or not.
        """
        count = checked_prefetch(prefetch) or 0
        await self.call(lambda: spec.BasicQos(prefetch_count=count, global_=global_))
        if global_:
            self._shared_qos = count
        else:
            self.prefetch = prefetch
            self._qos = count

    def consuming(
        self,
        queue: Queue,
        *,
        no_ack: bool,
        exclusive: bool,
        prefetch: int | Default | None,
        tag: str,
        arguments: dict[str, Any],
    ) -> Consuming:
        """A consumer that is yet to be made; see ``Queue.consume``."""
        limit = self.prefetch if prefetch is DEFAULT else checked_prefetch(prefetch)
        if not tag:
            self._numbered += 1
            tag = f"consumer-{self._numbered}"
        return Consuming(
            self,
            Consumer(
                self,
                queue,
                tag,
                no_ack=no_ack,
                exclusive=exclusive,
                prefetch=limit,
                arguments=arguments,
            ),
        )

    async def start_consumer(self, consumer: Consumer) -> None:
        """Ask for deliveries."""
        self.check()
        if consumer.tag in self._consumers:
            raise LocalProtocolError(f"the channel has a consumer {consumer.tag!r} already")
        self._consumers[consumer.tag] = consumer

        def request() -> Method:
            self._set_qos(consumer)
            return consumer.request()

        def cancel(_: Arrival) -> None:
            if self.is_usable:
                self.engine.send(spec.BasicCancel(consumer_tag=consumer.tag, no_wait=True))
                self.connection.ring()

        try:
            await self.call(request, cancel)
        except BaseException:
            self.drop_consumer(consumer)
            consumer.put_back()
            raise

    def restart_consumers(self) -> list[Reply]:
        """Ask again for the deliveries of all consumers, after the connection came back."""
        replies: list[Reply] = []
        for consumer in self._consumers.values():
            self._set_qos(consumer)
            replies.append(self.ask(consumer.request()))
        return replies

    def _set_qos(self, consumer: Consumer) -> None:
        count = consumer.prefetch or 0
        if not consumer.no_ack and count != (self._qos or 0):
            self._qos = count
            self.ask(spec.BasicQos(prefetch_count=count))

    async def cancel(self, consumer: Consumer) -> None:
        """Have the server stop the deliveries of a consumer."""
        if not self.is_usable or self._closed or self._failure is not None:
            await trio.lowlevel.checkpoint()
            return
        method = spec.BasicCancel(consumer_tag=consumer.tag)
        reply = self.ask(method)
        self.connection.expect()
        try:
            with trio.move_on_after(self.connection.close_timeout):
                await reply.result()
        except (TransportLostError, trio.ClosedResourceError, trio.BrokenResourceError):
            return  # it is gone with its channel
        finally:
            self.connection.expect_no_more()

    def forget_consumer(self, consumer: Consumer) -> None:
        """It is not to be started again; deliveries that are under way still come to it."""
        if not any(
            each.queue.name == consumer.queue.name
            for each in self._consumers.values()
            if each is not consumer
        ):
            self.connection.topology.queue_unused(consumer.queue.name)

    def drop_consumer(self, consumer: Consumer) -> None:
        """Its deliveries are put back from now on."""
        if self._consumers.get(consumer.tag) is consumer:
            del self._consumers[consumer.tag]

    async def recover(self) -> None:
        """Have the server give out again all that was delivered here and is not settled (0-9-1, basic.recover).

        Cancelled: it may be done or not.
        """
        await self.call(lambda: spec.BasicRecover(requeue=True))

    async def flow(self, active: bool) -> None:
        """Stop the server's deliveries on this channel, or let them go on (0-9-1, channel.flow).

        RabbitMQ refuses to stop them (540), which ends the connection: limit them with ``qos`` there.

        Cancelled: it may hold already or not.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        await self._until_usable()
        self.engine.flow(active)
        method = spec.ChannelFlow(active=active)
        reply = Reply()
        self._replies[_FLOW] = (method, reply)
        self.connection.ring()
        try:
            await reply.result()
        except TransportLostError:
            return  # a new channel flows

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
            self.engine.send(spec.BasicAck(delivery_tag=tag, multiple=True))
            self.connection.ring()
            return
        if not acks:
            self.connection.engine.unflushed[self] = None
            self.connection.ring()
        acks[tag] = None

    def nack(self, tag: int, epoch: int, requeue: bool, multiple: bool) -> None:
        """See ``Delivery.nack``."""
        self._settle(tag, epoch, spec.BasicNack(delivery_tag=tag, multiple=multiple, requeue=requeue))

    def reject(self, tag: int, epoch: int, requeue: bool) -> None:
        """See ``Delivery.reject``."""
        self._settle(tag, epoch, spec.BasicReject(delivery_tag=tag, requeue=requeue))

    def put_back(self, delivery: Delivery) -> None:
        """Return a delivery that no program has seen."""
        if not delivery.settled and self.is_usable and self.engine.state is ChannelState.OPEN:
            delivery.nack()

    def _settle(self, tag: int, epoch: int, method: Method) -> None:
        if not self.is_unsettled(tag, epoch) or self._closed:
            self._refuse(tag, epoch)
        self.flush_acks()
        self.engine.send(method)
        self.connection.ring()

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
        last = deliveries.front(acks)
        if last:
            send(spec.BasicAck(delivery_tag=last, multiple=True))
        for tag in acks:
            if tag in deliveries:
                send(spec.BasicAck(delivery_tag=tag))
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
        next_arrival, takes, consumers = self.engine.next_arrival, self._TAKES, self._consumers
        while (arrival := next_arrival()) is not None:
            method, content = arrival.method, arrival.content
            if type(method) is spec.BasicDeliver and content is not None:  # by far most of them
                delivery = Delivery(self, method, content)
                consumer = consumers.get(method.consumer_tag)
                if consumer is None:
                    self.put_back(delivery)
                else:
                    consumer.take(delivery)
                continue
            takes.get(type(arrival.method), Channel._take_answer)(self, arrival)

    def _take_answer(self, arrival: Arrival) -> None:
        found = self._replies.pop(id(arrival.request), None)
        if found is not None:
            found[1].settle(arrival)

    def _take_flow_ok(self, arrival: Arrival) -> None:
        found = self._replies.pop(_FLOW, None)
        if found is not None:
            found[1].settle(arrival)

    def _take_cancel(self, arrival: Arrival) -> None:
        method = arrival.method
        assert isinstance(method, spec.BasicCancel)
        if not method.no_wait and self.engine.state is ChannelState.OPEN:
            self.engine.send(spec.BasicCancelOk(consumer_tag=method.consumer_tag))
            self.connection.ring()
        consumer = self._consumers.pop(method.consumer_tag, None)
        if consumer is not None:
            consumer.on_cancelled()

    def _take_return(self, arrival: Arrival) -> None:
        method, content = arrival.method, arrival.content
        assert isinstance(method, spec.BasicReturn)
        assert content is not None
        self.on_returned(ReturnedMessage(method, content.properties, content.body), content)

    def _take_confirm(self, arrival: Arrival) -> None:
        assert isinstance(arrival.method, spec.BasicAck | spec.BasicNack)
        self.on_confirmed(arrival.tags, refused=isinstance(arrival.method, spec.BasicNack))

    def on_returned(self, message: ReturnedMessage, content: Content) -> None:
        """A message came back."""
        _ = content
        if len(self._returned) >= _RETURNS:
            dropped = self._returned.popleft()
            _log.warning("%r is dropped: more than %d returned messages wait in returns()", dropped, _RETURNS)
        self._returned.append(message)
        self._returns.wake()

    def on_confirmed(self, numbers: tuple[int, ...], *, refused: bool) -> None:
        """Publishes were confirmed, or refused."""

    def on_opened(self) -> None:
        """The server opened it."""
        self._opened.settle(_OPENED)

    def on_closed(self, event: ChannelClosed) -> None:
        """The server closed it, or we did for an error of the server's; what came before that counts."""
        self._take_arrivals()
        if event.close.reply_code != 200 or not self._closed:
            self._failure = self._failure or channel_closed(self.number, event.close, event.by_peer)
            self.connection.attached.pop(event.channel, None)
            self.shut(self._failure)

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

    _TAKES: ClassVar[dict[type[Method], Callable[[Channel, Arrival], None]]] = {
        spec.BasicCancel: _take_cancel,
        spec.BasicReturn: _take_return,
        spec.BasicAck: _take_confirm,
        spec.BasicNack: _take_confirm,
        spec.ChannelFlowOk: _take_flow_ok,
    }
    """What is no answer to a request, but for deliveries; all else is."""

    def __repr__(self) -> str:
        number = self.engine.number if self._attached else "none"
        return f"<{type(self).__name__} {number}, {len(self._consumers)} consumers>"
