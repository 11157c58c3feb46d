"""Messages of an entity: scheduled, expired, and dead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.spec.messaging import Modified, Rejected
from trio_amqp10.amqp10.wire.values import Array
from trio_amqp10.testing.azure_emulator import EntityOptions

from .helpers import LOST, ask, bus_of, later, locking, open_client, put, settle, wish

if TYPE_CHECKING:
    import uuid

    from trio.testing import MockClock


async def test_scheduled_message_comes_when_it_is_due_with_a_new_number(autojump_clock: MockClock) -> None:
    async with open_client(bus_of(q=EntityOptions(lock_duration=600))) as conn:
        status, body = await ask(conn, "q", "schedule-message", wish(later("a", 60), later("b", 30)))
        assert (status, body) == (200, {"sequence-numbers": [1, 2]})
        await put(conn, "q", later("c", 90), later("d", -1))
        _, shown = await ask(conn, "q", "peek-message", {"from-sequence-number": 1, "message-count": 10})
        peeked = [amqp.Message.from_payload(each["message"]) for each in shown["messages"]]
        assert [(each.body, each.annotations["x-opt-message-state"]) for each in peeked] == [
            ("a", 2),
            ("b", 2),
            ("c", 2),
            ("d", 0),
        ]
        cancel = {"sequence-numbers": Array([1, 1], "long")}
        assert (await ask(conn, "q", "cancel-scheduled-message", cancel))[0] == 200
        assert await ask(conn, "q", "cancel-scheduled-message", cancel) == (
            404,
            "com.microsoft:message-not-found",
        )
        began = trio.current_time()
        async with conn.open_receiver("q") as receiver:
            got: list[Any] = []
            for _ in range(3):
                message = (await receiver.receive()).message
                number = message.annotations["x-opt-sequence-number"]
                got.append((message.body, number, round(trio.current_time() - began)))
        assert got == [("d", 4, 0), ("b", 5, 30), ("c", 6, 90)]


async def test_earlier_message_does_not_wait_for_the_timer_of_a_later_one(autojump_clock: MockClock) -> None:
    bus = bus_of(q=EntityOptions(lock_duration=600))
    async with open_client(bus) as conn, open_client(bus) as other:
        await put(conn, "q", later("late", 100))
        async with other.open_receiver("q") as one, conn.open_receiver("q", credit=1) as receiver:
            await wait_all_tasks_blocked()
            await put(conn, "q", later("early", 10))
            began = trio.current_time()
            assert (await one.receive()).message.body == "early"
            assert trio.current_time() - began == pytest.approx(10)
            await one.aclose()
            assert (await receiver.receive()).message.body == "late"
            assert trio.current_time() - began == pytest.approx(100)


async def test_abandoned_message_comes_again_in_its_place_and_dies_of_too_many(
    autojump_clock: MockClock,
) -> None:
    bus = bus_of(q=EntityOptions(max_delivery_count=2))
    async with open_client(bus) as conn:
        await put(conn, "q", "first", "second")
        async with locking(conn, "q", credit=1) as receiver:
            for count in (0, 1):
                delivery = await receiver.receive()
                assert (delivery.message.body, delivery.message.delivery_count) == ("first", count)
                delivery.modify(delivery_failed=True, annotations={"why": "busy"})
                assert isinstance(await settle(delivery), Modified)
            assert (await receiver.receive()).message.body == "second"
        async with locking(conn, "Q/$deadletterqueue") as receiver:
            delivery = await receiver.receive()
            message = delivery.message
            assert (message.body, message.delivery_count) == ("first", 2)
            assert message.application_properties == {
                "why": "busy",
                "DeadLetterReason": "MaxDeliveryCountExceeded",
                "DeadLetterErrorDescription": "delivered 2 times and never completed",
            }
            for _ in range(12):  # what is dead does not die
                delivery.modify(delivery_failed=True)
                delivery = await receiver.receive()
            delivery.reject()
            assert await settle(delivery) == Rejected()
            assert (await receiver.receive()).message.delivery_count == 14 - 2 + 2


async def test_deferred_message_is_had_by_its_number_and_settled_by_its_token(
    autojump_clock: MockClock,
) -> None:
    bus = bus_of(q=None)
    async with open_client(bus) as conn:
        await put(conn, "q", *"abcd")
        async with locking(conn, "q") as receiver:
            for _ in "abcd":
                delivery = await receiver.receive()
                delivery.modify(delivery_failed=True, undeliverable_here=True)
                assert isinstance(await settle(delivery), Modified)

        async def take(*numbers: int, mode: int = 1) -> Any:
            wish = {"sequence-numbers": Array(numbers, "long"), "receiver-settle-mode": mode}
            return await ask(conn, "q", "receive-by-sequence-number", wish)

        async def update(status: str, token: uuid.UUID, **more: Any) -> Any:
            wish = {"disposition-status": status, "lock-tokens": Array([token]), **more}
            return await ask(conn, "q", "update-disposition", wish)

        status, body = await take(1, 2, 3)
        assert status == 200
        messages = [amqp.Message.from_payload(each["message"]) for each in body["messages"]]
        assert [each.body for each in messages] == ["a", "b", "c"]
        assert {each.annotations["x-opt-message-state"] for each in messages} == {1}
        tokens = [each["lock-token"] for each in body["messages"]]
        assert [each.delivery_annotations["x-opt-lock-token"] for each in messages] == tokens
        assert await take(1) == (404, "com.microsoft:message-not-found")  # somebody has it
        assert await update("completed", tokens[0]) == (200, {})
        assert await update("completed", tokens[0]) == (410, LOST)
        assert (await update("abandoned", tokens[1], **{"properties-to-modify": {"x": 1}}))[0] == 200
        more = {"deadletter-reason": "bad", "deadletter-description": "sour"}
        assert (await update("suspended", tokens[2], **more))[0] == 200
        assert (await update("burnt", tokens[2]))[1] == "com.microsoft:argument-error"
        assert await take(1) == (404, "com.microsoft:message-not-found")
        status, body = await take(2)
        token = body["messages"][0]["lock-token"]
        assert amqp.Message.from_payload(body["messages"][0]["message"]).application_properties == {"x": 1}
        assert (await update("defered", token))[0] == 200
        status, body = await take(2, 4, 4, mode=0)
        assert (status, [list(each) for each in body["messages"]]) == (200, [["message"], ["message"]])
        assert len(bus.entities["q"]) == 0
        assert len(bus.entities["q/$DeadLetterQueue"]) == 1


@pytest.mark.parametrize("letters", [False, True])
async def test_message_expires_by_its_ttl_or_that_of_the_entity(
    autojump_clock: MockClock, letters: bool
) -> None:
    options = EntityOptions(default_message_time_to_live=10, dead_lettering_on_message_expiration=letters)
    bus = bus_of(q=options)
    async with open_client(bus) as conn:
        await put(conn, "q", "default", amqp.Message("short", ttl=2000), amqp.Message("long", ttl=99_000))
        async with locking(conn, "q", credit=2) as receiver:
            first = await receiver.receive()
            assert (first.message.body, first.message.ttl) == ("default", 10_000)
            short = await receiver.receive()
            await trio.sleep(3)
            short.release()  # it is over, but was locked so far
            assert (await receiver.receive()).message.body == "long"
            await trio.sleep(8)
            assert len(bus.entities["q"]) == 2
            first.accept()
        assert [
            (await ask(conn, "q", "peek-message", {"from-sequence-number": 0, "message-count": 9}))[0]
        ] == [200]
        dead = bus.entities["q/$DeadLetterQueue"]
        assert len(dead) == letters
        if letters:
            async with conn.open_receiver("q/$DeadLetterQueue") as receiver:
                said = (await receiver.receive()).message.application_properties
                assert said["DeadLetterReason"] == "TTLExpiredException"


async def test_deadlines_of_messages_that_are_gone_are_forgotten(autojump_clock: MockClock) -> None:
    bus = bus_of(q=EntityOptions(default_message_time_to_live=900))
    messages = bus.entities["q"].messages
    async with (
        open_client(bus) as conn,
        conn.open_receiver("q", guarantee="at-most-once", credit=500) as receiver,
    ):
        await put(conn, "q", *range(500))
        for number in range(500):
            assert (await receiver.receive()).message.body == number
        assert (len(messages), len(messages._timers)) == (0, 0)
        await put(conn, "q", "more")
        assert (await receiver.receive()).message.body == "more"
