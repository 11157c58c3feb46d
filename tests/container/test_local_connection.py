"""A connection to a container in the same process: it is prepared, served, and ended with its block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

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
