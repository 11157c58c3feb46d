"""What a client receives on one channel: consumers, gets, acknowledgements, prefetch (0-9-1, basic).

A consumer is an outlet with a window of so many messages; the channel may have a window that all its consumers share. What
is acknowledged answers the lease; what is requeued goes back to its old place, on a quorum queue or one with a delay for
redelivery as a failed attempt.

Knows queues and topics by their outlets; does not know how a message gets there.
"""

from __future__ import annotations

import base64
import secrets
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.content import Content as Carried
from trio_amqp10.amqp091.states import ChannelState
from trio_amqp10.container.broker.faults import AccessRefusedError, LockedError, PreconditionError
from trio_amqp10.container.broker_rights import to_receive
from trio_amqp10.container.nodes.node import Node, SubscriptionTerms
from trio_amqp10.container.nodes.topic import Topic
from trio_amqp10.container.nodes.turns import each_in_turns, take_steps
from trio_amqp10.container.transactions import LeaseAnswer
from trio_amqp10.errors import LocalProtocolError

from .native_message import to_published
from .outlets import NOTHING, ChannelOutlet, ConsumerOutlet, GetOutlet, is_quorum
from .replying import REPLY_TO, ReplyNode, reply_name

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from trio_amqp10.amqp091.events import Arrival
    from trio_amqp10.container.endpoints import GivenLease
    from trio_amqp10.container.nodes.content import Content
    from trio_amqp10.container.nodes.queue import Queue

    from .channel import ServerChannel

__all__ = ["Consuming", "is_of_another", "new_tag"]

_MOST_REPLIES: Final = 16 * 1024 * 1024
"""Octets that wait to be written to a client, above which direct replies to it are refused: they have neither window nor queue."""


class _Replies:
    """The consumer of the direct replies to a channel; a ``ReplyConsumer``.

    Args:
        channel: that receives them.
        tag: its consumer tag.

    Attributes:
        tag: as given.
        name: to which replies are published; nobody can guess it.
    """

    __slots__ = ("_channel", "_node", "name", "tag")

    def __init__(self, channel: ServerChannel, tag: str) -> None:
        self._channel = channel
        self.tag = tag
        self.name = reply_name()
        self._node = ReplyNode(channel.broker.queue_address(self.name), self)

    def begin(self) -> None:
        """It receives from now on."""
        self._channel.broker.add_node(self._node)

    def end(self) -> None:
        """It receives no more."""
        self._channel.broker.remove_node(self._node)

    def deliver(self, content: Content) -> None:
        """As of ``ReplyConsumer``: a client that does not read gets no more than so many octets of replies."""
        channel = self._channel
        if channel.peer.engine.queued > _MOST_REPLIES:
            raise LocalProtocolError(f"more than {_MOST_REPLIES} octets wait for a client that does not read")
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
        """End it from here, and tell the client, as for any consumer."""
        self._channel.consuming.on_cancelled(self.tag, condition, description)


