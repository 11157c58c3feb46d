"""Queues and exchanges as objects of a channel: what can be done with one that is there (0-9-1, classes queue and exchange)."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from trio_amqp10.amqp091 import spec

from .delivery import Delivery, DeliveryBase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp091.events import Arrival

    from .channel import Channel
    from .channel_base import ChannelBase
    from .consumer import Consuming
    from .topology import QueueName

__all__ = ["DEFAULT", "Default", "Exchange", "Queue", "QueueBase"]

D = TypeVar("D", bound=DeliveryBase)


class Default(Enum):
    """Stands for an argument that was left out, where None means something."""

    DEFAULT = "the channel's"


DEFAULT: Final = Default.DEFAULT


class Exchange(str):
    """The name of an exchange, which it is as a ``str``, and the channel on which it was declared."""

    __slots__ = ("_channel",)

    _channel: Channel

    @classmethod
    def of(cls, channel: Channel, name: str) -> Exchange:
        """The exchange of this name, without a look at the server."""
        made = cls(name)
        made._channel = channel
        return made

    @property
    def name(self) -> str:
        """Its name; empty for the default exchange."""
        return str(self)

    async def bind(
        self, source: str, routing_key: str = "", *, arguments: Mapping[str, Any] | None = None
    ) -> None:
        """Have messages of another exchange come to this one (RabbitMQ's exchange.bind).

        Raises:
            NotFoundError: one of the two exchanges does not exist; and as all calls of ``Channel``.

        Cancelled: it may have been bound or not.
        """
        await self._channel.bind_exchange(self, source, routing_key, arguments=arguments)

    async def unbind(
        self, source: str, routing_key: str = "", *, arguments: Mapping[str, Any] | None = None
    ) -> None:
        """Undo a ``bind`` with the same arguments (RabbitMQ's exchange.unbind); errors and cancellation as ``bind``."""
        await self._channel.unbind_exchange(self, source, routing_key, arguments=arguments)

    async def delete(self, *, if_unused: bool = False) -> None:
        """Delete it, and its bindings; as ``Channel.delete_exchange``.

        Cancelled: it may have been deleted or not.
        """
        await self._channel.delete_exchange(self, if_unused=if_unused)

    def __repr__(self) -> str:
        return f"<Exchange {str(self)!r}>"


class QueueBase(Generic[D]):
    """A queue, with what versions have in common.

    Attributes:
        message_count: messages that were ready when it was declared; 0 if it was not declared by this object.
        consumer_count: consumers that it had then.
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
        """Its name. One that the server chose changes if the connection is lost and comes back."""
        return self._name.now

    @property
    def renamed(self) -> str | None:
        """The name that it had before the connection came back; None if it is still the first."""
        return self._name.before

    async def bind(
        self, exchange: str, routing_key: str = "", *, arguments: Mapping[str, Any] | None = None
    ) -> None:
        """Have messages of an exchange come to this queue (0-9-1, queue.bind).

        Args:
            exchange: the exchange's name, or an ``Exchange``.
            routing_key: what the exchange compares a message's key with, as its type says.
            arguments: what a headers exchange compares.

        Raises:
            NotFoundError: the exchange or the queue does not exist; and as all calls of ``Channel``.

        Cancelled: it may have been bound or not.
        """
        channel, table = self._channel, dict(arguments or {})

        def request() -> Any:
            names = {"queue": self.name, "exchange": exchange, "routing_key": routing_key}
            return channel.make("queue.bind", **names, arguments=table)

        await channel.call(request)
        channel.connection.topology.bound(request(), self._name)

    async def purge(self) -> int:
        """Drop all messages that are ready; how many they were (0-9-1, queue.purge).

        If the connection is lost before the answer and comes back, the queue is purged again, and what the first purge has
        dropped is not counted.

        Raises:
            NotFoundError: the queue does not exist; and as all calls of ``Channel``.

        Cancelled: they may have been dropped or not.
        """
        channel = self._channel
        answer: Any = (await channel.call(lambda: channel.make("queue.purge", queue=self.name))).method
        count: int = answer.message_count
        return count

    async def delete(self, *, if_unused: bool = False, if_empty: bool = False) -> int:
        """Delete it, with its messages and bindings; how many messages it had (0-9-1, queue.delete).

        Args:
            if_unused: only without consumers.
            if_empty: only without messages.

        Raises:
            PreconditionFailedError: it has consumers or messages; and as all calls of ``Channel``.

        If the connection is lost before the answer and comes back, a queue that was declared on it is declared again, and
        deleted again: messages that the first deletion has dropped are not counted.

        Cancelled: it may have been deleted or not.
        """
        channel = self._channel
        conditions = {"if_unused": if_unused, "if_empty": if_empty}
        arrival = await channel.call(lambda: channel.make("queue.delete", queue=self.name, **conditions))
        channel.connection.topology.queue_deleted(self.name)
        answer: Any = arrival.method
        count: int = answer.message_count
        return count

    async def get(self, *, no_ack: bool = False) -> D | None:
        """Take one message if there is one ready; None otherwise (0-9-1, basic.get).

        Each call is a round trip: a consumer is the way to take many.

        If the connection is lost before the answer and comes back, the server is asked again: with ``no_ack`` a message that
        was on its way is lost, and this is the next one; otherwise it is given out again.

        Args:
            no_ack: the server forgets the message as it sends it.

        Raises:
            NotFoundError: the queue does not exist; and as all calls of ``Channel``.

        Cancelled: a message that still comes is put back, in 10.3 when the channel is closed; with ``no_ack`` it is lost.
        """
        channel, epoch = self._channel, 0

        def request() -> Any:
            nonlocal epoch  # that of the answer too: the connection may be lost before this task runs again
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
    """A queue on a server, and the channel by which this program reaches it.

    Attributes:
        message_count: messages that were ready when it was declared; 0 if it was not declared by this object.
        consumer_count: consumers that it had then.
    """

    __slots__ = ()

    _channel: Channel

    async def unbind(
        self, exchange: str, routing_key: str = "", *, arguments: Mapping[str, Any] | None = None
    ) -> None:
        """Undo a ``bind`` with the same arguments (0-9-1, queue.unbind); what is not bound is no error.

        Cancelled: it may have been unbound or not.
        """
        channel, table = self._channel, dict(arguments or {})

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

        Leaving the block cancels the consumer and puts back what was not received.

        Args:
            no_ack: the server forgets each message as it sends it: fast, and what is under way at a loss is lost.
            exclusive: no other consumer, or an error.
            prefetch: unsettled deliveries that the server may have under way, 1 to 65535; None for no limit, then up to
                1 MiB waits in this process. The channel's if left out. With ``no_ack`` it is what may wait in this process.
            priority: consumers with a higher number are served first (RabbitMQ's ``x-priority``).
            tag: the consumer's name on the channel; one is chosen if it is empty.
            arguments: for extensions, such as ``x-stream-offset``.

        Raises:
            LocalProtocolError: prefetch is 0 or out of its range, or the tag is in use.
        """
        return self._channel.consuming(
            self,
            no_ack=no_ack,
            exclusive=exclusive,
            prefetch=prefetch,
            tag=tag,
            arguments={**(arguments or {}), **({} if priority is None else {"x-priority": priority})},
        )
