"""Locks: who has a message and until when, and every way to settle it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.message import Data
from trio_amqp10.peer.errors import LinkRefusedError
from trio_amqp10.spec.messaging import Accepted, Modified, Rejected, Released, Source
from trio_amqp10.spec.transport import Error
from trio_amqp10.testing.azure_emulator import EntityOptions
from trio_amqp10.testing.azure_emulator.namespace import KEY, KEY_NAME
from trio_amqp10.tokens import sign_sas
from trio_amqp10.wire.values import Array, Int, Symbol, Timestamp

from .helpers import ask, bus_of, locking, open_client, put, settle, wall

if TYPE_CHECKING:
    from trio.testing import MockClock

LOST = "com.microsoft:message-lock-lost"


async def test_message_has_a_number_a_time_and_a_lock_whose_token_is_its_tag(
    autojump_clock: MockClock,
) -> None:
    bus = bus_of(q=None)
    async with open_client(bus) as conn, locking(conn, "q") as receiver:
        sent = amqp.Message(
            "tea", subject="s", annotations={"x-mine": 1, "x-opt-sequence-number": 99}, ttl=5000
        )
        await put(conn, "q", sent)
        delivery = await receiver.receive()
        message = delivery.message
        now = round(wall() * 1000)
        assert message.annotations == {
            "x-mine": 1,
            "x-opt-sequence-number": 1,
            "x-opt-enqueued-time": Timestamp(now),
            "x-opt-locked-until": Timestamp(now + 60_000),
            "x-opt-enqueue-sequence-number": 1,
            "x-opt-message-state": Int(0),
        }
        assert (message.body, message.subject, message.ttl, message.delivery_count) == ("tea", "s", 5000, 0)
        assert b"\x00\x53\x70" in message.to_payload()[:3]  # a header says 0 outright
        status, reply = await ask(conn, "q", "renew-lock", {"lock-tokens": Array([token_of(delivery)])})
        assert (status, reply) == (200, {"expirations": [now + 60_000]})
        delivery.accept()
        assert await settle(delivery) == Accepted()
        assert len(bus.entities["q"]) == 0


def token_of(delivery: Any) -> uuid.UUID:
    return uuid.UUID(bytes_le=delivery.tag)


async def test_message_taken_at_most_once_is_gone(autojump_clock: MockClock) -> None:
    bus = bus_of(q=None)
    async with open_client(bus) as conn:
        await put(conn, "q", "tea")
        async with conn.open_receiver("q", guarantee="at-most-once", credit=1) as receiver:
            assert (await receiver.receive()).settled
        assert bus.entities["q"].statistics() == {"senders": 0, "receivers": 0, "messages": 0, "locked": 0}


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
                "DeadLetterErrorDescription": "delivered 2 times, and never completed",
            }
            for _ in range(12):  # what is dead does not die
                delivery.modify(delivery_failed=True)
                delivery = await receiver.receive()
            delivery.reject()
            assert await settle(delivery) == Rejected()
            assert (await receiver.receive()).message.delivery_count == 14 - 2 + 2


async def test_released_message_has_not_failed(autojump_clock: MockClock) -> None:
    async with open_client(bus_of(q=EntityOptions(max_delivery_count=1))) as conn:
        await put(conn, "q", "tea")
        async with locking(conn, "q", credit=1) as receiver:
            delivery = await receiver.receive()
            delivery.release()
            assert await settle(delivery) == Released()
            assert (await receiver.receive()).message.delivery_count == 0


async def test_rejected_message_is_dead_with_what_was_said(autojump_clock: MockClock) -> None:
    bus = bus_of(q=None)
    async with open_client(bus) as conn:
        await put(conn, "q", "tea", "milk")
        async with locking(conn, "q") as receiver:
            delivery = await receiver.receive()
            info = {
                Symbol("DeadLetterReason"): "bad",
                Symbol("DeadLetterErrorDescription"): "sour",
                Symbol("by"): "ada",
                Symbol("no"): [1],
            }
            error = Error(condition="com.microsoft:dead-letter", info=info)
            delivery.link.session.settlement.dispose(delivery, Rejected(error=error))
            # An error in the answer would say that it was not applied.
            assert await settle(delivery) == Rejected()
            delivery = await receiver.receive()
            delivery.reject("app:broken", "in two")
            await settle(delivery)
        async with conn.open_receiver("q/$DeadLetterQueue") as receiver:
            first, second = [(await receiver.receive()).message for _ in range(2)]
        assert first.application_properties == {
            "DeadLetterReason": "bad",
            "DeadLetterErrorDescription": "sour",
            "by": "ada",
        }
        assert second.application_properties == {
            "DeadLetterReason": "app:broken",
            "DeadLetterErrorDescription": "in two",
        }
        assert [each.annotations["x-opt-enqueue-sequence-number"] for each in (first, second)] == [1, 2]
        with pytest.raises(LinkRefusedError, match="takes no messages"):
            await put(conn, "q/$DeadLetterQueue", "me")


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


async def test_lock_that_ends_gives_the_message_to_who_waits(autojump_clock: MockClock) -> None:
    async with open_client(bus_of(q=EntityOptions(lock_duration=7))) as conn:
        await put(conn, "q", "tea")
        async with locking(conn, "q", credit=1) as one, locking(conn, "q", credit=1) as other:
            began = trio.current_time()
            delivery = await one.receive()
            await trio.sleep(3)
            assert (await ask(conn, "q", "renew-lock", {"lock-tokens": [token_of(delivery)]}))[0] == 200
            again = await other.receive()
            assert trio.current_time() - began == pytest.approx(10)
            assert again.message.delivery_count == 1
            delivery.accept()
            refused = await settle(delivery)
            assert isinstance(refused, Rejected)
            assert refused.error is not None
            assert refused.error.condition == LOST
            assert await ask(conn, "q", "renew-lock", {"lock-tokens": [token_of(delivery)]}) == (410, LOST)
            again.accept()
            assert await settle(again) == Accepted()


async def test_lock_outlasts_the_link_and_its_token_settles(autojump_clock: MockClock) -> None:
    bus = bus_of(q=None)
    async with open_client(bus) as conn:
        await put(conn, "q", "tea")
        async with bus.container.connect() as other:
            await other.put_token("sb://h/q", sign_sas("sb://h", KEY_NAME, KEY, wall() + 60))
            async with locking(other, "q") as receiver:
                delivery = await receiver.receive()
                token = token_of(delivery)
        await wait_all_tasks_blocked()
        assert bus.entities["q"].statistics()["locked"] == 1
        wish = {"disposition-status": "completed", "lock-tokens": [token]}
        assert (await ask(conn, "q", "update-disposition", wish))[0] == 200
        assert len(bus.entities["q"]) == 0


async def test_outcome_of_a_lost_lock_is_dropped_where_nobody_waits_for_an_answer(
    autojump_clock: MockClock,
) -> None:
    bus = bus_of(q=EntityOptions(lock_duration=1))
    async with open_client(bus) as conn, conn.open_receiver("q", credit=1) as receiver:
        await put(conn, "q", "tea")
        delivery = await receiver.receive()
        await trio.sleep(2)
        delivery.accept()
        assert (await receiver.receive()).message.body == "tea"


async def test_receivers_take_turns_and_a_busy_one_is_passed_over(autojump_clock: MockClock) -> None:
    async with (
        open_client(bus_of(q=None)) as conn,
        conn.open_receiver("q", credit=5) as one,
        conn.open_receiver("q", credit=1) as other,
    ):
        await wait_all_tasks_blocked()
        await put(conn, "q", *range(5))
        await wait_all_tasks_blocked()
        assert [(await other.receive()).message.body] == [1]
        assert [(await one.receive()).message.body for _ in range(4)] == [0, 2, 3, 4]


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


async def test_batch_is_many_messages_or_none(autojump_clock: MockClock) -> None:
    bus = bus_of(q=None, s=EntityOptions(requires_session=True))

    def batch(*chunks: bytes) -> amqp.Message:
        return amqp.Message.from_payload(amqp.Message(Data(*chunks)).to_payload(), 0x80013700)

    async with open_client(bus) as conn:
        async with conn.open_sender("q") as sender:
            await sender.send(batch(amqp.Message("a").to_payload(), amqp.Message("b").to_payload()))
            with pytest.raises(amqp.DeliveryRejectedError, match="decode-error"):
                await sender.send(batch(amqp.Message("c").to_payload(), b"nonsense"))
            with pytest.raises(amqp.DeliveryRejectedError, match="no data"):
                await sender.send(amqp.Message.from_payload(amqp.Message("x").to_payload(), 0x80013700))
        with pytest.raises(amqp.DeliveryRejectedError, match="requires sessions"):
            member = amqp.Message("a", group_id="g")
            await put(conn, "s", batch(member.to_payload(), amqp.Message("b").to_payload()))
        assert [len(bus.entities[name]) for name in "qs"] == [2, 0]


async def test_looking_without_taking_is_by_request_only(autojump_clock: MockClock) -> None:
    async with open_client(bus_of(q=None)) as conn:
        with pytest.raises(LinkRefusedError, match="peek"):
            async with conn.open_receiver(None, source=Source(address="q", distribution_mode="copy")):
                pass


@pytest.mark.parametrize(
    "wrong", [{"lock_duration": 0}, {"default_message_time_to_live": -1}, {"max_delivery_count": 0}]
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError, match=next(iter(wrong))):
        EntityOptions(**wrong)


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


async def test_message_that_is_too_large_for_a_receiver_stays_for_others(autojump_clock: MockClock) -> None:
    bus = bus_of(q=None)
    async with open_client(bus) as conn, conn.open_sender("q") as sender:
        for body in (bytes(5000), "a", bytes(5000), "b"):
            await sender.send(body)
        async with locking(conn, "q", max_message_size=1000) as receiver:
            deliveries = [await receiver.receive() for _ in range(2)]
            assert [each.message.body for each in deliveries] == ["a", "b"]
            deliveries[0].release()
            await settle(deliveries[0])
            again = await receiver.receive()
            assert again.message.body == "a"
            await sender.send(bytes(5000))  # while the receiver waits
            for each in (again, deliveries[1]):
                each.accept()
            with pytest.raises(amqp.LinkDetachedError) as detached:
                await receiver.receive()
            assert detached.value.condition == "amqp:link:message-size-exceeded"
        async with locking(conn, "q") as receiver:
            for _ in range(3):
                delivery = await receiver.receive()
                assert (delivery.message.body, delivery.message.delivery_count) == (bytes(5000), 0)
                delivery.accept()
                await settle(delivery)
        assert len(bus.entities["q"]) == 0
