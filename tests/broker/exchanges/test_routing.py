"""Where a message goes: over exchanges bound to each other, alternates and further keys."""

from __future__ import annotations

import pytest

from trio_amqp10.broker.exchanges.faults import PreconditionError
from trio_amqp10.broker.exchanges.routing import further_keys

from .helpers import broker, names


def test_exchanges_in_a_circle_are_followed_once_and_a_queue_gets_one_copy() -> None:
    them = broker()
    them.declare_queue("q")
    for name in ("e", "f"):
        them.declare_exchange(name, "fanout")
        them.bind(name, "queue", "q")
    them.bind("e", "exchange", "f")
    them.bind("f", "exchange", "e")
    them.bind("e", "exchange", "e")
    assert names(them, "e", "k") == ["q"]


def test_alternate_exchange_gets_what_matches_no_binding_once() -> None:
    them = broker()
    for name in ("q", "lost"):
        them.declare_queue(name)
    them.declare_exchange("e", arguments={"alternate-exchange": "f"})
    them.declare_exchange("f", "topic", arguments={"alternate-exchange": "e"})
    assert names(them, "e", "k") == [], "two alternates in a circle end"
    them.bind("e", "queue", "q", "k")
    them.bind("f", "queue", "lost", "#")
    assert names(them, "e", "k") == ["q"]
    assert names(them, "e", "other") == ["lost"], "with its own key"
    them.declare_exchange("empty", "fanout")
    them.bind("e", "exchange", "empty", "there")
    assert names(them, "e", "there") == [], "a binding matched, though no queue is behind it"
    them.delete_exchange("f")
    assert names(them, "e", "other") == []


def test_default_exchange_as_an_alternate_leads_to_the_queue_of_the_key() -> None:
    them = broker()
    them.declare_queue("q")
    them.declare_exchange("e", arguments={"alternate-exchange": ""})
    assert names(them, "e", "q") == ["q"]


def test_copies_are_further_routing_keys() -> None:
    them = broker()
    for name in ("a", "b", "c"):
        them.declare_queue(name)
    keys = further_keys({"CC": ["b", "b"], "BCC": ["c"], "other": 1})
    assert keys == ("b", "b", "c")
    assert names(them, "", "a", *keys) == ["a", "b", "c"]
    assert further_keys({}) == ()
    for headers in ({"CC": "b"}, {"BCC": [1]}, {"CC": {"a": "b"}}, {"BCC": None}):
        with pytest.raises(PreconditionError, match=r"array of strings|contain strings"):
            further_keys(headers)
