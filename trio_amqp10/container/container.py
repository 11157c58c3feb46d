"""The container: a named peer that holds nodes and serves them to connected peers.

Knows which nodes there are and who may create them; knows nothing of links or octets.
"""

from __future__ import annotations

import logging
import math
import time
import uuid
from collections import Counter
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, cast
from weakref import WeakSet

import trio

from trio_amqp10.amqp10.peer.listen import Acceptor, Listener, serve
from trio_amqp10.amqp10.server.connection import Amqp10Connection
from trio_amqp10.amqp10.server.lifetimes import TEMPORARY
from trio_amqp10.amqp10.server.link_store import LinkStore
from trio_amqp10.amqp10.server.native_message import content_of_message
from trio_amqp10.amqp10.server.protocol import Amqp10
from trio_amqp10.amqp10.server.retained_termini import LONGEST, Termini
from trio_amqp10.broker.background_tasks import TaskRunner
from trio_amqp10.broker.exchanges.addresses import EXCHANGES, spell_exchange
from trio_amqp10.broker.exchanges.topology import Topology
from trio_amqp10.broker.nodes.clock import Clock
from trio_amqp10.broker.nodes.message_store import MessageStore, QueueStore
from trio_amqp10.broker.nodes.node import Node, Peer, RefusedError, label
from trio_amqp10.broker.nodes.policy import Bound, Overflow, QueuePolicy
from trio_amqp10.broker.nodes.queue import Queue
from trio_amqp10.broker.nodes.relay import Relay, post
from trio_amqp10.broker.nodes.topic import MAX_BACKLOG, MAX_SUBSCRIPTIONS, Spill, Topic
from trio_amqp10.broker.nodes.turns import ENDLESS
from trio_amqp10.broker.nodes.watermark import Watermark
from trio_amqp10.broker.rights.access import Authorise, permit_claimed
from trio_amqp10.broker.rights.guard import Guard
from trio_amqp10.broker.rights.quotas import Accounts, Quotas
from trio_amqp10.broker.stores.base import StoreError, reading
from trio_amqp10.broker.stores.node_settings import NodeSettings
from trio_amqp10.broker.stores.queue_redirects import QueueRedirects
from trio_amqp10.broker.stores.write_probe import WriteProbe
from trio_amqp10.broker.timers import Timers
from trio_amqp10.core.available_memory import default_limit
from trio_amqp10.core.errors import Condition, LocalProtocolError
from trio_amqp10.core.tokens import path_of
from trio_amqp10.net.option_signatures import takes_as, takes_on
from trio_amqp10.net.read_turns import current_turns
from trio_amqp10.net.waiters import check_trio, interrupts_unwrapped
from trio_amqp10.sasl import Server

from .cbs import Cbs
from .connected_peers import Connections
from .decorators import HandlerDecorators
from .dialects import dialects_of, of_own_schemes
from .handlers import Around, HandlerNode
from .internal_peer import InternalPeer, NodesPeer, send_within
from .local_connection import LocalConnection, LocalOptions
from .management import Management, ManagementError
from .management.management_node import ADDRESS, ManagementNode
from .management.redirecting import place_of
from .run_until_signal import run_until_signal

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Generator, Sequence
    from contextlib import AbstractContextManager

    from trio_amqp10.amqp10.message import Message
    from trio_amqp10.amqp10.peer.connection import Connection
    from trio_amqp10.amqp10.spec.transport import Error
    from trio_amqp10.broker.nodes.node import NodeWatcher
    from trio_amqp10.broker.nodes.turns import Turns
    from trio_amqp10.broker.peer_interfaces import ConnectedPeer
    from trio_amqp10.broker.rights.claims import Verify
    from trio_amqp10.broker.rights.rights_holder import Subject
    from trio_amqp10.broker.stores.base import Store
    from trio_amqp10.broker.stores.group_commit import Journal

    from .management.frame_watch import FrameWatch

_log = logging.getLogger("trio_amqp10.container")

_RESERVED: Final = (TEMPORARY, "$")
"""Prefixes of addresses at which no queue is created on first use.

A late reply must not create a dynamic node again, and a request to ``$management`` or ``$cbs`` must not create a queue
of that name.
"""

_FIRST_USE: Final = frozenset({"links", "messages"})


