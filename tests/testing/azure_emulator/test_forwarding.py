"""Duplicate detection, forwarding and actions of rules, as Service Bus has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.wire.values import Described, Timestamp
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.testing.azure_emulator import EntityOptions, ServiceBus
from trio_amqp10.testing.azure_emulator.rule_actions import parse_action
from trio_amqp10.testing.azure_emulator.subscription_rules import (  # pyright: ignore[reportPrivateUsage]
    _SYSTEM,
    _rewritten,
)

from .helpers import ask, bus_of, open_client, put, wall, with_wall

if TYPE_CHECKING:
    from trio.testing import MockClock

ONCE = EntityOptions(requires_duplicate_detection=True, duplicate_detection_history_time_window=20)


async def taken(conn: amqp.Connection, address: str, count: int) -> list[amqp.Message]:
    async with conn.open_receiver(address) as receiver:
        found: list[amqp.Message] = []
        for _ in range(count):
            delivery = await receiver.receive()
            delivery.accept()
            found.append(delivery.message)
        return found


async def test_duplicate_within_the_window_is_accepted_and_dropped(autojump_clock: MockClock) -> None:
    bus = bus_of(q=ONCE)
    async with open_client(bus) as conn:
        await put(conn, "q", amqp.Message("a", message_id="1"), amqp.Message("b", message_id="1"), "c", "c")
        assert len(bus.entities["q"]) == 3
        await trio.sleep(19)
        await put(conn, "q", amqp.Message("d", message_id="1"))
        assert len(bus.entities["q"]) == 3
        await trio.sleep(2)  # a duplicate does not extend the window
        await put(conn, "q", amqp.Message("e", message_id="1"))
        assert [each.body for each in await taken(conn, "q", 4)] == ["a", "c", "c", "e"]


async def test_scheduled_message_counts_from_when_it_is_sent(autojump_clock: MockClock) -> None:
    bus = bus_of(q=ONCE)
    due = Timestamp(round((wall() + 10) * 1000))
    later = amqp.Message("later", message_id="1", annotations={"x-opt-scheduled-enqueue-time": due})
    async with open_client(bus) as conn:
        wish = {"messages": [{"message-id": "1", "message": later.to_payload()}]}
        assert await ask(conn, "q", "schedule-message", wish) == (200, {"sequence-numbers": [1]})
        await put(conn, "q", amqp.Message("now", message_id="1"))
        assert await ask(conn, "q", "schedule-message", wish) == (200, {"sequence-numbers": [1]})
        assert [each.body for each in await taken(conn, "q", 1)] == ["later"]
        assert len(bus.entities["q"]) == 0


async def test_topic_detects_duplicates_and_limits_the_life_of_messages(autojump_clock: MockClock) -> None:
    with_wall()
    bus = ServiceBus(wall_clock=wall)
    bus.add_topic("t", EntityOptions(requires_duplicate_detection=True, default_message_time_to_live=5))
    bus.add_subscription("t", "s")
    async with open_client(bus) as conn:
        await put(conn, "t", amqp.Message("a", message_id=1), amqp.Message("b", message_id=1, ttl=1))
        held = bus.entities["t/Subscriptions/s"]
        assert len(held) == 1
        await trio.sleep(5.5)
        assert len(held) == 0


async def test_messages_are_forwarded_through_queues_and_topics(autojump_clock: MockClock) -> None:
    bus = bus_of(a=EntityOptions(forward_to="T"), end=None)
    bus.add_topic("t")
    bus.add_subscription("t", "s", EntityOptions(forward_to="end"))
    async with open_client(bus) as conn:
        await put(conn, "a", amqp.Message("tea", subject="s"))
        (message,) = await taken(conn, "end", 1)
        assert (message.body, message.subject, message.delivery_count) == ("tea", "s", 0)
        assert message.annotations["x-opt-enqueue-sequence-number"] == 1
        with pytest.raises(amqp.LinkRefusedError, match="receive them there"):
            async with conn.open_receiver("a"):
                pass
    assert {name: len(each) for name, each in bus.entities.items() if len(each)} == {}


async def test_dead_letters_are_forwarded_with_their_source(autojump_clock: MockClock) -> None:
    bus = bus_of(q=EntityOptions(forward_dead_lettered_messages_to="dead"), dead=None)
    async with open_client(bus) as conn:
        await put(conn, "q", "tea")
        async with conn.open_receiver("q") as receiver:
            (await receiver.receive()).reject("com.microsoft:dead-letter", "cold")
        (message,) = await taken(conn, "dead", 1)
        assert message.annotations["x-opt-deadletter-source"] == "q"
        assert message.application_properties["DeadLetterErrorDescription"] == "cold"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (EntityOptions(forward_to="none"), "no queue or topic 'none'"),
        (EntityOptions(forward_to="q"), "at most 4 times"),
        (EntityOptions(forward_to="sessions"), "requires sessions"),
        (EntityOptions(forward_to="q/$DeadLetterQueue"), "no queue or topic"),
    ],
)
async def test_message_that_cannot_be_forwarded_is_kept(
    options: EntityOptions, why: str, autojump_clock: MockClock
) -> None:
    bus = bus_of(q=options, sessions=EntityOptions(requires_session=True))
    async with open_client(bus) as conn:
        await put(conn, "q", "tea")
        (message,) = await taken(conn, "q/$Transfer/$DeadLetterQueue", 1)
        assert why in str(message.application_properties["DeadLetterErrorDescription"])
        assert message.body == "tea"


def test_entity_with_sessions_cannot_forward() -> None:
    with pytest.raises(LocalProtocolError, match="cannot forward"):
        EntityOptions(requires_session=True, forward_to="q")
    with pytest.raises(LocalProtocolError, match="more than 0"):
        EntityOptions(duplicate_detection_history_time_window=0)


# -- actions --------------------------------------------------------------------------------


def changed(action: str, **fields: Any) -> amqp.Message:
    message = amqp.Message("tea", **fields)
    parse_action(action, _SYSTEM, _rewritten)(message)
    return message


def test_action_sets_and_removes() -> None:
    message = changed(
        "SET sys.Label = 'oil; it''s'; SET price = price * 2, set [a b] = TRUE; REMOVE user.colour; SET sys.To=7;",
        application_properties={"price": 5, "colour": "red", "kept": 1},
    )
    assert (message.subject, message.to) == ("oil; it's", "7")
    assert dict(message.application_properties) == {"kept": 1, "price": 10, "a b": True}
    assert len(str(changed("SET sys.MessageId = newid()").message_id)) == 36
    assert changed("REMOVE sys.Label", subject="s").subject is None
    assert changed("SET a = nothing", application_properties={"a": 1}).application_properties == {}


@pytest.mark.parametrize(
    "action",
    ["", "SET", "SET a", "SET a =", "DELETE a", "SET sys.SequenceNumber = 1", "SET x.a = 1", "SET a = (", 5],
)
def test_text_that_is_no_action_is_refused(action: Any) -> None:
    with pytest.raises(RefusedError):
        parse_action(action, _SYSTEM, _rewritten)


async def test_each_rule_with_an_action_makes_a_copy_of_its_own(autojump_clock: MockClock) -> None:
    with_wall()
    bus = ServiceBus(wall_clock=wall)
    bus.add_topic("t")
    bus.add_subscription("t", "s", rules={"one": "1=1", "two": "2=2"})
    async with open_client(bus) as conn:
        action = {"sql-filter": {"expression": "1=1"}, "sql-rule-action": {"expression": "SET sys.Label='x'"}}
        wish = {"rule-name": "act", "rule-description": action}
        assert (await ask(conn, "t/Subscriptions/s", "add-rule", wish))[0] == 200
        _, shown = await ask(conn, "t/Subscriptions/s", "enumerate-rules", {"skip": 2, "top": 9})
        assert shown["rules"][0]["rule-description"].value[1] == Described(
            0x137_00000006, ["SET sys.Label='x'", 20]
        )
        await put(conn, "t", amqp.Message("tea", subject="s"))
        plain, copied = await taken(conn, "t/Subscriptions/s", 2)
        assert (plain.subject, dict(plain.application_properties)) == ("s", {})
        assert (copied.subject, dict(copied.application_properties)) == ("x", {"RuleName": "act"})


async def test_action_can_give_the_session_that_a_subscription_requires(autojump_clock: MockClock) -> None:
    with_wall()
    bus = ServiceBus(wall_clock=wall)
    bus.add_topic("t")
    bus.add_subscription("t", "s", EntityOptions(requires_session=True), rules={})
    rules = bus.entities["t/Subscriptions/s"].rules
    assert rules is not None
    rules.add(
        "r", {"sql-filter": {"expression": "1=1"}, "sql-rule-action": {"expression": "SET sys.SessionId='a'"}}
    )
    async with open_client(bus) as conn:
        await put(conn, "t", "tea")
        assert len(bus.entities["t/Subscriptions/s"]) == 1