class Consuming:
    """The deliveries of one channel.

    Args:
        channel: whose they are.

    Attributes:
        outlets: its consumers by tag.
        unacked: deliveries that wait for an acknowledgement, by delivery tag.
        out: how many of these, or of those that wait for a commit, came by consumers.
        settling: whether several are acknowledged at once: outlets are woken behind that.
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
    def reply_name(self) -> str | None:
        """Where direct replies are published to; None without a consumer of them."""
        return None if self._replies is None else self._replies.name

    # -- consumers --------------------------------------------------------------------------

    def consume(self, arrival: Arrival) -> None:
        """basic.consume."""
        method: Any = arrival.method
        if method.queue == REPLY_TO:
            self._consume_replies(method)
            return
        name = self._channel.queue_named(method.queue)
        self._channel.ask(to_receive(self._channel.broker, name), partial(self._start, method, name))

    def _node_of(self, name: str) -> Node:
        """The queue of this name, or the topic."""
        broker = self._channel.broker
        node = broker.find_node(name)
        return node if isinstance(node, Topic) else broker.get_queue(name, self._channel.peer)

    def _start(self, method: Any, name: str) -> None:
        channel, peer = self._channel, self._channel.peer
        node = self._node_of(name)
        priority = method.arguments.get("x-priority", 0)
        if not isinstance(priority, int) or isinstance(priority, bool):
            raise PreconditionError(f"x-priority is an integer, not {priority!r}")
        others = [each for each in node.outlets if not each.copying]
        if any(isinstance(each, ConsumerOutlet) and each.exclusive for each in others) or (
            method.exclusive and others
        ):
            raise AccessRefusedError(f"queue '{name}' in vhost '/' in exclusive use")
        tag = method.consumer_tag or new_tag()
        # Of a topic it is a subscription of its own, which ends with it.
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
        """basic.cancel."""
        method: Any = arrival.method
        tag = method.consumer_tag
        if self._replies is not None and tag == self._replies.tag:
            self._end_replies()
        outlet = self.outlets.pop(tag, None)
        if outlet is not None:
            self._channel.peer.guard.forget(outlet)
            outlet.stop()
        if not getattr(method, "no_wait", False):
            self._channel.reply(self._channel.make(f"{method.plan.name}-ok", consumer_tag=tag))

    def on_cancelled(self, tag: str, condition: str | None, description: str | None) -> None:
        """The node has ended a consumer, e.g. because the queue was deleted; clients that understand it are told."""
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

    # -- one at a time ----------------------------------------------------------------------

    def get(self, arrival: Arrival) -> None:
        """basic.get."""
        method: Any = arrival.method
        name = self._channel.queue_named(method.queue)
        self._channel.ask(to_receive(self._channel.broker, name), partial(self._find_and_get, method, name))

    def _find_and_get(self, method: Any, name: str) -> None:
        queue = self._channel.broker.get_queue(name, self._channel.peer)
        if queue.policy.single_active and is_quorum(queue):
            raise LockedError(f"cannot get from queue '{name}' in vhost '/': it has a single active consumer")
        self._get(method, name, queue)

    def _get(self, method: Any, name: str, queue: Queue) -> None:
        if self._channel.engine.state is not ChannelState.OPEN:
            return  # closed by the client meanwhile: a message would go nowhere
        outlet = GetOutlet(self._channel, queue, name, no_ack=method.no_ack, window=1)
        if not outlet.pull():
            self._channel.reply(self._channel.make("basic.get-empty"))

    # -- acknowledgements -------------------------------------------------------------------

    def acknowledge(self, arrival: Arrival) -> None:
        """basic.ack."""
        self._settle(arrival.tags, _accept, removes=True)

    def reject(self, arrival: Arrival) -> None:
        """basic.nack and basic.reject."""
        method: Any = arrival.method
        self._settle(arrival.tags, _requeue if method.requeue else _refuse, removes=False)

    def _settle(self, tags: Iterable[int], answer: Callable[[GivenLease], object], *, removes: bool) -> None:
        self._channel.go_through(self._settling(tags, answer, removes=removes), _nothing)

    def _settling(
        self, tags: Iterable[int], answer: Callable[[GivenLease], object], *, removes: bool
    ) -> Generator[None, None, None]:
        """Answer the leases of these tags, in steps; consumers look for more messages behind the last."""
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
        """A transaction is rolled back: the message is unacknowledged again, or goes back if the channel is over."""
        if self._channel.over:
            lease.lost()
        else:
            self.unacked[tag] = lease

    def _answer_lease(self, lease: GivenLease, answer: Callable[[GivenLease], object]) -> None:
        if isinstance(lease.outlet, ConsumerOutlet):
            self.out -= 1
        answer(lease)

    def recover(self, arrival: Arrival) -> None:
        """basic.recover and basic.recover-async."""
        self._channel.go_through(
            self._recovering(isinstance(arrival.method, spec.BasicRecover), sorted(self.unacked)), _nothing
        )

    def _recovering(self, answers: bool, tags: Iterable[int]) -> Generator[None, None, None]:
        is_over = self._channel.peer.turns.is_over
        self.settling = True
        try:
            for tag in tags:
                if is_over():
                    yield
                lease = self.unacked.pop(tag, None)
                if lease is not None:  # else the channel has ended
                    self._answer_lease(lease, _requeue)
        finally:
            self.settling = False
        if answers:
            self._channel.reply(spec.BasicRecoverOk())
        self._wake()

    # -- how much at a time -----------------------------------------------------------------

    def qos(self, arrival: Arrival) -> None:
        """basic.qos: of each consumer to come, or of the channel."""
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
        """Whether the channel may be given a message now; if not, ``resume`` finds out when it may."""
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
        """Something has changed: have consumers that had to wait look again."""
        if self._stalled:
            self._stalled = False
            self._wake_all(list(self.outlets.values()))

    def wake_later(self, outlet: ConsumerOutlet) -> None:
        """Wake it when all is acknowledged."""
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
        """The channel is over: what was not acknowledged goes back, as after a failed attempt."""
        self._end_replies()
        outlets, self.outlets = self.outlets, {}
        for outlet in outlets.values():
            self._channel.peer.guard.forget(outlet)
            outlet.stop()
        unacked, self.unacked = self.unacked, {}
        turns = self._channel.peer.turns
        take_steps(turns, each_in_turns(turns, iter(unacked.values()), _lose))


def is_of_another(own: str, _content: object, origin: str | None) -> bool:
    """Whether a message was published by another than this origin, for consumers that ask for no messages of their own."""
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


def _lose(lease: GivenLease) -> None:
    lease.lost()


def _nothing(_: object = None) -> None:
    """There is nothing to be done behind it."""


def new_tag() -> str:
    """A tag of 128 bits for a consumer that names none."""
    return "amq.ctag-" + base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
