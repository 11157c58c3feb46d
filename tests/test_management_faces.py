"""Management of a peer from asyncio and without async: the modules, their calls, and reading that is cancelled."""

from __future__ import annotations

import ast
import asyncio
import inspect
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10 import aio, blocking
from trio_amqp10.container.management import OperationRefusedError, Redriven, RemoteManagement
from trio_amqp10.testing import running_container

from .management_faces import module, source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUEUES = 1200


@pytest.fixture
def url() -> Iterator[str]:
    container = amqp.Container("peer")
    container.add_management()
    for number in range(QUEUES):
        container.add_queue(f"q{number}", dead_letter="dead")
    container.add_queue("dead")
    with running_container(container=container) as url:
        yield url


@pytest.mark.parametrize("face", ["aio", "blocking"])
def test_module_is_what_the_list_makes(face: str) -> None:
    written, made = module(face).read_text(), source(face)
    assert ast.dump(ast.parse(written)) == ast.dump(ast.parse(made)), "run python -m tests.management_faces"


@pytest.mark.parametrize("face", [aio, blocking])
def test_face_has_every_call_with_the_same_parameters(face: Any) -> None:
    calls = [name for name in vars(RemoteManagement) if not name.startswith("_")]
    assert len(calls) > 30
    for name in calls:
        ours, theirs = (getattr(cls, name) for cls in (face.RemoteManagement, RemoteManagement))
        assert inspect.signature(ours) == inspect.signature(theirs)
        assert inspect.iscoroutinefunction(ours) == (face is aio and inspect.iscoroutinefunction(theirs))


def test_container_is_managed_from_asyncio(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as conn, conn.open_management(timeout=30) as management:
            assert "RemoteManagement" in repr(management)
            made = await management.create_queue("new", max_length=3)
            assert made.rules.max_length == 3
            assert await management.publish("q1", "tea")
            assert (await management.get("q1", outcome="reject"))[0].message.body == "tea"
            assert await management.redrive("dead") == Redriven(moved={"q1": 1}, left=0)
            assert await management.purge("q1") == 1
            names = [each.address async for each in management.queues() if each.address.startswith("q")]
            assert names == [f"q{number}" for number in range(QUEUES)]
            assert await management.queues().count() >= QUEUES
            assert (await management.queues().page(2, 2)).items[0].address == "q2"
            with pytest.raises(OperationRefusedError, match="no queue 'nothing'"):
                await management.purge("nothing")
            assert "aio" in repr(management.queues())

    asyncio.run(main())


def stand_still(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def has_gone_on(reading: Any, offset: int) -> bool:
    return bool(reading._offset != offset or reading._is_over)


def test_entries_on_their_way_are_not_lost_if_reading_is_cancelled(url: str) -> None:
    async def main() -> None:
        async with aio.connect(url) as conn, conn.open_management() as management:
            reading: Any = aiter(management.queues())
            found: list[str] = []
            cancelled = 0
            while True:
                task = asyncio.ensure_future(anext(reading, None))
                if not (reading._entries or reading._inner._entries or reading._inner._is_over):
                    await asyncio.sleep(0)  # it asks for the next page
                    stand_still(partial(has_gone_on, reading._inner, reading._inner._offset))
                    task.cancel()  # its page is there, and has not reached the loop
                try:
                    one = await task
                except asyncio.CancelledError:
                    cancelled += 1
                    stand_still(lambda: bool(reading._inner._entries))  # they are put back
                    continue
                if one is None:
                    break
                found.append(one.address)
            names = [each for each in found if each.startswith("q")]
            assert names == [f"q{number}" for number in range(QUEUES)]
            assert cancelled >= 3

    asyncio.run(main())


def test_container_is_managed_without_async(url: str) -> None:
    with blocking.connect(url) as conn, conn.open_management() as management:
        assert "blocking" in repr(management)
        management.create_topic("t")
        management.publish("q1", "tea")
        assert [each.message.body for each in management.browse("q1")] == ["tea"]
        assert management.move("q1", "q2") == 1
        assert management.delete("q2") == 1
        names = [each.address for each in management.queues() if each.address.startswith("q")]
        assert names == [f"q{number}" for number in range(QUEUES) if number != 2]
        assert management.topics().count() == 1
        assert [each.address for each in management.topics().page().items] == ["t"]
        (own,) = management.connections()
        with pytest.raises(OperationRefusedError) as refused:
            management.close_connection(own.number + 1)
        assert refused.value.reason == "not-found"
        exported = management.export_definitions()
        assert management.import_definitions(exported).left_out == ()
        with pytest.raises(amqp.LinkRefusedError):
            conn.open_management("$nothing")
