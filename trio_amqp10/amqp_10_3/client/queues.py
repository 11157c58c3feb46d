"""Queues, consumers and deliveries of the client of 10.3 (class basic, C 882-1096).

A consumer names its window when it begins. What was delivered and not settled comes back to the queue when its channel is
closed: to reject it is a failed attempt, and keeps it from the same channel (C 1040-1043, 1096), so nothing here rejects by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091.client.channel_base import checked_prefetch
from trio_amqp10.amqp091.client.consumer import ConsumerBase, ConsumerOpening
from trio_amqp10.amqp091.client.delivery import DeliveryBase
from trio_amqp10.amqp091.client.queues import DEFAULT, Default, QueueBase

if TYPE_CHECKING:
    from trio_amqp10.amqp091.methods import Method

__all__ = ["Consumer", "Consuming", "Delivery", "Queue"]


class Delivery(DeliveryBase):
    """One message.

    Attributes:
        body: its octets.
        tag: its delivery tag, from 1 for each channel.
    """

    __slots__ = ()

    def reject(self, *, requeue: bool = True) -> None:
        """Refuse it: a failed attempt (10.3, basic.reject, C 1077-1096). Synchronous; errors as ``ack``.

        Args:
            requeue: put it back for other channels: it does not come to this one again, and a container makes it a dead letter
                with the fifth failure. Otherwise it is a dead letter at once, or is dropped.
        """
        super().reject(requeue=requeue)


class Consumer(ConsumerBase[Delivery]):
    """Iterate over it: ``async for delivery in consumer``.

    Iterating ends without an error after this consumer was closed here. Several tasks may share one consumer.

    Attributes:
        tag: its name on the channel.
        queue: what it consumes.
        no_ack: whether the server forgets each message as it sends it.
        prefetch: unsettled deliveries that the server may have under way; None for no limit.
        prefetch_octets: octets that they may have; 0 for no limit.
        no_local: whether messages that this connection published are left out.
        on_delivery: called with each delivery as it comes, in place of iterating; None to iterate.
    """

    __slots__ = ("no_local", "prefetch_octets")

    def __init__(self, *args: Any, prefetch_octets: int, no_local: bool, **options: Any) -> None:
        super().__init__(*args, **options)
        self.prefetch_octets: Final = prefetch_octets
        self.no_local: Final = no_local

    def request(self) -> Method:
        """What the server is sent."""
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

        What was not received goes back to the queue when the channel is closed; with ``no_ack`` it is lost. Deliveries that were
        received stay as they are, and can still be settled.

        Cancelled: the cancel is sent, and the server's answer is not waited for.
        """
        await super().aclose()


class Consuming(ConsumerOpening[Consumer]):
    """A consumer of 10.3 that is yet to be made: enter it with ``async with``; see ``Queue.consume``."""

    __slots__ = ()


class Queue(QueueBase[Delivery]):
    """A queue on a server, and the channel by which this program reaches it.

    Attributes:
        message_count: messages that were ready when it was declared; 0 if it was not declared by this object.
        consumer_count: consumers that it had then.
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
        """Consume: ``async with queue.consume() as consumer`` (10.3, basic.consume, C 959-980).

        Leaving the block cancels the consumer. What it did not receive goes back to the queue when the channel is closed.

        Args:
            no_ack: the server forgets each message as it sends it: fast, and what is under way at a loss is lost.
            exclusive: no other consumer, or an error.
            no_local: leave out messages that this connection published.
            prefetch: unsettled deliveries that the server may have under way, 1 to 65535; None for no limit, then up to
                1 MiB waits in this process. The channel's if left out. With ``no_ack`` it is what may wait in this process.
            prefetch_octets: octets that the unsettled deliveries may have, where one message goes in any case; 0 for no limit.
            tag: the consumer's name on the channel; one is chosen if it is empty.

        Raises:
            LocalProtocolError: prefetch is 0 or out of its range, or the tag is in use.

        Raises (on entering): ``NotFoundError``, no such queue; ``AccessRefusedError``, no read access, or another consumer is
            exclusive.
        """
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
