"""Broker: which queues, exchanges and bindings there are, and where a message goes.

Knows names; knows no requests and no links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.rabbitmq.faults import FaultError

from .exchanges import KINDS, Exchange
from .queues import BrokerQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trio_amqp10.container.nodes.clock import Clock
    from trio_amqp10.container.nodes.node import Peer
    from trio_amqp10.container.service import Container
    from trio_amqp10.rabbitmq.addresses import Binding

__all__ = ["Broker"]

_OWN: Final = "amq."
"""Names that begin so are the broker's own."""


class Broker:
    """Declares and deletes, in a container.

    Args:
        container: which.
        clock: its clock.

    Attributes:
        queues, exchanges: by name.
        bindings: all of them.
    """

    def __init__(self, container: Container, clock: Clock) -> None:
        self.queues: dict[str, BrokerQueue] = {}
        self.exchanges: dict[str, Exchange] = {}
        self.bindings: dict[Binding, None] = {}
        self._container = container
        self._clock = clock
        for kind in KINDS:
            self._add_exchange(_OWN + kind, kind)

    # -- queues -----------------------------------------------------------------------------

    def declare_queue(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        durable: bool = True,
        auto_delete: bool = False,
        owner: Peer | None = None,
    ) -> tuple[BrokerQueue, bool]:
        """The queue of this name, and whether it was made for this.

        Raises:
            FaultError: there is one with other properties, or these are not possible.
            RefusedError: it is another connection's.
        """
        _check_name("queue", name)
        queue = BrokerQueue(
            name,
            arguments,
            durable=durable,
            auto_delete=auto_delete,
            owner=owner,
            clock=self._clock,
            on_unused=self.delete_queue,
        )
        there = self.queues.get(name)
        if there is None:
            self.queues[name] = queue
            self._container.add_node(queue)
            return queue, True
        if there.owner is not None and owner is not None:
            there.check_owner(owner)
        if there.terms_of_declaration != queue.terms_of_declaration:
            raise FaultError(409, f"there is a queue {name!r} with other properties")
        return there, False

    def delete_queue(self, queue: BrokerQueue) -> None:
        """Delete it, with its bindings and its messages."""
        if self.queues.pop(queue.name, None) is not None:
            self._container.remove_node(queue.address)
            self._drop_bindings(lambda each: (each.kind, each.destination) == ("queue", queue.name))

    def disown(self, peer: Peer) -> None:
        """A connection is over, and what was its alone."""
        for queue in [queue for queue in self.queues.values() if queue.owner is peer]:
            self.delete_queue(queue)

    # -- exchanges --------------------------------------------------------------------------

    def declare_exchange(
        self, name: str, kind: str = "direct", *, auto_delete: bool = False, internal: bool = False
    ) -> Exchange:
        """The exchange of this name; made if there is none.

        Raises:
            FaultError: there is one with other properties, or these are not possible.
        """
        there = self.exchanges.get(name)
        if kind == "headers":
            raise FaultError(501, "headers exchanges are not implemented here")
        if kind not in KINDS:
            raise FaultError(400, f"no exchange is of type {kind!r}: one of {', '.join(KINDS)} is")
        if there is None:
            _check_name("exchange", name)
            return self._add_exchange(name, kind, auto_delete=auto_delete, internal=internal)
        if (there.kind, there.auto_delete, there.internal) != (kind, auto_delete, internal):
            raise FaultError(409, f"there is an exchange {name!r} with other properties")
        return there

    def _add_exchange(self, name: str, kind: str, **properties: bool) -> Exchange:
        exchange = Exchange(name, kind, self._reach, **properties)
        self._container.add_node(exchange)
        self.exchanges[name] = exchange
        return exchange

    def delete_exchange(self, name: str) -> None:
        """Delete it, with its bindings, if there is one.

        Raises:
            FaultError: it is the broker's own.
        """
        _check_name("exchange", name)
        exchange = self.exchanges.pop(name, None)
        if exchange is not None:
            self._container.remove_node(exchange.address)
            self._drop_bindings(
                lambda each: each.source == name or (each.kind, each.destination) == ("exchange", name)
            )

    # -- bindings ---------------------------------------------------------------------------

    def bind(self, binding: Binding) -> None:
        """Have an exchange hand on to a queue or an exchange what fits; once is enough.

        Raises:
            FaultError: there is no such exchange, or no such destination.
        """
        self._check_default(binding)
        if binding.source not in self.exchanges:
            raise FaultError(400, f"no exchange {binding.source!r}")
        there = self.queues if binding.kind == "queue" else self.exchanges
        if binding.destination not in there:
            raise FaultError(400, f"no {binding.kind} {binding.destination!r}")
        self.bindings[binding] = None

    def unbind(self, binding: Binding) -> None:
        """End a binding, if there is one."""
        self._check_default(binding)
        self._drop_bindings(lambda each: each == binding)

    @staticmethod
    def _check_default(binding: Binding) -> None:
        if not binding.source or (binding.kind == "exchange" and not binding.destination):
            raise FaultError(403, "the default exchange has the bindings that it has")

    def _drop_bindings(self, which: Callable[[Binding], bool]) -> None:
        gone = [each for each in self.bindings if which(each)]
        for each in gone:
            del self.bindings[each]
        for source in dict.fromkeys(each.source for each in gone):
            exchange = self.exchanges.get(source)
            if exchange is not None and exchange.auto_delete and not self._bindings_of(source):
                self.delete_exchange(source)

    def _bindings_of(self, source: str) -> list[Binding]:
        return [each for each in self.bindings if each.source == source]

    def _reach(self, exchange: Exchange, key: str) -> Iterator[BrokerQueue]:
        """The queues that a message with this key gets to, each once."""
        seen: dict[Exchange, None] = {exchange: None}
        reached: dict[BrokerQueue, None] = {}
        todo = [exchange]
        while todo:
            here = todo.pop()
            for binding in self._bindings_of(here.name):
                if not here.fits(binding, key):
                    continue
                if binding.kind == "queue":
                    reached[self.queues[binding.destination]] = None
                elif (there := self.exchanges[binding.destination]) not in seen:
                    seen[there] = None
                    todo.append(there)
        return iter(reached)


def _check_name(kind: str, name: str) -> None:
    if not name:
        raise FaultError(403 if kind == "exchange" else 400, f"no {kind} can be declared without a name")
    if "\n" in name or "\r" in name:
        raise FaultError(400, f"bad name {name!r}: line feeds and carriage returns are not possible")
    if name.startswith(_OWN):
        raise FaultError(403, f"{name!r} is one of the broker's own: they begin with {_OWN}")
