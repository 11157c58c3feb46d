"""The status of each thing in a container, made from the thing itself.

Each function makes one status, or returns a kind of things for a list. A list is taken at its beginning, so that the things may
come and go while it is read.

Knows nodes, connections and stores by their interfaces; changes nothing, but removes expired messages, so that they do not
count.
"""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from trio_amqp10.amqp10.peer.statistics import totals_of
from trio_amqp10.broker.exchanges.addresses import exchange_address
from trio_amqp10.broker.exchanges.broker_queue import BrokerQueue
from trio_amqp10.broker.exchanges.exchanges import Exchange
from trio_amqp10.broker.nodes.message_origin import user_of
from trio_amqp10.broker.nodes.producer_node import ProducerNode
from trio_amqp10.broker.nodes.queue import Queue
from trio_amqp10.broker.nodes.topic import Topic
from trio_amqp10.broker.rights.access import Rules, shown
from trio_amqp10.container.handlers import ConsumerNode, FunctionNode

from .errors import ManagementError
from .listing import Kind
from .pace import Pace
from .status import (
    AccountStatus,
    BindingStatus,
    ChannelStatus,
    ConnectionStatus,
    ContainerStatus,
    ExchangeStatus,
    LinkStatus,
    NodeStatus,
    QueueStatus,
    StoreStatus,
    SubscriptionStatus,
    TopicStatus,
    TransactionStatus,
    UserStatus,
    VirtualHostStatus,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trio_amqp10.broker.exchanges.bindings import Binding
    from trio_amqp10.broker.nodes.held_messages import HeldMessages
    from trio_amqp10.broker.nodes.node import Node
    from trio_amqp10.broker.nodes.subscription_queue import Subscription
    from trio_amqp10.broker.peer_interfaces import ChannelView, ConnectedPeer, LinkView
    from trio_amqp10.broker.rights.quotas import Account
    from trio_amqp10.broker.stores.group_commit import Journal
    from trio_amqp10.broker.transactions import Transaction

    from .listing import Found
    from .managed_container import ManagedContainer

T = TypeVar("T")

KINDS: Final[dict[type[Node], str]] = {
    ConsumerNode: "consumer",
    FunctionNode: "function",
    ProducerNode: "producer",
}
"""The kinds of nodes whose kind is not the name of their class."""
_AMQP10: Final = "AMQP 1.0"


def kind_of(node: Node) -> str:
    """Return the kind of a node; see ``NodeStatus.kind``."""
    if isinstance(node, BrokerQueue):  # whatever RabbitMQ has of it besides
        return "queue"
    return KINDS.get(type(node)) or type(node).__name__.lower()


# -- nodes ----------------------------------------------------------------------------------


def nodes(container: ManagedContainer, cls: type[Node] | None = None, kind: str | None = None) -> Kind:
    """Return the nodes of a class or of a kind, or all."""

    def find() -> Iterator[Found]:
        for node in list(container.nodes.values()):
            if (cls is None or isinstance(node, cls)) and (kind is None or kind in ("node", kind_of(node))):
                yield (node.address,), node

    return Kind(find, partial(node_status, container), QUEUE_READERS if cls is Queue else {})


def node_status(container: ManagedContainer, node: Node) -> NodeStatus:
    """Return the status of a node, of the class for its kind."""
    if isinstance(node, Queue):
        return _of_queue(container, node)
    figures = node.statistics()
    common: dict[str, Any] = {
        "address": node.address,
        "kind": kind_of(node),
        "senders": len(node.inlets),
        "receivers": len(node.outlets),
        "figures": figures,
    }
    if isinstance(node, Topic):
        return TopicStatus(
            **common,
            virtual_host=container.name,
            max_backlog=node.max_backlog,
            overflow=node.overflow,
            max_subscriptions=node.max_subscriptions,
            subscriptions=len(node.subscriptions),
            depth=figures["messages"],
            arrived=figures["arrived"],
        )
    if isinstance(node, Exchange):
        broker = container.broker
        return ExchangeStatus(
            **common,
            name=node.name,
            virtual_host=container.name,
            type=node.kind,
            durable=node.durable,
            auto_delete=node.auto_delete,
            internal=node.internal,
            arguments=dict(node.arguments),
            bindings=0 if broker is None else len(broker.bindings.of_source(node.name)),
            arrived=node.figures["arrived"],
            unroutable=node.figures["unroutable"],
        )
    return NodeStatus(**common)


def _of_queue(container: ManagedContainer, queue: Queue) -> QueueStatus:
    figures = queue.statistics()
    declared = queue if isinstance(queue, BrokerQueue) else None
    return QueueStatus(
        address=queue.address,
        kind="queue",
        senders=len(queue.inlets),
        receivers=len(queue.outlets),
        figures=figures,
        name=_name_of(queue),
        virtual_host=container.name,
        declared=declared is not None,
        durable=queue.durable if declared is None else declared.wants_durable,
        exclusive=declared is not None and declared.owner is not None,
        owner=None if declared is None else getattr(declared.owner, "number", None),
        auto_delete=queue.is_temporary if declared is None else declared.auto_delete,
        arguments={} if declared is None else dict(declared.arguments),
        rules=queue.policy,
        delayed=figures["delayed"],
        consumers=queue.consumer_count,
        redirect=container.redirects.get(queue.address),
        refused=figures["refused"],
        ready_octets=queue.held.available.octets,
        **_of_held(queue.held),
    )


def _oldest(held: HeldMessages) -> float | None:
    earliest = held.available.earliest()
    return None if earliest is None else max(0.0, held.clock.wall() - earliest.since)


_HELD_READERS: Final[Mapping[str, Callable[[HeldMessages], Any]]] = {
    "depth": attrgetter("length"),
    "octets": attrgetter("octets"),
    "ready": lambda held: len(held.available),
    "unacked": attrgetter("leased"),
    "oldest": _oldest,
    "arrived": lambda held: held.figures["arrived"],
    "delivered": attrgetter("delivered"),
    "acknowledged": lambda held: held.figures["accepted"],
    "redelivered": attrgetter("redelivered"),
    "dead_letters": attrgetter("deaths"),
}
"""The fields that queues and subscriptions have in common."""


def _of_held(held: HeldMessages) -> dict[str, Any]:
    return {name: read(held) for name, read in _HELD_READERS.items()}


def _name_of(queue: Queue) -> str:
    return queue.name if isinstance(queue, BrokerQueue) else queue.address


def _swept(read: Callable[[HeldMessages], T]) -> Callable[[Queue], T]:
    """Return a function that removes expired messages, and reads a figure."""

    def read_swept(queue: Queue) -> T:
        queue.sweep_now()
        return read(queue.held)

    return read_swept


QUEUE_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "address": attrgetter("address"),
    "name": _name_of,
    "declared": lambda queue: isinstance(queue, BrokerQueue),
    "consumers": attrgetter("consumer_count"),
    "senders": lambda queue: len(queue.inlets),
    "receivers": lambda queue: len(queue.outlets),
    "ready_octets": _swept(attrgetter("available.octets")),
    "delayed": _swept(lambda held: len(held.delayed)),
    "refused": _swept(lambda held: held.figures["refused"]),
    **{name: _swept(read) for name, read in _HELD_READERS.items()},
}
"""The fields of ``QueueStatus`` that are read without the others."""


