"""Which permissions each operation of a broker needs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.broker.exchanges.helpers import broker
from trio_amqp10.broker.rights import broker_rights as rights

KEYS = "/exchanges/logs/#"


def test_publish_needs_send_once_for_each_key() -> None:
    assert rights.to_publish(broker(), "logs", ["a", "b", "a"]) == [
        (("send", "/exchanges/logs/a"),),
        (("send", "/exchanges/logs/b"),),
    ]
    assert rights.to_publish(broker(), "", ["q"]) == [(("send", "q"),)]


@pytest.mark.parametrize(
    ("arguments", "exclusive", "needs"),
    [
        ({}, False, []),
        ({"x-dead-letter-exchange": 5}, False, []),
        (
            {"x-dead-letter-exchange": "logs"},
            False,
            [(("receive", "q"),), (("send", KEYS),)],
        ),
        ({"x-dead-letter-exchange": "logs"}, True, [(("send", KEYS),)]),
        (
            {"x-dead-letter-exchange": "logs", "x-dead-letter-routing-key": "k"},
            True,
            [(("send", "/exchanges/logs/k"),)],
        ),
        (
            {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
            True,
            [(("send", "dead"),)],
        ),
    ],
)
def test_declared_queue_needs_create_and_what_its_dead_letters_need(
    arguments: dict[str, Any], exclusive: bool, needs: list[Any]
) -> None:
    assert rights.to_declare_queue(broker(), "q", arguments, exclusive=exclusive) == [
        (("create", "q"),),
        *needs,
    ]


def test_queue_without_a_name_is_created_and_not_received_from() -> None:
    needs = rights.to_declare_queue(broker(), "", {"x-dead-letter-exchange": "logs"}, exclusive=False)
    assert needs == [(("create", None),), (("send", KEYS),)]


def test_declared_exchange_needs_create_and_what_its_alternate_needs() -> None:
    assert rights.to_declare_exchange(broker(), "logs", {}) == [(("create", "/exchanges/logs"),)]
    assert rights.to_declare_exchange(broker(), "logs", {"alternate-exchange": "rest"}) == [
        (("create", "/exchanges/logs"),),
        (("receive", KEYS),),
        (("send", "/exchanges/rest/#"),),
    ]


def test_whoever_may_do_anything_with_it_may_find_out_whether_it_exists() -> None:
    (queue,) = rights.to_find_queue(broker(), "q")
    assert {action for action, _ in queue} == {"receive", "send", "create", "delete"}
    assert {address for _, address in queue} == {"q"}
    (exchange,) = rights.to_find_exchange(broker(), "logs")
    assert set(exchange) == {
        ("receive", "/exchanges/logs"),
        ("receive", KEYS),
        ("send", "/exchanges/logs"),
        ("send", KEYS),
        ("create", "/exchanges/logs"),
        ("delete", "/exchanges/logs"),
    }


def test_binding_needs_send_to_its_destination_and_receive_from_its_source() -> None:
    assert rights.to_bind(broker(), "logs", "queue", "q", "eu.*") == [
        (("send", "q"),),
        (("receive", KEYS), ("receive", "/exchanges/logs/eu.*")),
    ]
    assert rights.to_bind(broker(), "logs", "exchange", "rest", "#") == [
        (("send", "/exchanges/rest/#"),),
        (("receive", KEYS),),
    ]


@pytest.mark.parametrize(
    ("exchange", "needs"),
    [
        ("amq.direct", []),
        ("amq.topic", []),
        ("amq.fanout", [(("receive", "/exchanges/amq.fanout/#"),)]),
        ("amq.headers", [(("receive", "/exchanges/amq.headers/#"),)]),
        ("nowhere", []),
    ],
)
def test_exchange_that_ignores_keys_needs_the_permission_for_all(exchange: str, needs: list[Any]) -> None:
    assert rights.to_bind_any_key(broker(), exchange) == needs


def test_other_operations_need_one_permission() -> None:
    assert rights.to_receive(broker(), "q") == [(("receive", "q"),)]
    assert rights.to_delete_queue(broker(), "q") == [(("delete", "q"),)]
    assert rights.to_delete_exchange(broker(), "logs") == [(("delete", "/exchanges/logs"),)]
