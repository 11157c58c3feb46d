"""A container that dies and lives again on the same disk."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.mortal import Disk, Mortal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio_amqp10.amqp10.peer.connection import Connection
    from trio_amqp10.container import Queue

POLICY = amqp.ExpiryPolicy


class Life:
    """One life of a container on a disk."""

    def __init__(self, disk: Disk) -> None:
        self._store = Mortal(disk, None, done=True, die=lambda: None)
        self.container = amqp.Container("house", store=self._store, wall_clock=trio.current_time)  # type: ignore[arg-type]

    def queue(self, **rules: Any) -> Queue:
        return self.container.add_queue("q", durable=True, **rules)

    @asynccontextmanager
    async def program(self, name: str = "program", **options: Any) -> AsyncGenerator[Connection]:
        async with self.container.connect(container_id=name, idle_timeout=None, **options) as conn:
            yield conn

    async def end(self, *conns: Connection) -> None:
        """End the process as ``kill -9`` does.

        All frames that were sent are read before, and all rows that were noted are written.
        """
        await wait_all_tasks_blocked()
        self._store.dead = True
        for conn in conns:
            conn.pump.cancel()
            await conn.pump.finished.wait()
        await wait_all_tasks_blocked()


def lasting(timeout: float = 60, **more: Any) -> dict[str, Any]:
    kept = {"expiry_policy": POLICY.CONNECTION_CLOSE, "expiry_timeout": timeout, "durable": True}
    return {"name": "x", "guarantee": "exactly-once", **kept, **more}
