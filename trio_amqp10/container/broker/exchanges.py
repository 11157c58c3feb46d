"""Exchange: hands each message on to the queues whose bindings match it.

An exchange is a node too, so that senders of any dialect publish by its address: with an empty routing key, or with
the key that the address names (``Route``). The default exchange, whose name is empty, has no address; only a protocol
that has such an exchange publishes to it.

Knows arrivals; does not know which bindings there are (``bindings``), nor how a message is stored (``publishing``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.container.nodes.node import Node, RefusedError
from trio_amqp10.errors import Condition

from .addresses import exchange_address
from .arguments import ALTERNATE
from .dead_letter_route import DeadLetterRoute
from .exchange_route import ExchangeRoute
from .faults import AccessRefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trio_amqp10.container.nodes.node import Arrival, Inlet, Peer
    from trio_amqp10.container.nodes.queue import Queue

    from .publishing import Publisher

__all__ = ["Exchange", "Route"]


class Exchange(Node):
    """Where messages are published to.

    Args:
        name: of the exchange.
        kind: one of ``matchers.KINDS``.
        publisher: hands its messages on.
        durable: whether it survives the process, where the container has a store.
        auto_delete: whether it goes with its last binding.
        internal: whether only other exchanges may hand it anything.
        grace: seconds that it stays without a binding, if it is to go with its last one.
        arguments: as it was declared with.
        on_closed: called when it was deleted, by whatever; None for nothing.

    Attributes:
        name, kind, durable, auto_delete, internal, grace, arguments: as given.
        alternate: the name of the exchange that gets what matches no binding here; None for no such exchange.
        publisher: as given.
        figures: messages that came, and that reached no queue.
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
        """What a second declaration is compared with."""
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
        """The node for messages with this routing key."""
        return self._routes.get((Route, key)) or Route(self, key)

    def join(self, route: ExchangeRoute) -> None:
        """The route has an inlet now."""
        self._routes[type(route), route.key] = route

    def leave(self, route: ExchangeRoute) -> None:
        """The route has no inlet any more."""
        self._routes.pop((type(route), route.key), None)

    def for_dead_letters(self) -> Node:
        return self.letters_with(None)

    def letters_with(self, key: str | None) -> Node:
        """The node for dead letters, with this routing key; with None for those that keep their own."""
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
        """Take what there is, and hand it on with this key; ``node`` takes the rest when the store has room again."""
        while not self.publisher.must_wait(node, inlet):
            arrival = inlet.take()
            if arrival is None:
                return
            self.publisher.publish(inlet, arrival, self, key, node=node)

    def holders(self, inlet: Inlet, arrival: Arrival) -> Sequence[Queue]:  # noqa: ARG002
        return self.reached(arrival, "")

    def reached(self, arrival: Arrival, key: str) -> Sequence[Queue]:
        """The queues that a message of a transaction reaches with this key.

        Raises:
            RefusedError: none.
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


class Route(ExchangeRoute):
    """An exchange, with the routing key that an address names."""

    capabilities: tuple[str, ...] = ("topic",)

    def for_dead_letters(self) -> Node:
        return self._exchange.letters_with(self.key)

    def check_inlet(self, peer: Peer) -> None:
        self._exchange.check_inlet(peer)

    def on_arrivals(self, inlet: Inlet) -> None:
        self._exchange.publish(inlet, self.key or "", self)

    def holders(self, inlet: Inlet, arrival: Arrival) -> Sequence[Queue]:  # noqa: ARG002
        return self._exchange.reached(arrival, self.key or "")
