"""Messages that a container sends within itself."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies
from trio_amqp10.container import Container, RefusedError
from trio_amqp10.core.errors import LocalProtocolError


@pytest.mark.logs_errors
async def test_send_puts_a_message_in_a_node_and_waits_until_it_is_accepted() -> None:
    container = Container()
    got: list[Any] = []

    @container.consumer("audit")
    async def audit(delivery: amqp.Delivery) -> None:
        got.append(delivery.message.body)
        match delivery.message.body:
            case "bad":
                raise ValueError
            case "back":
                delivery.release()
            case "changed":
                delivery.modify(delivery_failed=True)
            case "worse":
                delivery.reject()

    await container.send("audit", "good")
    for body, condition in (
        ("bad", "amqp:internal-error"),
        ("worse", "amqp:internal-error"),
        ("back", "amqp:precondition-failed"),
        ("changed", "amqp:precondition-failed"),
    ):
        with pytest.raises(RefusedError) as refused:
            await container.send("audit", amqp.Message(body))
        assert refused.value.condition == condition
    assert got == ["good", "bad", "worse", "back", "changed"]
    await container.send("q", {"n": 1})
    async with container.connect() as conn, conn.open_receiver("q") as receiver:
        assert await bodies(receiver, 1) == [{"n": 1}]
    await wait_all_tasks_blocked()
    assert list(container.nodes) == ["audit"]


async def test_send_raises_where_nobody_takes_the_message() -> None:
    container = Container("c", strict=True)

    @container.producer("ticks")
    async def ticks(link: amqp.Sender) -> None: ...

    for address, condition in (("nobody", "amqp:not-found"), ("ticks", "amqp:not-allowed")):
        with pytest.raises(RefusedError) as refused:
            await container.send(address, "x")
        assert refused.value.condition == condition
    with pytest.raises(LocalProtocolError):
        await container.send("ticks", object())


async def test_send_cancelled_leaves_nothing_behind() -> None:
    container = Container()
    queue = container.add_queue("q", max_length=1)
    await container.send("q", 1)
    with trio.move_on_after(0.01) as scope:
        await container.send("q", 2)
    assert scope.cancelled_caught
    assert (len(queue), queue.inlets) == (1, {})


async def test_send_runs_a_function_whose_reply_goes_to_another_function() -> None:
    container = Container()

    @container.function("double")
    async def double(message: amqp.Message) -> amqp.Message:
        return amqp.Message(message.body * 2, reply_to="results")

    @container.function("negate")
    async def negate(message: amqp.Message) -> int:
        return -int(message.body)

    container.add_queue("results")
    await container.send("double", amqp.Message(21, reply_to="negate"))
    async with container.connect() as conn, conn.open_receiver("results") as receiver:
        assert await bodies(receiver, 1) == [-42]
