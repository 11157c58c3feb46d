"""Locks: who has a message and until when, and ways to settle it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.errors import LinkRefusedError
from trio_amqp10.amqp10.spec.messaging import Accepted, Rejected, Released
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.amqp10.wire.values import Array, Int, Symbol, Timestamp
from trio_amqp10.core.tokens import sign_sas
from trio_amqp10.testing.azure_emulator import EntityOptions
from trio_amqp10.testing.azure_emulator.namespace import KEY, KEY_NAME

from .helpers import LOST, ask, bus_of, locking, open_client, put, settle, wall

if TYPE_CHECKING:
    from trio.testing import MockClock


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
