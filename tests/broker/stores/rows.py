"""Rows of a store, written and read."""

from __future__ import annotations

from typing import Any

import trio

import trio_amqp10 as amqp
from trio_amqp10 import StoreError, StoreTable
from trio_amqp10.broker.stores.base import Division

THINGS = StoreTable("things", ("id", "name", "octets"))
PARCELS = StoreTable(
    "parcels",
    ("id", "town", "place", "octets", "until"),
    division=Division(part="town", place="place", weight="octets", marked="until", bits=1),
)


async def write(store: amqp.Store, batch: Any) -> StoreError | None:
    """Write, and wait for what becomes of it."""
    outcome: list[StoreError | None] = []
    done = trio.Event()

    def tell(failure: StoreError | None) -> None:
        outcome.append(failure)
        done.set()

    store.write(batch, tell)
    assert not outcome  # never at once: whoever writes is in the middle of something
    with trio.fail_after(60):
        await done.wait()
    return outcome[0]


def row(key: int, octets: bytes = b"") -> tuple[Any, ...]:
    return key, f"thing {key}", octets
