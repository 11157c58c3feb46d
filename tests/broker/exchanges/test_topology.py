"""What each operation does, row by row: names, declarations, arguments, deletions, bindings."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.broker.exchanges.broker_queue import BrokerQueue
from trio_amqp10.broker.exchanges.faults import (
    AccessRefusedError,
    InequivalentError,
    LockedError,
    NotFoundError,
)

from .hands import ONE, OTHER, hold, outlet
from .helpers import broker, names

# Queues -----------------------------------------------------------------------------------------


def test_line_feeds_in_names_are_dropped_at_declare_and_delete() -> None:
    them = broker()
    them.declare_queue("a\r\nb")
    them.declare_exchange("e\n")
    assert list(them.queues) == ["ab"]
    assert "e" in them.exchanges
    assert them.check_queue("a\nb") is them.queues["ab"]
    assert them.check_exchange("e\r") is them.exchanges["e"]
    hold(them.queues["ab"])
    assert them.delete_queue("\nab") == 1
    them.delete_exchange("\re")
    assert (list(them.queues), "e" in them.exchanges) == ([], False)


def test_queue_without_a_name_gets_one() -> None:
    them = broker()
    (one, _), (other, _) = them.declare_queue(""), them.declare_queue("")
    assert isinstance(one, BrokerQueue)
    assert one.name.startswith("amq.gen-")
    assert len(one.name) == len("amq.gen-") + 22
    assert one is not other
    assert them.declare_queue(one.name) == (one, False), "to declare again what is there is fine"


def test_reserved_names_can_be_declared_only_when_they_are_there() -> None:
    them = broker()
    for attempt in (lambda: them.declare_queue("amq.q"), lambda: them.declare_exchange("amq.mine")):
        with pytest.raises(AccessRefusedError, match="amq"):
            attempt()
    assert them.declare_exchange("amq.topic", "topic")[1] is False
    with pytest.raises(InequivalentError, match=r"'type' for exchange 'amq\.topic'"):
        them.declare_exchange("amq.topic", "fanout")
    assert them.check_exchange("amq.topic").kind == "topic"


def test_passive_declaration_compares_nothing_and_finds_what_is_there() -> None:
    them = broker()
    queue, _ = them.declare_queue("q", {"x-max-length": 1}, durable=False)
    assert them.check_queue("q") is queue
    with pytest.raises(NotFoundError, match="no queue 'other'"):
        them.check_queue("other")
    with pytest.raises(NotFoundError, match="no exchange 'other'"):
        them.check_exchange("other")


def test_exclusive_is_asked_before_all_other_properties() -> None:
    them = broker()
    them.declare_queue("q", exclusive=True, peer=ONE)
    with pytest.raises(LockedError):
        them.declare_queue("q", {"x-max-length": 1}, durable=False, exclusive=True, peer=OTHER)


def test_purge_counts_what_was_ready_and_needs_a_queue() -> None:
    them = broker()
    queue, _ = them.declare_queue("q")
    hold(queue, 3)
    assert (them.purge_queue("q"), len(queue)) == (3, 0)
    with pytest.raises(NotFoundError):
        them.purge_queue("other")


# Exchanges --------------------------------------------------------------------------------------


def test_default_exchange_cannot_be_changed_and_leads_to_every_queue() -> None:
    them = broker()
    them.declare_queue("q")
    for attempt in (
        lambda: them.declare_exchange(""),
        lambda: them.check_exchange(""),
        lambda: them.delete_exchange(""),
        lambda: them.bind("", "queue", "q"),
        lambda: them.unbind("", "queue", "q"),
        lambda: them.bind("amq.fanout", "exchange", ""),
        lambda: them.unbind("amq.fanout", "exchange", ""),
    ):
        with pytest.raises(AccessRefusedError, match="operation not permitted on the default exchange"):
            attempt()
    assert names(them, "", "q") == ["q"]
    assert names(them, "", "other") == []


def test_what_is_used_is_deleted_where_nobody_asks() -> None:
    them = broker()
    queue, _ = them.declare_queue("q")
    them.declare_exchange("e")
    them.bind("e", "queue", "q")
    consumer: Any = outlet()
    ended: list[Any] = []
    consumer.close = lambda *why: ended.append(why)
    queue.add_outlet(consumer)
    hold(queue, 2)
    them.delete_exchange("e")
    assert them.delete_queue("q") == 2
    assert len(ended) == 1
    assert not {"e"} & them.exchanges.keys()
    assert not {"q"} & them.queues.keys()


def test_internal_exchange_refuses_publishers() -> None:
    them = broker()
    exchange, _ = them.declare_exchange("e", internal=True)
    with pytest.raises(AccessRefusedError, match="internal"):
        exchange.check_publish()
    them.declare_queue("q")
    them.bind("amq.fanout", "exchange", "e")
    them.bind("e", "queue", "q")
    assert names(them, "amq.fanout", "") == ["q"]


def test_exchange_that_is_not_there_cannot_be_published_to() -> None:
    with pytest.raises(NotFoundError, match="no exchange 'e'"):
        broker().get_exchange("e")
