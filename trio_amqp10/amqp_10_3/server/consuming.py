"""Deliveries on a channel: consumers of basic, file and stream, and basic.get.

Each consumer states its window when it begins. The channel may have a window in octets for all consumers together (C 516-518,
974-975). A rejected message counts as a failed attempt (C 1040-1043), and is only delivered to other channels (C 1096).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091.engine.states import ChannelState
from trio_amqp10.amqp091.server.consuming import Consuming, is_of_another, new_tag
from trio_amqp10.broker.exchanges.faults import AccessRefusedError, LockedError
from trio_amqp10.broker.nodes.node import SubscriptionTerms
from trio_amqp10.broker.nodes.topic import Topic
from trio_amqp10.broker.rights.broker_rights import to_receive

from .files import FileConsumer
from .outlets import BasicConsumer, GetOutlet103, WindowConsumer
from .streams import StreamConsumer
from .tickets import READ

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp091.engine.events import Arrival
    from trio_amqp10.amqp091.server.outlets import ConsumerOutlet
    from trio_amqp10.broker.endpoints import GivenLease
    from trio_amqp10.broker.nodes.node import Node
    from trio_amqp10.broker.nodes.queue import Queue

    from .channel_base import ChannelBase

_STREAM: Final = "stream.consume"
_FILE: Final = "file.consume"
_BASIC: Final = "basic.consume"


class Consuming103(Consuming):
    """The deliveries of one channel; see ``Consuming``.

    Attributes:
        octets: octets of all unsettled deliveries of the channel.
    """

    __slots__ = ("_channel103", "_sizes", "octets")

    def __init__(self, channel: ChannelBase) -> None:
        super().__init__(channel)
        self.octets: int = 0
        self._channel103 = channel
        self._sizes: dict[GivenLease, int] = {}

    # -- consumers --------------------------------------------------------------------------

    def consume(self, arrival: Arrival) -> None:
        """Process basic.consume, file.consume and stream.consume."""
        method: Any = arrival.method
        self._channel103.check_ticket(method.ticket, READ)
        name = self._channel.queue_named(method.queue)
        self._channel.ask(to_receive(self._channel.broker, name), partial(self._start, method, name))

    def _start(self, method: Any, name: str) -> None:
        channel, peer = self._channel103, self._channel.peer
        node = self._node_of(name)
        self._check_exclusive(method, name, node)
        tag = method.consumer_tag or new_tag()
        own = f"{peer.number}/{channel.number}/{tag}" if isinstance(node, Topic) else node.address
        options: dict[str, Any] = {
            "exclusive": method.exclusive,
            "wants": partial(is_of_another, peer.origin) if method.no_local else None,
            "subscription_terms": SubscriptionTerms(name=own, owner=peer.owner),
        }
        outlet = self._make_outlet(method, node, name, tag, options)
        peer.check_link()
        peer.check_outlet(node, copying=False, target=None, subscription_terms=outlet.subscription_terms)
        channel.reply(channel.make(f"{method.plan.name}-ok", consumer_tag=tag))
        self.outlets[tag] = outlet
        peer.guard.remember(outlet, ("receive", node.address))
        outlet.begin()

    def _check_exclusive(self, method: Any, name: str, node: Node) -> None:
        if self.is_taken(node, exclusive=method.exclusive):
            refused = AccessRefusedError if method.plan.name == _BASIC else LockedError  # C 976, 1186, 1374
            raise refused(f"queue {name!r} in exclusive use")

    def _make_outlet(
        self, method: Any, node: Node, name: str, tag: str, options: dict[str, Any]
    ) -> ConsumerOutlet:
        channel = self._channel103
        size, count = method.prefetch_size, method.prefetch_count
        if method.plan.name == _STREAM:
            stream = StreamConsumer(
                channel, node, name, tag, size=size, count=count, rate=method.consume_rate, **options
            )
            stream.key = channel.outlet_key
            return stream
        kind = FileConsumer if method.plan.name == _FILE else BasicConsumer
        return kind(
            channel, node, name, tag, size=size, window=count or None, no_ack=method.no_ack, **options
        )

    def on_cancelled(self, tag: str, condition: str | None, description: str | None) -> None:
        """Process the end of a consumer by its node, and send an alert.

        10.3 has no other method for this.
        """
        super().on_cancelled(tag, condition, description)
        channel = self._channel103
        channel.alert_cancelled(tag, description)

    # -- basic.get --------------------------------------------------------------------------

    def get(self, arrival: Arrival) -> None:
        """Process basic.get."""
        method: Any = arrival.method
        self._channel103.check_ticket(method.ticket, READ)
        super().get(arrival)

    def _get(self, method: Any, name: str, queue: Queue) -> None:
        if self._channel.engine.state is not ChannelState.OPEN:
            return  # See ``Consuming``.
        if not GetOutlet103(self._channel103, queue, name, no_ack=method.no_ack).pull():
            self._channel.reply(self._channel.make("basic.get-empty"))

    # -- acknowledgements -------------------------------------------------------------------

    def reject(self, arrival: Arrival) -> None:
        """Process basic.reject and file.reject."""
        method: Any = arrival.method
        self._settle(arrival.tags, _give_back if method.requeue else _refuse, removes=False)

    def _answer_lease(self, lease: GivenLease, answer: Callable[[GivenLease], object]) -> None:
        self.uncount(lease)
        super()._answer_lease(lease, answer)

    # -- windows ----------------------------------------------------------------------------

    def fits(self, size: int) -> bool:
        """Whether a message of this size fits in the window of the channel."""
        most = self._channel103.prefetch_max
        return not most or not self.octets or self.octets + size <= most

    def stall(self) -> None:
        """Make all consumers check again after the next change."""
        self._stalled = True

    def count(self, outlet: WindowConsumer, lease: GivenLease, size: int) -> None:
        """Count a delivery that the client must acknowledge."""
        self._sizes[lease] = size
        self.octets += size
        outlet.octets += size

    def uncount(self, lease: GivenLease) -> None:
        """Stop counting a delivery, which was settled."""
        size = self._sizes.pop(lease, 0)
        self.octets -= size
        if isinstance(lease.outlet, WindowConsumer):
            lease.outlet.octets -= size


def _give_back(lease: GivenLease) -> None:
    lease.modified(failed=True, undeliverable_here=True, annotations=None)


def _refuse(lease: GivenLease) -> None:
    lease.rejected(None, None)
