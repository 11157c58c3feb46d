"""What the tests of the broker have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.container.broker.bindings import Binding, Destination
from trio_amqp10.container.broker.matchers import Matcher, Topical
from trio_amqp10.container.broker.topology import Topology
from trio_amqp10.container.container import Container
from trio_amqp10.container.nodes.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Connection", "broker", "found_by", "matches", "names", "no_headers"]


class Connection:
    """A peer, as far as the broker asks: one that is not another."""

    container_id = "a"
    identity = None

    def start_soon(self, *_: Any) -> None:
        raise NotImplementedError


def broker() -> Topology:
    """One without a store, in a container of its own."""
    return Topology(Container("b", strict=True), Clock())


def no_headers() -> dict[str, Any]:
    """For exchanges that must not ask."""
    raise AssertionError("the headers were read")


def names(broker: Topology, exchange: str, *keys: str, headers: dict[str, Any] | None = None) -> list[str]:
    """The addresses of the queues that a message reaches, in alphabetic order."""
    read = no_headers if headers is None else lambda: headers
    found = broker.route(broker.get_exchange(exchange), keys, read)
    assert len(set(found)) == len(found)
    return sorted(queue.address for queue in found)


def matches(pattern: str, key: str) -> bool:
    """Whether a routing key matches the key of a binding to a topic exchange."""
    matcher = Topical()
    matcher.add(Binding("t", Destination("queue", "q"), pattern))
    return bool(found_by(matcher, key, no_headers))


def found_by(matcher: Matcher, key: str, headers: Callable[[], dict[str, Any]]) -> set[str]:
    """The names of the destinations that a matcher finds, when all steps of the search are done."""
    found: dict[Destination, object] = {}
    for _ in matcher.search(key, headers, found):
        pass
    return {each.name for each in found}
