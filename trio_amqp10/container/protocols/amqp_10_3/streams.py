"""Consumers of the class stream: unacknowledged, at a rate, and dropping what is least urgent (C 1304-1424).

A message is the client's once it is taken from its queue. With a window, of messages or of octets, it waits here for its turn: what
is above the window is dropped, the lowest priority first, and of one priority the oldest. Without a window, or while more than
``Limits.buffer`` octets wait here, whatever the window is, it stays in its queue until it can be sent. The turn comes when the client lets content flow, the transport has room, and the rate permits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.amqp091.content import Content as Carried
from trio_amqp10.amqp091.fields import FIVE
from trio_amqp10.amqp_10_3.properties import StreamProperties
from trio_amqp10.container.nodes.node import NotTakenError
from trio_amqp10.container.protocols.amqp091.outlets import NOTHING, ConsumerOutlet
from trio_amqp10.errors import LocalProtocolError

from .content import from_basic

if TYPE_CHECKING:
    from trio_amqp10.container.endpoints import GivenLease
    from trio_amqp10.container.nodes.content import Content
    from trio_amqp10.container.nodes.node import Node
    from trio_amqp10.container.protocols.amqp091.channel import ServerChannel
    from trio_amqp10.container.protocols.amqp091.native_message import Published

__all__ = ["StreamConsumer"]


class StreamConsumer(ConsumerOutlet):
    """One consumer.

    Args:
        channel: that receives.
        node: that has the messages.
        name: of the queue.
        tag: its consumer tag.
        size: octets that may wait here; 0 for any number.
        count: messages that may wait here; 0 for any number.
        rate: octets of bodies a second; 0 for any number.
        others: as of ``ConsumerOutlet``.

    Attributes:
        dropped: messages that gave way to others.
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
        """As of ``ConsumerOutlet``, and how many were dropped."""
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
            # The lowest priority; of one priority the oldest, which stands first.
            lowest = min(range(len(self._messages)), key=lambda each: self._messages[each][0].terms.priority)
            self._octets -= self._messages.pop(lowest)[0].size
            self.dropped += 1
        return False

    def _is_over(self) -> bool:
        if self._count and len(self._messages) > self._count:
            return True
        return bool(self._size) and sum(len(each.body) for each, _ in self._messages) > self._size

    def _has_turn(self) -> bool:
        """Whether a message may be sent now; if not, there is somebody who says when."""
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
        """A message as 0-9-1 has it, and as a content of the class stream.

        Raises:
            NotTakenError: its properties cannot be written.
        """
        published = self.published(content)
        try:
            octets = from_basic(published.properties, StreamProperties).encode(FIVE)
        except LocalProtocolError as fault:
            raise NotTakenError(f"its properties cannot be written: {fault}") from fault
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
