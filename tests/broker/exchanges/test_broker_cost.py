"""What a publish costs with many bindings, counted in steps: what its own key needs, and nothing for the others."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.meter import steps

from .helpers import broker, no_headers

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.whole

MANY = 10_000


def cost(exchange: str, key: str, patterns: list[str]) -> int:
    them = broker()
    them.declare_queue("q")
    them.declare_queue("other")
    them.bind(exchange, "queue", "q", key)
    for pattern in patterns:
        them.bind(exchange, "queue", "other", pattern)
    source = them.get_exchange(exchange)
    return steps(lambda: them.route(source, [key], no_headers))


def test_direct_publish_costs_the_same_with_ten_thousand_bindings() -> None:
    assert cost("amq.direct", "k", [f"k{n}" for n in range(MANY)]) == cost("amq.direct", "k", [])


def test_topic_publish_costs_the_same_with_ten_thousand_patterns_of_other_words() -> None:
    patterns = [f"w{n}.{end}" for n in range(MANY // 2) for end in ("*", "#")]
    assert cost("amq.topic", "a.b.c", patterns) == cost("amq.topic", "a.b.c", [])


SELECTIVE: dict[str, tuple[str, Callable[[int], tuple[str, dict[str, Any]]]]] = {
    "direct": ("amq.direct", lambda n: (f"k{n}", {})),
    "topic": ("amq.topic", lambda n: (f"w{n}.#", {})),
    "headers, all": ("amq.headers", lambda n: ("", {"kind": "order", "number": n})),
    "headers, all, named last": ("amq.headers", lambda n: ("", {"number": n, "kind": "order"})),
    "headers, all, with x": ("amq.headers", lambda n: ("", {"x-match": "all-with-x", "x-number": n})),
    "headers, any": ("amq.headers", lambda n: ("", {"x-match": "any", "number": n, "other": n})),
    "headers, any, with x": ("amq.headers", lambda n: ("", {"x-match": "any-with-x", "x-number": n})),
    "headers that have to be there": ("amq.headers", lambda n: ("", {f"number-{n}": None})),
    "headers, the same question": ("amq.headers", lambda n: (str(n), {"kind": "order", "a": 1})),
}
"""The exchange, and the key and the arguments of many bindings of which a message matches none."""


@pytest.mark.parametrize("kind", SELECTIVE)
def test_publish_costs_the_same_with_any_number_of_bindings_that_differ(kind: str) -> None:
    exchange, other = SELECTIVE[kind]
    headers = {"kind": "order", "number": -1, "x-number": -1, "mine": 1}
    costs = set[int]()
    for many in (10, 1_000, 100_000):
        them = broker()
        them.declare_queue("q")
        them.declare_queue("other")
        them.bind(exchange, "queue", "q", "k", {"mine": 1})
        for number in range(many):
            key, arguments = other(number)
            them.bind(exchange, "queue", "other", key, arguments)
        route = partial(them.route, them.get_exchange(exchange), ["k"], lambda: headers)
        assert [queue.address for queue in route()] == ["q"]
        costs.add(steps(route))
    assert len(costs) == 1, costs


@pytest.mark.parametrize("many", [10, 100, 1_000])
def test_fanout_publish_costs_what_it_reaches(many: int) -> None:
    them = broker()
    for number in range(many):
        them.declare_queue(f"q{number}")
        them.bind("amq.fanout", "queue", f"q{number}")
        them.bind("amq.direct", "queue", f"q{number}", f"k{number}")
    source = them.get_exchange("amq.fanout")
    assert steps(lambda: them.route(source, ["k"], no_headers)) < 40 + 10 * many


@pytest.mark.parametrize("many", [3, 30, 100])
def test_publish_into_exchanges_bound_to_each_other_costs_their_bindings(many: int) -> None:
    them = broker()
    for number in range(many):
        them.declare_exchange(f"e{number}", "fanout")
    for one in range(many):
        for other in range(many):
            them.bind(f"e{one}", "exchange", f"e{other}")
    source = them.get_exchange("e0")
    assert steps(lambda: them.route(source, ["k"], no_headers)) < 40 + 8 * many**2


def test_publish_through_a_chain_costs_nothing_for_bindings_that_differ() -> None:
    def cost_with(others: int) -> int:
        them = broker()
        them.declare_queue("q")
        for kind in ("direct", "topic", "headers"):
            them.declare_exchange(kind, kind)
            for number in range(others):
                them.bind(kind, "exchange", "amq.fanout", f"k{number}", {"number": number})
        them.bind("direct", "exchange", "topic", "k")
        them.bind("topic", "exchange", "headers", "k")
        them.bind("headers", "queue", "q", "", {"mine": 1})
        source = them.get_exchange("direct")
        return steps(lambda: them.route(source, ["k"], lambda: {"mine": 1}))

    assert cost_with(1_000) == cost_with(10)


def test_topic_publish_costs_no_more_than_its_words_times_the_places_they_lead_to() -> None:
    many_hashes = [".".join(["#", "a"] * 30)]
    words = ".".join("a" * 200)
    assert cost("amq.topic", words, many_hashes) < 200 * 60 * 20


def test_deleting_a_queue_costs_its_own_bindings() -> None:
    def deletion(others: int) -> int:
        them = broker()
        for name in ("q", "other"):
            them.declare_queue(name)
        for number in range(others):
            them.bind("amq.topic", "queue", "other", f"k{number}")
        for number in range(3):
            them.bind("amq.topic", "queue", "q", f"q{number}")
        return steps(lambda: them.delete_queue("q"))

    assert deletion(5_000) == deletion(0)
