"""The consumers of one channel: consume, get, acknowledge, prefetch (class basic).

A consumer is an outlet whose window is its prefetch; the channel may have a window that all its consumers
share. An acknowledgement accepts the lease of a delivery. A requeued message returns to its old place; in a
quorum queue, or in a queue with a delay for redelivery, that counts as a failed attempt.

A consumer of a queue or topic is an outlet there.
"""

from __future__ import annotations

import base64
import secrets
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.states import ChannelState
from trio_amqp10.amqp091.wire.content import Content as Carried
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.broker.exchanges.broker_queue import BrokerQueue
from trio_amqp10.broker.exchanges.faults import AccessRefusedError, LockedError, PreconditionError
from trio_amqp10.broker.nodes.node import Node, SubscriptionTerms
from trio_amqp10.broker.nodes.topic import Topic
from trio_amqp10.broker.nodes.turns import each_in_turns, take_steps
from trio_amqp10.broker.rights.broker_rights import to_receive
from trio_amqp10.broker.transactions import LeaseAnswer
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.reply_codes import ReplyCode091

from .direct_replies import REPLY_TO, ReplyNode, reply_name
from .native_message import to_published
from .outlets import NOTHING, ChannelOutlet, ConsumerOutlet, GetOutlet, is_quorum

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from trio_amqp10.amqp091.engine.events import Arrival
    from trio_amqp10.broker.endpoints import GivenLease
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.queue import Queue

    from .channel import ServerChannel

_MOST_REPLIES: Final = 16 * 1024 * 1024
"""Octets waiting for a client, above which direct replies to it are refused.

Direct replies have neither a window nor a queue.
"""


class _Replies:
    """The consumer of the direct replies to a channel; a ``ReplyConsumer``.

    Args:
        channel: the channel that receives them.
        tag: its consumer tag.

    Attributes:
        tag: as given.
        name: the secret routing key of the replies.
    """

    __slots__ = ("_channel", "_node", "name", "tag")

    def __init__(self, channel: ServerChannel, tag: str) -> None:
        self._channel = channel
        self.tag = tag
        self.name = reply_name()
        self._node = ReplyNode(channel.broker.queue_address(self.name), self)

    def begin(self) -> None:
        """Add the node of the replies."""
        self._channel.broker.add_node(self._node)

    def end(self) -> None:
        """Remove the node of the replies."""
        self._channel.broker.remove_node(self._node)

    def deliver(self, content: Content) -> None:
        """Send a reply, unless too many octets wait for a client that does not read."""
        channel = self._channel
        if channel.peer.engine.queued > _MOST_REPLIES:
            raise LocalProtocolError(
                f"the client does not read: more than {_MOST_REPLIES} octets wait for it"
            )
        published = to_published(content, self.name, like_rabbitmq=channel.habits.like_rabbitmq)
        channel.reply(
            spec.BasicDeliver(
                consumer_tag=self.tag,
                delivery_tag=channel.engine.numbers.deliveries.last + 1,
                redelivered=False,
                exchange=published.exchange,
                routing_key=published.routing_key,
            ),
            Carried(NOTHING, published.body, published.raw),
        )

    def close(self, condition: str | None = None, description: str | None = None) -> None:
        """End the consumer and notify the client."""
        self._channel.consuming.on_cancelled(self.tag, condition, description)


