"""Consumers of the class stream: no acknowledgements, optional rate (C 1304-1424).

A message leaves its queue for good when a stream consumer takes it. With a window (of messages or octets) it then waits here
until it may be sent; if the window overflows, messages are dropped, first those of the lowest priority, among them the oldest.
Without a window, a message stays in its queue until it can be sent; so it does while more than ``Limits.buffer`` octets wait
here. A message may be sent if the client allows content, the transport has room, and the rate permits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.amqp091.server.outlets import NOTHING, ConsumerOutlet
from trio_amqp10.amqp091.wire.content import Content as Carried
from trio_amqp10.amqp091.wire.fields import FIVE
from trio_amqp10.amqp_10_3.wire.properties import StreamProperties
from trio_amqp10.broker.nodes.node import NotTakenError
from trio_amqp10.core.errors import LocalProtocolError

from .content import from_basic

if TYPE_CHECKING:
    from trio_amqp10.amqp091.server.channel import ServerChannel
    from trio_amqp10.amqp091.server.native_message import Published
    from trio_amqp10.broker.endpoints import GivenLease
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.node import Node


class StreamConsumer(ConsumerOutlet):
    """One stream consumer.

    Args:
        channel: the channel that receives.
        node: the node that has the messages.
        name: the name of the queue.
        tag: the consumer tag.
        size: octets that may wait here; 0 for any number.
        count: messages that may wait here; 0 for any number.
        rate: octets of bodies per second; 0 for no limit.
        others: as for ``ConsumerOutlet``.

    Attributes:
        dropped: how many messages were dropped because of the window.
    """

    messages: int

    def __init__(
        self,
        channel: ServerChannel,
        node: Node,
        name: str,
        tag: str,
        *,
        size: int,
        count: int,
        rate: int,
        **others: Any,
    ) -> None:
        super().__init__(channel, node, name, tag, no_ack=True, window=None, **others)
        self.dropped: int = 0
        self._size = size
        self._count = count
        self._rate = rate
        self._messages: list[tuple[Published, Carried]] = []
        self._octets = 0
        self._most_octets = channel.peer.engine.limits.buffer
        self._free_at = 0.0
        self._sleeps = False

    def statistics(self) -> dict[str, Any]:
        """Return the figures of ``ConsumerOutlet``, and the number of dropped messages."""
        return {**super().statistics(), "dropped": self.dropped}

    @property
    def _drops(self) -> bool:
        return bool(self._size or self._count)

    def ready(self) -> bool:
        if self.closed or self._giving or self.peer.resting:
            return False
        if self._drops and self._octets < self._most_octets:
            return True
        return not self._messages and self._has_turn()

    def deliver(self, content: Content, lease: GivenLease) -> bool:
        encoded = self._encoded(content)
        self._messages.append(encoded)
        self._octets += encoded[0].size
        self.messages += 1
        lease.accepted()
        self._send_on()
        while self._messages and self._is_over():
            # Among messages of the lowest priority, ``min`` finds the first, which is the oldest.
            lowest = min(range(len(self._messages)), key=lambda each: self._messages[each][0].terms.priority)
            self._octets -= self._messages.pop(lowest)[0].size
            self.dropped += 1
        return False

    def _is_over(self) -> bool:
        if self._count and len(self._messages) > self._count:
            return True
        return bool(self._size) and sum(len(each.body) for each, _ in self._messages) > self._size

    def _has_turn(self) -> bool:
        """Whether a message may be sent now; if not, ``wake`` will be called later."""
        if not self._channel.consuming.has_room():
            return False
        if not self._rate or self._free_at <= trio.current_time():
            return True
        if not self._sleeps:
            self._sleeps = True
            self._channel.peer.start_soon(self._sleep)
        return False

    async def _sleep(self) -> None:
        await trio.sleep_until(self._free_at)
        self._sleeps = False
        self.wake()

    def wake(self) -> None:
        if not self._giving:
            self._send_on()
        super().wake()

    def _send_on(self) -> None:
        while self._messages and not self.closed and self._has_turn():
            published, carried = self._messages.pop(0)
            self._octets -= published.size
            self._deliver(published, carried)

    def _encoded(self, content: Content) -> tuple[Published, Carried]:
        """Convert a message to the form of 0-9-1, and to a content of the class stream.

        Raises:
            NotTakenError: the properties cannot be encoded.
        """
        published = self.published(content)
        try:
            octets = from_basic(published.properties, StreamProperties).encode(FIVE)
        except LocalProtocolError as fault:
            raise NotTakenError(f"the properties of the message cannot be encoded: {fault}") from fault
        return published, Carried(NOTHING, published.body, octets)

    def _deliver(self, published: Published, content: Carried) -> None:
        channel = self._channel
        method = channel.make(
            "stream.deliver",
            consumer_tag=self.tag,
            delivery_tag=channel.engine.numbers.deliveries.last + 1,
            exchange=published.exchange,
            queue=self._name,
        )
        channel.engine.send(method, content)
        if self._rate:
            self._free_at = max(trio.current_time(), self._free_at) + len(published.body) / self._rate
        channel.peer.messages_out += 1

    def stop(self) -> None:
        super().stop()
        self._messages.clear()
        self._octets = 0
