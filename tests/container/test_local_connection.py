"""A connection to a container in the same process: it is prepared, served, and ended with its block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

import trio_amqp10 as amqp
from trio_amqp10 import sasl
from trio_amqp10.container import Container
from trio_amqp10.container.local_connection import LocalOptions

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_connection_is_counted_in_its_block_and_not_behind_it() -> None:
    container = Container("hub")
    async with container.connect(container_id="us") as conn:
        assert conn.remote.container_id == "hub"
        assert container.statistics()["connections"] == 1
    assert container.statistics()["connections"] == 0


async def test_exception_of_the_block_leaves_as_itself() -> None:
    container = Container("hub")
    with pytest.raises(ValueError, match="mine"):
        async with container.connect():
            raise ValueError("mine")
    assert container.statistics()["connections"] == 0


async def test_connection_that_is_refused_leaves_nothing_behind() -> None:
    container = Container("hub")
    users = sasl.Server(users={"ada": "right"})
    with pytest.raises(sasl.AuthenticationError):
        async with container.connect(users=users, sasl=sasl.Plain("ada", "wrong")):
            raise AssertionError("it was let in")
    assert container.statistics()["connections"] == 0


async def test_handlers_are_awaited_for_the_patience_of_the_connection(autojump_clock: MockClock) -> None:
    container = Container("hub")
    ended: list[str] = []

    @container.consumer("slow")
    async def slow(_: Any) -> None:
        try:
            await trio.sleep(100)
            ended.append("done")
        except trio.Cancelled:
            ended.append("cancelled")
            raise

    for patience, how in ((200.0, "done"), (2.0, "cancelled")):
        began = trio.current_time()
        async with container.connect(close_timeout=patience) as conn, conn.open_sender("slow") as sender:
            await sender.transmit("hi")
            await trio.testing.wait_all_tasks_blocked()
        assert ended.pop() == how
        assert trio.current_time() - began <= 101


def test_options_are_those_of_a_connection_and_users() -> None:
    users = sasl.Server(users={"ada": "right"})
    options = LocalOptions(container_id="us", users=users)
    assert options.users is users
    assert options.for_engine()["desired_capabilities"] == ("ANONYMOUS-RELAY",)
    assert LocalOptions().users is None


async def test_connection_that_reconnects_comes_back_after_a_cut(autojump_clock: MockClock) -> None:
    container = Container("hub")
    local = container.connect(reconnect=True)
    async with local as conn, conn.open_sender("orders") as sender, conn.open_receiver("orders") as receiver:
        await sender.send("before")
        for lasting in (0.0, 90.0):
            began = trio.current_time()
            local.cut(lasting)
            await sender.send(f"after {lasting}")
            assert trio.current_time() - began >= lasting
            seen: set[Any] = set()
            while f"after {lasting}" not in seen:
                delivery = await receiver.receive()
                seen.add(delivery.message.body)
                delivery.accept()
        assert container.statistics()["connections"] == 1
    assert container.statistics()["connections"] == 0


async def test_connection_that_does_not_reconnect_is_lost_by_a_cut() -> None:
    container = Container("hub")
    local = container.connect()
    async with local as conn, conn.open_sender("orders") as sender:
        local.cut()
        with pytest.raises(amqp.ConnectionClosedError, match="lost"):
            await sender.send("after")
    assert container.statistics()["connections"] == 0


async def test_first_dial_waits_until_a_cut_is_over(autojump_clock: MockClock) -> None:
    local = Container("hub").connect(reconnect=True)
    local.cut(90)
    async with local:
        assert trio.current_time() >= 90
    refused = Container("hub").connect()
    refused.cut(90)
    with pytest.raises(ConnectionRefusedError, match="is cut: dial again in"):
        async with refused:
            raise AssertionError("it was dialled")


async def test_attempts_of_a_connection_that_is_cut_for_long_are_used_up(autojump_clock: MockClock) -> None:
    local = Container("hub").connect(reconnect=amqp.Backoff(attempts=3))
    async with local as conn:
        changes = conn.changes()
        local.cut(3600)
        with pytest.raises(amqp.ConnectionClosedError, match="is cut: dial again in"):
            await conn.wait_closed()
        assert [change.kind async for change in changes] == ["lost", "stopped"]