class Container(HandlerDecorators):
    """A named peer that holds nodes.

    Args:
        name: the container id that peers see (2.4.1); a fresh UUID if None.
        strict: refuse addresses that were not added; otherwise a queue is created on first use, and deleted when it has
            neither links nor messages.
        max_unsettled_octets: octets of messages that one connection may hold unsettled; None for no limit. At this
            limit, the links of the connection get no more messages until it settles some; a single message may be larger.
            The same limit holds for the messages that wait for the commit of one transaction: a transaction that exceeds
            it is rolled back. It also holds for links on which the peer sends and settles last (receiver settle mode
            second): the peer gets no credit while the deliveries that have an outcome and are not settled take that many
            octets, each with 512 more.
        transaction_timeout: seconds that a transaction may take before it is rolled back with
            ``amqp:transaction:timeout``; None for any time.
        wall_clock: returns seconds since 1970, for all dates: the absolute expiry time of a message, compared once, when
            the message arrives; the expiry of tokens; and all that a store keeps, such as the rest of a ``ttl`` after a
            restart. Durations are of the clock of trio.
        authorise: a function of an ``Access``, async or not, that returns True to permit it, e.g. ``Rules(...)``; None
            permits everything. Otherwise the answer is ``amqp:unauthorized-access``; raise ``RefusedError`` for another
            condition. Any other exception is logged, and answered with ``amqp:internal-error``.
        store: keeps durable messages (3.2.1) and subscriptions (3.5.5) after the process ends: a ``SqliteStore``. A
            message is accepted once it is stored. The caller closes the store, after ``serve`` has ended. None: messages
            are lost when the process ends.
        keeps_all: with a store, whether queues and durable subscriptions store all messages that they accept, including
            those that are not durable; ``add_queue(durable=False)`` makes an exception. ``amqp10 serve --store`` does so.
        quotas: limits for each identity; None for none.
        max_terminus_age: seconds that the state of a link is kept at most while the link is not attached, whatever its
            peer asks for (3.5.6); a day. A peer that asks for the expiry policy ``never`` is answered
            ``connection-close`` and this time. None for no limit.
        memory_limit: octets that messages may take in memory, each with 512 more for its overhead. Stored messages count
            while they are in memory, too. Above the limit no credit is given, and messages that peers still
            send are rejected with ``amqp:resource-limit-exceeded``, until less than nine tenths of it is used; consumers
            continue. ``"auto"`` is 40 % of the memory that the process may use by its cgroup, ``RLIMIT_AS`` and the
            machine. None for no limit.
        refuse_durable: without a store, whether queues and topics reject durable messages with
            ``amqp:precondition-failed``, as required of a target that may lose them (3.2.1). A link is detached with that
            error if no rejection can reach its sender, because messages come settled or the source has no such outcome.
            False accepts durable messages, and they are lost with the process: many clients make every message durable.

    Raises:
        StoreError: the content of the store cannot be read.
        LocalProtocolError: ``memory_limit`` is not at least 1; or ``keeps_all`` without a store.

    Attributes:
        name: as given.
        clock: the clock by which messages and links expire.
        watermark: how much memory the messages take.
        authorise: as given.
        nodes: all nodes, by address.
        past_messages: totals of the messages of nodes that were deleted; see ``Node.totals``.
        node_watchers: objects that are notified when a node is added.
        retaining_nodes: the nodes, by address, that keep the subscriptions of peers that have no link.
        broker: its exchanges, bindings and declared queues; None without ``add_broker``.
        relay: the node of the anonymous terminus, which routes by ``to``.
        journal: writes changes to the store in groups; None without a store.
        settings: the settings of nodes that were created through management; None without a store.
        redirects: the places that queues have moved to.
        probe: tests whether the store can be written; None without a store.
        accounts: the connections, links and unsettled messages of each identity; None without quotas.
        amqp10: serves peers that speak AMQP 1.0.
        management: lists, describes and changes all that is here; asks for no permission.
        virtual_hosts: the names by which ``VirtualHosts`` serve it; empty for a container that serves alone.
        default_dialects: the protocols that ``serve`` serves beside AMQP 1.0 if ``dialects`` is not given.
    """

    default_dialects: ClassVar[tuple[str, ...]] = ("0-9-1",)

    def __init__(
        self,
        name: str | None = None,
        *,
        strict: bool = False,
        max_unsettled_octets: int | None = 64 * 1024 * 1024,
        wall_clock: Callable[[], float] = time.time,
        transaction_timeout: float | None = 120.0,
        authorise: Authorise | None = None,
        store: Store | None = None,
        quotas: Quotas | None = None,
        max_terminus_age: float | None = LONGEST,
        memory_limit: int | Literal["auto"] | None = "auto",
        refuse_durable: bool = False,
        keeps_all: bool = False,
    ) -> None:
        self.name: str = str(uuid.uuid4()) if name is None else name
        self.strict = strict
        self.max_unsettled_octets = max_unsettled_octets
        self.transaction_timeout = transaction_timeout
        self.authorise: Authorise | None = authorise
        self.broker: Topology | None = None
        self._resolves_uris = False
        self.watermark: Watermark = Watermark(_checked_limit(memory_limit))
        self.nodes: dict[str, Node] = {}
        self.past_messages: Final[Counter[str]] = Counter()
        self.node_watchers: WeakSet[NodeWatcher] = WeakSet()
        self.retaining_nodes: dict[str, Node] = {}
        self.relay: Final = Relay(self.find)
        self.amqp10: Final = Amqp10(self)
        self._around: Around | None = None
        _check_store(store)
        if keeps_all and store is None:
            raise LocalProtocolError("keeps_all=True: expected a store as well, such as SqliteStore(path)")
        self._refuses_durable = refuse_durable and store is None
        self.clock: Final = Clock(wall_clock)
        self._reading: Callable[[], AbstractContextManager[None]] = (
            nullcontext if store is None else partial(reading, store)
        )
        with self._reading():
            self._message_store = (
                None if store is None else MessageStore(store, self.clock, keeps_all=keeps_all)
            )
            self.journal: Journal | None = (
                None if self._message_store is None else self._message_store.journal
            )
            self.settings: NodeSettings | None = None if self.journal is None else NodeSettings(self.journal)
            self.redirects: QueueRedirects = QueueRedirects(self.journal)
            self.probe: WriteProbe | None = None if self.journal is None else WriteProbe(self.journal)
            link_store = None if self._message_store is None else LinkStore(self._message_store)
        self.frame_watches: list[FrameWatch] = []
        self._unreadable: StoreError | None = None
        self._recovered = False
        self.accounts: Final = None if quotas is None else Accounts(quotas)
        self._connections = Connections(self.accounts)
        self._nodes_peer = NodesPeer(self.name, self.find, self._connections.runners, self._message_store)
        self._timers = Timers(self.clock.now, self._connections.runners)
        self.clock.call_at = self._timers.call_at
        self.clock.turns = _turns
        longest = math.inf if max_terminus_age is None else max_terminus_age
        self.termini: Final = Termini(
            self.clock.now,
            self._timers.call_at,
            link_store=link_store,
            longest=longest,
            watermark=self.watermark,
        )
        self._listeners: list[Listener] = []
        self._shared_listeners: list[Listener] = []
        self._logins: list[Server] = []
        self.management: Final = Management(self)
        self.virtual_hosts: tuple[str, ...] = ()

    # -- nodes ------------------------------------------------------------------------------

    def add_node(self, node: Node) -> None:
        """Let peers reach ``node`` at its address.

        Raises:
            LocalProtocolError: another node has that address, or it is empty.
            StoreError: the messages of the node cannot be read from the store; the node is not added.
        """
        if not node.address:
            raise LocalProtocolError("address='': expected an address that is not empty")
        if node.address in self.nodes:
            raise LocalProtocolError(
                f"{label(self.nodes[node.address])} exists already: choose another address"
            )
        node.container = self._nodes_peer
        node.count_in(self.watermark)
        node.refuses_durable = node.refuses_durable or self._refuses_durable
        if isinstance(node, HandlerNode):
            node.around = self._around
        if isinstance(node, Queue):
            self._redirect_again(node)
        self.nodes[node.address] = node
        if node.keeps_subscriptions:
            self.retaining_nodes[node.address] = node
        if self._recovered:
            try:
                with self._reading():
                    node.recover()
            except StoreError:
                del self.nodes[node.address]
                self.retaining_nodes.pop(node.address, None)
                node.withdraw()
                raise
        for watcher in list(self.node_watchers):
            watcher.on_node_added(node)

    def _redirect_again(self, queue: Queue) -> None:
        """Send links of a new queue to the place that its address has moved to."""
        url = self.redirects.get(queue.address)
        if url is not None:
            try:
                _, refusal = place_of(queue.address, url)
            except ManagementError as fault:  # The row is damaged.
                _log.error("the redirect of %r cannot be used: %s", queue.address, fault)
            else:
                queue.redirect(refusal)

    def surround(self, around: Around | None) -> None:
        """Wrap every call of a handler of a function or a consumer in ``around``.

        ``around(node, arrival, work)`` is awaited instead of the handler. It must return what ``await work()`` returns, or
        another reply, and may raise what a handler may raise. A new ``around`` replaces the previous; None removes it.
        """
        self._around = around
        for node in self.nodes.values():
            if isinstance(node, HandlerNode):
                node.around = around

    def remove_node(self, address: str) -> None:
        """Delete a node and its messages.

        Its links end with ``amqp:resource-deleted``.

        Raises:
            LocalProtocolError: no node has this address.
        """
        node = self.nodes.pop(address, None)
        if node is None:
            raise LocalProtocolError(f"no node {address!r}")
        self.retaining_nodes.pop(address, None)
        self.past_messages.update(node.totals())
        node.close()
        if self.settings is not None:
            self.settings.drop(address)

    def add_queue(
        self,
        name: str,
        *,
        max_length: int | None = None,
        max_octets: int | None = None,
        overflow: Overflow = "wait",
        ttl: int | None = None,
        max_priority: int | None = None,
        bound: Bound = "held",
        expires: float | None = None,
        dead_letter: str | None = None,
        delivery_limit: int | None = None,
        redelivery_delay: float | None = None,
        redelivery_delay_multiplier: float | None = None,
        max_redelivery_delay: float | None = None,
        exclusive: bool = False,
        single_active: bool = False,
        grouped: bool = False,
        durable: bool | None = None,
    ) -> Queue:
        """Add a queue, for senders and competing receivers (3.3).

        Args:
            name: its address.
            max_length: messages that it holds before it is full; None for any number.
            max_octets: the same in octets of messages.
            overflow: what a full queue does: ``"wait"``, so that senders wait; ``"reject"``; ``"reject-dead-letter"``; or
                ``"drop-oldest"``.
            ttl: milliseconds after which every message in it expires at the latest.
            max_priority: the highest priority that counts; 0 keeps all messages in the order in which they came.
            bound: which messages the two limits count: ``"held"``, all messages; or ``"ready"``, those that no receiver has.
            expires: seconds without a receiver after which the queue is deleted; None for never.
            dead_letter: the address for messages that are rejected, expired, dropped, or failed too often.
            delivery_limit: failed attempts after which a message goes there.
            redelivery_delay: seconds that a message waits after a failed attempt before it is delivered again.
            redelivery_delay_multiplier: the factor by which that delay grows with each further failed attempt.
            max_redelivery_delay: the longest delay, in seconds.
            exclusive: whether it has one consumer at most.
            single_active: whether one of its consumers gets all messages, until it leaves.
            grouped: whether messages with one ``group_id`` go to one consumer at a time, in order.
            durable: whether all its messages go to the store of the container. With False only messages do whose header
                has ``durable``, or whose format cannot be read. None for the choice of ``Container(keeps_all=)``.

        ``QueuePolicy`` documents each rule in full.

        Raises:
            LocalProtocolError: the address is taken, or the rules contradict each other; or ``durable``, and the
                container has no store.
        """
        if durable and self._message_store is None:
            raise LocalProtocolError(
                f"a durable queue {name!r} needs a container with a store: Container(store=SqliteStore(path))"
            )
        policy = QueuePolicy(
            max_length=max_length,
            max_octets=max_octets,
            overflow=overflow,
            ttl=ttl,
            max_priority=max_priority,
            bound=bound,
            expires=expires,
            dead_letter=dead_letter,
            delivery_limit=delivery_limit,
            redelivery_delay=redelivery_delay,
            redelivery_delay_multiplier=redelivery_delay_multiplier,
            max_redelivery_delay=max_redelivery_delay,
            exclusive=exclusive,
            single_active=single_active,
            grouped=grouped,
        )
        queue_store = (
            None if self._message_store is None else QueueStore(self._message_store, name, everything=durable)
        )
        queue = Queue(
            name, policy=policy, clock=self.clock, queue_store=queue_store, on_unused=self._on_unused
        )
        self.add_node(queue)
        return queue

    def add_topic(
        self,
        name: str,
        *,
        max_backlog: int | None = MAX_BACKLOG,
        overflow: Spill = "detach",
        max_subscriptions: int | None = MAX_SUBSCRIPTIONS,
    ) -> Topic:
        """Add a topic, which copies every message to all subscriptions of that time.

        Args:
            name: its address.
            max_backlog: messages that may wait for one subscription, 10,000 by default; None for any number. They are in
                memory, so a slow receiver of large messages can fill the ``memory_limit`` of the container.
            overflow: what happens beyond that. ``"detach"``: the subscription ends, and its receivers are detached with
                ``amqp:resource-limit-exceeded``; ``"drop-oldest"``, ``"reject"``, ``"wait"``: see ``Topic``.
            max_subscriptions: subscriptions that the topic may have.

        Raises:
            LocalProtocolError: the address is taken, or the limits make no sense.
        """
        topic = Topic(
            name,
            max_backlog=max_backlog,
            overflow=overflow,
            max_subscriptions=max_subscriptions,
            clock=self.clock,
            message_store=self._message_store,
        )
        self.add_node(topic)
        return topic

    def _recover(self) -> None:
        """Read the store, once, after the clock by which messages expire has started."""
        if self._unreadable is not None:
            # Messages that were read before the failure must not be served in part.
            raise StoreError(str(self._unreadable)) from self._unreadable
        if self._recovered or self._message_store is None:
            return
        try:
            with self._reading():
                self._read_store(self._message_store)
        except StoreError as failure:
            self._unreadable = failure
            raise

    def _read_store(self, message_store: MessageStore) -> None:
        self._recovered = True
        if message_store.stored:
            _log.info(
                "%r: the store has %d messages; the heads of the queues are read now",
                self,
                message_store.stored,
            )
        self.termini.restore()
        for node in list(self.nodes.values()):
            node.recover()
        for address, made in () if self.settings is None else self.settings.absent(self.nodes):
            try:
                (self.add_queue if made.kind == "queue" else self.add_topic)(address, **made.rules)
            except (LocalProtocolError, TypeError) as fault:
                _log.error("%r, created through management, cannot be made again: %s", address, fault)
        for address in message_store.addresses:
            if address in self.nodes or self.strict:
                _log.warning("the store has messages of %r, but no queue of this address: they stay", address)
            else:
                self._make_queue(address, _FIRST_USE)
        self.termini.sweep()

    def add_management(self, address: str = ADDRESS) -> None:
        """Add the node through which peers manage nodes ("AMQP Management 1.0").

        Peers can create, read, update, delete and list nodes by requests (working draft). With a store, the nodes that peers
        create exist again after a restart, with their rules. Add your own nodes before any peer connects, so that they take
        precedence. Without this call there is no such node. Without ``authorise``, every peer may create and delete nodes
        through it; with it, each operation needs its own permission, see ``management``.

        Args:
            address: the address to which clients send requests.

        Raises:
            LocalProtocolError: the address is taken.
        """
        self.add_node(ManagementNode(address, self, self.management, self._post))

    def add_broker(
        self, *, queue_address: Callable[[str], str] = str, like_rabbitmq: bool = False
    ) -> Topology:
        """Add exchanges, bindings and declared queues, as in brokers of AMQP 0-9-1.

        Exchanges are nodes at ``/exchanges/NAME``, and with a routing key at ``/exchanges/NAME/KEY``. With a store, durable
        exchanges, queues and bindings exist again after a restart. Call this once, after your own nodes are added and before
        any peer connects.

        Args:
            queue_address: returns the address of the node of a declared queue, given its name.
            like_rabbitmq: behave as RabbitMQ also where that limits programs. A queue refuses arguments that RabbitMQ does
                not know for its type; its messages expire at its head alone; if it is full, the first message dies.

        Raises:
            LocalProtocolError: the container has a broker already.
            StoreError: the content of the store cannot be read.
        """
        if self.broker is not None:
            raise LocalProtocolError(f"{self!r} has a broker already")
        with self._reading():
            self.broker = Topology(
                self,
                self.clock,
                queue_address=queue_address,
                message_store=self._message_store,
                like_rabbitmq=like_rabbitmq,
            )
            self.broker.virtual_host = next(iter(self.virtual_hosts), self.broker.virtual_host)
            if self._recovered:
                for queue in self.broker.queues.values():
                    queue.recover()
        return self.broker

    def add_cbs(self, verify: Verify, *, azure: bool = False) -> None:
        """Add ``$cbs``, the node that takes tokens, as Azure Service Bus has it.

        The permissions of a token are the ``claims`` of an ``Access``. Without an ``authorise`` function, every peer may
        connect, and then do what its claims permit. When a claim ends, links that are no longer permitted are detached with
        ``amqp:unauthorized-access``. Call this before any peer connects.

        Args:
            verify: a function of a ``TokenOffer``, async or not, that returns a ``Claim``, e.g. ``SasKeys(...)``; None or
                a ``RefusedError`` refuses the token.
            azure: behave as Service Bus does: a URI as an address means its path, and messages from clients are settled by
                the container first, even if the client asks for receiver settle mode second (and so for ``exactly-once``):
                ``azure-servicebus`` asks for it, and then settles nothing.

        Raises:
            LocalProtocolError: the container has such a node already.
        """
        cbs = Cbs(verify, self._post, self.clock.wall)
        cbs.exempt_from_watermark = True
        self.add_node(cbs)
        self._resolves_uris = self.amqp10.settles_first = azure
        if self.authorise is None:
            self.authorise = permit_claimed

    def review(self) -> None:
        """Call ``authorise`` again for every link; links that it refuses now are detached."""
        for peer in self._connections.peers:
            peer.guard.review()

    def guard_for(self, peer: Subject) -> Guard:
        """Return the guard that checks the permissions of this peer."""
        return Guard(peer, self.authorise, self.resolve, self._needs_no_permission)

    def _needs_no_permission(self, peer: Subject, address: str) -> bool:
        node = self.nodes.get(address)
        return node is not None and (node.needs_no_permission or node.is_own_of(peer))

    def find(self, address: str) -> Node:
        """Return the node of this address, or create a queue if that is permitted.

        Raises:
            RefusedError: ``amqp:not-found``.
        """
        address = self.resolve(address)
        node = self.nodes.get(address)
        if node is None and self.broker is not None:
            node = self.broker.find_route(address)
        if node is not None:
            return node
        reserved = (*_RESERVED, EXCHANGES) if self.broker is not None else _RESERVED
        if self.strict or not address or address.startswith(reserved):
            raise RefusedError(Condition.NOT_FOUND, f"no node {address!r}")
        return self._make_queue(address, _FIRST_USE)

    def resolve(self, address: str) -> str:
        """Return the address of the node that ``address`` means.

        For clients of Azure, this is the path of a URI. For an exchange, it is the one spelling of its address.
        """
        if address.startswith(EXCHANGES):
            return spell_exchange(address)
        return path_of(address) or address if self._resolves_uris and "://" in address else address

    def make_temporary(self, address: str, kept_by: frozenset[str]) -> Queue:
        """Create a queue that a peer asked for, such as a dynamic node (3.5.9).

        The queue is never in the store.

        Args:
            address: an address that begins with ``temporary/`` and cannot be guessed.
            kept_by: what keeps the queue: any of ``maker`` (until ``has_maker`` is False), ``links`` and ``messages``.
        """
        queue = self._make_queue(address, kept_by, lasting=False)
        queue.has_maker = True
        queue.holds_replies = True
        return queue

    def _make_queue(self, address: str, kept_by: frozenset[str], *, lasting: bool = True) -> Queue:
        queue_store = (
            QueueStore(self._message_store, address) if lasting and self._message_store is not None else None
        )
        queue = Queue(
            address,
            kept_by=kept_by,
            on_unused=self._on_unused,
            clock=self.clock,
            queue_store=queue_store,
        )
        self.add_node(queue)
        return queue

    def _on_unused(self, queue: Queue) -> None:
        if self.nodes.get(queue.address) is queue:
            del self.nodes[queue.address]
            self.past_messages.update(queue.totals())

    def forget_unused(self, node: Node) -> None:
        """Delete a node that was created for a link which was then not attached."""
        if isinstance(node, Queue):
            node.has_maker = node.has_maker and bool(node.inlets or node.outlets)
            node.check_used()

    @property
    def connected(self) -> tuple[ConnectedPeer, ...]:
        """The peers that are connected now, oldest first, of all dialects."""
        return tuple(self._connections.peers)

    @property
    def conversations(self) -> tuple[Amqp10Connection, ...]:
        """The connected peers that speak AMQP 1.0."""
        return tuple(peer for peer in self._connections.peers if isinstance(peer, Amqp10Connection))

    @property
    def nodes_peer(self) -> NodesPeer:
        """The container as a peer of its own nodes."""
        return self._nodes_peer

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """The addresses at which it listens now, those of ``VirtualHosts`` included."""
        return (*self._listeners, *self._shared_listeners)

    @property
    def known_users(self) -> set[str]:
        """The users that ``serve`` lets in, as far as their names are known."""
        return {user for login in self._logins for user in login.known_users}

    @property
    def past(self) -> Counter[str]:
        """Totals of the connections that are over.

        The keys are those of ``amqp10.peer.statistics.totals_of``.
        """
        return self._connections.past

    @property
    def entered(self) -> int:
        """The number of connections so far."""
        return self._connections.entered

    @property
    def resting(self) -> bool:
        """Whether ``finish`` was called."""
        return self._connections.resting

    # -- messages from within ---------------------------------------------------------------

    async def send(self, address: str, message: Any) -> None:
        """Send a message to a node of this container, and wait until the node accepts it.

        Args:
            address: of the node; looked up as for a link.
            message: bytes, str, any AMQP value, or a ``Message``.

        Raises:
            RefusedError: there is no such node, it takes no messages, or it did not accept this one.
            LocalProtocolError: the message cannot be encoded.
            StoreError: the content of the store cannot be read.

        Cancelled: the node may have the message or not.
        """
        self._recover()
        await send_within(self.name, address, message, self._post)

    async def _post(self, address: str, message: Message, peer: Peer) -> None:
        await trio.lowlevel.checkpoint()
        if not isinstance(peer, InternalPeer):
            # A connected peer chose the address of the reply: check its permission.
            await cast("ConnectedPeer", peer).guard.check("send", address)
        self._recover()
        node = self.find(address)
        try:
            await post(node, content_of_message(message), peer)
        finally:
            self.forget_unused(node)

    # -- connections ------------------------------------------------------------------------

    @staticmethod
    def offered_capabilities() -> tuple[str, ...]:
        """Return the capabilities that a container offers in every ``open``."""
        return Amqp10.offered_capabilities()

    def vet(self, connection: Connection) -> Error | None:
        """Return the error that refuses this peer, or None; for ``serve(vet=...)``.

        It is called before the container sends its ``open``. A peer may ask to be the only connection of its container
        (``sole_connection``).
        """
        return self.amqp10.vet(connection)

    async def handle(self, connection: Connection) -> None:
        """Serve the links of a peer until its connection ends; a handler for ``serve``.

        Handlers that still work when the connection is gone are waited for, not cancelled.

        Raises:
            ConnectionClosedError, RemoteProtocolError: the connection ended with an error.

        Cancelled: its handlers are cancelled.
        """
        await self.amqp10.handle(connection)

    def admit(self, peer: ConnectedPeer) -> RefusedError | None:
        """Count a peer that connects, or return why it is refused.

        A peer is refused by its quota, or because of a sole connection. A dialect that can refuse before the connection is
        open calls this first; ``enter`` does the same. A peer that was admitted and never enters is forgotten with the last
        reference to it.
        """
        return self._connections.admit(peer)

    def enter(self, peer: ConnectedPeer, nursery: trio.Nursery) -> None:
        """Register a connected peer, and run its tasks in ``nursery``.

        Tasks of the container may run there too. The caller must check afterwards whether the peer may be connected at all
        (``peer.guard.check("open", None)``).

        Args:
            peer: the connection; a ``ConnectedPeerBase`` of a dialect.
            nursery: a nursery that lasts until the connection is over and the tasks that work for it are done.

        Raises:
            RefusedError: its quota, or a sole connection; the peer has not entered.
        """
        self._recover()
        refusal = self.admit(peer)
        if refusal is not None:
            raise refusal
        self._connections.enter(peer, self.clock.wall())
        self._join(peer, nursery)

    def leave(self, peer: ConnectedPeer) -> None:
        """Note that the connection of a peer is over, and start no more tasks there.

        The peer is forgotten when the last task that works for it is done. A peer that has not entered is ignored.
        """
        if peer.open:
            self._connections.part(peer, self._timers)
            current_turns().run(peer.ended)  # A peer may leave much behind.
            self.check_idle(peer)

    def _join(self, runner: TaskRunner | ConnectedPeer, nursery: trio.Nursery) -> None:
        """Let tasks of the container run in this nursery."""
        self._connections.join(runner, nursery, self._nodes_peer, self._timers)

    @takes_as(serve)
    async def serve(
        self,
        *urls: str,
        task_status: trio.TaskStatus[list[Listener]] = trio.TASK_STATUS_IGNORED,
        **options: Any,
    ) -> None:
        """Listen, and serve the nodes to every peer that connects.

        ``trio_amqp10.serve`` documents the options. ``await nursery.start(partial(container.serve, url, sasl=...))`` returns a
        ``Listener`` for each address. ``dialects=`` names protocols to serve beside AMQP 1.0 on the same URLs: ``"all"``, or a
        list of names (``"0-9-1"``) and of objects of ``net.dialect.Dialect``, or the options of each by name, e.g.
        ``{"0-9-1": {"limits": amqp091.Limits(heartbeat=30), "no_local": True}}``. Without it, AMQP 1.0 and 0-9-1 are served;
        ``"1.0"`` serves AMQP 1.0 alone, as ``vet=`` does, which no other protocol has. A strict container that has no broker
        and does not name 0-9-1 makes no queues for its clients. On ``amqp091://`` and ``amqp091s://`` AMQP
        0-9-1 is served alone, with its options from ``dialects``. A container that serves 0-9-1 gets a broker (``add_broker``)
        if it has none.

        Raises:
            LocalProtocolError: there is no such dialect; or as ``trio_amqp10.serve``.

        Cancelled: every connection is closed with ``amqp:connection:forced``. Call ``finish`` first
        to let handlers and deliveries that are under way finish.
        """
        asked = options.get("dialects", ())
        options.setdefault("dialect_schemes", of_own_schemes(self, urls, asked))
        if "dialects" in options:
            options["dialects"] = dialects_of(self, asked)
        elif "vet" not in options:
            options["dialects"] = dialects_of(self, self.default_dialects, by_default=True)
        self._recover()
        options.setdefault("container_id", self.name)
        options.setdefault("offered_capabilities", self.offered_capabilities())
        options.setdefault("vet", self.vet)
        options.setdefault("wall_clock", self.clock.wall)
        patience = options.get("close_timeout", 5.0)
        self._note_login(options.get("sasl"))
        started = _Started(self._listening, task_status)
        await self._serving(
            partial(serve, self.handle, *urls, task_status=started, **options), started, patience
        )

    async def serve_http(
        self,
        *urls: str,
        sasl: Server | None = None,
        ssl_context: ssl.SSLContext | None = None,
        allow_plaintext_password: bool = False,
        max_connections: int = 256,
        max_failures: int | None = 10,
        max_body: int = 1024 * 1024,
        request_timeout: float = 30.0,
        metrics_queues: Sequence[str] = (),
        task_status: trio.TaskStatus[list[Listener]] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Listen, and serve the management of the container by HTTP.

        The API is that of RabbitMQ's management plugin; at ``/`` is a page for a browser. While it serves, the figures of the container
        are sampled every second.

        ``await nursery.start(container.serve_http, url)`` returns a ``Listener`` for each address. Needs the extra ``[http]``.
        Clients log in with basic authentication, and may do what ``authorise`` permits them: ``monitor`` to see a node, ``manage`` to
        change it, and the same at ``$management/connection`` and the like.

        Args:
            urls: ``http://HOST:PORT`` and ``https://HOST:PORT``; port 0 chooses a free port. Without users the host must be
                the loopback; so must that of ``http`` without ``allow_plaintext_password``.
            sasl: the users, as for ``serve``: passwords are checked by PLAIN, certificates by EXTERNAL. None lets every program of this
                machine in.
            ssl_context: the certificate, for ``https``; see ``tls.server_context``.
            allow_plaintext_password: accept passwords over connections that are not encrypted.
            max_connections: connections at the same time; a new one then replaces the oldest that has not logged in.
            max_failures: as for ``serve``.
            max_body: octets of the body of a request at most.
            request_timeout: seconds that a request may take at most.
            metrics_queues: patterns such as ``"orders*"``: the queues with values of their own in ``/metrics``, at most 500.
            task_status: for ``nursery.start``.

        Raises:
            OSError: It is not possible to listen there.
            LocalProtocolError: a URL is not one, or would let everybody in, or carry passwords in the clear; or the extra is not
                installed.

        Cancelled: every connection is closed.
        """
        try:
            # An extra, and a room above this one: hypercorn and Starlette are loaded when they are used.
            server = import_module("trio_amqp10.http.server")
        except ModuleNotFoundError as missing:
            raise LocalProtocolError(
                f"serve_http() needs {str(missing.name).partition('.')[0]}: pip install 'trio-amqp10[http]'"
            ) from missing
        self._recover()
        self._note_login(sasl)
        started = _Started(self._listening, task_status)
        serving = partial(
            server.serve_http,
            self,
            *urls,
            sasl=sasl,
            ssl_context=ssl_context,
            allow_plaintext_password=allow_plaintext_password,
            max_connections=max_connections,
            max_failures=max_failures,
            max_body=max_body,
            request_timeout=request_timeout,
            metrics_queues=metrics_queues,
            task_status=started,
        )
        await self._serving(serving, started, 5.0)

    async def _serving(
        self, serve_all: Callable[[], Awaitable[None]], started: _Started, patience: float
    ) -> None:
        """Run a server and the tasks of the container; then wait for the store."""
        failure: Exception | None = None
        runner = TaskRunner(self)
        check_trio()
        try:
            with interrupts_unwrapped():
                async with trio.open_nursery() as nursery:
                    self._join(runner, nursery)
                    try:
                        await serve_all()
                    except Exception as raised:
                        failure = raised  # Raised inside of the nursery, it would be wrapped in a group.
                    finally:
                        self._connections.part(runner, self._timers)
        finally:
            self._listeners = [each for each in self._listeners if each not in started.listeners]
            await self.flush(patience)
        if failure is not None:
            raise failure

    def _listening(self, listeners: list[Listener]) -> None:
        self._listeners += listeners
        if self.resting:
            self._close_listeners()

    @contextmanager
    def _sharing(
        self, login: object, task_status: trio.TaskStatus[list[Listener]]
    ) -> Generator[trio.TaskStatus[list[Listener]]]:
        """Have the listeners that are started in the body, which serve other hosts too."""
        self._note_login(login)
        started = _Started(self._listening_with_others, task_status)
        try:
            yield started
        finally:
            self._shared_listeners = [
                each for each in self._shared_listeners if each not in started.listeners
            ]

    def _listening_with_others(self, listeners: list[Listener]) -> None:
        if not self.resting:
            self._shared_listeners += listeners

    def _note_login(self, login: object) -> None:
        if isinstance(login, Server) and login not in self._logins:
            self._logins.append(login)

    def _close_listeners(self) -> None:
        while self._listeners:
            self._listeners.pop().close()
        self._shared_listeners.clear()  # They go on for the other hosts.

    @takes_on(LocalOptions)
    def connect(self, options: LocalOptions) -> LocalConnection:
        """Return a client's connection to this container, through memory.

        Use it as ``async with container.connect() as conn``. Leaving the block closes the connection, and waits at most
        ``close_timeout`` seconds for handlers that still work for it; if the block raises, they are cancelled.

        Args:
            container_id: of the client.
            users: the users to accept, for a client that has ``sasl``; all if None.
            options: the others, as for ``trio_amqp10.open_connection``. With ``reconnect`` the connection is dialled again after a
                loss: ``cut()`` of what this returns makes one.

        Entering the block raises what ``open_connection`` does, and ``StoreError`` if the content of the store cannot be read.
        """
        acceptor = Acceptor(
            container_id=self.name,
            sasl=options.users or Server(),
            offered_capabilities=self.offered_capabilities(),
            vet=self.vet,
            limits=options.limits,
            strict=options.strict,
            close_timeout=options.close_timeout,
            wall_clock=self.clock.wall,
            dialect=options.dialect,
        )
        return LocalConnection(
            self._recover, options, partial(self._serve_local, acceptor), acceptor.close_timeout
        )

    async def _serve_local(self, acceptor: Acceptor, stream: trio.abc.Stream) -> None:
        try:
            await acceptor.run(stream, self.handle)
        finally:
            await self.flush(acceptor.close_timeout)

    async def flush(self, patience: float = 5.0) -> None:
        """Wait until the last changes of ended connections are in the store.

        ``serve`` and ``connect`` call this at their end, so that the owner can close the store. Open connections wait for
        their own changes.

        Args:
            patience: seconds to wait at most.

        Cancelled: it waits anyway.
        """
        with trio.move_on_after(patience, shield=True):
            await current_turns().until_idle()
            if (journal := self.journal) is not None:
                await journal.until_safe()
                while journal.busy and not self._connections.runners:
                    # No open connection waits for its own commits, so all later ones are waited for here.
                    await journal.until_safe()

    @takes_as(serve)
    def run(self, *urls: str, **options: Any) -> None:
        """Serve in a ``trio.run`` of its own until SIGINT or SIGTERM, then ``finish``.

        Handlers and deliveries under way have 5 seconds.
        A second signal ends it at once. A program with tasks of its own calls ``serve`` and ``finish`` instead.

        Args:
            urls: the URLs to listen on.
            options: as for ``serve``, except for ``task_status``.

        Raises:
            SystemExit: It is not possible to listen there; the text names the URL and the reason.
            LocalProtocolError: As for ``serve``.
        """
        try:
            trio.run(run_until_signal, self, partial(self.serve, *urls, **options))
        except OSError as failure:
            where = f"{failure.filename}: " if failure.filename else ""
            raise SystemExit(f"{where}{failure.strerror or failure}") from None

    async def finish(self, patience: float = 5.0) -> bool:
        """Stop taking work, and wait until handlers and deliveries under way are done.

        No new peer is admitted, and no message is taken from peers or given to them. The listeners of ``VirtualHosts`` stay open for
        the other hosts.

        Args:
            patience: seconds to wait at most.

        Returns:
            Whether all of them finished in time. Messages in queues are not waited for.

        Cancelled: the container still begins no new work.
        """
        self._close_listeners()
        self._connections.rest()
        await trio.lowlevel.checkpoint()
        with trio.move_on_after(patience):
            await self._connections.until_idle()
            if self.journal is not None:
                await self.journal.flushed()
            return True
        return False

    def check_idle(self, runner: TaskRunner | ConnectedPeer) -> None:
        """Wake the tasks that wait for the container to be idle, if it is now."""
        self._connections.check_idle(runner)

    def statistics(self) -> dict[str, int]:
        """Return live figures by name.

        They are the nodes, connections and handlers at work; the octets that messages take, whether these exceed the limit and
        how many messages were refused for that; the rows of the store that cannot be read; and with quotas, how much was
        refused because of them.
        """
        aside = {} if self.journal is None else self.journal.rows_set_aside
        figures = {
            "nodes": len(self.nodes),
            "connections": len(self._connections),
            "working": self._connections.working,
            "held_octets": self.watermark.octets,
            "throttled": int(self.watermark.high),
            "refused_for_memory": self.watermark.refused,
            "rows_set_aside": sum(map(len, aside.values())),
        }
        return figures | ({} if self.accounts is None else self.accounts.figures)

    def __repr__(self) -> str:
        return f"<Container {self.name!r} nodes={len(self.nodes)} connections={len(self._connections)}>"


def _turns() -> Turns:
    """Return the read turns of this ``trio.run``; outside of trio, turns without end."""
    return current_turns() if trio.lowlevel.in_trio_run() else ENDLESS


def _check_store(store: object) -> None:
    if store is not None and not hasattr(store, "rows"):  # for instance a path
        raise LocalProtocolError(f"store={store!r}: expected a store, such as SqliteStore(path), or None")


def _checked_limit(limit: int | Literal["auto"] | None) -> int | None:
    if limit == "auto":
        return default_limit()
    if limit is not None and limit < 1:
        raise LocalProtocolError(f"memory_limit={limit}: expected at least 1 octet, or None for no limit")
    return limit


class _Started(trio.TaskStatus[list[Listener]]):
    """A task status that passes the listeners to the container too.

    Attributes:
        listeners: the listeners, once they are open.
    """

    def __init__(
        self, tell: Callable[[list[Listener]], object], task_status: trio.TaskStatus[list[Listener]]
    ) -> None:
        self.listeners: list[Listener] = []
        self._tell = tell
        self._task_status = task_status

    def started(self, value: Any = None) -> None:
        self.listeners = list(value)
        self._tell(self.listeners)
        self._task_status.started(value)
