"""Sessions: locked by one receiver at a time, asked for by name or not, with a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.errors import LinkDetachedError, LinkRefusedError
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.amqp10.wire.values import Array, Described, Int, Symbol, Timestamp, UInt
from trio_amqp10.testing.azure_emulator import EntityOptions

from .helpers import ask, bus_of, locking, open_client, put, wall

if TYPE_CHECKING:
    from trio.testing import MockClock

SESSIONS = EntityOptions(requires_session=True, lock_duration=30)
FILTER = "com.microsoft:session-filter"
ADDRESS = "sb://localhost:5672/S"
MISSING = object()


def session(conn: amqp.Connection, name: Any, seconds: float | None = None) -> Any:
    properties: dict[Any, Any] | None = None
    if seconds is not None:
        properties = {"com.microsoft:timeout": UInt(round(seconds * 1000))}
    filters: dict[Any, Any] | None = None if name is MISSING else {Symbol(FILTER): name}
    return locking(conn, None, source=Source(address=ADDRESS, filter=filters), properties=properties)


def of(name: str, *bodies: Any) -> list[amqp.Message]:
    return [amqp.Message(body, group_id=name) for body in bodies]


async def test_receiver_has_the_messages_of_its_session_and_nobody_else_does(
    autojump_clock: MockClock,
) -> None:
    bus = bus_of(s=SESSIONS)
    async with open_client(bus) as conn:
        await put(conn, "s", *of("x", 1, 2), *of("y", 3))
        async with session(conn, Described(Symbol(FILTER), "y")) as receiver:
            assert receiver.remote.source.address == ADDRESS
            assert receiver.remote.source.filter == {FILTER: "y"}
            until = round((wall() + 30) * 1000) * 10_000 + 621_355_968_000_000_000
            assert receiver.remote.properties == {"com.microsoft:locked-until-utc": until}
            delivery = await receiver.receive()
            assert delivery.message.body == 3
            assert "x-opt-locked-until" not in delivery.message.annotations
            with pytest.raises(LinkRefusedError, match="session-cannot-be-locked"):
                async with session(conn, "y"):
                    pass
            async with session(conn, None) as other:
                assert other.remote.source.filter == {FILTER: "x"}
                assert [(await other.receive()).message.body for _ in range(2)] == [1, 2]
        async with session(conn, None) as again:  # what was not settled has not failed
            assert (await again.receive()).message.delivery_count == 0


async def test_deferred_message_of_a_session_is_for_the_receiver_of_that_session(
    autojump_clock: MockClock,
) -> None:
    bus = bus_of(s=SESSIONS)
    async with open_client(bus) as conn:

        async def take(**more: Any) -> Any:
            wish = {"sequence-numbers": Array([1], "long"), "receiver-settle-mode": 1, **more}
            return await ask(conn, "s", "receive-by-sequence-number", wish)

        await put(conn, "s", *of("x", 1), *of("y", 2))
        async with session(conn, "x") as receiver, session(conn, "y"):
            delivery = await receiver.receive()
            delivery.modify(undeliverable_here=True)
            await delivery.wait_settled()
            assert await take() == (400, "com.microsoft:argument-error")
            assert await take(**{"session-id": "y"}) == (404, "com.microsoft:message-not-found")
            status, body = await take(**{"session-id": "x"})
            assert (status, len(body["messages"])) == (200, 1)
        assert await take(**{"session-id": "x"}) == (410, "com.microsoft:session-lock-lost")
        assert bus.entities["s"].messages.locked == 0, "the lock has ended with that of the session"
        async with session(conn, "x"):
            status, body = await take(**{"session-id": "x"})
            assert (status, len(body["messages"])) == (200, 1)


async def test_lock_on_a_session_ends_with_its_time_unless_renewed(autojump_clock: MockClock) -> None:
    bus = bus_of(s=SESSIONS)
    async with open_client(bus) as conn:
        await put(conn, "s", *of("x", 1))
        async with session(conn, "x") as receiver:
            delivery = await receiver.receive()
            await trio.sleep(20)
            renewed = await ask(conn, "s", "renew-session-lock", {"session-id": "x"})
            assert renewed == (200, {"expiration": Timestamp(round((wall() + 30) * 1000))})
            began = trio.current_time()
            with pytest.raises(LinkDetachedError, match=r"com\.microsoft:session-lock-lost"):
                await receiver.receive()
            assert trio.current_time() - began == pytest.approx(30)
        assert not delivery.settled
        lost = await ask(conn, "s", "renew-session-lock", {"session-id": "x"})
        assert lost == (410, "com.microsoft:session-lock-lost")
        async with session(conn, "x") as receiver:
            assert (await receiver.receive()).message.delivery_count == 1


async def test_session_keeps_a_state_and_is_listed(autojump_clock: MockClock) -> None:
    never = Timestamp(253_402_300_800_000)
    async with open_client(bus_of(s=SESSIONS)) as conn:

        async def listed(since: Any = never, skip: int = 0) -> Any:
            wish = {"last-updated-time": since, "skip": Int(skip), "top": Int(100)}
            return await ask(conn, "s", "get-message-sessions", wish)

        assert await listed() == (204, "com.microsoft:message-not-found")
        await put(conn, "s", *of("x", 1), *of("y", 2))
        assert (await ask(conn, "s", "get-session-state", {"session-id": "x"}))[1] == {"session-state": None}
        began = Timestamp(round(wall() * 1000))
        await trio.sleep(1)
        for name, state in (("z", b"state"), ("x", None)):
            wish = {"session-id": name, "session-state": state}
            assert await ask(conn, "s", "set-session-state", wish) == (200, {})
        assert (await ask(conn, "s", "get-session-state", {"session-id": "z"}))[1] == {
            "session-state": b"state"
        }
        assert await listed() == (200, {"skip": 0, "sessions-ids": ["x", "y", "z"]})
        assert await listed(skip=2) == (200, {"skip": 2, "sessions-ids": ["z"]})
        assert await listed(began) == (200, {"skip": 0, "sessions-ids": ["z", "x"]})
        peek = {"from-sequence-number": 0, "message-count": 9, "session-id": "y"}
        _, body = await ask(conn, "s", "peek-message", peek)
        assert [amqp.Message.from_payload(each["message"]).body for each in body["messages"]] == [2]
