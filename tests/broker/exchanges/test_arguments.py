"""Arguments of queues: which are valid, what they make of the queue, and which are equivalent."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from trio_amqp10.amqp10.wire.values import UInt
from trio_amqp10.broker.exchanges.faults import InequivalentError, PreconditionError, UnsupportedError

from .hands import ONE
from .helpers import broker

MOMENT = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("arguments", "again", "argument"),
    [
        ({"durable": False}, {}, "durable"),
        ({}, {"auto_delete": True}, "auto_delete"),
        ({}, {"arguments": {"x-max-length": 1}}, "x-max-length"),
        ({"arguments": {"x-max-length": 1}}, {}, "x-max-length"),
        ({"arguments": {"x-max-length": 1}}, {"arguments": {"x-max-length": 2}}, "x-max-length"),
        ({"arguments": {"x-queue-mode": "lazy"}}, {"arguments": {}}, "x-queue-mode"),
        ({}, {"arguments": {"x-queue-type": "quorum"}}, "x-queue-type"),
    ],
)
def test_queue_is_not_equivalent_when_a_property_differs(
    arguments: dict[str, Any], again: dict[str, Any], argument: str
) -> None:
    them = broker()
    queue, made = them.declare_queue("q", **arguments)
    assert made
    with pytest.raises(InequivalentError, match=f"inequivalent arg '{argument}' for queue 'q'") as fault:
        them.declare_queue("q", **again)
    assert (fault.value.argument, fault.value.kind, fault.value.name) == (argument, "queue", "q")
    assert them.declare_queue("q", **arguments) == (queue, False)


def nested(levels: int) -> object:
    return [nested(levels - 1)] if levels else 0


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (2**63, "at most 64 bits"),
        (-(2**63) - 1, "at most 64 bits"),
        ("\ud800", "expected Unicode"),
        ({"\ud800": 1}, "expected Unicode"),
        ([{"a": "\ud800"}], "expected Unicode"),
        (nested(32), "at most 32 levels"),
        (object(), "a object in the arguments: expected a type"),
    ],
    ids=repr,
)
def test_value_that_no_field_table_has_is_refused_wherever_there_are_arguments(value: Any, why: str) -> None:
    them = broker()
    them.declare_queue("q")
    them.declare_exchange("e")
    for refused in (
        lambda: them.declare_queue("x", {"a": value}),
        lambda: them.declare_exchange("x", arguments={"a": value}),
        lambda: them.bind("e", "queue", "q", arguments={"a": value}),
    ):
        with pytest.raises(PreconditionError, match=why):
            refused()
    assert list(them.bindings) == []
    values = [2**63 - 1, -(2**63), "\udcff", nested(30), 1.5, b"\xff", None, True, Decimal("1.5"), MOMENT]
    for place, fits in enumerate(values):
        them.declare_queue(f"x{place}", {"a": fits})
        them.declare_exchange(f"x{place}", arguments={"a": fits})
        them.bind("e", "queue", "q", arguments={"a": fits})


@pytest.mark.parametrize("text", ["\ud800", "a\0b", "ä" * 128], ids=ascii)
def test_name_that_no_method_could_carry_is_refused(text: str) -> None:
    them = broker()
    for refused in (
        lambda: them.declare_queue(text, durable=False),
        lambda: them.declare_exchange(text, durable=False),
    ):
        with pytest.raises(PreconditionError, match="expected at most 255 octets of Unicode, and no NUL"):
            refused()
    for fits in ("\udcff", "ä" * 127 + "b"):
        them.declare_queue(fits, durable=False)
        them.declare_exchange(fits, durable=False)
        them.bind("amq.direct", "queue", fits, fits)
    with pytest.raises(PreconditionError, match="expected Unicode"):
        them.bind("amq.direct", "queue", fits, "\ud800")


def test_queue_is_equivalent_when_numbers_are_equal_and_the_rest_is_not_known() -> None:
    them = broker()
    queue, _ = them.declare_queue("q", {"x-max-length": 5, "x-odd": 1})
    assert them.declare_queue("q", {"x-max-length": UInt(5), "x-queue-type": "classic"}) == (queue, False)


@pytest.mark.parametrize(
    "arguments",
    [
        {"x-message-ttl": -1},
        {"x-message-ttl": "1"},
        {"x-message-ttl": True},
        {"x-max-length": -1},
        {"x-max-length": 1.5},
        {"x-max-length-bytes": -1},
        {"x-delivery-limit": "1"},
        {"x-message-ttl": 315_360_000_001},
        {"x-expires": 315_360_000_001},
        {"x-expires": 0},
        {"x-expires": -1},
        {"x-max-priority": 256},
        {"x-max-priority": -1},
        {"x-overflow": "odd"},
        {"x-overflow": 1},
        {"x-dead-letter-routing-key": "k"},
        {"x-dead-letter-exchange": 1},
        {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": 1},
        {"x-single-active-consumer": "yes"},
        {"x-queue-type": "odd"},
        {"x-queue-type": 1},
    ],
)
def test_arguments_that_are_not_valid_are_refused(arguments: dict[str, Any]) -> None:
    them = broker()
    with pytest.raises(PreconditionError):
        them.declare_queue("q", arguments)
    assert "q" not in them.queues


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("q", {"durable": False}, "invalid property 'non-durable' for queue 'q' in vhost '/'"),
        ("q", {"exclusive": True, "peer": ONE}, "invalid property 'exclusive-owner'"),
        ("q", {"auto_delete": True}, "invalid property 'auto-delete'"),
        ("", {}, "Cannot declare a server-named queue for type rabbit_quorum_queue"),
    ],
)
def test_quorum_queue_is_durable_shared_and_named_by_the_client(
    name: str, options: dict[str, Any], text: str
) -> None:
    them = broker()
    with pytest.raises(PreconditionError, match=text):
        them.declare_queue(name, {"x-queue-type": "quorum"}, **options)
    assert them.declare_queue("quorum", {"x-queue-type": "quorum"})[1]


@pytest.mark.parametrize(
    "arguments",
    [
        {"x-queue-type": "stream"},
    ],
)
def test_arguments_that_cannot_be_met_are_refused_as_such(arguments: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError):
        broker().declare_queue("q", arguments)


def test_arguments_become_the_policy_of_the_queue() -> None:
    them = broker()
    queue, _ = them.declare_queue(
        "q",
        {
            "x-max-length": 5,
            "x-max-length-bytes": 6,
            "x-message-ttl": 7,
            "x-overflow": "reject-publish",
            "x-dead-letter-exchange": "dead/e",
            "x-dead-letter-routing-key": "k",
            "x-delivery-limit": 2,
            "x-single-active-consumer": True,
        },
    )
    policy = queue.policy
    assert (policy.max_length, policy.max_octets, policy.ttl, policy.overflow) == (5, 6, 7, "reject")
    assert (policy.dead_letter, policy.delivery_limit, policy.single_active) == (
        "/exchanges/dead%2Fe/k",
        3,
        True,
    )
    plain = them.declare_queue("plain", {"x-dead-letter-exchange": ""})[0].policy
    assert (plain.overflow, plain.dead_letter, plain.delivery_limit) == ("drop-oldest", "plain", None)
    assert them.declare_queue("quorum", {"x-queue-type": "quorum"})[0].policy.delivery_limit == 21
    endless = them.declare_queue("endless", {"x-queue-type": "quorum", "x-delivery-limit": -1})[0].policy
    assert endless.delivery_limit is None
    keeping = them.declare_queue("keeping", {"x-dead-letter-exchange": "e"})[0].policy
    assert keeping.dead_letter == "/exchanges/e"
    dlx = {"x-overflow": "reject-publish-dlx"}
    assert them.declare_queue("r", dlx)[0].policy.overflow == "reject-dead-letter"
    assert them.declare_queue("s", dlx | {"x-queue-type": "quorum"})[0].policy.overflow == "drop-oldest"


def test_inequivalent_values_are_shown_as_at_rabbitmq() -> None:
    them = broker()
    them.virtual_host = "other"
    them.declare_queue("q", {"x-max-length": 5})
    for options, text in (
        ({"arguments": {"x-max-length": 6}}, "received '6' but current is '5'"),
        ({}, "received none but current is the value '5' of type 'signedint'"),
        ({"arguments": {"x-max-length": 5}, "durable": False}, "received 'false' but current is 'true'"),
    ):
        with pytest.raises(InequivalentError, match=f" for queue 'q' in vhost 'other': {text}"):
            them.declare_queue("q", **options)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"x-delivery-limit": 5}, "'x-delivery-limit' .* of queue type rabbit_classic_queue"),
        ({"x-max-age": "1D"}, "'x-max-age' .* of queue type rabbit_classic_queue"),
        ({"x-queue-type": "quorum", "x-max-priority": 5}, "of queue type rabbit_quorum_queue"),
        ({"x-queue-type": "quorum", "x-quorum-initial-group-size": 0}, "expected a number of at least 1"),
        ({"x-queue-mode": "odd"}, "'x-queue-mode' .*: expected one of default, lazy"),
    ],
)
def test_arguments_that_only_rabbitmq_refuses_are_refused_where_that_is_asked_for(
    arguments: dict[str, Any], text: str
) -> None:
    assert broker().declare_queue("q", arguments)[1]
    with pytest.raises(PreconditionError, match=text):
        broker(like_rabbitmq=True).declare_queue("q", arguments)
