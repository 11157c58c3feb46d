"""A desk: a spool and the intakes into it, one after the other, and what they have brought."""

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

__all__ = ["PATIENCE", "Desk", "bodies", "consumed", "dotted", "numbered", "read", "until"]

PATIENCE = 300
"""Seconds until a query that ought to end counts as stuck: its first batch alone takes a minute on a busy machine."""


def dotted(given: dict[str, str]) -> dict[str, str]:
    """Options by their names: ``spool_maxBytes`` for ``spool.maxBytes``."""
    return {name.replace("_", "."): value for name, value in given.items()}


class Desk:
    """A spool, and intakes into it."""

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


def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for what happens in another thread."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def read(slices: list[Slice], **given: str) -> list[dict[str, Any]]:
    """The rows, as these options want them."""
    needed = {"url": "amqp://h", "address": "q", "spool": "/s"}
    batches = SegmentReader(QueueOptions.parse(needed | dotted(given))).read(slices)
    return [row for batch in batches for row in batch.to_pylist()]


def bodies(spool: Spool) -> list[Any]:
    return [row["body"] for row in read(spool.slices(spool.low, spool.end), columns="body")]


def consumed(spool: Spool) -> list[Any]:
    """The bodies that nobody has consumed yet; now they are."""
    found = bodies(spool)
    spool.release(spool.end)
    return found


def numbered(count: int) -> list[amqp.Message]:
    return [amqp.Message(b"%d" % number, message_id=number) for number in range(count)]
