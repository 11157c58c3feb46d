"""A channel as a program sees it: declarations, publishes, consumers, settling (0-9-1, 2.2.5; classes channel to basic).

What it has in common with a channel of 10.3 is in ``channel_base``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.states import ChannelState

from .channel_base import ChannelBase, ChannelConsumer, checked_prefetch
from .consumer import Consumer, Consuming
from .delivery import Delivery
from .messages import content_of
from .queues import DEFAULT, Default, Exchange, Queue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.content import BasicProperties
    from trio_amqp10.amqp091.events import Arrival
    from trio_amqp10.amqp091.methods import Method

    from .connection_base import ConnectionBase
    from .messages import PublishProperties
    from .reply import Reply

__all__ = ["Channel"]


class Channel(ChannelBase[Delivery]):
    """One channel; made by ``Connection.open_channel``.

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

    delivery_type: ClassVar[type[Any]] = Delivery
    deliver_method: ClassVar[type[Method]] = spec.BasicDeliver
    ack_method: ClassVar[type[Method]] = spec.BasicAck

    def __init__(self, connection: ConnectionBase[Any], prefetch: int | None) -> None:
        super().__init__(connection, prefetch)
        self._qos: int | None = None  # what consumers that start now have, as the server knows it
        self._shared_qos: int | None = None

    def attach(self) -> list[Reply]:
        """As of ``ChannelBase``; nothing is known of a prefetch on the new channel."""
        self._qos = None
        return super().attach()

    def setup(self) -> list[Method]:
        """What is sent when the channel is opened, the first time and after each loss."""
        if self._shared_qos is None:
            return []
        return [spec.BasicQos(prefetch_count=self._shared_qos, global_=True)]

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
        await self.make_exchange(
            name,
            type=type,
            passive=passive,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=dict(arguments or {}),
        )
        return Exchange.of(self, name)

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
                and comes back, such a queue is declared again, and has another name then. If it is lost before the answer,
                the server may have made one more such queue, which stays there unless it is exclusive or expires.
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
        known, message_count, consumer_count = await self.make_queue(
            name,
            passive=passive,
            durable=durable,
            exclusive=exclusive,
            auto_delete=auto_delete,
            arguments=dict(arguments or {}),
        )
        return Queue(self, known, message_count, consumer_count)

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
        self.connection.wake_writer()

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

        def request() -> Method:
            if not global_:
                self._qos = count  # as of the request: one that a consumer sends behind it is newer
            return spec.BasicQos(prefetch_count=count, global_=global_)

        await self.call(request)
        if global_:
            self._shared_qos = count
        else:
            self.prefetch = prefetch

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
        return Consuming(
            self,
            Consumer(
                self,
                queue,
                tag or self.new_consumer_tag(),
                no_ack=no_ack,
                exclusive=exclusive,
                prefetch=limit,
                arguments=arguments,
            ),
        )

    def before_consume(self, consumer: ChannelConsumer[Delivery]) -> None:
        """Have the server know the prefetch of a consumer (0-9-1, basic.qos)."""
        count = consumer.prefetch or 0
        if not consumer.no_ack and count != (self._qos or 0):
            self._qos = count
            self.ask(spec.BasicQos(prefetch_count=count))

    async def recover(self) -> None:
        """Have the server give out again all that was delivered here and is not settled (0-9-1, basic.recover).

        If the connection is lost before the answer, the loss does that, and nothing is sent again.

        Cancelled: it may be done or not.
        """
        if await self.attempt(lambda: self.ask(spec.BasicRecover(requeue=True))) is None:
            await self._until_usable()

    # -- settling ---------------------------------------------------------------------------

    def nack(self, tag: int, epoch: int, requeue: bool, multiple: bool) -> None:
        """See ``Delivery.nack``."""
        self.settle(tag, epoch, spec.BasicNack(delivery_tag=tag, multiple=multiple, requeue=requeue))

    def put_back(self, delivery: Delivery) -> None:
        """Return a delivery that no program has seen."""
        if not delivery.settled and self.engine.state is ChannelState.OPEN:
            delivery.nack()

    # -- what the engine and the connection report ------------------------------------------

    def _take_cancel(self, arrival: Arrival) -> None:
        method = arrival.method
        assert isinstance(method, spec.BasicCancel)
        if not method.no_wait and self.engine.state is ChannelState.OPEN:
            self.engine.send(spec.BasicCancelOk(consumer_tag=method.consumer_tag))
            self.connection.wake_writer()
        consumer = self._consumers.pop(method.consumer_tag, None)
        if consumer is not None:
            consumer.on_cancelled()

    def _take_confirm(self, arrival: Arrival) -> None:
        assert isinstance(arrival.method, spec.BasicAck | spec.BasicNack)
        self.on_confirmed(arrival.tags, refused=isinstance(arrival.method, spec.BasicNack))

    def on_confirmed(self, numbers: tuple[int, ...], *, refused: bool) -> None:
        """Publishes were confirmed, or refused."""

    takes: ClassVar[Mapping[type[Method], Callable[[Any, Arrival], None]]] = {
        spec.BasicConsumeOk: ChannelBase[Delivery].take_consume_ok,
        spec.BasicCancel: _take_cancel,
        spec.BasicReturn: ChannelBase[Delivery].take_return,
        spec.BasicAck: _take_confirm,
        spec.BasicNack: _take_confirm,
        spec.ChannelFlowOk: ChannelBase[Delivery].take_flow_ok,
    }
    """What is no answer to a request, but for deliveries; all else is."""
