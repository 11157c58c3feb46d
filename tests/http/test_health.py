"""The probes: when a container is alive, and when it is ready."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import trio
from starlette.applications import Starlette

from trio_amqp10.broker.stores import MemoryStore
from trio_amqp10.broker.stores.base import StoreError
from trio_amqp10.container import Container
from trio_amqp10.http.health import Readiness, routes

if TYPE_CHECKING:
    from trio.testing import MockClock

    from trio_amqp10.broker.stores.base import Batch, Done


async def get(container: Container, path: str) -> tuple[int, Any]:
    app = Starlette(routes=list(routes(container.management)))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get(path)
        assert answer.headers["cache-control"] == "no-store"
        return answer.status_code, answer.json()


async def test_container_that_listens_is_ready(nursery: trio.Nursery) -> None:
    container = Container(store=MemoryStore())
    assert await get(container, "/healthz") == (200, {"status": "ok"})
    assert await get(container, "/readyz") == (503, {"status": "failed", "reasons": ["no listener is open"]})
    await nursery.start(partial(container.serve, "amqp://127.0.0.1:0"))
    assert await get(container, "/readyz") == (200, {"status": "ok"})
    await container.finish()
    status, body = await get(container, "/readyz")
    assert (status, body["reasons"]) == (503, ["the container is finishing, and takes no new work"])
    assert await get(container, "/healthz") == (200, {"status": "ok"})
    nursery.cancel_scope.cancel()


async def test_container_with_too_many_messages_is_not_ready(nursery: trio.Nursery) -> None:
    container = Container(memory_limit=1000)
    await nursery.start(partial(container.serve, "amqp://127.0.0.1:0"))
    await container.send("q", b"x" * 1000)
    status, body = await get(container, "/readyz")
    octets = container.watermark.octets
    assert (status, body["reasons"]) == (
        503,
        [f"messages take {octets} octets of memory: the limit is 1000"],
    )
    await container.management.purge("q")
    assert (await get(container, "/readyz"))[0] == 200
    nursery.cancel_scope.cancel()


@pytest.mark.logs_errors
async def test_container_whose_store_fails_is_not_ready_until_it_works_again(nursery: trio.Nursery) -> None:
    store = MemoryStore()
    container = Container(store=store)
    await nursery.start(partial(container.serve, "amqp://127.0.0.1:0"))
    store.failure = StoreError("the store '/secret/path' is full")
    assert await get(container, "/readyz") == (
        503,
        {"status": "failed", "reasons": ["the store cannot be written"]},
    )
    store.failure = None
    assert (await get(container, "/readyz"))[0] == 200
    nursery.cancel_scope.cancel()


class Silent(MemoryStore):
    """A store whose disk does not answer."""

    def write(self, batch: Batch, done: Done) -> None:
        pass


async def test_store_that_does_not_answer_is_not_waited_for(autojump_clock: MockClock) -> None:
    container = Container(store=Silent())
    reasons = await Readiness(container.management).reasons()
    assert reasons == ["no listener is open", "the store has not written a row in 1 s"]
    assert autojump_clock.current_time() == 1.0


async def test_many_probes_cost_one_commit_in_a_second(autojump_clock: MockClock) -> None:
    container = Container(store=MemoryStore())
    readiness = Readiness(container.management)
    assert container.journal is not None
    for moment in range(3):
        async with trio.open_nursery() as nursery:
            for _ in range(100):
                nursery.start_soon(readiness.reasons)
        assert container.journal.commits == moment + 1
        await trio.sleep(1.0)
    assert autojump_clock.current_time() == 3.0