def subscriptions(container: ManagedContainer) -> Kind:
    """Return the subscriptions of all topics."""

    def find() -> Iterator[Found]:
        for node in list(container.nodes.values()):
            if isinstance(node, Topic):
                for subscription in list(node.subscriptions.values()):
                    yield (node.address,), subscription

    return Kind(find, partial(_of_subscription, container))


def _of_subscription(container: ManagedContainer, subscription: Subscription) -> SubscriptionStatus:
    subscription.sweep_now()
    terms, ends = subscription.subscription_terms, subscription.expires_at
    container_id, user = (None, None) if terms.owner is None else terms.owner
    clock = container.clock
    return SubscriptionStatus(
        topic=subscription.address,
        name=terms.name,
        container_id=container_id,
        user=user,
        shared=terms.shared,
        durable=terms.durable,
        filtered=subscription.wants is not None,
        lasting=terms.lasting,
        expires=None if ends is None or ends == math.inf else clock.to_wall(ends) / 1000,
        receivers=len(subscription.outlets),
        **_of_held(subscription.held),
    )


def exchanges(container: ManagedContainer) -> Kind:
    """Return the exchanges of the broker, the default one included."""

    def find() -> Iterator[Found]:
        for exchange in () if container.broker is None else list(container.broker.exchanges.values()):
            yield (exchange.address,), exchange

    return Kind(find, partial(node_status, container))


def bindings(container: ManagedContainer) -> Kind:
    """Return the bindings of the broker, each with its two ends to see."""

    def find() -> Iterator[Found]:
        broker = container.broker
        for binding in () if broker is None else list(broker.bindings):
            kind, name = binding.destination
            end = (
                exchange_address(name) if broker is None or kind == "exchange" else broker.queue_address(name)
            )
            yield (exchange_address(binding.source), end), binding

    return Kind(find, partial(binding_status, container.name))