class Consuming:
    """The consumers and deliveries of one channel.

    Args:
        channel: the channel.

    Attributes:
        outlets: its consumers by tag.
        unacked: the leases of unacknowledged deliveries, by delivery tag.
        out: unacknowledged deliveries to consumers, including those that wait for a commit.
        settling: whether several deliveries are being settled: outlets are woken after the last.
    """

    __slots__ = (
        "_channel",
        "_limit",
        "_prefetch",
        "_replies",
        "_stalled",
        "_to_wake",
        "out",
        "outlets",
        "settling",
        "unacked",
    )

    def __init__(self, channel: ServerChannel) -> None:
        self.outlets: dict[str, ConsumerOutlet] = {}
        self.unacked: dict[int, GivenLease] = {}
        self.out: int = 0
        self.settling: bool = False
        self._replies: _Replies | None = None
        self._channel = channel
        self._prefetch: int | None = None
        self._limit: int | None = None
        self._stalled = False
        self._to_wake: dict[ConsumerOutlet, None] | None = None

    @property
    def prefetch(self) -> int | None:
        """The most deliveries that all consumers together hold; None for no limit."""
        return self._limit

    @property
    def reply_name(self) -> str | None:
        """The routing key of direct replies; None without a consumer of them."""
        return None if self._replies is None else self._replies.name

    # -- consumers --------------------------------------------------------------------------

    def consume(self, arrival: Arrival) -> None:
        """Handle basic.consume."""
        method: Any = arrival.method
        if method.queue == REPLY_TO:
            self._consume_replies(method)
            return
        name = self._channel.queue_named(method.queue)
        self._channel.ask(to_receive(self._channel.broker, name), partial(self._start, method, name))

    def _node_of(self, name: str) -> Node:
        """Return the queue or the topic of this name."""
        broker = self._channel.broker
        node = broker.find_node(name)
        return node if isinstance(node, Topic) else broker.get_queue(name, self._channel.peer)

    def _start(self, method: Any, name: str) -> None:
        channel, peer = self._channel, self._channel.peer
        node = self._node_of(name)
        priority = method.arguments.get("x-priority", 0)
        if not isinstance(priority, int) or isinstance(priority, bool):
            title = channel.broker.title_of("queue", name)
            raise PreconditionError(
                f"invalid arg 'x-priority' for {title}: {priority!r}: expected an integer"
            )
        single_active = isinstance(node, BrokerQueue) and node.policy.single_active
        if self.is_taken(node, exclusive=method.exclusive) or (method.exclusive and single_active):
            raise AccessRefusedError(f"{channel.broker.title_of('queue', name)} in exclusive use")
        if channel.habits.like_rabbitmq and self._limit is not None and is_quorum(node):
            raise ReplyError(ReplyCode091.NOT_IMPLEMENTED, f"{node} does not support global qos")
        tag = method.consumer_tag or new_tag()
        # At a topic, each consumer has a subscription of its own, which ends with the consumer.
        own = f"{peer.number}/{channel.number}/{tag}" if isinstance(node, Topic) else node.address
        outlet = ConsumerOutlet(
            channel,
            node,
            name,
            tag,
            no_ack=method.no_ack,
            exclusive=method.exclusive,
            window=self._prefetch,
            wants=partial(is_of_another, peer.origin) if method.no_local and peer.habits.no_local else None,
            subscription_terms=SubscriptionTerms(name=own, owner=peer.owner, priority=priority),
        )
        peer.check_link()
        peer.check_outlet(node, copying=False, target=None, subscription_terms=outlet.subscription_terms)
        self._answer(method, tag)
        self.outlets[tag] = outlet
        peer.guard.remember(outlet, ("receive", node.address))
        outlet.begin()

    @staticmethod
    def is_taken(node: Node, *, exclusive: bool) -> bool:
        """Whether the consumers of a node permit no further one of this kind."""
        # An exclusive consumer began without others, so it is the first one.
        first = next((each for each in node.outlets if not each.copying), None)
        return first is not None and (exclusive or (isinstance(first, ConsumerOutlet) and first.exclusive))

    def _answer(self, method: Any, tag: str) -> None:
        if getattr(method, "no_wait", False):
            self._channel.engine.numbers.consumers[tag] = method.no_ack
        else:
            self._channel.reply(self._channel.make(f"{method.plan.name}-ok", consumer_tag=tag))

    def _consume_replies(self, method: Any) -> None:
        if not method.no_ack:
            raise PreconditionError("reply consumer cannot acknowledge")
        if self._replies is not None:
            raise PreconditionError("reply consumer already set")
        replies = _Replies(self._channel, method.consumer_tag or new_tag())
        replies.begin()
        self._replies = replies
        self._answer(method, replies.tag)

    def _end_replies(self) -> None:
        replies, self._replies = self._replies, None
        if replies is not None:
            replies.end()

    def cancel(self, arrival: Arrival) -> None:
        """Handle basic.cancel."""
        method: Any = arrival.method
        tag = method.consumer_tag
        if not getattr(method, "no_wait", False):
            # Another consumer of the channel may get messages now: they come after the answer.
            self._channel.reply(self._channel.make(f"{method.plan.name}-ok", consumer_tag=tag))
        if self._replies is not None and tag == self._replies.tag:
            self._end_replies()
        outlet = self.outlets.pop(tag, None)
        if outlet is not None:
            self._channel.peer.guard.forget(outlet)
            outlet.stop()

    def on_cancelled(self, tag: str, condition: str | None, description: str | None) -> None:
        """End a consumer for its node, for example because the queue was deleted.

        A client that supports it is notified by basic.cancel.
        """
        _ = condition, description
        outlet, channel = self.outlets.pop(tag, None), self._channel
        if outlet is not None:
            channel.peer.guard.forget(outlet)
        elif self._replies is not None and tag == self._replies.tag:
            self._end_replies()
        else:
            return
        if channel.peer.engine.capabilities.get("consumer_cancel_notify") is True:
            channel.notify(spec.BasicCancel(consumer_tag=tag, no_wait=True))
        else:
            channel.engine.numbers.consumers.pop(tag, None)

    # -- basic.get --------------------------------------------------------------------------

    def get(self, arrival: Arrival) -> None:
        """Handle basic.get."""
        method: Any = arrival.method
        name = self._channel.queue_named(method.queue)
        self._channel.ask(to_receive(self._channel.broker, name), partial(self._find_and_get, method, name))

    def _find_and_get(self, method: Any, name: str) -> None:
        queue = self._channel.broker.get_queue(name, self._channel.peer)
        queue.check_here()
        if queue.policy.single_active and is_quorum(queue):
            title = self._channel.broker.title_of("queue", name)
            raise LockedError(
                f"cannot obtain access to locked {title}. "
                "basic.get operations are not supported by quorum queues with single active consumer"
            )
        self._get(method, name, queue)

    def _get(self, method: Any, name: str, queue: Queue) -> None:
        if self._channel.engine.state is not ChannelState.OPEN:
            return  # the client has closed the channel meanwhile, so a message would not arrive
        outlet = GetOutlet(self._channel, queue, name, no_ack=method.no_ack, window=1)
        if not outlet.pull():
            self._channel.reply(self._channel.make("basic.get-empty"))

    # -- acknowledgements -------------------------------------------------------------------

    def acknowledge(self, arrival: Arrival) -> None:
        """Handle basic.ack."""
        self._settle(arrival.tags, _accept, removes=True)

    def reject(self, arrival: Arrival) -> None:
        """Handle basic.nack and basic.reject."""
        method: Any = arrival.method
        self._settle(arrival.tags, _requeue if method.requeue else _refuse, removes=False)

    def _settle(self, tags: Iterable[int], answer: Callable[[GivenLease], object], *, removes: bool) -> None:
        self._channel.go_through(self._settling(tags, answer, removes=removes), _nothing)

    def _settling(
        self, tags: Iterable[int], answer: Callable[[GivenLease], object], *, removes: bool
    ) -> Generator[None, None, None]:
        """Settle the leases of these tags in steps; wake the consumers after the last."""
        channel, is_over = self._channel, self._channel.peer.turns.is_over
        self.settling = True
        try:
            for tag in tags:
                if is_over():
                    yield
                lease = self.unacked.pop(tag, None)
                if lease is None:
                    continue
                if channel.transactional:
                    channel.transaction.add(
                        LeaseAnswer(
                            lease,
                            partial(self._answer_lease, lease, answer),
                            removes=removes,
                            undo=partial(self._keep, tag, lease),
                        )
                    )
                else:
                    self._answer_lease(lease, answer)
        finally:
            self.settling = False
        self._wake()

    def _keep(self, tag: int, lease: GivenLease) -> None:
        """Restore a lease after a rollback; give it up if the channel has ended."""
        if self._channel.over:
            lease.lost()
        else:
            self.unacked[tag] = lease

    def _answer_lease(self, lease: GivenLease, answer: Callable[[GivenLease], object]) -> None:
        if isinstance(lease.outlet, ConsumerOutlet):
            self.out -= 1
        answer(lease)

    def recover(self, arrival: Arrival) -> None:
        """Handle basic.recover and basic.recover-async."""
        self._channel.go_through(
            self._recovering(isinstance(arrival.method, spec.BasicRecover), sorted(self.unacked)), _nothing
        )

    def _recovering(self, answers: bool, tags: Iterable[int]) -> Generator[None, None, None]:
        is_over = self._channel.peer.turns.is_over
        if answers:
            self._channel.reply(spec.BasicRecoverOk())  # before the deliveries that follow, as at RabbitMQ
        self.settling = True
        try:
            for tag in tags:
                if is_over():
                    yield
                lease = self.unacked.pop(tag, None)
                if lease is not None:  # None if the channel has ended meanwhile
                    self._answer_lease(lease, _requeue)
        finally:
            self.settling = False
        self._wake()

    # -- prefetch ---------------------------------------------------------------------------

    def qos(self, arrival: Arrival) -> None:
        """Set the window of each consumer of the channel, or of all together.

        With ``like_rabbitmq`` the window of each is that of later consumers only.
        """
        method: Any = arrival.method
        count = method.prefetch_count or None
        if method.global_:
            self._limit = count
        else:
            self._prefetch = count
            if not self._channel.habits.like_rabbitmq:
                for outlet in list(self.outlets.values()):
                    outlet.resize(count)
        self._channel.reply(spec.BasicQosOk())
        self._stalled = True

    def has_room(self) -> bool:
        """Whether a consumer may get a message now; if not, ``resume`` wakes it."""
        channel = self._channel
        engine = channel.engine
        if (
            engine.state is ChannelState.OPEN
            and engine.flowing
            and channel.peer.engine.has_room
            and (self._limit is None or self.out < self._limit)
        ):
            return True
        self._stalled = True
        return False

    def resume(self) -> None:
        """Wake consumers that had to wait for room, because there may be some now."""
        if self._stalled:
            self._stalled = False
            self._wake_all(list(self.outlets.values()))

    def wake_later(self, outlet: ConsumerOutlet) -> None:
        """Wake ``outlet`` when the current settlements are done."""
        if self._to_wake is None:
            self._to_wake = {}
        self._to_wake[outlet] = None

    def _wake(self) -> None:
        woken, self._to_wake = self._to_wake, None
        if woken:
            self._wake_all(woken)

    def _wake_all(self, outlets: Iterable[ConsumerOutlet]) -> None:
        turns = self._channel.peer.turns
        take_steps(turns, each_in_turns(turns, iter(outlets), _wake))

    # -- the end ----------------------------------------------------------------------------

    def end(self) -> None:
        """End the consumers; requeue unacknowledged messages, as a failed attempt."""
        self._end_replies()
        outlets, self.outlets = self.outlets, {}
        for outlet in outlets.values():
            self._channel.peer.guard.forget(outlet)
            outlet.stop()
        unacked, self.unacked = self.unacked, {}
        turns = self._channel.peer.turns
        take_steps(turns, each_in_turns(turns, iter(unacked.values()), lambda lease: lease.lost()))


def is_of_another(own: str, _content: object, origin: str | None) -> bool:
    """Whether a message has another origin than ``own``, for no-local consumers."""
    return origin != own


def _requeue(lease: GivenLease) -> None:
    outlet = lease.outlet
    if isinstance(outlet, ChannelOutlet) and outlet.counts_requeued:
        lease.modified(failed=True, undeliverable_here=False, annotations=None)
    else:
        lease.released()


def _accept(lease: GivenLease) -> None:
    lease.accepted()


def _refuse(lease: GivenLease) -> None:
    lease.rejected(None, None)


def _wake(outlet: ConsumerOutlet) -> None:
    outlet.wake()


def _nothing(_: object = None) -> None:
    """Do nothing after long work."""


def new_tag() -> str:
    """Return a random consumer tag of 128 bits."""
    return "amq.ctag-" + base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
