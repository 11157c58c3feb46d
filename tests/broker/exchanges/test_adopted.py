"""A queue of the program in the broker: it is declared as what it is, and forgotten with its node."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.broker.exchanges.faults import InequivalentError, LockedError
from trio_amqp10.broker.exchanges.topology import Topology
from trio_amqp10.broker.nodes.clock import Clock
from trio_amqp10.container.container import Container

from .hands import ONE
from .helpers import names


def test_queue_of_the_program_is_declared_as_what_it_is() -> None:
    container = Container("c", strict=True)
    queue = container.add_queue("mine", max_length=3, overflow="reject")
    container.add_topic("topic")
    them = Topology(container, Clock())
    right = {"x-max-length": 3, "x-overflow": "reject-publish"}
    assert them.declare_queue("mine", right, durable=False) == (queue, False)
    assert them.check_queue("mine") is queue
    cases: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        (right, {"durable": True}, "durable"),
        (right, {"durable": False, "auto_delete": True}, "auto_delete"),
        ({"x-max-length": 4, "x-overflow": "reject-publish"}, {"durable": False}, "x-max-length"),
        ({"x-max-length": 3}, {"durable": False}, "x-overflow"),
        (right | {"x-expires": 1}, {"durable": False}, "x-expires"),
        (right | {"x-max-priority": 1}, {"durable": False}, "x-max-priority"),
    ]
    for arguments, options, argument in cases:
        with pytest.raises(InequivalentError) as fault:
            them.declare_queue("mine", arguments, **options)
        assert fault.value.argument == argument
    with pytest.raises(LockedError):
        them.declare_queue("mine", right, durable=False, exclusive=True, peer=ONE)
    for attempt in (lambda: them.declare_queue("topic"), lambda: them.check_queue("topic")):
        with pytest.raises(LockedError, match="no queue"):
            attempt()
    them.bind("amq.direct", "queue", "mine", "k")
    assert names(them, "amq.direct", "k") == names(them, "", "mine") == ["mine"]
    assert names(them, "", "topic") == []
    container.remove_node("mine")
    assert names(them, "amq.direct", "k") == []
    them.declare_queue("mine")
    assert names(them, "amq.direct", "k") == [], "a new queue has no bindings of an old one"


def test_queue_that_the_container_removes_is_forgotten() -> None:
    container = Container("c", strict=True)
    them = Topology(container, Clock())
    them.declare_queue("q")
    them.declare_exchange("e")
    them.bind("e", "queue", "q")
    container.remove_node("q")
    assert (list(them.queues), list(them.bindings)) == ([], [])
    container.remove_node("/exchanges/e")
    assert "e" not in them.exchanges
