"""Statuses: each thing in a container, as management shows it at one moment.

Times are seconds since 1970 on the wall clock of the container, ages are seconds, sizes are octets. Totals count from the
start of the process, or from the making of the thing if that was later. Nothing here is sampled.

Knows names and numbers; knows no node and no connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp10 import message as amqp10
    from trio_amqp10.broker.nodes.content import Content, Death
    from trio_amqp10.broker.nodes.policy import QueuePolicy


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeStatus:
    """A node of any kind.

    Args:
        address: its address.
        kind: ``"queue"``, ``"topic"``, ``"exchange"``, ``"function"``, ``"consumer"``, ``"producer"``, or the name of the class
            of a node of the program, in lower case.
        senders: links and publishers that send to it now.
        receivers: links and consumers that receive from it now.
        figures: all its figures by name, those of a node of the program included.
    """

    address: str
    kind: str
    senders: int
    receivers: int
    figures: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueStatus(NodeStatus):
    """A queue.

    Args:
        name: its name in AMQP 0-9-1, if it was declared there; otherwise its address.
        virtual_host: the name of the container.
        declared: whether it is a queue of the broker, declared with ``arguments``; its ``rules`` then follow from these.
        durable: whether all its messages are stored, or, of a declared queue, whether it was declared so.
        exclusive: whether it belongs to one connection.
        owner: the number of that connection; None otherwise.
        auto_delete: whether it is deleted with its last consumer, or when nothing needs it.
        arguments: the arguments of its declaration; empty for other queues.
        rules: its rules.
        depth: messages held: ready, unacked and delayed ones, and dead letters on their way.
        octets: of these messages.
        ready: messages that a consumer can get now.
        ready_octets: of these messages.
        unacked: messages that a consumer has, without an outcome.
        delayed: messages that wait for their next delivery.
        consumers: links and consumers that take messages; browsers do not count.
        redirect: the URL of the place that all its links are sent to; None if it accepts links.
        oldest: the age of the oldest ready message, in seconds; None if none is ready. A message without a ttl that was read from
            the store has the age since the restart.
        arrived: messages that it took in.
        refused: messages that it did not take.
        delivered: deliveries to consumers, repeated ones included.
        acknowledged: messages that a consumer accepted.
        redelivered: deliveries of a message that had been delivered before.
        dead_letters: messages that died here by reason, whether or not there is a dead-letter address.
    """

    name: str
    virtual_host: str
    declared: bool
    durable: bool
    exclusive: bool
    owner: int | None
    auto_delete: bool
    arguments: Mapping[str, Any]
    rules: QueuePolicy
    depth: int
    octets: int
    ready: int
    ready_octets: int
    unacked: int
    delayed: int
    consumers: int
    redirect: str | None
    oldest: float | None
    arrived: int
    refused: int
    delivered: int
    acknowledged: int
    redelivered: int
    dead_letters: Mapping[Death, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class TopicStatus(NodeStatus):
    """A topic.

    Args:
        virtual_host: the name of the container.
        max_backlog, overflow, max_subscriptions: as for ``Container.add_topic``.
        subscriptions: the number of its subscriptions.
        depth: messages that wait in all of them.
        arrived: messages that it took in.
    """

    virtual_host: str
    max_backlog: int | None
    overflow: str
    max_subscriptions: int | None
    subscriptions: int
    depth: int
    arrived: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SubscriptionStatus:
    """A subscription to a topic.

    Args:
        topic: the address of the topic.
        name: identifies it among those of its owner.
        container_id, user: its owner; None if it is common to all peers, or its owner is not authenticated.
        shared: whether several links may have it.
        durable: whether it survives the process.
        filtered: whether it gets only messages that pass a filter.
        lasting: seconds that it stays without a link; infinity for ever.
        expires: when it ends unless a link attaches, in seconds since 1970; None while it has a link, or for never.
        receivers: links that have it now.
        depth, octets, ready, unacked, oldest, arrived, delivered, acknowledged, redelivered, dead_letters: as for a queue.
    """

    topic: str
    name: str
    container_id: str | None
    user: str | None
    shared: bool
    durable: bool
    filtered: bool
    lasting: float
    expires: float | None
    receivers: int
    depth: int
    octets: int
    ready: int
    unacked: int
    oldest: float | None
    arrived: int
    delivered: int
    acknowledged: int
    redelivered: int
    dead_letters: Mapping[Death, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExchangeStatus(NodeStatus):
    """An exchange.

    Args:
        name: its name; empty for the default one, which has no address for peers.
        virtual_host: the name of the container.
        type: ``"direct"``, ``"fanout"``, ``"topic"`` or ``"headers"``.
        durable, auto_delete, internal, arguments: as declared.
        bindings: the number of bindings that it is the source of.
        arrived: messages that were published to it.
        unroutable: those of them that reached no queue.
    """

    name: str
    virtual_host: str
    type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: Mapping[str, Any]
    bindings: int
    arrived: int
    unroutable: int


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingStatus:
    """A binding from an exchange to a queue or to another exchange.

    Args:
        virtual_host: the name of the container.
        source: the name of the exchange.
        destination_kind: ``"queue"`` or ``"exchange"``.
        destination: the name of the queue or exchange.
        key: its key.
        arguments: compared with headers.
    """

    virtual_host: str
    source: str
    destination_kind: Literal["queue", "exchange"]
    destination: str
    key: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ConnectionStatus:
    """A connection.

    Args:
        number: identifies it among all that the container has had.
        container_id: the name that the peer chose for itself, without proof.
        user: the authenticated name of the peer, or None.
        host: the IP address of the peer; None in memory or on a Unix socket.
        virtual_host: the name of the container.
        protocol: ``"AMQP 1.0"``, ``"AMQP 0-9-1"``, ``"AMQ Protocol 10.3"`` or ``"AMQP/Fast"``.
        since: when it was opened, in seconds since 1970.
        state: the state of the connection in its protocol.
        channels: the number of its sessions or channels.
        senders, receivers: links by the role of this container, consumers and publishers included.
        octets_in, octets_out: above TLS and WebSockets.
        messages_in, messages_out: deliveries that began.
        waiting: octets that wait to be written.
        unsettled: deliveries to the peer without an outcome.
        working: handlers that work for it.
        figures: all its figures by name.
    """

    number: int
    container_id: str
    user: str | None
    host: str | None
    virtual_host: str
    protocol: str
    since: float
    state: str
    channels: int
    senders: int
    receivers: int
    octets_in: int
    octets_out: int
    messages_in: int
    messages_out: int
    waiting: int
    unsettled: int
    working: int
    figures: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelStatus:
    """A session of AMQP 1.0, or a channel of another protocol.

    Args:
        connection: the number of its connection.
        user: the authenticated name of the peer, or None.
        protocol: of the connection.
        number: its number on the connection.
        state: its state in its protocol.
        consumers: consumers, or links on which the container sends.
        unsettled_in: messages of the peer without an outcome, or not confirmed.
        unsettled_out: deliveries to the peer without an outcome.
        incoming_window, outgoing_window: the windows of a session, in transfers; None for a channel.
        prefetch: the most unsettled deliveries of a channel; None for no limit, and for a session.
        confirms: whether a channel is in confirm mode.
        transactional: whether a channel has transactions.
        figures: all its figures by name.
    """

    connection: int
    user: str | None
    protocol: str
    number: int
    state: str
    consumers: int
    unsettled_in: int
    unsettled_out: int
    incoming_window: int | None
    outgoing_window: int | None
    prefetch: int | None
    confirms: bool
    transactional: bool
    figures: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkStatus:
    """A link, a consumer, or an address that a connection publishes to.

    Args:
        identity: ``CONNECTION/ROLE/NAME``, unique; for ``Management.close_link``.
        connection: the number of its connection.
        container_id, user: the peer; ``user`` is None without authentication.
        protocol: of the connection.
        name: the name of the link; of a consumer its channel and its tag.
        role: ``"sender"`` if the container sends on it, as to a consumer; otherwise ``"receiver"``.
        address: the address of the node, or None.
        state: the state of the link.
        credit: messages that may be sent on it now; None for no limit.
        unsettled: deliveries without an outcome; 0 if that is not known.
        messages: deliveries that began.
        figures: all its figures by name.
    """

    identity: str
    connection: int
    container_id: str
    user: str | None
    protocol: str
    name: str
    role: Literal["sender", "receiver"]
    address: str | None
    state: str
    credit: int | None
    unsettled: int
    messages: int
    figures: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class TransactionStatus:
    """A transaction that is not over, and has begun to work.

    Args:
        connection: the number of the connection that declared it.
        user: the authenticated name of the peer, or None.
        messages: messages that wait for its commit.
        octets: of these messages.
        answers: deliveries whose outcome waits for its commit.
        committing: whether the commit is being written.
    """

    connection: int
    user: str | None
    messages: int
    octets: int
    answers: int
    committing: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class UserStatus:
    """A user that is connected, or that ``Rules`` or the users of ``serve`` name.

    Args:
        name: the authenticated name.
        connections: its open connections.
        links: its links that count in its quota.
        unsettled: deliveries to its connections without an outcome.
    """

    name: str
    connections: int
    links: int
    unsettled: int


@dataclass(frozen=True, kw_only=True, slots=True)
class AccountStatus:
    """The usage of a connected identity, as its quotas count it.

    Args:
        name: the name of the identity.
        connections: its open connections.
        links: its links.
        unsettled: deliveries to it without an outcome.
        unsettled_octets: of these deliveries.
    """

    name: str
    connections: int
    links: int
    unsettled: int
    unsettled_octets: int


@dataclass(frozen=True, kw_only=True, slots=True)
class VirtualHostStatus:
    """A name by which peers ask for this container.

    Args:
        name: a host of ``VirtualHosts``; ``"/"`` for a container that serves alone.
        container: the name of the container.
    """

    name: str
    container: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StoreStatus:
    """The store of a container.

    Args:
        description: the kind and the place of the store.
        octets: that it takes on disk; None if it does not report that.
        commits: commits that succeeded.
        failures: commits that failed.
        commit_seconds: how long the successful ones took, together.
        last_commit_seconds: how long the last of them took; None before the first.
        rows_set_aside: rows that could not be read.
    """

    description: str
    octets: int | None
    commits: int
    failures: int
    commit_seconds: float
    last_commit_seconds: float | None
    rows_set_aside: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerStatus:
    """The container itself.

    Args:
        name: its container-id.
        octets: that messages take in memory, those in the store included, each with 512 more.
        memory_limit: the octets above which peers must wait; None for no limit.
        throttled: whether they wait now.
        refused_for_memory: messages that were refused for that.
        store: its store; None without one.
        listeners: the URLs at which it listens.
        finishing: whether it takes no new work.
        nodes: the number of nodes.
        connections: the number of open connections of each protocol.
        totals: octets, frames, messages, reads and writes of all connections, ended ones included; and the breaches that
            were tolerated, as ``tolerated_`` with the name of the rule in ``Strict``.
        working: handlers that work now.
        refused: how much was refused because of each quota; empty without quotas.
    """

    name: str
    octets: int
    memory_limit: int | None
    throttled: bool
    refused_for_memory: int
    store: StoreStatus | None
    listeners: tuple[str, ...]
    finishing: bool
    nodes: int
    connections: Mapping[str, int]
    totals: Mapping[str, int]
    working: int
    refused: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageStatus:
    """A message in a queue.

    Args:
        queue: the address of the queue.
        place: the number of its arrival; smaller ones came before.
        priority: the priority that counts in its queue.
        message: the message as AMQP 1.0; must not be changed.
        content: the message in the form in which it came.
        octets: its size.
        age: seconds since it arrived, as for ``QueueStatus.oldest``.
        redelivered: whether it may have been delivered before.
        failures: failed deliveries from this queue.
        expires: seconds until it expires; None for never.
        died_in: the queue of its last death, by name or address; None if its history has none.
    """

    queue: str
    place: int
    priority: int
    message: amqp10.Message
    content: Content
    octets: int
    age: float
    redelivered: bool
    failures: int
    expires: float | None
    died_in: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Redriven:
    """The result of sending dead letters back.

    Args:
        moved: how many messages went to each queue, by address.
        left: messages that are still ready: they came meanwhile, have no history, or their queue does not exist.
    """

    moved: Mapping[str, int]
    left: int


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchedFrame:
    """A frame that was watched, or a protocol header.

    Args:
        number: counts the frames of the watch, from 1.
        time: when it was read or written.
        direction: ``"in"`` from the peer, ``"out"`` to it.
        channel: its channel; None where there is none.
        text: the frame on one line, as ``amqp10 trace`` writes it, without secrets; its beginning if it is long.
        fields: the fields that are set, each as text without secrets.
        octets: its size.
        payload_octets: the size of the content of a message in it.
        payload: the beginning of that content, if it was asked for.
        left_out: octets of this direction that were left out before it.
    """

    number: int
    time: float
    direction: Literal["in", "out"]
    channel: int | None
    text: str
    fields: Mapping[str, str]
    octets: int
    payload_octets: int
    payload: bytes
    left_out: int


@dataclass(frozen=True, kw_only=True, slots=True)
class FramePage:
    """Some frames of a watch.

    Args:
        frames: oldest first. Frames that are no longer kept leave a gap in their numbers.
        over: whether no further ones will come: the connection is closed.
    """

    frames: tuple[WatchedFrame, ...]
    over: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """A definition that was not imported.

    Args:
        kind: its list, e.g. ``"queues"`` or ``"users"``.
        name: its name.
        reason: why.
    """

    kind: str
    name: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """The result of an import.

    Args:
        made: how many definitions are there now, by their list; those that were there already included.
        left_out: the others.
    """

    made: Mapping[str, int]
    left_out: tuple[LeftOut, ...]


@dataclass(kw_only=True, slots=True)
class QueueTotals:
    """Several queues together.

    Args:
        queues: the number of queues.
        depth, octets, ready, ready_octets, unacked, delayed, consumers: sums; each as for one queue.
        oldest: the age of the oldest ready message of all, in seconds; 0 if none is ready.
    """

    queues: int = 0
    depth: int = 0
    octets: int = 0
    ready: int = 0
    ready_octets: int = 0
    unacked: int = 0
    delayed: int = 0
    consumers: int = 0
    oldest: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageTotals:
    """The messages of all queues and subscriptions so far; each figure only grows.

    Deleted queues and subscriptions are included.

    Args:
        arrived, refused, delivered, acknowledged, redelivered, dead_letters: sums; each as for one queue.
        unroutable: messages that reached no queue, of all exchanges.
    """

    arrived: int
    refused: int
    delivered: int
    acknowledged: int
    redelivered: int
    dead_letters: Mapping[Death, int]
    unroutable: int


@dataclass(kw_only=True, slots=True)
class ProtocolTotals:
    """The connections of one protocol together.

    Args:
        connections: open connections.
        channels: sessions or channels.
        senders, receivers: links by the role of this container, consumers and publishers included.
        waiting: octets that wait to be written.
        unsettled: deliveries to the peers without an outcome.
    """

    connections: int = 0
    channels: int = 0
    senders: int = 0
    receivers: int = 0
    waiting: int = 0
    unsettled: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """The figures of a whole container at one moment.

    Args:
        container: the container itself.
        queues: the queues that were asked for by name.
        rest: all other queues together.
        messages: totals of all queues and subscriptions.
        topics: the number of topics.
        subscriptions: the number of their subscriptions.
        backlog: messages that wait in all subscriptions.
        exchanges: the number of exchanges.
        protocols: the connections of each protocol.
        entered: connections so far.
    """

    container: ContainerStatus
    queues: tuple[QueueStatus, ...]
    rest: QueueTotals
    messages: MessageTotals
    topics: int
    subscriptions: int
    backlog: int
    exchanges: int
    protocols: Mapping[str, ProtocolTotals]
    entered: int
