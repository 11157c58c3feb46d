"""Which bindings of an exchange match a key or headers, for each kind of exchange."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scaled import scaled
from trio_amqp10.amqp10.wire.values import UInt
from trio_amqp10.broker.exchanges.bindings import Binding, Destination
from trio_amqp10.broker.exchanges.faults import PreconditionError
from trio_amqp10.broker.exchanges.matchers import HeadersMatcher, TopicMatcher

from .helpers import broker, found_by, matches, names, no_headers
from .model import fits_headers, fits_topic

WORDS = st.sampled_from(["a", "b", "", "*", "#"])
KEYS = st.lists(st.sampled_from(["a", "b", ""]), max_size=5).map(".".join)
PATTERNS = st.lists(WORDS, max_size=5).map(".".join)
VALUES = st.sampled_from([None, 1, 2, 1.0, True, "a", b"a", "b", [1], {"a": 1}])
HEADERS = st.dictionaries(st.sampled_from(["a", "b", "x-a", "x-b"]), VALUES, max_size=3)
ARGUMENTS = st.builds(
    lambda wanted, match: wanted if match is None else {**wanted, "x-match": match},
    HEADERS,
    st.sampled_from([None, "all", "any", "all-with-x", "any-with-x"]),
)


def test_direct_compares_keys_and_fanout_nothing() -> None:
    them = broker()
    for name in ("q", "r"):
        them.declare_queue(name)
        them.bind("amq.direct", "queue", name, name)
        them.bind("amq.fanout", "queue", name, name)
    assert names(them, "amq.direct", "q") == ["q"]
    assert names(them, "amq.direct", "Q") == []
    assert names(them, "amq.fanout", "any") == ["q", "r"]


def test_headers_need_a_valid_x_match_on_headers_exchanges_only() -> None:
    them = broker()
    them.declare_queue("q")
    for match in ("most", 1, None):
        with pytest.raises(PreconditionError, match="x-match"):
            them.bind("amq.headers", "queue", "q", "", {"x-match": match})
    them.bind("amq.direct", "queue", "q", "", {"x-match": "most"})


@pytest.mark.parametrize(
    ("arguments", "headers", "reached"),
    [
        ({}, {}, True),
        ({"x-match": "any"}, {"a": 1}, False),
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ({"a": 1, "b": 2}, {"a": 1, "b": UInt(2), "c": 3}, True),
        ({"a": 1, "b": 2, "x-match": "any"}, {"b": 2}, True),
        ({"a": None}, {"a": "anything"}, True),
        ({"a": None}, {}, False),
        ({"a": "text"}, {"a": b"text"}, True),
        ({"a": True}, {"a": 1}, False),
        ({"a": 5}, {"a": 5.0}, False),
        ({"x-a": 1}, {}, True),
        ({"x-a": 1, "x-match": "all-with-x"}, {}, False),
        ({"x-a": 1, "x-match": "any"}, {"x-a": 1}, False),
        ({"x-a": 1, "x-match": "any-with-x"}, {"x-a": 1}, True),
        ({"a": {"b": [1]}}, {"a": {"b": [1]}}, True),
    ],
)
def test_headers_are_compared_by_value(
    arguments: dict[str, Any], headers: dict[str, Any], reached: bool
) -> None:
    them = broker()
    them.declare_queue("q")
    them.bind("amq.match", "queue", "q", "", arguments)
    assert names(them, "amq.match", "", headers=headers) == (["q"] if reached else [])


def test_headers_are_read_for_headers_exchanges_only() -> None:
    them = broker()
    them.declare_queue("q")
    for exchange in ("amq.direct", "amq.fanout", "amq.topic", "amq.headers"):
        assert them.route(them.exchanges[exchange], ["k"], no_headers) == []
    them.bind("amq.headers", "queue", "q")
    with pytest.raises(AssertionError, match="were read"):
        names(them, "amq.headers", "k")


@given(PATTERNS, st.lists(st.sampled_from(["a", "b", "", "*", "#"]), max_size=6).map(".".join))
@settings(max_examples=scaled(400))
def test_topic_matches_what_a_regular_expression_does(pattern: str, key: str) -> None:
    assert matches(pattern, key) == fits_topic(pattern, key)


@given(st.lists(st.tuples(PATTERNS, st.booleans()), max_size=30), KEYS)
@settings(max_examples=scaled(200))
def test_topics_match_as_those_that_were_not_removed_do(changes: list[tuple[str, bool]], key: str) -> None:
    matcher, there = TopicMatcher(), dict[str, Binding]()
    for pattern, add in changes:
        if add and pattern not in there:
            there[pattern] = Binding("t", Destination("queue", pattern), pattern)
            matcher.add(there[pattern])
        elif not add and pattern in there:
            matcher.discard(there.pop(pattern))
    assert found_by(matcher, key, dict) == {each for each in there if fits_topic(each, key)}
    for binding in there.values():
        matcher.discard(binding)
    assert matcher._root.empty, "nothing is left of patterns that are gone"


@given(ARGUMENTS, HEADERS)
@settings(max_examples=scaled(400))
def test_headers_match_as_in_the_model(arguments: dict[str, Any], headers: dict[str, Any]) -> None:
    matcher = HeadersMatcher()
    matcher.add(Binding("h", Destination("queue", "q"), "", arguments))
    assert bool(found_by(matcher, "", lambda: headers)) == fits_headers(arguments, headers)


@given(st.lists(st.tuples(ARGUMENTS, st.booleans()), max_size=30), st.lists(HEADERS, max_size=4))
@settings(max_examples=scaled(300))
def test_headers_match_as_the_bindings_that_were_not_removed_do(
    changes: list[tuple[dict[str, Any], bool]], messages: list[dict[str, Any]]
) -> None:
    matcher, there = HeadersMatcher(), dict[str, Binding]()
    for number, (arguments, remove) in enumerate(changes):
        name = f"q{number}"
        there[name] = Binding("h", Destination("queue", name), "", arguments)
        matcher.add(there[name])
        if remove:
            matcher.discard(there.pop(min(there)))
    for headers in messages:
        expected = {name for name, each in there.items() if fits_headers(each.arguments, headers)}
        assert found_by(matcher, "", partial(dict, headers)) == expected
    for binding in there.values():
        matcher.discard(binding)
    assert not matcher._conditions, "nothing is left of bindings that are gone"
    assert not matcher._index, "nothing is left of bindings that are gone"
