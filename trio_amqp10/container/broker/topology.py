"""Topology: which exchanges, queues and bindings there are, and where a message goes.

All operations are synchronous: they happen at once or raise one of ``faults`` and change nothing. A queue or an exchange that is deleted
with many messages or bindings loses these first, in pieces, if the caller takes the steps of the operation in turns. With a store, what
is durable is written, and ``when_stored`` reports when that is safe; what could not be written is undone.

Exchanges that exist from the start: the default one, whose name is empty and which hands a message on to the queue
that its key names; ``amq.direct``, ``amq.fanout``, ``amq.topic``, ``amq.headers`` and ``amq.match``.

Knows names and nodes; knows no dialect, no request and no link.
"""

from __future__ import annotations

import base64
import math
import secrets
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from trio_amqp10.container.nodes.message_store import QueueStore
from trio_amqp10.container.nodes.queue import Queue
from trio_amqp10.container.nodes.turns import finish, take_steps

from .addresses import RESERVED as ADDRESSES
from .addresses import parse_exchange
from .adopted import check_adopted
from .arguments import ALTERNATE, KNOWN, check_arguments, check_equivalent
from .bindings import Binding, Bindings, Destination
from .broker_queue import BrokerQueue
from .durable import Definitions
from .exchanges import Exchange
from .faults import AccessRefusedError, LockedError, NotFoundError, PreconditionError
from .matchers import KINDS
from .publishing import Publisher
from .routing import DEFAULT, Router

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from trio_amqp10.container.nodes.clock import Clock
    from trio_amqp10.container.nodes.message_store import MessageStore
    from trio_amqp10.container.nodes.node import Node, Peer
    from trio_amqp10.container.stores.base import Done

    from .matchers import Headers

__all__ = ["RESERVED", "Nodes", "Topology"]

RESERVED: Final = "amq."
"""How the names begin that the broker alone gives."""
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
"""Bindings and messages that are removed at once with what they belong to: about a millisecond."""
_DROPPED: Final = str.maketrans("", "", "\r\n")


