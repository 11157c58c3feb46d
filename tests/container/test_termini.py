"""Links to a container that outlast their connections: kept, taken up, stolen, expired (2.6.1, 2.6.13, 3.5.6)."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio_amqp10.peer.connection import Connection

POLICY = amqp.ExpiryPolicy


@asynccontextmanager
async def program(container: amqp.Container, **options: Any) -> AsyncGenerator[Connection]:
    async with container.connect(container_id="program", **options) as conn:
        yield conn


async def cut(conn: Connection) -> None:
    """The transport goes, after all that was said has been read."""
    await wait_all_tasks_blocked()
    conn.pump.cancel()
    await conn.pump.finished.wait()
    await wait_all_tasks_blocked()


def lasting(timeout: float = 60, **more: Any) -> dict[str, Any]:
    kept = {"expiry_policy": POLICY.CONNECTION_CLOSE, "expiry_timeout": timeout}
    return {"name": "x", "guarantee": "exactly-once", **kept, **more}


async def test_attach_says_what_is_kept() -> None:
    container = amqp.Container()
    async with program(container) as conn:
        async with conn.open_sender("q", **lasting(60)) as sender:
            target = sender.remote.target
            assert (target.expiry_policy, target.timeout, target.durable) == ("connection-close", 60, 0)
            assert len(container.termini) == 1
        assert len(container.termini) == 0  # closed
        async with conn.open_receiver("q", expiry_policy=POLICY.NEVER) as receiver:
            assert receiver.remote.source.expiry_policy == "never"
        async with conn.open_receiver("q", expiry_timeout=10**6) as receiver:
            assert receiver.remote.source.timeout == 86_400
        async with conn.open_receiver("q") as receiver:
            assert receiver.remote.source.expiry_policy == "link-detach"
            assert len(container.termini) == 0


async def test_what_was_sent_is_not_sent_twice_when_the_answer_was_lost() -> None:
    container = amqp.Container()
    queue = container.add_queue("q")
    store = amqp.MemoryTerminusStore()
    async with program(container) as conn:
        sender = await conn.open_sender("q", **lasting(store=store)).__aenter__()
        delivery = await sender.transmit("one")
        conn.pump.cancel()  # before anything is written, or read
        await conn.pump.finished.wait()
    await wait_all_tasks_blocked()
    async with program(container) as conn, conn.open_sender("q", **lasting(store=store)) as sender:
        assert await delivery.outcome() == amqp.Accepted()
        await sender.send("two")
    assert len(queue) == 2


async def test_lease_waits_for_its_consumer_to_come_back() -> None:
    container = amqp.Container()
    queue = container.add_queue("q")
    await container.send("q", "one")
    store = amqp.MemoryTerminusStore()
    async with program(container) as conn:
        receiver = await conn.open_receiver("q", **lasting(store=store)).__aenter__()
        held = await receiver.receive()
        await cut(conn)
    async with program(container) as conn:
        async with conn.open_receiver("q") as other:
            with trio.move_on_after(0.01) as scope:
                await other.receive()
            assert scope.cancelled_caught  # nobody else gets it
        async with conn.open_receiver("q", **lasting(store=store)):
            held.accept()
            await held.wait_settled()
            await wait_all_tasks_blocked()
            assert len(queue) == 0


async def test_lease_comes_back_to_the_queue_when_its_link_expires(autojump_clock: Any) -> None:
    container = amqp.Container()
    queue = container.add_queue("q")
    await container.send("q", "one")
    async with program(container) as conn:
        receiver = await conn.open_receiver("q", **lasting(60)).__aenter__()
        await receiver.receive()
        await cut(conn)
    assert queue.available == 0
    async with program(container, idle_timeout=None) as conn, conn.open_receiver("q") as other:
        before = trio.current_time()
        delivery = await other.receive()
        assert 59 <= trio.current_time() - before <= 61
        assert delivery.message.delivery_count == 1
        delivery.accept()
    assert len(container.termini) == 0


async def test_lease_comes_back_at_once_when_the_consumer_forgot_it() -> None:
    container = amqp.Container()
    container.add_queue("q")
    await container.send("q", "one")
    async with program(container) as conn:
        receiver = await conn.open_receiver("q", **lasting()).__aenter__()
        await receiver.receive()
        await cut(conn)
    async with program(container) as conn, conn.open_receiver("q", **lasting()) as again:
        delivery = await again.receive()
        assert delivery.message.delivery_count == 1
        delivery.accept()


@pytest.mark.parametrize(
    ("policy", "detach", "session", "connection"),
    [
        (POLICY.LINK_DETACH, True, True, True),
        (POLICY.SESSION_END, False, True, True),
        (POLICY.CONNECTION_CLOSE, False, False, True),
        (POLICY.NEVER, False, False, False),
    ],
)
async def test_timer_starts_when_the_policy_says(
    policy: str, detach: bool, session: bool, connection: bool, autojump_clock: Any
) -> None:
    container = amqp.Container()
    options: dict[str, Any] = {"expiry_policy": policy, "expiry_timeout": 5}
    async with program(container, idle_timeout=None) as conn:
        async with conn.open_session() as own:
            sender = await own.open_sender("q", **options).__aenter__()
            await sender.detach()
            await trio.sleep(10)
            assert (len(container.termini) == 0) is detach
        await trio.sleep(10)
        assert (len(container.termini) == 0) is session
    await trio.sleep(10)
    async with program(container):
        await wait_all_tasks_blocked()
        assert (len(container.termini) == 0) is connection


async def test_link_is_stolen_by_the_same_peer_on_another_connection() -> None:
    container = amqp.Container()
    queue = container.add_queue("q")
    await container.send("q", "one")
    store = amqp.MemoryTerminusStore()
    async with program(container) as first, program(container) as second:
        old = await first.open_receiver("q", **lasting()).__aenter__()
        held = await old.receive()
        async with second.open_receiver("q", **lasting(store=store)) as new:
            with pytest.raises(amqp.LinkStolenError):
                await old.receive()
            held.accept()  # remembered, and of no use
            with pytest.raises(amqp.LinkStolenError):
                await held.wait_settled()
            delivery = await new.receive()  # the new one knew nothing of it
            delivery.accept()
            await delivery.wait_settled()
            await wait_all_tasks_blocked()
    assert len(queue) == 0


async def test_queue_stays_while_its_one_link_is_stolen() -> None:
    container = amqp.Container()
    async with program(container) as old, program(container) as new:
        taken = await old.open_receiver("q", **lasting()).__aenter__()
        queue = container.nodes["q"]  # nobody has added it: it goes with its last link
        async with new.open_receiver("q", **lasting()) as receiver:
            assert container.nodes["q"] is queue
            await container.send("q", "one")
            with trio.fail_after(1):
                assert (await receiver.receive()).message.body == "one"
        with suppress(amqp.LinkDetachedError):
            await taken.aclose()


async def test_link_of_another_user_is_not_given_away() -> None:
    container = amqp.Container()
    users = amqp.sasl.Server(users={"ada": "a", "bob": "b"})
    ada, bob = (amqp.sasl.Plain(name, name[0]) for name in ("ada", "bob"))
    async with program(container, users=users, sasl=ada) as first:
        link = await first.open_sender("q", **lasting()).__aenter__()
        await link.detach()
        async with program(container, users=users, sasl=bob) as second:
            with pytest.raises(amqp.LinkRefusedError, match="unauthorized-access"):
                await second.open_sender("q", **lasting()).__aenter__()
        await link.resume()
        await link.send("mine still")


async def test_no_more_is_kept_than_the_limit() -> None:
    container = amqp.Container()
    container.termini = type(container.termini)(trio.current_time, lambda _when, _call: None, limit=1)
    async with (
        program(container) as conn,
        conn.open_sender("q", **lasting(name="a")) as kept,
        conn.open_sender("q", **lasting(name="b")) as not_kept,
    ):
        assert kept.remote.target.timeout == 60
        assert not_kept.remote.target.timeout == 0
