"""One answer for one task: it comes, it fails, or it comes too late for a task that was cancelled."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from trio_amqp10.amqp091.client.reply import Reply, TransportLostError

ANSWER: Any = object()


async def test_answer_is_the_result_before_and_after_it_is_waited_for() -> None:
    reply = Reply()
    found: list[Any] = []

    async def waiting() -> None:
        found.append(await reply.result())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiting)
        await wait_all_tasks_blocked()
        assert found == []
        reply.settle(ANSWER)
    assert found == [ANSWER]
    assert await reply.result() is ANSWER


async def test_failure_is_raised_as_a_copy_and_the_first_one_counts() -> None:
    reply = Reply()
    first = TransportLostError("gone")
    reply.fail(first)
    reply.fail(TransportLostError("gone again"))
    with pytest.raises(TransportLostError, match=r"gone$") as caught:
        await reply.result()
    assert caught.value is not first


async def test_failure_behind_the_answer_does_not_count() -> None:
    reply = Reply()
    reply.settle(ANSWER)
    reply.fail(TransportLostError("gone"))
    assert await reply.result() is ANSWER


@pytest.mark.parametrize("early", [False, True], ids=["comes later", "is there"])
async def test_answer_that_its_task_no_longer_waits_for_is_late(early: bool) -> None:
    late: list[Any] = []
    reply = Reply(late.append)
    if early:
        reply.settle(ANSWER)
    with trio.CancelScope() as scope:
        scope.cancel()
        await reply.result()
    if not early:
        assert late == []
        reply.settle(ANSWER)
    assert late == [ANSWER]


async def test_late_answer_that_nobody_wants_is_dropped() -> None:
    reply = Reply()
    with trio.CancelScope() as scope:
        scope.cancel()
        await reply.result()
    reply.settle(ANSWER)
    with trio.move_on_after(0) as again:
        await reply.result()
    assert again.cancelled_caught
