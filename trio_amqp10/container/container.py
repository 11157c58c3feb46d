"""A named peer that holds nodes, to be served, dialled, or given connections.

Knows which nodes there are and who may have them made; knows nothing of links or octets.
"""

from __future__ import annotations

import logging
import math
import time
import uuid
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from weakref import WeakSet

import trio

from trio_amqp10.errors import Condition, LocalProtocolError
from trio_amqp10.net.read_turns import current_turns
from trio_amqp10.net.waiters import check_trio, interrupts_unwrapped
from trio_amqp10.peer.dialling import Dialling
from trio_amqp10.peer.listen import Acceptor, Listener, serve
from trio_amqp10.peer.option_signatures import takes_as, takes_on
from trio_amqp10.sasl import Server
from trio_amqp10.tokens import path_of

from .available_memory import default_limit
from .background_tasks import TaskRunner
from .broker.addresses import EXCHANGES, spell_exchange
from .broker.topology import Topology
from .connections import Connections
from .decorators import HandlerDecorators
from .handlers import Around, HandlerNode
from .internal_peer import InternalPeer, NodesPeer, send_within
from .local_connection import LocalConnection, LocalOptions
from .management import ADDRESS, Management
from .memory_streams import memory_stream_pair
from .nodes.clock import Clock
from .nodes.message_store import MessageStore, QueueStore
from .nodes.node import Node, Peer, RefusedError
from .nodes.policy import Bound, Overflow, QueuePolicy
from .nodes.queue import Queue
from .nodes.relay import Relay, post
from .nodes.topic import MAX_BACKLOG, MAX_SUBSCRIPTIONS, Spill, Topic
from .nodes.turns import ENDLESS
from .nodes.watermark import Watermark
from .protocols.amqp10.connection import Amqp10Connection
from .protocols.amqp10.lifetimes import TEMPORARY
from .protocols.amqp10.link_store import LinkStore
from .protocols.amqp10.native_message import content_of_message
from .protocols.amqp10.protocol import Amqp10
from .protocols.amqp10.retained_termini import LONGEST, Termini
from .protocols.table import dialects_of, of_own_schemes
from .rights.access import Authorise, permit_claimed
from .rights.cbs import Cbs
from .rights.guard import Guard
from .rights.quotas import Accounts, Quotas
from .stores.base import StoreError, reading
from .stores.node_settings import NodeSettings
from .timers import Timers

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from trio_amqp10.message import Message
    from trio_amqp10.peer.connection import Connection
    from trio_amqp10.spec.transport import Error

    from .connected_peer import ConnectedPeer
    from .nodes.node import NodeWatcher
    from .nodes.turns import Turns
    from .rights.claims import Verify
    from .rights.rights_holder import Subject
    from .stores.base import Store
    from .stores.group_commit import Journal

__all__ = ["Container"]

_log = logging.getLogger("trio_amqp10.container")

_RESERVED: Final = (TEMPORARY, "$")
"""Addresses that begin so are never created on first use: a late reply must not bring a dynamic node back,
nor does asking for ``$management`` or ``$cbs`` make a queue of it."""

_FIRST_USE: Final = frozenset({"links", "messages"})