def binding_status(virtual_host: str, binding: Binding) -> BindingStatus:
    """Return the status of a binding of the container of this name."""
    return BindingStatus(
        virtual_host=virtual_host,
        source=binding.source,
        destination_kind=binding.destination.kind,
        destination=binding.destination.name,
        key=binding.key,
        arguments=dict(binding.arguments),
    )


# -- connections ----------------------------------------------------------------------------


def connections(container: ManagedContainer) -> Kind:
    """Return the connections, oldest first."""
    return Kind(
        lambda: (((), peer) for peer in container.connected),
        partial(connection_status, container),
        CONNECTION_READERS,
    )


CONNECTION_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    name: attrgetter(name) for name in ("number", "container_id", "host", "since")
}
"""The fields of ``ConnectionStatus`` that are read without the others."""


def connection_status(container: ManagedContainer, peer: ConnectedPeer) -> ConnectionStatus:
    """Return the status of a connection."""
    figures = peer.statistics()
    return ConnectionStatus(
        number=peer.number,
        container_id=peer.container_id,
        user=user_of(peer.identity),
        host=peer.host,
        virtual_host=container.name,
        protocol=protocol_of(peer, figures),
        since=peer.since,
        state=figures["state"],
        channels=figures.get("sessions", 0),
        senders=figures.get("senders", 0),
        receivers=figures.get("receivers", 0),
        octets_in=figures.get("octets_in", 0),
        octets_out=figures.get("octets_out", 0),
        messages_in=figures.get("messages_in", 0),
        messages_out=figures.get("messages_out", 0),
        waiting=figures.get("waiting", 0),
        unsettled=peer.leases,
        working=peer.working,
        figures=figures,
    )


def protocol_of(peer: ConnectedPeer, figures: Mapping[str, Any] | None = None) -> str:
    """Return the protocol of a peer; see ``ConnectionStatus.protocol``."""
    known = getattr(peer, "protocol", None)
    if known is None and figures is not None:
        known = figures.get("protocol")
    return known if isinstance(known, str) else _AMQP10


def channels(container: ManagedContainer) -> Kind:
    """Return the sessions and channels of all connections."""

    def find() -> Iterator[Found]:
        for peer in container.connected:
            for channel in list(peer.channel_views()):
                yield (), (peer, channel)

    return Kind(find, _of_channel)


def _of_channel(thing: tuple[ConnectedPeer, ChannelView]) -> ChannelStatus:
    peer, channel = thing
    figures = channel.statistics()
    return ChannelStatus(
        connection=peer.number,
        user=user_of(peer.identity),
        protocol=protocol_of(peer),
        number=channel.number,
        state=figures["state"],
        consumers=figures.get("consumers", figures.get("senders", 0)),
        unsettled_in=figures.get("unsettled_in", 0),
        unsettled_out=figures.get("unsettled_out", 0),
        incoming_window=figures.get("incoming_window"),
        outgoing_window=figures.get("outgoing_window"),
        prefetch=figures.get("prefetch"),
        confirms=figures.get("confirms", False),
        transactional=figures.get("transactional", False),
        figures=figures,
    )


def links(container: ManagedContainer, role: str | None = None) -> Kind:
    """Return the links of all connections, or those of one role."""

    def find() -> Iterator[Found]:
        for peer in container.connected:
            for link in list(peer.links()):
                if role is None or link.role == role:
                    yield (), (peer, link)

    def describe(found: tuple[ConnectedPeer, LinkView]) -> LinkStatus:
        return link_status(*found)

    return Kind(find, describe)


def find_link(container: ManagedContainer, identity: str) -> tuple[ConnectedPeer, LinkView]:
    """Return the link of this identity, and its peer.

    Raises:
        ManagementError: ``"not-found"``.
    """
    number, _, rest = identity.partition("/")
    role, _, name = rest.partition("/")
    for peer in container.connected:
        if f"{peer.number}" == number:
            for link in peer.links():
                if (link.role, link.name) == (role, name):
                    return peer, link
    raise ManagementError("not-found", f"no link {shown(identity)}")


