"""Topology: the exchanges, queues and bindings of a broker, and its routing.

All operations are synchronous: they succeed at once, or raise one of ``faults`` and change nothing. Before a queue or an exchange
with many messages or bindings is deleted, these are removed in steps, which the caller may take in several turns. With a store,
durable definitions are written, and ``when_stored`` reports when they are safe; definitions that could not be written are
undone.

Some exchanges always exist: the default one, whose name is empty and which routes a message to the queue that its key names;
``amq.direct``, ``amq.fanout``, ``amq.topic``, ``amq.headers`` and ``amq.match``.

Knows names and nodes; knows no dialect, no request and no link.
"""

from __future__ import annotations

import base64
import math
import secrets
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from trio_amqp10.broker.nodes.message_store import QueueStore
from trio_amqp10.broker.nodes.queue import Queue
from trio_amqp10.broker.nodes.turns import each_in_turns, finish, take_steps
from trio_amqp10.core.short_strings import is_unicode

from .addresses import RESERVED as ADDRESSES
from .addresses import parse_exchange
from .adopted import check_adopted
from .argument_equality import name_of_type
from .arguments import ALTERNATE, KNOWN, check_arguments, check_equivalent, check_name, check_values
from .bindings import Binding, Bindings, Destination
from .broker_queue import BrokerQueue
from .definitions import Definitions
from .exchanges import Exchange
from .faults import AccessRefusedError, LockedError, NotFoundError, PreconditionError, locked, title_of
from .matchers import KINDS
from .publishing import Publisher
from .rabbitmq_queue import RabbitMQQueue
from .routing import DEFAULT, Router

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from trio_amqp10.broker.nodes.clock import Clock
    from trio_amqp10.broker.nodes.message_store import MessageStore
    from trio_amqp10.broker.nodes.node import Node, Peer
    from trio_amqp10.broker.nodes.turns import Resumer
    from trio_amqp10.broker.stores.base import Done

    from .matchers import Headers

RESERVED: Final = "amq."
"""The prefix of names that only the broker gives."""
_FIRST: Final = (
    ("amq.direct", "direct"),
    ("amq.fanout", "fanout"),
    ("amq.topic", "topic"),
    ("amq.headers", "headers"),
    ("amq.match", "headers"),
)
_QUEUE: Final = ("durable", "auto_delete", *KNOWN)
_EXCHANGE: Final = ("type", "durable", "auto_delete", "internal", ALTERNATE)
_STEP: Final = 32
_AT_ONCE: Final = 256
"""Bindings or messages that are removed together with their queue or exchange.

About a millisecond of work. More are removed before, in steps.
"""
_DROPPED: Final = str.maketrans("", "", "\r\n")