class Nodes(Protocol):
    """The container, as far as a broker needs it."""

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Its nodes by address."""
        ...

    def add_node(self, node: Node) -> None:
        """Let peers reach a node."""
        ...

    def remove_node(self, address: str) -> None:
        """Delete a node."""
        ...


class Topology:
    """Declares, binds, deletes and routes.

    Args:
        home: the container that the queues and exchanges are nodes of.
        clock: its clock.
        queue_address: gives the address of a queue from its name.
        message_store: keeps what is durable; None without a store.

    Attributes:
        queues, exchanges: by name; those that were declared.
        bindings: all of them.
        publisher: publishes through its exchanges.
        queue_address: as given.

    Raises:
        StoreError: what the store has cannot be read.
    """

    def __init__(
        self,
        home: Nodes,
        clock: Clock,
        *,
        queue_address: Callable[[str], str] = str,
        message_store: MessageStore | None = None,
    ) -> None:
        self.queues: dict[str, BrokerQueue] = {}
        self.exchanges: dict[str, Exchange] = {}
        self.bindings: Final = Bindings()
        self._unbound: dict[str, float] = {}
        """Exchanges that have lost their last binding, and when they go."""
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
        """A name without line feeds and carriage returns, as what is declared has it."""
        return name.translate(_DROPPED)

    def when_stored(self, done: Done) -> None:
        """Have ``done`` called once all that was declared and deleted so far is safe, or with what went wrong.

        Without a store it is called at once. What failed has been undone when ``done`` is called.
        """
        if self._message_store is None:
            done(None)
        else:
            self._message_store.journal.after(done)

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
        """The queue of this name, and whether it was made by this call.

        Args:
            name: of the queue; empty for one that is made up here. Line feeds and carriage returns are left out.
            arguments: see ``arguments``; those that are not known are ignored.
            durable: whether it survives the process, where the container has a store.
            auto_delete: whether it goes with its last consumer.
            exclusive: whether it is for this peer alone, and goes with it.
            peer: the connection that asks; None for the program itself.

        Raises:
            LockedError: it is another connection's, or exclusive and declared as if it were not, or the other way
                round; or another kind of node has this name.
            InequivalentError: it exists with other properties.
            PreconditionError: the arguments are not valid.
            UnsupportedError: they are, and cannot be met here.
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
            )
            there.touch()
            return there, False
        there.check_owner(peer)
        if (there.owner is not None) != exclusive:
            raise LockedError(f"queue {name!r} is {'not ' if exclusive else ''}exclusive")
        received = {"durable": durable, "auto_delete": auto_delete, **given}
        check_equivalent("queue", name, received, there.properties, _QUEUE)
        there.touch()
        return there, False

    def _make_queue(
        self, name: str, arguments: dict[str, Any], durable: bool, auto_delete: bool, owner: Peer | None
    ) -> BrokerQueue:
        if name.startswith(RESERVED):
            raise AccessRefusedError(f"{name!r} is one of the broker's own: they begin with {RESERVED}")
        if name and self.queue_address(name).startswith(ADDRESSES):
            raise AccessRefusedError(f"{name!r} is a reserved address: choose another name")
        check_arguments(arguments, durable=durable, exclusive=owner is not None, server_named=not name)
        queue = self.build_queue(
            name or _generated(), arguments, durable=durable, auto_delete=auto_delete, owner=owner
        )
        if queue.lasting and self._definitions is not None:
            self._definitions.add_queue(queue, lambda: self._undo_queue(queue))
        return queue

    def build_queue(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        durable: bool,
        auto_delete: bool,
        owner: Peer | None = None,
    ) -> BrokerQueue:
        """Make a queue and add it to the container, without any check; what is restored begins so."""
        lasting = durable and owner is None and self._message_store is not None
        address = self.queue_address(name)
        queue = BrokerQueue(
            name,
            arguments,
            durable=durable,
            auto_delete=auto_delete,
            owner=owner,
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
        return queue

    def find_queue(self, name: str) -> Queue | None:
        """The queue of this name: declared, or added by the program; None if there is none.

        Raises:
            LockedError: what has this name is no queue.
        """
        node = self.find_node(name)
        if node is None or isinstance(node, Queue):
            return node
        raise LockedError(f"{name!r} is no queue")

    def find_node(self, name: str) -> Node | None:
        """The node of any kind that a message to the queue of this name would go to; None if there is none."""
        queue = self.queues.get(name)
        return self._home.nodes.get(self.queue_address(name)) if queue is None else queue

    def add_node(self, node: Node) -> None:
        """Add a node of the caller's to the container."""
        self._home.add_node(node)

    def remove_node(self, node: Node) -> None:
        """Remove it, if it is there still."""
        if self._home.nodes.get(node.address) is node:
            self._home.remove_node(node.address)

    def is_lasting(self, destination: Destination) -> bool:
        """Whether the destination of a binding is there, and survives the process."""
        if destination.kind == "exchange":
            exchange = self.exchanges.get(destination.name)
            return exchange is not None and exchange.durable
        queue = self.find_node(destination.name)
        if isinstance(queue, BrokerQueue):
            return queue.lasting
        return isinstance(queue, Queue) and queue.durable

    def get_queue(self, name: str, peer: Peer | None = None) -> Queue:
        """The queue of this name, for this peer to use.

        Raises:
            NotFoundError: there is none.
            LockedError: it is another connection's, or no queue.
        """
        queue = self.find_queue(name)
        if queue is None:
            raise NotFoundError(f"no queue {name!r}")
        if isinstance(queue, BrokerQueue):
            queue.check_owner(peer)
        return queue

    def check_queue(self, name: str, peer: Peer | None = None) -> Queue:
        """A passive declaration: as ``get_queue``, and line feeds and carriage returns are left out of the name."""
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
    ) -> Generator[None, None, int]:
        """Delete a queue with its bindings and its messages, in steps, which return how many of these were ready; 0 if there is none.

        Args:
            name: of the queue.
            if_unused, if_empty: only then.
            dead_letters: whether ready messages go to the exchange for dead letters, if the queue has one.
            peer: the connection that asks; None for the program itself.

        Raises:
            LockedError: it is another connection's, or no queue.
            PreconditionError: it has consumers, and ``if_unused``; or ready messages, and ``if_empty``.
        """
        name = name.translate(_DROPPED)
        try:
            queue = self.get_queue(name, peer)
        except NotFoundError:
            return 0
        if if_unused and queue.outlets:
            raise PreconditionError(f"queue {name!r} in use")
        queue.sweep()
        count = queue.available
        if if_empty and count:
            raise PreconditionError(f"queue {name!r} not empty")
        yield from self._thin_out(lambda: self.bindings.of_destination(Destination("queue", name)))
        if dead_letters:
            yield from queue.end_available_in_steps()
        elif len(queue) > _AT_ONCE:
            yield from queue.purge_in_steps()
        if self.find_node(name) is queue:
            self._home.remove_node(queue.address)
            self._drop_bindings(self.bindings.of_destination(Destination("queue", name)))
        return count

    def _thin_out(self, find: Callable[[], Sequence[Binding]]) -> Generator[None, None, None]:
        """Remove bindings until there are few enough to go with what they belong to."""
        turns = self._clock.turns()
        while len(found := list(find())) > _AT_ONCE:
            while found:
                some, found[-_STEP:] = found[-_STEP:], []  # all at once would be freed at once
                self._drop_bindings(some)
                if turns.is_over():
                    yield

    def _remove_in_turns(self, queue: Queue) -> None:
        """Remove a queue that nothing needs any more."""

        def remove() -> None:
            if self._home.nodes.get(queue.address) is queue:
                self._home.remove_node(queue.address)

        name = queue.name if isinstance(queue, BrokerQueue) else queue.address
        thinning = self._thin_out(lambda: self.bindings.of_destination(Destination("queue", name)))
        take_steps(self._clock.turns(), thinning, remove)

    def purge_queue(self, name: str, *, peer: Peer | None = None) -> int:
        """Throw away the ready messages of a queue at once: see ``purge_queue_in_steps``."""
        return finish(self.purge_queue_in_steps(name, peer=peer))

    def purge_queue_in_steps(self, name: str, *, peer: Peer | None = None) -> Generator[None, None, int]:
        """Throw away the ready messages of a queue, in steps, which return how many these were.

        Raises:
            NotFoundError: there is no such queue.
            LockedError: it is another connection's, or no queue.
        """
        queue = self.get_queue(name, peer)
        queue.sweep()
        return (yield from queue.purge_in_steps())

    def disown(self, peer: Peer) -> None:
        """A connection is over: delete what is exclusive to it."""
        for queue in [queue for queue in self.queues.values() if queue.owner is peer]:
            self._remove_in_turns(queue)

    def _undo_queue(self, queue: BrokerQueue) -> None:
        if self.queues.get(queue.name) is queue:
            self._home.remove_node(queue.address)

    def _forget_queue(self, queue: BrokerQueue) -> None:
        """It is no node any more."""
        if self.queues.get(queue.name) is queue:
            del self.queues[queue.name]
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
        """The exchange of this name, and whether it was made by this call.

        Args:
            name: of the exchange. Line feeds and carriage returns are left out.
            kind: ``"direct"``, ``"fanout"``, ``"topic"`` or ``"headers"``.
            durable: whether it survives the process, where the container has a store.
            auto_delete: whether it goes with the last binding that it is the source of.
            internal: whether only exchanges hand it anything.
            grace: seconds that it stays without a binding before it goes with ``auto_delete``.
            arguments: ``alternate-exchange`` names the exchange that gets what matches no binding here.

        Raises:
            AccessRefusedError: the default exchange, or a name that begins with ``amq.`` and is not there.
            InequivalentError: it exists with other properties.
            PreconditionError: there is no such type, or the alternate exchange is no name.
        """
        name, given = name.translate(_DROPPED), dict(arguments or {})
        _check_default(name)
        if kind not in KINDS:
            raise PreconditionError(f"invalid exchange type {kind!r}: expected one of {', '.join(KINDS)}")
        if not isinstance(given.get(ALTERNATE, ""), str):
            raise PreconditionError(f"{ALTERNATE} is a string")
        there = self.exchanges.get(name)
        if there is not None:
            received = {"type": kind, "durable": durable, "auto_delete": auto_delete, "internal": internal}
            check_equivalent("exchange", name, given | received, there.properties, _EXCHANGE)
            return there, False
        if name.startswith(RESERVED):
            raise AccessRefusedError(f"{name!r} is one of the broker's own: they begin with {RESERVED}")
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
        """Make an exchange and add it to the container, without any check; what is restored begins so."""
        return self._add_exchange(
            Exchange(name, kind, self.publisher, on_closed=self._forget_exchange, **properties)
        )

    def _add_exchange(self, exchange: Exchange) -> Exchange:
        self._home.add_node(exchange)
        self.exchanges[exchange.name] = exchange
        self.bindings.open_source(exchange.name, exchange.kind)
        return exchange

    def get_exchange(self, name: str) -> Exchange:
        """The exchange of this name; the default one is one that can be published to.

        Raises:
            NotFoundError: there is none.
        """
        exchange = self.exchanges.get(name)
        if exchange is None:
            raise NotFoundError(f"no exchange {name!r}")
        return exchange

    def check_exchange(self, name: str) -> Exchange:
        """A passive declaration: the exchange of this name, of whatever type.

        Raises:
            AccessRefusedError: it is the default exchange.
            NotFoundError: there is none.
        """
        _check_default(name)
        return self.get_exchange(name.translate(_DROPPED))

    def delete_exchange(self, name: str, *, if_unused: bool = False) -> None:
        """Delete an exchange at once: see ``delete_exchange_in_steps``."""
        finish(self.delete_exchange_in_steps(name, if_unused=if_unused))

    def delete_exchange_in_steps(self, name: str, *, if_unused: bool = False) -> Generator[None, None, None]:
        """Delete an exchange with its bindings, if there is one, in steps.

        Raises:
            AccessRefusedError: it is the default exchange, or its name begins with ``amq.``.
            PreconditionError: it is the source of a binding, and ``if_unused``.
        """
        name = name.translate(_DROPPED)
        _check_default(name)
        if name.startswith(RESERVED):
            raise AccessRefusedError(f"{name!r} is one of the broker's own: they begin with {RESERVED}")
        exchange = self.exchanges.get(name)
        if exchange is None:
            return
        if if_unused and self.bindings.is_source(name):
            raise PreconditionError(f"exchange {name!r} in use")
        yield from self._thin_out(lambda: self.bindings.of_destination(Destination("exchange", name)))
        yield from self._thin_out(lambda: self.bindings.of_source(name))
        if self.exchanges.get(name) is exchange:
            self._home.remove_node(exchange.address)

    def _undo_exchange(self, exchange: Exchange) -> None:
        if self.exchanges.get(exchange.name) is exchange:
            self._home.remove_node(exchange.address)

    def _forget_exchange(self, exchange: Exchange) -> None:
        """It is no node any more."""
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
        """Have an exchange hand on to a queue or an exchange what matches; two equal bindings are one.

        Args:
            source: the name of the exchange.
            kind: what the destination is.
            destination: its name.
            key: what routing keys are compared with.
            arguments: what headers are compared with, for exchanges of type headers. They are part of the binding.
            peer: the connection that asks; None for the program itself.

        Raises:
            AccessRefusedError: one of both is the default exchange.
            NotFoundError: there is no such exchange, or no such destination.
            LockedError: the queue is another connection's, or no queue.
            PreconditionError: ``x-match`` is not valid.
        """
        _check_ends(source, kind, destination)
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
        """Remove a binding, if there is one; see ``bind``.

        Raises:
            AccessRefusedError: one of both is the default exchange.
            LockedError: there is one, and the queue is another connection's.
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
        """Remove those of them that are there, and the auto-delete exchanges that lose their last one."""
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
        """The queues that a message gets to from an exchange; see ``Router.route``."""
        return self._router.route(exchange, keys, headers)

    def find_route(self, address: str) -> Node | None:
        """The node behind the address of an exchange with a routing key; None for any other address.

        The default exchange has none: its queues have addresses.
        """
        parsed = parse_exchange(address)
        if parsed is None or parsed[0] == DEFAULT:
            return None
        exchange = self.exchanges.get(parsed[0])
        return None if exchange is None else exchange.with_key(parsed[1])


def _check_default(name: str) -> None:
    if not name:
        raise AccessRefusedError("operation not permitted on the default exchange")


def _check_ends(source: str, kind: str, destination: str) -> None:
    _check_default(source)
    if kind == "exchange":
        _check_default(destination)


def _generated() -> str:
    """A name that no client can guess: 128 bits."""
    return "amq.gen-" + base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()
