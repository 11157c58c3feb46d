"""The channel of the 0-9-1 client: declare, publish, consume (0-9-1, 2.2.5).

``channel_base`` has the parts that a channel of 10.3 has too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.states import ChannelState
from trio_amqp10.core.arguments import check_text, table_of

from .channel_base import ChannelBase, checked_prefetch
from .consumer import Consumer, ConsumerBase, Consuming
from .delivery import Delivery
from .publish_content import content_of
from .queues import DEFAULT, Default, Exchange, Queue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.engine.events import Arrival
    from trio_amqp10.amqp091.wire.content import BasicProperties
    from trio_amqp10.amqp091.wire.methods import Method

    from .connection_base import ConnectionBase
    from .publish_content import PublishProperties
    from .reply import Reply


class Channel(ChannelBase[Delivery]):
    """One channel; made by ``Connection.open_channel``.

    Every call raises ``ChannelClosedError`` after the server closed the channel, ``ConnectionClosedError``
    after the connection is lost for good, and ``trio.ClosedResourceError`` after the channel was closed here.
    While a connection that reconnects is down, calls wait until it is back. A call sends its request once,
    unless the connection is lost before the answer, and restored: then the call sends the request again, so
    the server may carry it out twice. If that makes a difference, the documentation of the call describes it.

    Attributes:
        connection: its connection.
        engine: the engine's channel; replaced when the connection is restored.
        epoch: how often the connection was lost. Delivery tags of an earlier epoch are not valid any more.
        pace: limits how often cheap calls execute a checkpoint.
    """

    delivery_type: ClassVar[type[Any]] = Delivery
    deliver_method: ClassVar[type[Method]] = spec.BasicDeliver
    ack_method: ClassVar[type[Method]] = spec.BasicAck

    def __init__(self, connection: ConnectionBase[Any], prefetch: int | None) -> None:
        super().__init__(connection, prefetch)
        self._qos: int | None = None  # the prefetch that the server applies to the next consumer
        self._shared_qos: int | None = None

    def attach(self) -> list[Reply]:
        """Open an engine channel; the prefetch that the server applies is unknown again."""
        self._qos = None
        return super().attach()

    def setup(self) -> list[Method]:
        """Return the requests to send when the channel is opened, also after a loss."""
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
        """Create an exchange, or check that it exists (0-9-1, exchange.declare).

        Args:
            name: up to 255 octets; must not begin with ``amq.``.
            type: ``direct``, ``fanout``, ``topic``, ``headers``, or another type that the server supports.
            passive: only check whether the exchange exists.
            durable: the exchange survives a restart of the server.
            auto_delete: the server deletes the exchange together with the last binding from it.
            internal: only other exchanges can publish to it.
            arguments: such as ``alternate-exchange``.

        Raises:
            NotFoundError: ``passive`` is set, and the exchange does not exist.
            PreconditionFailedError: the exchange exists with another type or other properties.
            AccessRefusedError: the user has no permission, or the name is reserved.

        Cancelled: the exchange may have been created or not.
        """
        await self.make_exchange(
            name,
            type=type,
            passive=passive,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=table_of("arguments", arguments),
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
        """Route messages of exchange ``source`` to exchange ``destination``.

        This is RabbitMQ's exchange.bind.

        Raises:
            NotFoundError: one of the exchanges does not exist.

        Cancelled: the binding may have been made or not.
        """
        method = spec.ExchangeBind(
            destination=destination,
            source=source,
            routing_key=routing_key,
            arguments=table_of("arguments", arguments),
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
        """Remove the binding of a ``bind_exchange`` with the same arguments.

        This is RabbitMQ's exchange.unbind.

        Cancelled: the binding may have been removed or not.
        """
        method = spec.ExchangeUnbind(
            destination=destination,
            source=source,
            routing_key=routing_key,
            arguments=table_of("arguments", arguments),
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
        """Create a queue, or check that it exists (0-9-1, queue.declare).

        Args:
            name: up to 255 octets; must not begin with ``amq.``. If it is empty, the server chooses a name. If
                the connection is lost and restored, such a queue is declared again and gets another name. If
                the connection is lost before the answer, the server may have created one more such queue, which
                remains unless it is exclusive or expires.
            passive: only check whether the queue exists.
            durable: the queue survives a restart of the server.
            exclusive: only this connection can use the queue, and the server deletes it together with the
                connection.
            auto_delete: the server deletes the queue together with its last consumer.
            arguments: such as ``x-queue-type``, ``x-max-length``, ``x-message-ttl``.

        Raises:
            NotFoundError: ``passive`` is set, and the queue does not exist.
            PreconditionFailedError: the queue exists with other properties or arguments.
            ResourceLockedError: the queue is exclusive to another connection.
            AccessRefusedError: the user has no permission, or the name is reserved.

        Cancelled: the queue may have been created or not.
        """
        known, message_count, consumer_count = await self.make_queue(
            name,
            passive=passive,
            durable=durable,
            exclusive=exclusive,
            auto_delete=auto_delete,
            arguments=table_of("arguments", arguments),
        )
        return Queue(self, known, message_count, consumer_count)

    def queue(self, name: str) -> Queue:
        """Return the queue of this name without a request to the server.

        The user needs no permission to declare it.
        """
        check_text("name", name)
        return Queue(self, self.connection.topology.name_of(name))

    async def delete_queue(self, name: str, *, if_unused: bool = False, if_empty: bool = False) -> int:
        """Delete a queue, as ``Queue.delete``. Cancelled: it may be deleted or not."""
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
        """Publish a message (0-9-1, basic.publish), without waiting for a confirm.

        The call waits only until there is room to write the message; it does not report whether the message
        arrives. To know that, use ``Connection.open_publisher``.

        Args:
            exchange: its name, or an ``Exchange``; empty for the default exchange, which routes by the queue's
                name.
            routing_key: up to 255 octets.
            body: any octets.
            mandatory: the server returns the message if it routes it to no queue; see ``returns``.
            properties: all properties as one object, which can be used for many messages.
            fields: single properties, such as ``delivery_mode=2``, ``headers={...}``, ``expiration="60000"``
                (milliseconds).

        Raises:
            LocalProtocolError: a property or name does not fit its type; or both ``properties`` and ``fields``
                are given.

        The call waits while the server blocks the connection (``Connection.blocked``), while it stops the
        channel's flow, and while the connection is down and will be restored.

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
            prefetch: the limit, 1 to 65535; None for no limit.
            global_: one limit for all consumers of the channel together; otherwise a limit for each consumer
                that starts later.

        Raises:
            LocalProtocolError: ``prefetch`` is out of its range.

        Cancelled: the new limit may be in force or not.
        """
        count = checked_prefetch(prefetch) or 0

        def request() -> Method:
            if not global_:
                self._qos = count  # now, because a consumer may send a newer limit before the answer comes
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
        """Return a consumer that is not started yet; see ``Queue.consume``."""
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

    def before_consume(self, consumer: ConsumerBase[Delivery]) -> None:
        """Send the prefetch of a consumer if it differs from the last (basic.qos)."""
        count = consumer.prefetch or 0
        if not consumer.no_ack and count != (self._qos or 0):
            self._qos = count
            self.ask(spec.BasicQos(prefetch_count=count))

    async def recover(self) -> None:
        """Ask the server to deliver all unsettled deliveries again (basic.recover).

        If the connection is lost before the answer, the request is not sent again, because the loss has the
        same effect.

        Cancelled: it may be done or not.
        """
        if await self.attempt(lambda: self.ask(spec.BasicRecover(requeue=True))) is None:
            await self._until_usable()

    # -- settling ---------------------------------------------------------------------------

    def nack(self, tag: int, epoch: int, requeue: bool, multiple: bool) -> None:
        """Refuse a delivery; see ``Delivery.nack``."""
        self.settle(tag, epoch, spec.BasicNack(delivery_tag=tag, multiple=multiple, requeue=requeue))

    def put_back(self, delivery: Delivery) -> None:
        """Return a delivery to the queue that the program has not received."""
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
        """Take the server's confirms or refusals of publishes."""

    takes: ClassVar[Mapping[type[Method], Callable[[Any, Arrival], None]]] = {
        spec.BasicConsumeOk: ChannelBase[Delivery].take_consume_ok,
        spec.BasicCancel: _take_cancel,
        spec.BasicReturn: ChannelBase[Delivery].take_return,
        spec.BasicAck: _take_confirm,
        spec.BasicNack: _take_confirm,
        spec.ChannelFlowOk: ChannelBase[Delivery].take_flow_ok,
    }
    """The methods that are not answers to requests, without basic.deliver."""
