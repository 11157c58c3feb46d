"""Exchange: hands each message on to the queues whose bindings fit its routing key.

==========  ==========================================================================================
direct      the keys are equal
fanout      keys do not matter
topic       the key of the binding is words with dots between: ``*`` is any word, ``#`` any number of them
==========  ==========================================================================================

The routing key is what the address says behind the exchange, else empty. A message gets to a queue once, by however
many bindings and other exchanges. Where there is none, it is released; where a queue refuses it, it is rejected,
though others may have it.

Knows queues; knows no links.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Final

from trio_amqp10.container.nodes.node import Node, RefusedError
from trio_amqp10.container.nodes.refusals import accept, refuse, release
from trio_amqp10.container.protocols.amqp10.content import content_of_message
from trio_amqp10.errors import Condition, LocalProtocolError, RemoteProtocolError

from .addresses import exchange_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trio_amqp10.container.nodes.content import Content
    from trio_amqp10.container.nodes.node import Inlet, Peer
    from trio_amqp10.container.nodes.queue import Queue

    from .addresses import Binding

__all__ = ["KINDS", "Exchange", "Route", "matches"]

KINDS: Final = ("direct", "fanout", "topic")

_EXCHANGE: Final = "x-exchange"
_KEY: Final = "x-routing-key"


def matches(pattern: str, key: str) -> bool:
    """Whether a routing key fits the key of a binding to a topic exchange."""
    words = key.split(".")
    reached = {0}
    for wanted in pattern.split("."):
        if wanted == "#":
            reached = set(range(min(reached), len(words) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(words) and wanted in ("*", words[at])}
        if not reached:
            return False
    return len(words) in reached


class Exchange(Node):
    """Where messages are published to.

    Args:
        name: of the exchange.
        kind: one of ``KINDS``.
        destinations: gives the queues that are reached from here with a key.
        auto_delete: whether it goes with its last binding.
        internal: whether only other exchanges may hand it anything.

    Attributes:
        name, kind, auto_delete, internal: as given.
        figures: messages that came, and that went nowhere.
    """

    takes = True
    capabilities = ("topic",)

    def __init__(
        self,
        name: str,
        kind: str,
        destinations: Callable[[Exchange, str], Iterable[Queue]],
        *,
        auto_delete: bool = False,
        internal: bool = False,
    ) -> None:
        super().__init__(exchange_address(name))
        self.name = name
        self.kind = kind
        self.auto_delete = auto_delete
        self.internal = internal
        self.figures = {"arrived": 0, "unroutable": 0}
        self._destinations = destinations
        self._routes: dict[str, Route] = {}

    def fits(self, binding: Binding, key: str) -> bool:
        """Whether a message with this routing key goes where the binding leads."""
        if self.kind == "fanout":
            return True
        return matches(binding.key, key) if self.kind == "topic" else binding.key == key

    def route(self, key: str) -> Route:
        """The node for messages with this routing key."""
        return self._routes.get(key) or Route(self, key)

    def join(self, route: Route) -> None:
        """It has a link."""
        self._routes[route.key] = route

    def leave(self, route: Route) -> None:
        """It has none any more."""
        self._routes.pop(route.key, None)

    def check_inlet(self, peer: Peer) -> None:
        super().check_inlet(peer)
        if self.internal:
            raise RefusedError(Condition.NOT_ALLOWED, f"{self.address!r} is internal: no peer sends to it")

    def on_arrivals(self, inlet: Inlet) -> None:
        self.publish(inlet, None)

    def publish(self, inlet: Inlet, key: str | None) -> None:
        """Take what there is, and hand it on."""
        origin = inlet.peer.container_id
        while (arrival := inlet.take()) is not None:
            self.figures["arrived"] += 1
            content, key_ = arrival.content, key or ""
            queues = list(self._destinations(self, key_))
            if not queues:
                self.figures["unroutable"] += 1
                release(arrival)
                continue
            marked = _marked(content, self.name, key_)
            full = [queue for queue in queues if not queue.gather(marked, origin)]
            if full:
                refuse(arrival, Condition.RESOURCE_LIMIT_EXCEEDED, f"{full[0].address!r} is full")
            else:
                accept(arrival)

    def close(self) -> None:
        super().close()
        for route in list(self._routes.values()):
            route.close()

    def statistics(self) -> dict[str, int]:
        return super().statistics() | self.figures


class Route(Node):
    """An exchange, with the routing key that an address names."""

    takes = True
    capabilities = ("topic",)

    def __init__(self, exchange: Exchange, key: str) -> None:
        super().__init__(exchange_address(exchange.name, key))
        self.key = key
        self._exchange = exchange

    def check_inlet(self, peer: Peer) -> None:
        self._exchange.check_inlet(peer)

    def add_inlet(self, inlet: Inlet) -> None:
        super().add_inlet(inlet)
        self._exchange.join(self)

    def on_arrivals(self, inlet: Inlet) -> None:
        self._exchange.publish(inlet, self.key)

    def remove_inlet(self, inlet: Inlet) -> None:
        super().remove_inlet(inlet)
        if not self.inlets:
            self._exchange.leave(self)


def _marked(content: Content, exchange: str, key: str) -> Content:
    """The content with annotations that say how it came, as RabbitMQ has them; the bare message as it is."""
    marked = copy(content.as_message())
    try:
        marked.annotations = {**marked.annotations, _EXCHANGE: exchange, _KEY: key}
        marked.message_format = 0
        return content_of_message(marked)
    except (RemoteProtocolError, LocalProtocolError):
        return content