def link_status(peer: ConnectedPeer, link: LinkView) -> LinkStatus:
    """Return the status of a link."""
    figures = link.statistics()
    return LinkStatus(
        identity=f"{peer.number}/{link.role}/{link.name}",
        connection=peer.number,
        container_id=peer.container_id,
        user=user_of(peer.identity),
        protocol=protocol_of(peer),
        name=link.name,
        role=cast("Any", link.role),
        address=figures.get("address"),
        state=figures["state"],
        credit=figures.get("credit"),
        unsettled=figures.get("unsettled", 0),
        messages=figures.get("messages", 0),
        figures=figures,
    )


def transactions(container: ManagedContainer) -> Kind:
    """Return the transactions that are not over."""

    def find() -> Iterator[Found]:
        for peer in container.connected:
            for transaction in list(peer.transactions()):
                yield (), (peer, transaction)

    return Kind(find, _of_transaction)


def _of_transaction(thing: tuple[ConnectedPeer, Transaction]) -> TransactionStatus:
    peer, transaction = thing
    return TransactionStatus(
        connection=peer.number,
        user=user_of(peer.identity),
        messages=transaction.messages,
        octets=transaction.octets,
        answers=transaction.answers,
        committing=transaction.committing,
    )


def users(container: ManagedContainer) -> Kind:
    """Return the users that are connected or known, by name."""

    def find() -> Iterator[Found]:
        present: dict[str, list[ConnectedPeer]] = {}
        for peer in container.connected:
            user = user_of(peer.identity)
            if user is not None:
                present.setdefault(user, []).append(peer)
        named = container.authorise.users if isinstance(container.authorise, Rules) else ()
        known = {*present, *named, *container.known_users} - {"*"}
        for name in sorted(known):
            yield (), (name, present.get(name, []))

    return Kind(find, _of_user)


def _of_user(thing: tuple[str, list[ConnectedPeer]]) -> UserStatus:
    name, peers = thing
    return UserStatus(
        name=name,
        connections=len(peers),
        links=sum(peer.link_count for peer in peers),
        unsettled=sum(peer.leases for peer in peers),
    )


def accounts(container: ManagedContainer) -> Kind:
    """Return the accounts of the connected identities; none without quotas."""

    def find() -> Iterator[Found]:
        for account in dict.fromkeys(peer.account for peer in container.connected):
            if account is not None:
                yield (), account

    return Kind(find, _of_account)


def _of_account(account: Account) -> AccountStatus:
    return AccountStatus(
        name=account.name,
        connections=len(account.open),
        links=account.links,
        unsettled=account.unsettled,
        unsettled_octets=account.octets,
    )


# -- the container --------------------------------------------------------------------------


def virtual_hosts(container: ManagedContainer) -> Kind:
    """Return the names by which peers ask for the container."""

    def describe(name: str) -> VirtualHostStatus:
        return VirtualHostStatus(name=name, container=container.name)

    return Kind(lambda: (((), name) for name in container.virtual_hosts or ("/",)), describe)


def containers(container: ManagedContainer) -> Kind:
    """Return the container itself, without the totals of its connections."""

    def describe(found: ManagedContainer) -> ContainerStatus:
        return container_status(found, Counter(), Counter())

    return Kind(lambda: [((), container)], describe)


async def of_container(container: ManagedContainer) -> ContainerStatus:
    """Return the status of the container; its totals take a pause when that is long.

    Cancelled: nothing has changed.
    """
    pace = Pace()
    totals, protocols = Counter(container.past), Counter[str]()
    for peer in container.connected:
        await pace.pause()
        figures = peer.statistics()
        totals.update(totals_of(figures))
        protocols[protocol_of(peer, figures)] += 1
    return container_status(container, totals, protocols)


def container_status(
    container: ManagedContainer, totals: Counter[str], protocols: Counter[str]
) -> ContainerStatus:
    mark, accounts, journal = container.watermark, container.accounts, container.journal
    return ContainerStatus(
        name=container.name,
        octets=mark.octets,
        memory_limit=mark.limit,
        throttled=mark.high,
        refused_for_memory=mark.refused,
        store=None if journal is None else _of_store(journal),
        listeners=tuple(listener.url for listener in container.listeners),
        finishing=container.resting,
        nodes=len(container.nodes),
        connections=dict(protocols),
        totals=dict(totals),
        working=container.statistics()["working"],
        refused={} if accounts is None else dict(accounts.figures),
    )


def _of_store(journal: Journal) -> StoreStatus:
    return StoreStatus(
        description=repr(journal.store),
        octets=journal.octets,
        commits=journal.commits,
        failures=journal.failures,
        commit_seconds=journal.commit_seconds,
        last_commit_seconds=journal.last_commit_seconds,
        rows_set_aside=sum(map(len, journal.rows_set_aside.values())),
    )
