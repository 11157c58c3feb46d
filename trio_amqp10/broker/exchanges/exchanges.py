"""Exchange: forwards each message to the queues whose bindings match it.

An exchange is a node, so that senders of any dialect publish by its address: with an empty routing key, or with the key in the
address (``Route``). The default exchange, whose name is empty, has no address; only a protocol with such an exchange publishes
to it.

Knows arrivals; does not know which bindings exist (``bindings``), nor how a message is stored (``publishing``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.broker.nodes.node import Node, RefusedError
from trio_amqp10.core.errors import Condition

from .addresses import exchange_address
from .arguments import ALTERNATE
from .dead_letter_route import DeadLetterRoute
from .exchange_route import ExchangeRoute
from .faults import AccessRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trio_amqp10.broker.nodes.node import Arrival, Inlet, Peer
    from trio_amqp10.broker.nodes.queue import Queue

    from .publishing import Publisher


class Exchange(Node):
    """A node that messages are published to.

    Args:
        name: the name of the exchange.
        kind: one of ``matchers.KINDS``.
        publisher: forwards its messages.
        durable: whether it survives the process, if the container has a store.
        auto_delete: whether it is deleted with its last binding.
        internal: whether only other exchanges may forward messages to it.
        grace: seconds that it stays without a binding, if ``auto_delete``.
        arguments: the arguments of its declaration.
        on_closed: called when it was deleted for any reason; None for nothing.

    Attributes:
        name, kind, durable, auto_delete, internal, grace, arguments: as given.
        alternate: the exchange for messages that match no binding here, by name; None for no such exchange.
        publisher: as given.
        figures: how many messages arrived, and how many of them reached no queue.
    """

    accepts_senders = True
    capabilities: tuple[str, ...] = ("topic",)

    def __init__(
        self,
        name: str,
        kind: str,
        publisher: Publisher,
        *,
        durable: bool = True,
        auto_delete: bool = False,
        internal: bool = False,
        grace: float = 0.0,
        arguments: Mapping[str, Any] | None = None,
        on_closed: Callable[[Exchange], object] | None = None,
    ) -> None:
        super().__init__(exchange_address(name))
        self.name = name
        self.kind = kind
        self.durable = durable
        self.auto_delete = auto_delete
        self.internal = internal
        self.grace = grace
        self.arguments: Final = dict(arguments or {})
        self.alternate: str | None = self.arguments.get(ALTERNATE)
        self.figures: Final = {"arrived": 0, "unroutable": 0}
        self.publisher = publisher
        self._on_closed = on_closed
        self._routes: dict[tuple[type[ExchangeRoute], str | None], ExchangeRoute] = {}

    @property
    def properties(self) -> dict[str, Any]:
        """The properties that a second declaration must repeat."""
        return {
            "type": self.kind,
            "durable": self.durable,
            "auto_delete": self.auto_delete,
            "internal": self.internal,
            **self.arguments,
        }

    @property
    def stores_messages(self) -> bool:
        return self.publisher.stores_messages

    def with_key(self, key: str) -> Node:
        """Return the node for messages with this routing key."""
        return self._routes.get((Route, key)) or Route(self, key)

    def join(self, route: ExchangeRoute) -> None:
        """Remember a route, which has an inlet now."""
        self._routes[type(route), route.key] = route

    def leave(self, route: ExchangeRoute) -> None:
        """Forget a route, which has no inlet any more."""
        self._routes.pop((type(route), route.key), None)

    def for_dead_letters(self) -> Node:
        return self.letters_with(None)

    def letters_with(self, key: str | None) -> Node:
        """Return the node for dead letters with this key; None: each keeps its own keys."""
        return self._routes.get((DeadLetterRoute, key)) or DeadLetterRoute(self, key)

    def check_publish(self) -> None:
        """Raise ``AccessRefusedError`` if no peer may publish here."""
        if self.internal:
            raise AccessRefusedError(f"{self.address!r} is internal: no peer sends to it")

    def check_inlet(self, peer: Peer) -> None:
        super().check_inlet(peer)
        self.check_publish()

    def on_arrivals(self, inlet: Inlet) -> None:
        self.publish(inlet, "", self)

    def publish(self, inlet: Inlet, key: str, node: Node) -> None:
        """Take the messages of an inlet, and forward them with this key.

        ``node`` takes the rest when the store has room again.
        """
        while not self.publisher.must_wait(node, inlet):
            arrival = inlet.take()
            if arrival is None:
                return
            self.publisher.publish(inlet, arrival, self, key, node=node)

    def holders(self, inlet: Inlet, arrival: Arrival) -> Sequence[Queue]:  # noqa: ARG002
        return self.reached(arrival, "")

    def reached(self, arrival: Arrival, key: str) -> Sequence[Queue]:
        """Return the queues that a message of a transaction reaches with this key.

        Raises:
            RefusedError: it reaches no queue.
        """
        queues = self.publisher.route(self, arrival.content, key)
        if not queues:
            raise RefusedError(
                Condition.NOT_FOUND, f"{self.address!r} leads to no queue with the routing key {key!r}"
            )
        return queues

    def remove_inlet(self, inlet: Inlet) -> None:
        super().remove_inlet(inlet)
        self.publisher.forget(inlet)

    def close(self) -> None:
        nodes = list(self._routes.values())
        for inlet in [inlet for node in (self, *nodes) for inlet in node.inlets]:
            self.publisher.forget(inlet)
        super().close()
        for node in nodes:
            node.close()
        if self._on_closed is not None:
            self._on_closed(self)

    def statistics(self) -> dict[str, int]:
        return super().statistics() | self.figures

    def totals(self) -> Mapping[str, int]:
        return {"unroutable": self.figures["unroutable"]}


class Route(ExchangeRoute):
    """An exchange with the routing key of an address."""

    capabilities: tuple[str, ...] = ("topic",)

    def for_dead_letters(self) -> Node:
        return self._exchange.letters_with(self.key)

    def check_inlet(self, peer: Peer) -> None:
        self._exchange.check_inlet(peer)

    def on_arrivals(self, inlet: Inlet) -> None:
        self._exchange.publish(inlet, self.key or "", self)

    def holders(self, inlet: Inlet, arrival: Arrival) -> Sequence[Queue]:  # noqa: ARG002
        return self._exchange.reached(arrival, self.key or "")
