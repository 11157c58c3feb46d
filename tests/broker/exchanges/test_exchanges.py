"""Exchanges: which are there from the start, which are equivalent, and when they go."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.broker.exchanges.faults import AccessRefusedError, InequivalentError, PreconditionError

from .helpers import broker


def test_exchanges_are_there_from_the_start() -> None:
    assert {name: each.kind for name, each in broker().exchanges.items()} == {
        "": "direct",
        "amq.direct": "direct",
        "amq.fanout": "fanout",
        "amq.topic": "topic",
        "amq.headers": "headers",
        "amq.match": "headers",
    }


@pytest.mark.parametrize(
    ("again", "argument"),
    [
        ({"kind": "fanout"}, "type"),
        ({"durable": False}, "durable"),
        ({"auto_delete": True}, "auto_delete"),
        ({"internal": True}, "internal"),
        ({"arguments": {"alternate-exchange": "a"}}, "alternate-exchange"),
    ],
)
def test_exchange_is_not_equivalent_when_a_property_differs(again: dict[str, Any], argument: str) -> None:
    them = broker()
    exchange, made = them.declare_exchange("e")
    assert made
    with pytest.raises(InequivalentError, match=f"inequivalent arg '{argument}' for exchange 'e'"):
        them.declare_exchange("e", **again)
    assert them.declare_exchange("e", arguments={"x-odd": 1}) == (exchange, False)


@pytest.mark.parametrize("options", [{"kind": "x-odd"}, {"arguments": {"alternate-exchange": 1}}])
def test_exchange_of_no_known_type_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(PreconditionError):
        broker().declare_exchange("e", **options)


def test_exchange_is_deleted_unless_it_is_used_or_reserved() -> None:
    them = broker()
    them.delete_exchange("not there")
    with pytest.raises(AccessRefusedError):
        them.delete_exchange("amq.topic")
    them.declare_exchange("e")
    them.declare_exchange("f")
    them.bind("e", "exchange", "f")
    with pytest.raises(PreconditionError, match="in use"):
        them.delete_exchange("e", if_unused=True)
    them.delete_exchange("f", if_unused=True)
    assert not list(them.bindings), "a binding goes with its destination"
    them.delete_exchange("e", if_unused=True)
    assert "e" not in them.exchanges


def test_auto_delete_exchange_goes_with_the_last_binding_it_is_the_source_of() -> None:
    them = broker()
    them.declare_queue("q")
    for name in ("e", "f"):
        them.declare_exchange(name, auto_delete=True)
    them.bind("e", "exchange", "f")
    them.bind("f", "queue", "q", "a")
    them.bind("f", "queue", "q", "b")
    them.unbind("f", "queue", "q", "a")
    assert "f" in them.exchanges
    them.unbind("f", "queue", "q", "b")
    assert not {"e", "f"} & them.exchanges.keys(), "and that of its source with it"
