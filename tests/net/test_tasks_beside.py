"""Tasks that run beside a block, and end with it."""

from __future__ import annotations

import pytest
import trio

from trio_amqp10.net.tasks_beside import tasks_beside


async def fail(event: trio.Event) -> None:
    await event.wait()
    raise LookupError("a task")


async def test_tasks_end_with_the_block() -> None:
    async with tasks_beside() as nursery:
        nursery.start_soon(trio.sleep_forever)


async def test_exception_of_the_block_is_raised_as_it_is() -> None:
    raised = ValueError("the block")
    with pytest.raises(ValueError, match="the block") as caught:
        async with tasks_beside() as nursery:
            nursery.start_soon(trio.sleep_forever)
            raise raised
    assert caught.value is raised


async def test_task_that_fails_cancels_the_block() -> None:
    event = trio.Event()
    with pytest.RaisesGroup(LookupError):
        async with tasks_beside() as nursery:
            nursery.start_soon(fail, event)
            event.set()
            await trio.sleep_forever()


async def test_cancellation_passes_through() -> None:
    with trio.CancelScope() as scope:
        async with tasks_beside() as nursery:
            nursery.start_soon(trio.sleep_forever)
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
