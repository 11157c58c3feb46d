"""This library as a sender of asyncio, and of trio beside it: ``python -m bench.sides.aio_side JOB``.

A role is where it runs and what it does: ``trio``, ``aio`` or ``guest``, and ``each`` (one at a time, with its outcome) or ``window`` (``transmit``, and one
``flush`` at the end).
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import TYPE_CHECKING

import trio

import trio_amqp10 as amqp
from trio_amqp10 import aio

from .lines import Span, go, read_job, tell

if TYPE_CHECKING:
    from types import SimpleNamespace


async def send(job: SimpleNamespace, sender: amqp.Sender | aio.Sender, what: str) -> dict[str, float]:
    """The two have the same calls."""
    body = bytes(job.size)
    for _ in range(job.count // 10):
        await sender.send(body)
    go()
    span = Span()
    if what == "each":
        for _ in range(job.count):
            await sender.send(body)
    else:
        for _ in range(job.count):
            await sender.transmit(body)
        await sender.flush()
    return span.end(job.count)


async def on_trio(job: SimpleNamespace, what: str) -> dict[str, float]:
    async with amqp.open_connection(job.url) as conn, conn.open_sender(job.address) as sender:
        return await send(job, sender, what)


async def on_asyncio(job: SimpleNamespace, what: str, *, guest: bool) -> dict[str, float]:
    async with (
        aio.guest_mode() if guest else nullcontext(),
        aio.connect(job.url) as conn,
        conn.open_sender(job.address) as sender,
    ):
        return await send(job, sender, what)


def main() -> None:
    job = read_job()
    where, _, what = job.role.partition("-")
    if where == "trio":
        tell(result=trio.run(on_trio, job, what))
    else:
        tell(result=asyncio.run(on_asyncio(job, what, guest=where == "guest")))


if __name__ == "__main__":
    main()
