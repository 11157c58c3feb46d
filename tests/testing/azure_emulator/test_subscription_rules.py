"""Rules of a subscription: expressions in SQL, correlation filters, and what requests to its node do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10.amqp10.wire.values import Described, Int, Timestamp
from trio_amqp10.broker.nodes.clock import Clock
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.testing.azure_emulator import ServiceBus
from trio_amqp10.testing.azure_emulator.stored_message import StoredMessage
from trio_amqp10.testing.azure_emulator.subscription_rules import SubscriptionRules

from .helpers import ask, bus_of, open_client, put, wall

if TYPE_CHECKING:
    from trio.testing import MockClock

OIL = amqp.Message(
    "crude",
    message_id="m",
    subject="oil",
    group_id="s",
    application_properties={"price": 500, "it's": True, "sys": 1, "a b": 2},
)
TEA = amqp.Message("green", subject="tea", application_properties={"price": 5})


def passes(made: SubscriptionRules, message: amqp.Message) -> bool:
    return bool(made.copies(StoredMessage(message)))


def rules(sql: str) -> SubscriptionRules:
    return SubscriptionRules(Clock(), sql={"one": sql})


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("price > 100", (True, False)),
        ("user.price > 100 AND sys.Label = 'oil'", (True, False)),
        ("SYS.LABEL = 'tea'", (False, True)),
        ("sys.Subject IN ('oil', 'tea')", (True, True)),
        ("sys.[Label] LIKE 'o%'", (True, False)),
        ('"a b" = 2 OR [price] = 5', (True, True)),
        ("sys.SessionId IS NULL", (False, True)),
        ("EXISTS([a b])", (True, False)),
        ("not exists( user.sys )", (False, True)),
        ("'EXISTS(price) sys.Label' <> 'x' AND sys.MessageId = 'm'", (True, False)),
        ("price + 1 = 6", (False, True)),
        ("price = 5e0 OR price = -1", (False, True)),
        ("1=1", (True, True)),
        ("1=0", (False, False)),
        ("nothing = 1", (False, False)),
    ],
)
def test_expression_passes_what_it_says(sql: str, wanted: tuple[bool, bool]) -> None:
    assert tuple(passes(rules(sql), message) for message in (OIL, TEA)) == wanted


@pytest.mark.parametrize(
    ("sql", "complaint"),
    [
        ("price >", "rule 'one': 'price >'"),
        ("sys.Nothing = 1", "sys.Nothing is not supported: expected one of contenttype"),
        ("other.price = 1", "the scope of a name must be sys or user"),
    ],
)
def test_expression_that_is_none_is_refused_with_what_is_wrong(sql: str, complaint: str) -> None:
    with pytest.raises(LocalProtocolError, match=complaint):
        rules(sql)


def test_message_goes_to_a_subscription_once_if_any_rule_passes_it() -> None:
    made = rules("price > 100")
    made.add("cheap", {"sql-filter": {"expression": "price <= 100"}})
    assert passes(made, OIL)
    assert passes(made, TEA)
    made.remove("one")
    assert not passes(made, OIL)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"label": "oil"}, (True, False)),
        ({"label": "tea", "message-id": None, "properties": {"price": 5}}, (False, True)),
        ({"label": "tea", "properties": {"price": 6}}, (False, False)),
        ({"session-id": "s", "message-id": "m"}, (True, False)),
    ],
)
def test_correlation_filter_compares_fields_and_properties(
    fields: dict[str, Any], wanted: tuple[bool, bool]
) -> None:
    made = SubscriptionRules(Clock(), sql={})
    made.add("one", {"correlation-filter": fields})
    assert tuple(passes(made, message) for message in (OIL, TEA)) == wanted


@pytest.mark.parametrize(
    ("name", "description", "condition"),
    [
        ("one", {"sql-filter": {"expression": "1=1"}}, "com.microsoft:entity-already-exists"),
        ("", {"sql-filter": {"expression": "1=1"}}, "com.microsoft:argument-error"),
        ("x" * 51, {"sql-filter": {"expression": "1=1"}}, "com.microsoft:argument-error"),
        ("two", {}, "com.microsoft:argument-error"),
        ("two", {"sql-filter": {"expression": 1}}, "com.microsoft:argument-error"),
        ("two", {"sql-filter": {"expression": "price >"}}, "com.microsoft:argument-error"),
        ("two", {"correlation-filter": {"label": None}}, "com.microsoft:argument-error"),
        (
            "two",
            {"sql-filter": {"expression": "1=1"}, "sql-rule-action": {"expression": "SET a"}},
            "com.microsoft:argument-error",
        ),
    ],
)
def test_rule_is_refused_with_a_condition(name: str, description: dict[str, Any], condition: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        rules("1=1").add(name, description)
    assert refusal.value.condition == condition


async def test_client_shows_adds_and_removes_rules(autojump_clock: MockClock) -> None:
    bus = bus_of()
    bus.add_topic("prices")
    bus.add_subscription("prices", "one", wants=lambda message: message.subject == "oil")
    bus.add_subscription("prices", "two", rules={"dear": "price > 100"})
    page = {"top": Int(10), "skip": Int(0)}
    async with open_client(bus) as conn:
        entity = "prices/Subscriptions/two"
        _, shown = await ask(conn, entity, "enumerate-rules", page)
        [rule] = [each["rule-description"] for each in shown["rules"]]
        assert rule.descriptor == 0x137_00000004
        shape, action, name, created = rule.value
        assert (shape, action.value, name) == (Described(0x137_0000006, ["price > 100"]), [], "dear")
        assert created == Timestamp(round(wall() * 1000))
        description = {"correlation-filter": {"label": "tea"}}
        added = {"rule-name": "tea", "rule-description": description}
        assert await ask(conn, entity, "add-rule", added) == (200, {})
        assert (await ask(conn, entity, "add-rule", added))[0] == 409
        await put(conn, "prices", OIL, TEA)
        assert [len(bus.entities[f"prices/Subscriptions/{name}"]) for name in ("one", "two")] == [1, 2]
        assert await ask(conn, entity, "remove-rule", {"rule-name": "dear"}) == (200, {})
        assert (await ask(conn, entity, "remove-rule", {"rule-name": "dear"}))[0] == 404
        assert (await ask(conn, entity, "remove-rule", {"rule-name": "tea"}))[0] == 200
        assert (await ask(conn, entity, "enumerate-rules", page))[0] == 204
        await put(conn, "prices", OIL)
        assert len(bus.entities[entity]) == 2
        assert (await ask(conn, entity, "remove-rule", {"rule-name": 1}))[0] == 400
        assert (await ask(conn, entity, "add-rule", {"rule-name": "x"}))[0] == 400
        assert (await ask(conn, "prices", "enumerate-rules", page))[0] == 501


def test_subscription_has_a_function_or_expressions() -> None:
    bus = ServiceBus()
    bus.add_topic("prices")
    with pytest.raises(LocalProtocolError, match="wants and rules exclude each other"):
        bus.add_subscription("prices", "one", wants=lambda _: True, rules={"x": "1=1"})