class Nodes(Protocol):
    """The methods of a container that a broker calls."""

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Its nodes by address."""
        ...

    def add_node(self, node: Node) -> None:
        """Add a node, which peers can reach from now on."""
        ...

    def remove_node(self, address: str) -> None:
        """Delete a node."""
        ...


class Topology:
    """The exchanges, queues and bindings of a broker: declares, deletes and routes.

    Args:
        home: the container of the queues and exchanges.
        clock: its clock.
        queue_address: returns the address of a queue from its name.
        message_store: stores durable messages and definitions; None without a store.
        like_rabbitmq: behave as RabbitMQ where that limits programs: see ``RabbitMQQueue`` and ``check_arguments``.

    Attributes:
        queues, exchanges: the declared ones, by name.
        bindings: all bindings.
        publisher: publishes through its exchanges.
        queue_address, like_rabbitmq: as given.
        virtual_host: the name of the virtual host, for texts.
        declares_for_clients: whether clients may declare new queues and exchanges.

    Raises:
        StoreError: the store cannot be read.
    """

    def __init__(
        self,
        home: Nodes,
        clock: Clock,
        *,
        queue_address: Callable[[str], str] = str,
        message_store: MessageStore | None = None,
        like_rabbitmq: bool = False,
    ) -> None:
        self.virtual_host: str = "/"
        self.declares_for_clients: bool = True
        self.like_rabbitmq: Final = like_rabbitmq
        self.queues: dict[str, BrokerQueue] = {}
        self.exchanges: dict[str, Exchange] = {}
        self.bindings: Final = Bindings()
        self._exclusive: dict[Peer, dict[BrokerQueue, None]] = {}
        """The exclusive queues of each connection that has some."""
        self._unbound: dict[str, float] = {}
        """Exchanges that have lost their last binding, and when they will be deleted."""
        self._unbound_timer = clock.deadline_timer(
            lambda: min(self._unbound.values(), default=math.inf), self._drop_unbound
        )
        journal = None if message_store is None else message_store.journal
        self._home = home
        self._router = Router(self.exchanges, self.bindings, self.find_node)
        self.publisher: Final = Publisher(self._router.search, journal, clock)
        self._clock = clock
        self.queue_address = queue_address
        self._message_store = message_store
        self._definitions: Definitions | None = None
        self.exchanges[DEFAULT] = Exchange(DEFAULT, "direct", self.publisher)
        for name, kind in _FIRST:
            self._add_exchange(Exchange(name, kind, self.publisher, on_closed=self._forget_exchange))
        if journal is not None:
            self._definitions = Definitions(journal)
            self._definitions.restore(self)

    @staticmethod
    def plain(name: str) -> str:
        """Return a name without line feeds and carriage returns, as declarations use it."""
        return name.translate(_DROPPED)

    def title_of(self, kind: str, name: str) -> str:
        """Return a queue or an exchange as texts name it; see ``faults.title_of``."""
        return title_of(kind, name, self.virtual_host)

    def when_stored(self, done: Done) -> None:
        """Call ``done`` once all previous changes are safe, or with the failure.

        Without a store it is called at once. Changes that failed have been undone when ``done`` is called.
        """
        if self._message_store is None:
            done(None)
        else:
            self._message_store.journal.after(done)

    def when_deleted(self, done: Done) -> None:
        """Call ``done`` once all deletions before are safe, or with the failure.

        Without a store it is called at once. If they fail they are tried once more.
        """
        if self._message_store is None:
            done(None)
        else:
            self._message_store.journal.when_dropped(done)

    # -- queues -----------------------------------------------------------------------------

    def declare_queue(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        durable: bool = True,
        auto_delete: bool = False,
        exclusive: bool = False,
        peer: Peer | None = None,
    ) -> tuple[Queue, bool]:
        """Return the queue of this name, and whether this call has made it.

        Args:
            name: the name of the queue; empty to generate one. Line feeds and carriage returns are removed.
            arguments: see ``arguments``; unknown ones are ignored.
            durable: whether it survives the process, if the container has a store.
            auto_delete: whether it is deleted with its last consumer.
            exclusive: whether it is for this peer only, and is deleted with it.
            peer: the connection that declares it; None for the program itself.

        Raises:
            LockedError: it belongs to another connection; or it exists with another value of ``exclusive``; or another kind of
                node has this name.
            InequivalentError: it exists with other properties.
            PreconditionError: the arguments are not valid.
            UnsupportedError: the arguments are valid, but not supported here.
            AccessRefusedError: the name begins with ``amq.``.
        """
        name, given = name.translate(_DROPPED), dict(arguments or {})
        there = self.find_queue(name) if name else None
        if there is None:
            return self._make_queue(name, given, durable, auto_delete, peer if exclusive else None), True
        if not isinstance(there, BrokerQueue):
            check_adopted(
                there,
                name,
                given,
                self.queue_address,
                durable=durable,
                auto_delete=auto_delete,
                exclusive=exclusive,
                virtual_host=self.virtual_host,
            )
            there.touch()
            return there, False
        there.check_owner(peer)
        if (there.owner is not None) != exclusive:
            raise LockedError(locked(title_of("queue", name, self.virtual_host)))
        received = {"durable": durable, "auto_delete": auto_delete, **given}
        check_equivalent("queue", name, received, there.properties, _QUEUE, self.virtual_host)
        there.touch()
        return there, False

    def _make_queue(
        self, name: str, arguments: dict[str, Any], durable: bool, auto_delete: bool, owner: Peer | None
    ) -> BrokerQueue:
        self._check_name("queue", name, durable=durable and owner is None)
        _check_prefix("queue", name)
        if name and self.queue_address(name).startswith(ADDRESSES):
            raise AccessRefusedError(f"{name!r} is a reserved address: choose another name")
        check_arguments(
            arguments,
            self.title_of("queue", name),
            durable=durable,
            exclusive=owner is not None,
            auto_delete=auto_delete,
            server_named=not name,
            like_rabbitmq=self.like_rabbitmq,
        )
        queue = self.build_queue(
            name or _generated(), arguments, durable=durable, auto_delete=auto_delete, owner=owner
        )
        if queue.lasting and self._definitions is not None:
            self._definitions.add_queue(queue, lambda: self._undo_queue(queue))
        return queue

    def _check_name(self, kind: str, name: str, *, durable: bool) -> None:
        """Raise ``PreconditionError`` for a name that 0-9-1 or the store cannot have.

        A row that cannot be written would fail with all rows that are written together with it, those of other clients too.
        """
        check_name(kind, name)
        if durable and self._definitions is not None and not is_unicode(name):
            raise PreconditionError(f"{kind} name {name!r} is not UTF-8: choose another name")

    def build_queue(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        durable: bool,
        auto_delete: bool,
        owner: Peer | None = None,
    ) -> BrokerQueue:
        """Make a queue and add it to the container, without any check.

        Used for new and for restored queues.
        """
        lasting = durable and owner is None and self._message_store is not None
        address = self.queue_address(name)
        queue = (RabbitMQQueue if self.like_rabbitmq else BrokerQueue)(
            name,
            arguments,
            durable=durable,
            auto_delete=auto_delete,
            owner=owner,
            title=self.title_of("queue", name),
            clock=self._clock,
            on_unused=self._remove_in_turns,
            on_closed=self._forget_queue,
            queue_address=self.queue_address,
            find_exchange=self.get_exchange,
            queue_store=QueueStore(self._message_store, address)
            if lasting and self._message_store is not None
            else None,
        )
        self._drop_bindings(self.bindings.of_destination(Destination("queue", name)))
        self._home.add_node(queue)
        self.queues[name] = queue
        if owner is not None:
            self._exclusive.setdefault(owner, {})[queue] = None
        return queue

    def find_queue(self, name: str) -> Queue | None:
        """Return the queue of this name, declared or added by the program, or None.

        Raises:
            LockedError: the node of this name is not a queue.
        """
        node = self.find_node(name)
        if node is None or isinstance(node, Queue):
            return node
        raise LockedError(f"{name!r} is no queue")

    def find_node(self, name: str) -> Node | None:
        """Return the node, of any kind, that gets messages for a queue name, or None."""
        queue = self.queues.get(name)
        return self._home.nodes.get(self.queue_address(name)) if queue is None else queue

    def add_node(self, node: Node) -> None:
        """Add a node to the container."""
        self._home.add_node(node)

    def remove_node(self, node: Node) -> None:
        """Remove a node, if it is still in the container."""
        if self._home.nodes.get(node.address) is node:
            self._home.remove_node(node.address)

    def is_lasting(self, destination: Destination) -> bool:
        """Whether the destination of a binding exists and survives the process."""
        if destination.kind == "exchange":
            exchange = self.exchanges.get(destination.name)
            return exchange is not None and exchange.durable
        queue = self.find_node(destination.name)
        if isinstance(queue, BrokerQueue):
            return queue.lasting
        return isinstance(queue, Queue) and queue.durable

    def get_queue(self, name: str, peer: Peer | None = None) -> Queue:
        """Return the queue of this name, if this peer may use it.

        Raises:
            NotFoundError: there is no such queue.
            LockedError: it is exclusive to another connection, or not a queue.
        """
        queue = self.find_queue(name)
        if queue is None:
            raise NotFoundError(f"no {self.title_of('queue', name)}")
        if isinstance(queue, BrokerQueue):
            queue.check_owner(peer)
        return queue

    def check_queue(self, name: str, peer: Peer | None = None) -> Queue:
        """Return the queue of a passive declaration; see ``get_queue``.

        Line feeds and carriage returns are removed from the name.
        """
        queue = self.get_queue(name.translate(_DROPPED), peer)
        queue.touch()
        return queue

    def delete_queue(
        self,
        name: str,
        *,
        if_unused: bool = False,
        if_empty: bool = False,
        dead_letters: bool = False,
        peer: Peer | None = None,
    ) -> int:
        """Delete a queue at once: see ``delete_queue_in_steps``."""
        return finish(
            self.delete_queue_in_steps(
                name, if_unused=if_unused, if_empty=if_empty, dead_letters=dead_letters, peer=peer
            )
        )

    def delete_queue_in_steps(
        self,
        name: str,
        *,
        if_unused: bool = False,
        if_empty: bool = False,
        dead_letters: bool = False,
        peer: Peer | None = None,
    ) -> Generator[Resumer | None, None, int]:
        """Delete a queue with its bindings and its messages, in steps.

        The steps return how many messages were ready; 0 if there is no such queue.

        Args:
            name: the name of the queue.
            if_unused: delete it only if it has no consumers.
            if_empty: delete it only if it has no ready messages.
            dead_letters: whether ready messages go to the dead-letter exchange, if the queue has one.
            peer: the connection that deletes it; None for the program itself.

        Raises:
            LockedError: it is exclusive to another connection, or not a queue.
            PreconditionError: ``if_unused`` and it has consumers, or ``if_empty`` and it has ready messages.
            RefusedError: a connection deletes it, but it has moved to another place.
        """
        name = name.translate(_DROPPED)
        try:
            queue = self.get_queue(name, peer)
        except NotFoundError:
            return 0
        if peer is not None:
            queue.check_here()
        if if_unused and queue.outlets:
            raise PreconditionError(f"{self.title_of('queue', name)} in use")
        queue.sweep()
        count = queue.available
        if if_empty and count:
            raise PreconditionError(f"{self.title_of('queue', name)} not empty")
        thinning = self._thin_out(lambda: self.bindings.of_destination(Destination("queue", name)))
        if if_empty:
            finish(thinning)  # A message that came between two steps would be deleted with it.
        else:
            yield from thinning
        if dead_letters:
            yield from queue.end_available_in_steps()
        elif len(queue) > _AT_ONCE and not if_empty:
            yield from queue.purge_in_steps()
        if self.find_node(name) is queue:
            self._home.remove_node(queue.address)
            self._drop_bindings(self.bindings.of_destination(Destination("queue", name)))
        return count

    def _thin_out(self, find: Callable[[], Sequence[Binding]]) -> Generator[None, None, None]:
        """Remove bindings in steps, until the rest can be removed at once."""
        turns = self._clock.turns()
        while len(found := list(find())) > _AT_ONCE:
            while found:
                some, found[-_STEP:] = found[-_STEP:], []  # Freeing all together would take too long.
                self._drop_bindings(some)
                if turns.is_over():
                    yield

    def _remove_in_turns(self, queue: Queue) -> None:
        """Remove an unused queue: its bindings in steps, then the node."""

        def remove() -> None:
            if self._home.nodes.get(queue.address) is queue:
                self._home.remove_node(queue.address)

        name = queue.name if isinstance(queue, BrokerQueue) else queue.address
        thinning = self._thin_out(lambda: self.bindings.of_destination(Destination("queue", name)))
        take_steps(self._clock.turns(), thinning, remove)

    def purge_queue(self, name: str, *, peer: Peer | None = None) -> int:
        """Remove the ready messages of a queue at once: see ``purge_queue_in_steps``."""
        return finish(self.purge_queue_in_steps(name, peer=peer))

    def purge_queue_in_steps(
        self, name: str, *, peer: Peer | None = None
    ) -> Generator[Resumer | None, None, int]:
        """Remove the ready messages of a queue, in steps, which return their number.

        Raises:
            NotFoundError: there is no such queue.
            LockedError: it is exclusive to another connection, or not a queue.
            RefusedError: a connection purges it, but it has moved to another place.
        """
        queue = self.get_queue(name, peer)
        if peer is not None:
            queue.check_here()
        queue.sweep()
        return (yield from queue.purge_in_steps())

    def disown(self, peer: Peer) -> None:
        """Delete the exclusive queues of a connection that has ended, in turns."""
        turns = self._clock.turns()
        queues = list(self._exclusive.get(peer, ()))
        take_steps(turns, each_in_turns(turns, iter(queues), self._remove_in_turns))

    def _undo_queue(self, queue: BrokerQueue) -> None:
        if self.queues.get(queue.name) is queue:
            self._home.remove_node(queue.address)

    def _forget_queue(self, queue: BrokerQueue) -> None:
        """Forget a queue that is not a node any more."""
        if self.queues.get(queue.name) is queue:
            del self.queues[queue.name]
            if queue.owner is not None:
                owned = self._exclusive[queue.owner]
                del owned[queue]
                if not owned:
                    del self._exclusive[queue.owner]
            if self._definitions is not None:
                self._definitions.drop_queue(queue.name)
            self._drop_bindings(self.bindings.of_destination(Destination("queue", queue.name)))

    # -- exchanges --------------------------------------------------------------------------

    def declare_exchange(
        self,
        name: str,
        kind: str = "direct",
        *,
        durable: bool = True,
        auto_delete: bool = False,
        internal: bool = False,
        grace: float = 0.0,
        arguments: Mapping[str, Any] | None = None,
    ) -> tuple[Exchange, bool]:
        """Return the exchange of this name, and whether this call has made it.

        Args:
            name: the name of the exchange. Line feeds and carriage returns are removed.
            kind: ``"direct"``, ``"fanout"``, ``"topic"`` or ``"headers"``.
            durable: whether it survives the process, if the container has a store.
            auto_delete: whether it is deleted with the last binding that it is the source of.
            internal: whether only other exchanges may forward messages to it.
            grace: seconds that it stays without a binding before ``auto_delete`` deletes it.
            arguments: ``alternate-exchange`` names the exchange for messages that match no binding here.

        Raises:
            AccessRefusedError: the default exchange, or a name that begins with ``amq.`` and does not exist.
            InequivalentError: it exists with other properties.
            PreconditionError: there is no such type, or the alternate exchange is not a name.
        """
        name, given = name.translate(_DROPPED), dict(arguments or {})
        _check_default(name)
        if kind not in KINDS:
            raise PreconditionError(f"{'unknown' if kind else 'invalid'} exchange type '{kind}'")
        if not isinstance(alternate := given.get(ALTERNATE, ""), str):
            found, title = name_of_type(alternate), self.title_of("exchange", name)
            raise PreconditionError(f"invalid type '{found}' for arg '{ALTERNATE}' in {title}")
        there = self.exchanges.get(name)
        if there is not None:
            received = {"type": kind, "durable": durable, "auto_delete": auto_delete, "internal": internal}
            check_equivalent(
                "exchange", name, given | received, there.properties, _EXCHANGE, self.virtual_host
            )
            return there, False
        self._check_name("exchange", name, durable=durable)
        check_values(given)
        _check_prefix("exchange", name)
        exchange = self.build_exchange(
            name,
            kind,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            grace=grace,
            arguments=given,
        )
        if durable and self._definitions is not None:
            self._definitions.add_exchange(exchange, lambda: self._undo_exchange(exchange))
        return exchange, True

    def build_exchange(self, name: str, kind: str, **properties: Any) -> Exchange:
        """Make an exchange and add it to the container, without any check.

        Used for new and for restored exchanges.
        """
        return self._add_exchange(
            Exchange(name, kind, self.publisher, on_closed=self._forget_exchange, **properties)
        )

    def _add_exchange(self, exchange: Exchange) -> Exchange:
        self._home.add_node(exchange)
        self.exchanges[exchange.name] = exchange
        self.bindings.open_source(exchange.name, exchange.kind)
        return exchange

    def get_exchange(self, name: str) -> Exchange:
        """Return the exchange of this name, the default one included.

        Raises:
            NotFoundError: there is no such exchange.
        """
        exchange = self.exchanges.get(name)
        if exchange is None:
            raise NotFoundError(f"no {self.title_of('exchange', name)}")
        return exchange

    def check_exchange(self, name: str) -> Exchange:
        """Return the exchange of a passive declaration, of any type.

        Raises:
            AccessRefusedError: it is the default exchange.
            NotFoundError: there is no such exchange.
        """
        _check_default(name)
        return self.get_exchange(name.translate(_DROPPED))

    def delete_exchange(self, name: str, *, if_unused: bool = False) -> None:
        """Delete an exchange at once: see ``delete_exchange_in_steps``."""
        finish(self.delete_exchange_in_steps(name, if_unused=if_unused))

    def delete_exchange_in_steps(self, name: str, *, if_unused: bool = False) -> Generator[None, None, None]:
        """Delete an exchange with its bindings, if it exists, in steps.

        Raises:
            AccessRefusedError: it is the default exchange, or its name begins with ``amq.``.
            PreconditionError: ``if_unused`` and it is the source of a binding.
        """
        name = name.translate(_DROPPED)
        _check_default(name)
        if name.startswith(RESERVED):
            raise AccessRefusedError(f"deletion of system {self.title_of('exchange', name)} not allowed")
        exchange = self.exchanges.get(name)
        if exchange is None:
            return
        if if_unused and self.bindings.is_source(name):
            raise PreconditionError(f"{self.title_of('exchange', name)} in use")
        yield from self._thin_out(lambda: self.bindings.of_destination(Destination("exchange", name)))
        yield from self._thin_out(lambda: self.bindings.of_source(name))
        if self.exchanges.get(name) is exchange:
            self._home.remove_node(exchange.address)

    def _undo_exchange(self, exchange: Exchange) -> None:
        if self.exchanges.get(exchange.name) is exchange:
            self._home.remove_node(exchange.address)

    def _forget_exchange(self, exchange: Exchange) -> None:
        """Forget an exchange that is not a node any more."""
        name = exchange.name
        if self.exchanges.get(name) is not exchange:
            return
        del self.exchanges[name]
        self._unbound.pop(name, None)
        if self._definitions is not None:
            self._definitions.drop_exchange(name)
        gone = self.bindings.of_source(name)
        self._drop_bindings((*gone, *self.bindings.of_destination(Destination("exchange", name))))
        self.bindings.close_source(name)

    # -- bindings ---------------------------------------------------------------------------

    def bind(
        self,
        source: str,
        kind: Literal["queue", "exchange"],
        destination: str,
        key: str = "",
        arguments: Mapping[str, Any] | None = None,
        *,
        peer: Peer | None = None,
    ) -> Binding:
        """Make an exchange forward matching messages to a queue or an exchange.

        A binding that equals an existing one changes nothing.

        Args:
            source: the name of the exchange.
            kind: the kind of the destination.
            destination: its name.
            key: compared with routing keys.
            arguments: compared with headers, for exchanges of type headers. They are part of the binding.
            peer: the connection that binds; None for the program itself.

        Raises:
            AccessRefusedError: one of them is the default exchange.
            NotFoundError: there is no such exchange, or no such destination.
            LockedError: the queue is exclusive to another connection, or not a queue.
            PreconditionError: ``x-match`` is not valid.
        """
        _check_ends(source, kind, destination)
        check_values({key: arguments or {}})
        binding = Binding(source, Destination(kind, destination), key, arguments)
        durable = self.get_exchange(source).durable and self.is_lasting(binding.destination)
        if kind == "queue":
            self.get_queue(destination, peer)
        else:
            self.get_exchange(destination)
        self.bindings.check(binding)
        self._unbound.pop(source, None)
        if self.bindings.add(binding) and durable and self._definitions is not None:
            self._definitions.add_binding(binding, lambda: self._undo_binding(binding))
        return binding

    def unbind(
        self,
        source: str,
        kind: Literal["queue", "exchange"],
        destination: str,
        key: str = "",
        arguments: Mapping[str, Any] | None = None,
        *,
        peer: Peer | None = None,
    ) -> None:
        """Remove a binding, if it exists; see ``bind``.

        Raises:
            AccessRefusedError: one of them is the default exchange.
            LockedError: the binding exists, and the queue is exclusive to another connection.
        """
        _check_ends(source, kind, destination)
        binding = Binding(source, Destination(kind, destination), key, arguments)
        if binding in self.bindings:
            if kind == "queue" and destination in self.queues:
                self.queues[destination].check_owner(peer)
            self._drop_bindings((binding,))

    def _undo_binding(self, binding: Binding) -> None:
        if self.bindings.has(binding):
            self._drop_bindings((binding,))

    def _drop_bindings(self, which: Sequence[Binding]) -> None:
        """Remove existing bindings, and auto-delete exchanges that lose their last one."""
        removed = [found for each in which if (found := self.bindings.remove(each)) is not None]
        if self._definitions is not None:
            for binding in removed:
                self._definitions.drop_binding(binding)
        for source in dict.fromkeys(each.source for each in removed):
            exchange = self.exchanges.get(source)
            if exchange is None or not exchange.auto_delete or self.bindings.is_source(source):
                continue
            if exchange.grace:
                self._unbound[source] = self._clock.now() + exchange.grace
                self._unbound_timer.check()
            else:
                self._home.remove_node(exchange.address)

    def _drop_unbound(self) -> None:
        """Delete the exchanges that have had no binding for too long."""
        now = self._clock.now()
        for name in [name for name, due in self._unbound.items() if due <= now]:
            self._home.remove_node(self.exchanges[name].address)

    # -- routing ----------------------------------------------------------------------------

    def route(self, exchange: Exchange, keys: Sequence[str], headers: Headers) -> list[Queue]:
        """Return the queues that a message reaches from an exchange; see ``Router.route``."""
        return self._router.route(exchange, keys, headers)

    def route_in_steps(
        self, exchange: Exchange, keys: Sequence[str], headers: Headers
    ) -> Generator[None, None, list[Queue]]:
        """Do the same as ``route`` in steps; see ``Router.search``."""
        return self._router.search(exchange, keys, headers)

    def find_route(self, address: str) -> Node | None:
        """Return the node for an exchange with a routing key, by its address, or None.

        None also for the default exchange, whose queues have addresses of their own.
        """
        parsed = parse_exchange(address)
        if parsed is None or parsed[0] == DEFAULT:
            return None
        exchange = self.exchanges.get(parsed[0])
        return None if exchange is None else exchange.with_key(parsed[1])


def _check_default(name: str) -> None:
    if not name:
        raise AccessRefusedError("operation not permitted on the default exchange")


def _check_prefix(kind: str, name: str) -> None:
    if name.startswith(RESERVED):
        raise AccessRefusedError(f"{kind} name '{name}' contains reserved prefix '{RESERVED}*'")


def _check_ends(source: str, kind: str, destination: str) -> None:
    _check_default(source)
    if kind == "exchange":
        _check_default(destination)


def _generated() -> str:
    """Return a new name that no client can guess: 128 random bits."""
    return "amq.gen-" + base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
