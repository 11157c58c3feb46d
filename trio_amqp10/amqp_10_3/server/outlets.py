"""Outlets of a channel: basic.get, and consumers with windows (C 974-975).

A window limits messages and octets. A message that does not fit in the window of its consumer, or of the channel (C 516-518),
waits here until deliveries are settled; until then no further message is taken. While no delivery is unsettled, a message of any
size fits (C 974).

All outlets of a channel have its key: a rejected message is not delivered to the same channel again (C 1096).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp091.server.outlets import ConsumerOutlet, GetOutlet
from trio_amqp10.broker.nodes.node import NotTakenError

from .content import carried

if TYPE_CHECKING:
    from trio_amqp10.amqp091.server.native_message import Published
    from trio_amqp10.amqp091.wire.content import Content as Carried
    from trio_amqp10.broker.endpoints import GivenLease
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.node import Node
    from trio_amqp10.broker.nodes.refusals import OutletKey

    from .channel_base import ChannelBase


class GetOutlet103(GetOutlet):
    """The outlet of one basic.get."""

    def __init__(self, channel: ChannelBase, node: Node, name: str, *, no_ack: bool) -> None:
        super().__init__(channel, node, name, no_ack=no_ack, window=1)
        self.key: OutletKey = channel.outlet_key

    def _carried(self, published: Published) -> Carried:
        return carried(published)


class WindowConsumer(ConsumerOutlet):
    """A consumer of the class basic or file.

    Args:
        channel: the channel that receives.
        node: the node that has the messages.
        name: the name of the queue.
        tag: the consumer tag.
        size: limit of octets of unsettled deliveries; 0 for no limit.
        others: as for ``ConsumerOutlet``.

    Attributes:
        octets: octets of the unsettled deliveries.
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
        """Send a message that fits; return whether it must be acknowledged."""
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
            except NotTakenError:
                # The queue gave the lease earlier, so it is returned here, without another try on this channel.
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
