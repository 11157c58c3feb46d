"""Queues and exchanges as objects of a channel (0-9-1, queue and exchange)."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from trio_amqp10.amqp091 import spec
from trio_amqp10.core.arguments import check_text, check_type, table_of

from .delivery import Delivery, DeliveryBase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp091.engine.events import Arrival

    from .channel import Channel
    from .channel_base import ChannelBase
    from .consumer import Consuming
    from .topology import QueueName

D = TypeVar("D", bound=DeliveryBase)


class Default(Enum):
    """The value of an omitted argument, for arguments whose None has a meaning."""

    DEFAULT = "the channel's"


DEFAULT: Final = Default.DEFAULT


class Exchange(str):
    """The name of an exchange (a ``str``), with the channel that declared it."""

    __slots__ = ("_channel",)

    _channel: Channel

    @classmethod
    def of(cls, channel: Channel, name: str) -> Exchange:
        """Return the exchange of this name without a request to the server."""
        made = cls(name)
        made._channel = channel
        return made

    @property
    def name(self) -> str:
        """The name; empty for the default exchange."""
        return str(self)

    async def bind(
        self, source: str, routing_key: str = "", *, arguments: Mapping[str, Any] | None = None
    ) -> None:
        """Route messages of another exchange to this one (RabbitMQ's exchange.bind).

        Raises:
            NotFoundError: one of the two exchanges does not exist; other errors as for all calls of
                ``Channel``.

        Cancelled: the binding may have been made or not.
        """
        await self._channel.bind_exchange(self, source, routing_key, arguments=arguments)

    async def unbind(
        self, source: str, routing_key: str = "", *, arguments: Mapping[str, Any] | None = None
    ) -> None:
        """Remove the binding of a ``bind`` with the same arguments.

        This is RabbitMQ's exchange.unbind; errors and cancellation as ``bind``.
        """
        await self._channel.unbind_exchange(self, source, routing_key, arguments=arguments)

    async def delete(self, *, if_unused: bool = False) -> None:
        """Delete the exchange and its bindings; as ``Channel.delete_exchange``.

        Cancelled: the exchange may have been deleted or not.
        """
        await self._channel.delete_exchange(self, if_unused=if_unused)

    def __repr__(self) -> str:
        return f"<Exchange {str(self)!r}>"


class QueueBase(Generic[D]):
    """A queue, with the parts that 0-9-1 and 10.3 share.

    Attributes:
        message_count: ready messages at its declaration; 0 if the object was made without a declaration.
        consumer_count: consumers at its declaration.
    """

    __slots__ = ("_channel", "_name", "consumer_count", "message_count")

    def __init__(
        self, channel: ChannelBase[D], name: QueueName, message_count: int = 0, consumer_count: int = 0
    ) -> None:
        self._channel = channel
        self._name = name
        self.message_count: Final = message_count
        self.consumer_count: Final = consumer_count

    @property
    def name(self) -> str:
        """The queue's name.

        If the server chose the name, it changes when a lost connection is restored.
        """
        return self._name.now

    @property
    def renamed(self) -> str | None:
        """The name before the connection was restored; None if it has not changed."""
        return self._name.before

    async def bind(
        self, exchange: str, routing_key: str = "", *, arguments: Mapping[str, Any] | None = None
    ) -> None:
        """Route messages of an exchange to this queue (0-9-1, queue.bind).

        Args:
            exchange: the exchange's name, or an ``Exchange``.
            routing_key: the exchange compares it with the routing key of each message, according to its type.
            arguments: the headers that a headers exchange compares.

        Raises:
            NotFoundError: the exchange or the queue does not exist; other errors as for all calls of
                ``Channel``.

        Cancelled: the binding may have been made or not.
        """
        channel, table = self._channel, table_of("arguments", arguments)

        def request() -> Any:
            names = {"queue": self.name, "exchange": exchange, "routing_key": routing_key}
            return channel.make("queue.bind", **names, arguments=table)

        await channel.call(request)
        channel.connection.topology.bound(request(), self._name)

    async def purge(self) -> int:
        """Drop all ready messages; return their number (0-9-1, queue.purge).

        If the connection is lost before the answer, and restored, the queue is purged again; the number does not
        include the messages that the first purge dropped.

        Raises:
            NotFoundError: the queue does not exist; other errors as for all calls of ``Channel``.

        Cancelled: the messages may have been dropped or not.
        """
        channel = self._channel
        answer: Any = (await channel.call(lambda: channel.make("queue.purge", queue=self.name))).method
        count: int = answer.message_count
        return count

    async def delete(self, *, if_unused: bool = False, if_empty: bool = False) -> int:
        """Delete the queue; return the number of its messages (0-9-1, queue.delete).

        The server deletes the queue's messages and bindings too.

        Args:
            if_unused: delete it only if it has no consumers.
            if_empty: delete it only if it has no messages.

        Raises:
            PreconditionFailedError: the queue has consumers or messages; other errors as for all calls of
                ``Channel``.

        If the connection is lost before the answer, and restored, a queue that was declared on it is declared
        again and deleted again; the number does not include the messages that the first deletion dropped.

        Cancelled: the queue may have been deleted or not.
        """
        channel = self._channel
        conditions = {"if_unused": if_unused, "if_empty": if_empty}
        arrival = await channel.call(lambda: channel.make("queue.delete", queue=self.name, **conditions))
        channel.connection.topology.queue_deleted(self.name)
        answer: Any = arrival.method
        count: int = answer.message_count
        return count

    async def get(self, *, no_ack: bool = False) -> D | None:
        """Return one message if there is a ready one, otherwise None (0-9-1, basic.get).

        Each call is a round trip; use a consumer for many messages. If the connection is lost before the answer,
        and restored, the request is sent again: with ``no_ack`` a message that was on its way is lost, and the
        next one is returned; otherwise the server delivers the same message again.

        Args:
            no_ack: the server forgets the message when it sends it.

        Raises:
            NotFoundError: the queue does not exist; other errors as for all calls of ``Channel``.

        Cancelled: a message that arrives afterwards returns to its queue (in AMQP 10.3 when the channel closes);
            with ``no_ack`` it is lost.
        """
        channel, epoch = self._channel, 0

        def request() -> Any:
            nonlocal epoch  # the delivery needs the epoch of its request: a loss before this task runs changes it
            epoch = channel.epoch
            return channel.make("basic.get", queue=self.name, no_ack=no_ack)

        def put_back(arrival: Arrival) -> None:
            if arrival.content is not None and not no_ack:
                channel.put_back(channel.delivery_type(channel, arrival.method, arrival.content, epoch))

        arrival = await channel.call(request, put_back)
        if arrival.content is None:
            return None
        delivery: D = channel.delivery_type(channel, arrival.method, arrival.content, epoch)
        return delivery

    def __repr__(self) -> str:
        return f"<Queue {self.name!r}>"


class Queue(QueueBase[Delivery]):
    """A queue on a server, and the channel on which this program uses it.

    Attributes:
        message_count: ready messages at its declaration; 0 if the object was made without a declaration.
        consumer_count: consumers at its declaration.
    """

    __slots__ = ()

    _channel: Channel

    async def unbind(
        self, exchange: str, routing_key: str = "", *, arguments: Mapping[str, Any] | None = None
    ) -> None:
        """Remove the binding of a ``bind`` with the same arguments (0-9-1, queue.unbind).

        It is no error if there is no such binding.

        Cancelled: the binding may have been removed or not.
        """
        channel, table = self._channel, table_of("arguments", arguments)

        def request() -> spec.QueueUnbind:
            return spec.QueueUnbind(
                queue=self.name, exchange=exchange, routing_key=routing_key, arguments=table
            )

        await channel.call(request)
        channel.connection.topology.unbound(request())

    def consume(
        self,
        *,
        no_ack: bool = False,
        exclusive: bool = False,
        prefetch: int | Default | None = DEFAULT,
        priority: int | None = None,
        tag: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> Consuming:
        """Consume: ``async with queue.consume() as consumer`` (0-9-1, basic.consume).

        Leaving the block cancels the consumer, and returns deliveries that were not received to the queue.

        Args:
            no_ack: the server forgets each message when it sends it. This is fast, but messages under way are
                lost if the connection is lost.
            exclusive: the server allows no other consumer; it is an error if there is one.
            prefetch: unsettled deliveries that the server may have under way, 1 to 65535; the channel's
                prefetch if omitted. None for no limit; then up to 1 MiB waits in this process. With ``no_ack``
                it is the number of deliveries that may wait in this process.
            priority: consumers with a higher number are served first (RabbitMQ's ``x-priority``).
            tag: the consumer's name on the channel; if it is empty, one is generated.
            arguments: arguments for extensions, such as ``x-stream-offset``.

        Raises:
            LocalProtocolError: ``prefetch`` is out of its range, or ``tag`` is in use.
        """
        check_text("tag", tag)
        check_type("priority", priority, (int, type(None)), "a whole number, or None")
        return self._channel.consuming(
            self,
            no_ack=no_ack,
            exclusive=exclusive,
            prefetch=prefetch,
            tag=tag,
            arguments={
                **table_of("arguments", arguments),
                **({} if priority is None else {"x-priority": priority}),
            },
        )