class Container(HandlerDecorators):
    """A named peer that holds nodes.

    Args:
        name: the container id that peers see (2.4.1); a fresh UUID if None.
        strict: refuse addresses that were not added; otherwise a queue is created on first use, and deleted when it has
            neither links nor messages.
        max_unsettled_octets: octets of messages that one connection may hold unsettled; None for no limit. Once
            it holds so many, its links get no more until it settles some; one message may be larger by itself. As
            many may wait for the commit of one transaction, and one that goes beyond is rolled back. Where the peer
            sends and settles last (receiver settle mode second), it gets no credit while as many octets are
            remembered for it, with 512 for each delivery that has its outcome and is not settled.
        transaction_timeout: seconds that a transaction may take before it is rolled back with
            ``amqp:transaction:timeout``; None for any time.
        wall_clock: seconds since 1970; messages with an absolute expiry time are measured by it once, when they come.
        authorise: a function of an ``Access``, async or not, that returns True to permit it, e.g. ``Rules(...)``; None
            permits everything. Otherwise the answer is ``amqp:unauthorized-access``; raise ``RefusedError`` for another
            condition. Any other exception is logged, and answered with ``amqp:internal-error``.
        store: keeps durable messages (3.2.1) and subscriptions (3.5.5) so that they outlive the process: a
            ``SqliteStore``. A message is accepted once it is stored. The caller closes the store, after ``serve``
            has ended. None: messages are lost when the process ends.
        keeps_all: with a store, whether queues and durable subscriptions keep all messages that they accept, also those that
            are not durable; ``add_queue(durable=False)`` makes an exception. ``amqp10 serve --store`` does so.
        quotas: limits for each identity; None for none.
        max_terminus_age: seconds that the state of a link is kept at most while the link is not attached, whatever its
            peer asks for (3.5.6); a day. A peer that asks for the expiry policy ``never`` is answered
            ``connection-close`` and this time. None for no limit.
        memory_limit: octets that messages may take in memory, 512 with each for what it costs beside; those in a store
            count too, for they are held as well. Above it no credit is given and what peers still send is rejected with
            ``amqp:resource-limit-exceeded``, until there are less than nine tenths of it; consumers go on.
            ``"auto"`` is 40 % of what the process may use by its cgroup, ``RLIMIT_AS`` and the machine. None for no limit.
        refuse_durable: without a store, whether queues and topics reject durable messages with ``amqp:precondition-failed``,
            as a target has to that may lose them (3.2.1); a link that cannot be told so, since its messages come settled or its
            source has no such outcome, is detached with that error. False takes them, and they are gone with the process:
            many clients make every message durable.

    Raises:
        StoreError: what the store has cannot be read.
        LocalProtocolError: ``memory_limit`` is not at least 1; or ``keeps_all`` without a store.

    Attributes:
        name: as given.
        clock: by which messages and links expire.
        watermark: how much memory the messages take.
        authorise: as given.
        nodes: by address.
        node_watchers: told of nodes that are added.
        retaining_nodes: those of them that keep what a peer wants to have while it has no link.
        broker: its exchanges, bindings and declared queues; None without ``add_broker``.
        relay: the node behind the anonymous terminus, which routes by ``to``.
        journal: what is on its way to the store; None without one.
        settings: of nodes that were made through management; None without a store.
        accounts: what each identity has; None without quotas.
        amqp10: what it is to peers that speak AMQP 1.0.
    """

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
            link_store = None if self._message_store is None else LinkStore(self._message_store)
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

    # -- nodes ------------------------------------------------------------------------------

    def add_node(self, node: Node) -> None:
        """Let peers reach ``node`` at its address.

        Raises:
            LocalProtocolError: another node has that address, or it is none.
            StoreError: what the store has of it cannot be read.
        """
        if not node.address:
            raise LocalProtocolError("a node needs an address that is not empty")
        if node.address in self.nodes:
            raise LocalProtocolError(
                f"the address {node.address!r} is taken, by {self.nodes[node.address]!r}"
            )
        node.container = self._nodes_peer
        node.count_in(self.watermark)
        node.refuses_durable = node.refuses_durable or self._refuses_durable
        if isinstance(node, HandlerNode):
            node.around = self._around
        self.nodes[node.address] = node
        if node.keeps_subscriptions:
            self.retaining_nodes[node.address] = node
        if self._recovered:
            with self._reading():
                node.recover()
        for watcher in list(self.node_watchers):
            watcher.on_node_added(node)

    def surround(self, around: Around | None) -> None:
        """Have every call of a handler of a function or a consumer go through ``around(node, arrival, work)``.

        It is to return what ``await work()`` returns, or another reply; it may raise as a handler may. There is
        one at a time; None for none.
        """
        self._around = around
        for node in self.nodes.values():
            if isinstance(node, HandlerNode):
                node.around = around

    def remove_node(self, address: str) -> None:
        """Delete a node: its links end with ``amqp:resource-deleted``, its messages are gone.

        Raises:
            LocalProtocolError: there is none.
        """
        node = self.nodes.pop(address, None)
        if node is None:
            raise LocalProtocolError(f"no node {address!r}")
        self.retaining_nodes.pop(address, None)
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
        """A queue, for senders and competing receivers (3.3).

        Args:
            name: its address.
            max_length: messages that it holds before it is full; None for any number.
            max_octets: the same in octets of messages.
            overflow: what a full queue does: ``"wait"``, so that senders do; ``"reject"``; ``"reject-dead-letter"``; or
                ``"drop-oldest"``.
            ttl: milliseconds that any message lives in it at most.
            max_priority: the highest priority that counts; 0 keeps all messages in the order in which they came.
            bound: what the two limits count: ``"held"``, all messages; or ``"ready"``, those that no receiver has.
            expires: seconds without a receiver after which the queue is deleted; None for never.
            dead_letter: where messages go that are rejected, expired, dropped, or failed too often.
            delivery_limit: failed attempts after which a message goes there.
            redelivery_delay: seconds that a message waits after a failed attempt before it is given out again.
            redelivery_delay_multiplier: by how much that grows with each further failed attempt.
            max_redelivery_delay: seconds to which it grows at most.
            exclusive: whether it has one consumer at most.
            single_active: whether one of its consumers gets all, until it goes.
            grouped: whether messages with one ``group_id`` go to one consumer at a time, in order.
            durable: whether all its messages go to the store of the container. With False only those do whose header
                says ``durable``, or whose format cannot be read. None for what ``Container(keeps_all=)`` says.

        ``QueuePolicy`` tells more of each.

        Raises:
            LocalProtocolError: the address is taken, or the rules make no sense; or ``durable``, and the
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
        """A topic: every message goes to every subscription there is at the time.

        Args:
            name: its address.
            max_backlog: messages that a subscription may be behind; None for any number.
            overflow: what happens then. ``"detach"``: it is over, and its receivers are detached with
                ``amqp:resource-limit-exceeded``; ``"drop-oldest"``, ``"reject"``, ``"wait"``: see ``Topic``.
            max_subscriptions: how many there may be.

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
        """Take back what the store has, once, now that there is a clock that it can expire by."""
        if self._unreadable is not None:  # what was read before that must not be given out in part
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
        self.termini.restore()
        for node in list(self.nodes.values()):
            node.recover()
        for address, made in () if self.settings is None else self.settings.absent(self.nodes):
            try:
                (self.add_queue if made.kind == "queue" else self.add_topic)(address, **made.rules)
            except (LocalProtocolError, TypeError) as fault:
                _log.error("%r, which was made through management, cannot be made again: %s", address, fault)
        for address in message_store.addresses:
            if address in self.nodes or self.strict:
                _log.warning("the store has messages of %r, and nothing is there to take them", address)
            else:
                self._make_queue(address, _FIRST_USE)
        self.termini.sweep()

    def add_management(self, address: str = ADDRESS) -> None:
        """Let peers create, read, update, delete and list nodes by requests ("AMQP Management 1.0", working draft).

        With a store, what they create is there again after a restart, with its rules; add nodes of your own before
        anybody connects, then they go before.
        It is not there unless asked for. Without ``authorise``, every peer may create and delete nodes by it; with it, each
        operation needs its own permission, see ``management``.

        Args:
            address: where clients look for it.

        Raises:
            LocalProtocolError: the address is taken.
        """
        self.add_node(Management(address, self, self._post))

    def add_broker(self, *, queue_address: Callable[[str], str] = str) -> Topology:
        """Exchanges, bindings and declared queues, as the brokers of AMQP 0-9-1 have them.

        Exchanges are nodes at ``/exchanges/NAME``, and with a routing key at ``/exchanges/NAME/KEY``. With a store,
        what is durable is there again after a restart. Call it once, after nodes of your own are added and before anybody
        connects.

        Args:
            queue_address: the address of the node of a declared queue, by its name.

        Raises:
            LocalProtocolError: there is one already.
            StoreError: what the store has cannot be read.
        """
        if self.broker is not None:
            raise LocalProtocolError(f"{self!r} has a broker already")
        with self._reading():
            self.broker = Topology(
                self, self.clock, queue_address=queue_address, message_store=self._message_store
            )
            if self._recovered:
                for queue in self.broker.queues.values():
                    queue.recover()
        return self.broker

    def add_cbs(self, verify: Verify, *, azure: bool = False) -> None:
        """Take tokens at ``$cbs``, as Azure Service Bus does: what they permit is an ``Access``'s ``claims``.

        Without ``authorise`` of your own, everybody may connect, and then do what their claims permit.
        When a claim ends, links that are no longer permitted are detached with ``amqp:unauthorized-access``.
        Call it before anybody connects.

        Args:
            verify: a function, or an async one, of a ``TokenOffer`` that returns a ``Claim``, e.g.
                ``SasKeys(...)``; None or a ``RefusedError`` refuses the token.
            azure: be to clients as Service Bus is: an address that is a URI means its path, and what they
                send is settled here first, also where they ask for second, and so for ``exactly-once``:
                ``azure-servicebus`` does, and then settles nothing.

        Raises:
            LocalProtocolError: there is one already.
        """
        cbs = Cbs(verify, self._post, self.clock.wall)
        cbs.exempt_from_watermark = True
        self.add_node(cbs)
        self._resolves_uris = self.amqp10.settles_first = azure
        if self.authorise is None:
            self.authorise = permit_claimed

    def review(self) -> None:
        """Ask ``authorise`` again for every link that there is; what it refuses now is detached."""
        for peer in self._connections.peers:
            peer.guard.review()

    def guard_for(self, peer: Subject) -> Guard:
        """What knows what this peer may do."""
        return Guard(peer, self.authorise, self.resolve, self._needs_no_permission)

    def _needs_no_permission(self, peer: Subject, address: str) -> bool:
        node = self.nodes.get(address)
        return node is not None and (node.needs_no_permission or node.is_own_of(peer))

    def find(self, address: str) -> Node:
        """The node of this address; made now, where nothing is said against it.

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
        """What an address means here: the path of a URI, for clients of Azure; one spelling of that of an exchange."""
        if address.startswith(EXCHANGES):
            return spell_exchange(address)
        return path_of(address) or address if self._resolves_uris and "://" in address else address

    def make_temporary(self, address: str, kept_by: frozenset[str]) -> Queue:
        """A queue that a peer has made for itself, e.g. behind a dynamic source or target (3.5.9); not in the store.

        Args:
            address: which begins with ``temporary/``, and that cannot be guessed.
            kept_by: what keeps it: any of ``maker``, until ``has_maker`` is False, ``links`` and ``messages``.
        """
        queue = self._make_queue(address, kept_by, lasting=False)
        queue.has_maker = True
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

    def forget_unused(self, node: Node) -> None:
        """A link to ``node`` did not come to be: what was made for it is not needed."""
        if isinstance(node, Queue):
            node.has_maker = node.has_maker and bool(node.inlets or node.outlets)
            node.check_used()

    @property
    def connected(self) -> tuple[ConnectedPeer, ...]:
        """The peers that are connected now, oldest first, whatever dialect they speak."""
        return tuple(self._connections.peers)

    @property
    def conversations(self) -> tuple[Amqp10Connection, ...]:
        """Those of them that speak AMQP 1.0."""
        return tuple(peer for peer in self._connections.peers if isinstance(peer, Amqp10Connection))

    @property
    def past(self) -> Counter[str]:
        """Totals of connections that are over, by the names of ``peer.statistics.TOTALS``."""
        return self._connections.past

    @property
    def resting(self) -> bool:
        """Whether ``finish`` was called."""
        return self._connections.resting

    # -- messages from within ---------------------------------------------------------------

    async def send(self, address: str, message: Any) -> None:
        """Send a message to a node of this container, and wait until the node has accepted it.

        Args:
            address: of the node; looked up as for a link.
            message: bytes, str, any AMQP value, or a ``Message``.

        Raises:
            RefusedError: there is no such node, it takes no messages, or it did not accept this one.
            LocalProtocolError: the message cannot be encoded.
            StoreError: what the store has cannot be read.

        Cancelled: the node may have the message or not.
        """
        self._recover()
        await send_within(self.name, address, message, self._post)

    async def _post(self, address: str, message: Message, peer: Peer) -> None:
        await trio.lowlevel.checkpoint()
        if not isinstance(peer, InternalPeer):  # on behalf of a connected peer, which said where a reply goes
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
        """What a container offers to every peer in its ``open``."""
        return Amqp10.offered_capabilities()

    def vet(self, connection: Connection) -> Error | None:
        """Why this peer is not let in; None for one that is. For ``serve(vet=...)``: before we open too.

        Peers may ask to be the only connection of their container (``sole_connection``).
        """
        return self.amqp10.vet(connection)

    async def handle(self, connection: Connection) -> None:
        """Serve the links that a peer opens, until the connection is over; a handler for ``serve``.

        Handlers that still work when the connection is gone are waited for, not cancelled.

        Raises:
            ConnectionClosedError, RemoteProtocolError: the connection ended with an error.

        Cancelled: its handlers are cancelled.
        """
        await self.amqp10.handle(connection)

    def admit(self, peer: ConnectedPeer) -> RefusedError | None:
        """Count a peer that connects, or return why it is refused: its quota, or a sole connection.

        For a dialect that can refuse before the connection is open; ``enter`` does the same. A peer that was admitted and never
        enters is forgotten with the last reference to it.
        """
        return self._connections.admit(peer)

    def enter(self, peer: ConnectedPeer, nursery: trio.Nursery) -> None:
        """A peer has connected: count it, show it, and run its tasks and those of the container in ``nursery``.

        Whether it may be connected at all (``peer.guard.check("open", None)``) is the caller's to ask, after this.

        Args:
            peer: the connection; a ``ConnectedPeerBase`` of a dialect.
            nursery: lasts until the connection is over and the tasks that work for it are done.

        Raises:
            RefusedError: its quota, or a sole connection; the peer has not entered.
        """
        self._recover()
        refusal = self.admit(peer)
        if refusal is not None:
            raise refusal
        self._connections.enter(peer)
        self._join(peer, nursery)

    def leave(self, peer: ConnectedPeer) -> None:
        """The connection is over: nothing new runs beside it; it is forgotten when the last task that works for it is done.

        Does nothing for a peer that has not entered.
        """
        if peer.open:
            self._connections.part(peer, self._timers)
            peer.ended()
            self.check_idle(peer)

    def _join(self, runner: TaskRunner | ConnectedPeer, nursery: trio.Nursery) -> None:
        """Tasks may run there from now on."""
        self._connections.join(runner, nursery, self._nodes_peer, self._timers)

    @takes_as(serve)
    async def serve(
        self,
        *urls: str,
        task_status: trio.TaskStatus[list[Listener]] = trio.TASK_STATUS_IGNORED,
        **options: Any,
    ) -> None:
        """Listen, and serve the nodes to every peer that connects; see ``trio_amqp10.serve`` for the options.

        ``await nursery.start(partial(container.serve, url, sasl=...))`` gives a ``Listener`` for each address.
        ``dialects=`` names protocols to serve beside AMQP 1.0 on the same URLs: ``"all"``, or a list of names
        (``"0-9-1"``) and of objects of ``net.dialect.Dialect``, or the options of each by name, e.g.
        ``{"0-9-1": {"limits": amqp091.Limits(heartbeat=30), "no_local": True}}``. On ``amqp091://`` and ``amqp091s://`` AMQP 0-9-1 is
        served alone, with the options that it has there. A container that serves 0-9-1 gets a broker (``add_broker``) if it has none.

        Raises:
            LocalProtocolError: there is no such dialect; or as ``trio_amqp10.serve``.

        Cancelled: every connection is closed with ``amqp:connection:forced``. Call ``finish`` first
        for what is under way to come to its end.
        """
        asked = options.get("dialects", ())
        options["dialects"] = dialects_of(self, asked)
        options.setdefault("dialect_schemes", of_own_schemes(self, urls, asked))
        self._recover()
        options.setdefault("container_id", self.name)
        options.setdefault("offered_capabilities", self.offered_capabilities())
        options.setdefault("vet", self.vet)
        options.setdefault("wall_clock", self.clock.wall)
        patience = options.get("close_timeout", 5.0)
        failure: Exception | None = None
        runner = TaskRunner(self)
        check_trio()
        try:
            with interrupts_unwrapped():
                async with trio.open_nursery() as nursery:
                    self._join(runner, nursery)
                    try:
                        started = _Started(self._listening, task_status)
                        await serve(self.handle, *urls, task_status=started, **options)
                    except Exception as raised:
                        failure = raised  # raised in here, it would come out as a group
                    finally:
                        self._connections.part(runner, self._timers)
        finally:
            await self.flush(patience)
        if failure is not None:
            raise failure

    def _listening(self, listeners: list[Listener]) -> None:
        self._listeners += listeners
        if self.resting:
            self._close_listeners()

    def _close_listeners(self) -> None:
        while self._listeners:
            self._listeners.pop().close()

    @takes_on(LocalOptions)
    def connect(self, options: LocalOptions) -> LocalConnection:
        """A client's connection to this container, through memory: ``async with container.connect() as conn``.

        Leaving closes it, and waits for handlers that still work for it, at most ``close_timeout``
        seconds; when the block raises, they are cancelled.

        Args:
            container_id: of the client.
            users: whom to accept, for a client that has ``sasl``; everybody if None.
            options: the others, as for ``trio_amqp10.open_connection``.

        Entering it raises what ``open_connection`` does, and ``StoreError`` if what the store has cannot be read.
        """
        ours, theirs = memory_stream_pair()
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
            self._recover,
            Dialling(theirs, options),
            partial(self._serve_local, acceptor, ours),
            acceptor.close_timeout,
        )

    async def _serve_local(self, acceptor: Acceptor, stream: trio.abc.Stream) -> None:
        try:
            await acceptor.run(stream, self.handle)
        finally:
            await self.flush(acceptor.close_timeout)

    async def flush(self, patience: float = 5.0) -> None:
        """Wait until what the connections that ended left behind is in the store, before its owner closes it.

        ``serve`` and ``connect`` do so at their end. What open connections note meanwhile, they wait for themselves.

        Args:
            patience: seconds to wait at most.

        Cancelled: it waits all the same.
        """
        with trio.move_on_after(patience, shield=True):
            await current_turns().until_idle()
            if (journal := self.journal) is not None:
                await journal.until_safe()
                while journal.busy and not self._connections.runners:  # nobody else waits for what followed
                    await journal.until_safe()

    async def finish(self, patience: float = 5.0) -> bool:
        """Admit no new peer, take and give nothing new, and wait until handlers and deliveries under way are done.

        Args:
            patience: seconds to wait at most.

        Returns:
            Whether everything came to its end. Messages in queues are not waited for.

        Cancelled: nothing new is taken or given all the same.
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
        """Something has come to its end here: what waits for that looks again."""
        self._connections.check_idle(runner)

    def statistics(self) -> dict[str, int]:
        """Live figures by name: nodes, connections, handlers at work; octets that messages take, whether that is too much
        and how many were refused for that; rows of the store that cannot be read; with quotas, how much was refused for
        these."""
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
    """The turns of this ``trio.run``; outside of any no turn is over."""
    return current_turns() if trio.lowlevel.in_trio_run() else ENDLESS


def _check_store(store: object) -> None:
    if store is not None and not hasattr(store, "rows"):  # a path, for instance
        raise LocalProtocolError(f"store={store!r}: expected a store, such as SqliteStore(path), or None")


def _checked_limit(limit: int | Literal["auto"] | None) -> int | None:
    if limit == "auto":
        return default_limit()
    if limit is not None and limit < 1:
        raise LocalProtocolError(f"memory_limit={limit}: expected at least 1 octet, or None for no limit")
    return limit


class _Started(trio.TaskStatus[list[Listener]]):
    """Reports the listeners to the container too."""

    def __init__(
        self, tell: Callable[[list[Listener]], object], task_status: trio.TaskStatus[list[Listener]]
    ) -> None:
        self._tell = tell
        self._task_status = task_status

    def started(self, value: Any = None) -> None:
        self._tell(list(value))
        self._task_status.started(value)
