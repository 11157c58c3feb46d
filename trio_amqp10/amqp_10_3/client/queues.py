"""Queues, consumers and deliveries of the client (class basic, C 882-1096).

A consumer states its window when it begins. The server returns unsettled deliveries to the queue when their channel is closed. A
rejection would count as a failed attempt, and would exclude the message from the same channel (C 1040-1043, 1096), so the client
never rejects on its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091.client.channel_base import checked_prefetch
from trio_amqp10.amqp091.client.consumer import ConsumerBase, ConsumerOpening
from trio_amqp10.amqp091.client.delivery import DeliveryBase
from trio_amqp10.amqp091.client.queues import DEFAULT, Default, QueueBase
from trio_amqp10.core.arguments import check_text

if TYPE_CHECKING:
    from trio_amqp10.amqp091.wire.methods import Method


class Delivery(DeliveryBase):
    """A received message.

    Attributes:
        body: the octets of the body.
        tag: the delivery tag, counted from 1 on each channel.
    """

    __slots__ = ()

    def reject(self, *, requeue: bool = True) -> None:
        """Reject the message, as a failed attempt (10.3, basic.reject, C 1077-1096).

        Synchronous; raises as ``ack``.

        Args:
            requeue: return the message for other channels: it is not delivered to this channel again, and a container
                dead-letters it at the fifth failure. False: it is dead-lettered at once, or dropped.
        """
        super().reject(requeue=requeue)


class Consumer(ConsumerBase[Delivery]):
    """Iterate over the deliveries: ``async for delivery in consumer``.

    The iteration ends without an error after the consumer was closed here. Several tasks may share one consumer.

    Attributes:
        tag: the consumer tag, unique on the channel.
        queue: the queue that it consumes.
        no_ack: whether the server forgets each message as soon as it is sent.
        prefetch: limit of unsettled deliveries; None for no limit.
        prefetch_octets: limit of octets of unsettled deliveries; 0 for no limit.
        no_local: whether messages that this connection published are skipped.
        on_delivery: called with each delivery when it arrives, instead of iteration; None to iterate.
    """

    __slots__ = ("no_local", "prefetch_octets")

    def __init__(self, *args: Any, prefetch_octets: int, no_local: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        self.prefetch_octets: Final = prefetch_octets
        self.no_local: Final = no_local

    def request(self) -> Method:
        """Return the method that begins the consumer."""
        method: Method = self._channel.make(
            "basic.consume",
            queue=self.queue.name,
            consumer_tag=self.tag,
            prefetch_size=self.prefetch_octets,
            prefetch_count=self.prefetch or 0,
            no_local=self.no_local,
            no_ack=self.no_ack,
            exclusive=self.exclusive,
        )
        return method

    async def aclose(self) -> None:
        """Cancel the consumer, and wait for the server's answer (10.3, basic.cancel).

        Deliveries that were not received return to the queue when the channel is closed; with ``no_ack`` they are lost. Received
        deliveries are not affected, and can still be settled.

        Cancelled: the cancel is sent, without waiting for the server's answer.
        """
        await super().aclose()


class Consuming(ConsumerOpening[Consumer]):
    """The result of ``Queue.consume``: enter it with ``async with`` to begin."""

    __slots__ = ()


class Queue(QueueBase[Delivery]):
    """A queue on a server, used over one channel.

    Attributes:
        message_count: ready messages when the queue was declared; 0 if this object did not declare it.
        consumer_count: consumers of the queue at that time.
    """

    __slots__ = ()

    def consume(
        self,
        *,
        no_ack: bool = False,
        exclusive: bool = False,
        no_local: bool = False,
        prefetch: int | Default | None = DEFAULT,
        prefetch_octets: int = 0,
        tag: str = "",
    ) -> Consuming:
        """Consume messages of the queue (10.3, basic.consume, C 959-980).

        Use it as ``async with queue.consume() as consumer``. Leaving the block cancels the consumer. Deliveries that were not
        received return to the queue when the channel is closed.

        Args:
            no_ack: the server forgets each message as soon as it is sent. This is fast, but deliveries in transit are lost with
                the connection.
            exclusive: allow no other consumer; the server refuses if there is one.
            no_local: skip messages that this connection published.
            prefetch: limit of unsettled deliveries, 1 to 65535; None for no limit, then up to 1 MiB waits in this process. The
                default is the prefetch of the channel. With ``no_ack`` it limits the deliveries that wait in this process.
            prefetch_octets: limit of octets of unsettled deliveries, but at least one message is delivered; 0 for no limit.
            tag: the consumer tag; if empty, one is generated.

        Raises:
            LocalProtocolError: prefetch is 0 or out of its range, or the tag is in use.

        Raises (on entering):
            NotFoundError: there is no such queue.
            AccessRefusedError: there is no read access, or another consumer is exclusive.
        """
        check_text("tag", tag)
        channel = self._channel
        consumer = Consumer(
            channel,
            self,
            tag or channel.new_consumer_tag(),
            no_ack=no_ack,
            exclusive=exclusive,
            prefetch=channel.prefetch if isinstance(prefetch, Default) else checked_prefetch(prefetch),
            prefetch_octets=prefetch_octets,
            no_local=no_local,
        )
        return Consuming(channel, consumer)
