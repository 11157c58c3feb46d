"""A desk: a spool, and the receivers that fill it, one after the other."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import trio_amqp10 as amqp
from trio_amqp10.spark.options import QueueOptions
from trio_amqp10.spark.segments import SegmentReader
from trio_amqp10.spark.spool import Slice, Spool
from trio_amqp10.spark.spool_receiver import SpoolReceiver

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .peers import Peer

PATIENCE = 300
"""Seconds after which something counts as stuck.

The first batch of a query alone takes two minutes on a busy machine.
"""


def dotted(given: dict[str, str]) -> dict[str, str]:
    """Options by their names: ``spool_maxBytes`` for ``spool.maxBytes``."""
    return {name.replace("_", "."): value for name, value in given.items()}


class Desk:
    """A spool, and receivers that fill it."""

    def __init__(self, peer: Peer, folder: Path) -> None:
        self.peer = peer
        self.folder = folder
        self.running: list[tuple[SpoolReceiver, Spool]] = []

    def start(self, *, emptying: bool = False, **given: str) -> tuple[SpoolReceiver, Spool]:
        names = dotted(given)
        needed = {
            "url": self.peer.url,
            "address": self.peer.address("q"),
            "spool": str(self.folder / "spool"),
        }
        options = QueueOptions.parse(needed | names)
        spool = Spool(options.spool, max_bytes=options.spool_max_bytes, keep=options.kept_rows)
        try:
            receiver = SpoolReceiver(options, spool, emptying=emptying)
        except BaseException:
            spool.close()
            raise
        self.running.append((receiver, spool))
        return receiver, spool

    def stop(self) -> None:
        for receiver, spool in self.running:
            receiver.stop()
            spool.close()
        self.running.clear()


def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds, by the work of another thread."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def read(slices: list[Slice], **given: str) -> list[dict[str, Any]]:
    """Return the rows of slices, with these options."""
    needed = {"url": "amqp://h", "address": "q", "spool": "/s"}
    batches = SegmentReader(QueueOptions.parse(needed | dotted(given))).read(slices)
    return [row for batch in batches for row in batch.to_pylist()]


def bodies(spool: Spool) -> list[Any]:
    return [row["body"] for row in read(spool.slices(spool.low, spool.end), columns="body")]


def consumed(spool: Spool) -> list[Any]:
    """Return the bodies of unconsumed rows, and consume them."""
    found = bodies(spool)
    spool.release(spool.end)
    return found


def numbered(count: int) -> list[amqp.Message]:
    return [amqp.Message(b"%d" % number, message_id=number) for number in range(count)]
