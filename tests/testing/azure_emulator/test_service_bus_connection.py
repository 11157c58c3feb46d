"""Receivers that ask for a session: by name or any, and what they are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.errors import LinkRefusedError
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.core.tokens import sign_sas
from trio_amqp10.testing.azure_emulator.namespace import KEY, KEY_NAME

from .helpers import HOST, bus_of, locking, open_client, put, settle, wall
from .test_message_sessions import FILTER, MISSING, SESSIONS, of, session

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_receiver_of_any_session_waits_for_one(autojump_clock: MockClock) -> None:
    bus = bus_of(s=SESSIONS)
    patient = amqp.Limits(answer_timeout=None)
    async with open_client(bus, limits=patient) as conn, open_client(bus) as other:
        began = trio.current_time()
        with pytest.raises(LinkRefusedError, match=r"com\.microsoft:timeout"):
            async with session(conn, None, 5):
                pass
        assert trio.current_time() - began == pytest.approx(5)
        got: list[Any] = []

        async def take() -> None:
            async with session(conn, None) as receiver:
                delivery = await receiver.receive()
                got.append(delivery.message.body)
                delivery.accept()
                await settle(delivery)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(take)
            await trio.sleep(8)
            await put(other, "s", *of("late", "tea"))
        assert (got, trio.current_time() - began) == (["tea"], pytest.approx(13))
        with pytest.raises(LinkRefusedError, match=r"com\.microsoft:timeout"):
            async with session(conn, None):
                pass
        assert trio.current_time() - began == pytest.approx(73)


async def test_who_waits_for_a_session_and_goes_is_forgotten(autojump_clock: MockClock) -> None:
    bus = bus_of(s=SESSIONS)
    sessions = bus.entities["s"].sessions
    async with open_client(bus) as conn:
        async with bus.container.connect():
            pass
        with trio.move_on_after(1):
            async with open_client(bus) as going, session(going, None):
                pass
        await trio.testing.wait_all_tasks_blocked()
        assert not sessions.seekers
        with trio.move_on_after(1):
            async with session(conn, None):  # this one detaches only
                pass
        await put(conn, "s", *of("x", 1))
        async with session(conn, None, 1) as receiver:
            assert (await receiver.receive()).message.body == 1


async def test_token_that_expires_while_a_session_is_awaited_permits_none(autojump_clock: MockClock) -> None:
    bus = bus_of(s=SESSIONS)
    async with (
        bus.container.connect(limits=amqp.Limits(answer_timeout=None)) as conn,
        open_client(bus) as other,
    ):
        await conn.put_token(f"{HOST}/s", sign_sas(f"{HOST}/s", KEY_NAME, KEY, wall() + 5))

        async def late() -> None:
            await trio.sleep(8)
            await put(other, "s", *of("x", "tea"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(late)
            with pytest.raises(LinkRefusedError, match="unauthorized-access"):
                async with session(conn, None):
                    pass
        async with session(other, None, 1) as receiver:  # the session is free
            assert (await receiver.receive()).message.body == "tea"


@pytest.mark.parametrize(
    ("name", "message"),
    [(MISSING, "requires sessions"), (7, "is int: expected a string")],
    ids=["none", "number"],
)
async def test_receiver_that_names_no_session_is_refused(
    autojump_clock: MockClock, name: Any, message: str
) -> None:
    async with open_client(bus_of(s=SESSIONS, q=None)) as conn:
        with pytest.raises(LinkRefusedError, match=message):
            async with session(conn, name):
                pass


async def test_session_of_an_entity_without_sessions_is_refused(autojump_clock: MockClock) -> None:
    async with open_client(bus_of(q=None)) as conn:
        source = Source(address="q", filter={Symbol(FILTER): "x"})
        with pytest.raises(LinkRefusedError, match="has no sessions"):
            async with locking(conn, None, source=source):
                pass
        with pytest.raises(LinkRefusedError, match="not-found"):
            async with locking(conn, "nowhere"):
                pass
