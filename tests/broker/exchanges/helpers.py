"""What the tests of the broker have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.broker.exchanges.bindings import Binding, Destination
from trio_amqp10.broker.exchanges.matchers import Matcher, TopicMatcher
from trio_amqp10.broker.exchanges.topology import Topology
from trio_amqp10.broker.nodes.clock import Clock
from trio_amqp10.container.container import Container

if TYPE_CHECKING:
    from collections.abc import Callable

FANOUT = "/exchanges/amq.fanout"


class Connection:
    """A peer, as far as the broker asks: one that is not another."""

    container_id = "a"
    identity = None

    def start_soon(self, *_: Any) -> None:
        raise NotImplementedError


def broker(*, like_rabbitmq: bool = False) -> Topology:
    """One without a store, in a container of its own."""
    return Topology(Container("b", strict=True), Clock(), like_rabbitmq=like_rabbitmq)


def bounded(*names: str) -> tuple[Container, Topology]:
    """A container whose exchange ``amq.fanout`` leads to queues for one message each."""
    container = Container("c", strict=True)
    them = container.add_broker()
    for name in names:
        container.add_queue(name, max_length=1)
        them.bind("amq.fanout", "queue", name)
    return container, them


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
    matcher = TopicMatcher()
    matcher.add(Binding("t", Destination("queue", "q"), pattern))
    return bool(found_by(matcher, key, no_headers))


def found_by(matcher: Matcher, key: str, headers: Callable[[], dict[str, Any]]) -> set[str]:
    """The names of the destinations that a matcher finds, when all steps of the search are done."""
    found: dict[Destination, object] = {}
    for _ in matcher.search(key, headers, found):
        pass
    return {each.name for each in found}
