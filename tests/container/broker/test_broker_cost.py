"""What a publish costs with many bindings, counted in steps: what its own key needs, and nothing for the others."""

from __future__ import annotations

from tests.container.broker.helpers import broker, no_headers
from tests.meter import steps

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
