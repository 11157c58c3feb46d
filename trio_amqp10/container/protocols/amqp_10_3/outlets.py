"""Outlets of a channel of 10.3: a basic.get, and a consumer with a window of messages and of octets (C 974-975).

A message that does not fit the window of its consumer, or that of the channel (C 516-518), waits here until some of what is out
is settled; until then nothing more is taken. While nothing is out, a message of any size fits (C 974).

An outlet has the key of its channel: a message that was rejected does not come to the same channel again (C 1096).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.container.nodes.node import NotTakenError
from trio_amqp10.container.protocols.amqp091.outlets import ConsumerOutlet, GetOutlet

from .content import carried

if TYPE_CHECKING:
    from trio_amqp10.amqp091.content import Content as Carried
    from trio_amqp10.container.endpoints import GivenLease
    from trio_amqp10.container.nodes.content import Content
    from trio_amqp10.container.nodes.node import Node
    from trio_amqp10.container.nodes.refusals import OutletKey
    from trio_amqp10.container.protocols.amqp091.native_message import Published

    from .channel_base import ChannelBase

__all__ = ["BasicConsumer", "GetOutlet103", "WindowConsumer"]


class GetOutlet103(GetOutlet):
    """One basic.get."""

    def __init__(self, channel: ChannelBase, node: Node, name: str, *, no_ack: bool) -> None:
        super().__init__(channel, node, name, no_ack=no_ack, window=1)
        self.key: OutletKey = channel.outlet_key

    def _carried(self, published: Published) -> Carried:
        return carried(published)


class WindowConsumer(ConsumerOutlet):
    """A consumer of the class basic or file.

    Args:
        channel: that receives.
        node: that has the messages.
        name: of the queue.
        tag: its consumer tag.
        size: octets that may be out; 0 for any number.
        others: as of ``ConsumerOutlet``.

    Attributes:
        octets: of what is out.
    """

    def __init__(
        self, channel: ChannelBase, node: Node, name: str, tag: str, *, size: int, **others: Any
    ) -> None:
        super().__init__(channel, node, name, tag, **others)
        self.key: OutletKey = channel.outlet_key
        self.octets = 0
        self._size = 0 if self._no_ack else size
        self._consuming = channel.consuming103
        self._waiting: tuple[Content, GivenLease] | None = None

    def ready(self) -> bool:
        return self._waiting is None and super().ready()

    def deliver(self, content: Content, lease: GivenLease) -> bool:
        if not self._fits(content.size):
            self._waiting = content, lease
            self._consuming.stall()
            return True
        waits = self.send(content, lease)
        if waits:
            self._consuming.count(self, lease, content.size)
        return waits

    def send(self, content: Content, lease: GivenLease) -> bool:
        """Send a message that fits; whether it waits for an acknowledgement."""
        return super().deliver(content, lease)

    def _fits(self, size: int) -> bool:
        if self._no_ack:
            return True
        if self._size and self.octets and self.octets + size > self._size:
            return False
        return self._consuming.fits(size)

    def wake(self) -> None:
        if self._waiting is not None and not self._consuming.settling:
            content, lease = self._waiting
            if not self._fits(content.size):
                self._consuming.stall()
                return
            self._waiting = None
            try:
                self.deliver(content, lease)
            except NotTakenError:  # its lease was given long ago: it goes back, and not to this channel
                lease.modified(failed=False, undeliverable_here=True, annotations=None)
        super().wake()

    def stop(self) -> None:
        super().stop()
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting[1].released()


class BasicConsumer(WindowConsumer):
    """A consumer of the class basic."""

    def _carried(self, published: Published) -> Carried:
        return carried(published)
