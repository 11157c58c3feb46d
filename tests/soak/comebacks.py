"""Does a connection that comes back lose or repeat anything? Three runs, a checker, and one line of counts for each.

``at-least-once`` and ``exactly-once``: ``amqp10 serve --store FILE`` gets SIGKILL again and again under one sender and
one receiver that were opened once, with ``reconnect``; it has what it must remember of their links in its store
(3.5.5). ``exactly-once`` again: a container of this process, behind a proxy that resets the transports at random
moments (2.6.13). In all, a program never sees that anything happened: whatever raises is counted.

==============  ====================================================================================
attempted       messages that were sent
accepted        those whose outcome came back as accepted
lost            accepted, and never received: must be 0
missing         attempted, and never received: must be 0, as nobody gave up
duplicated      deliveries of a message beyond the first: 0 for exactly-once
raised          calls of the program that raised: must be 0
==============  ====================================================================================
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import trio

import trio_amqp10 as amqp
from tests.results import add_option, write
from trio_amqp10.testing import open_proxy

from .kills import Server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Guarantee = Literal["at-least-once", "exactly-once"]
GUARANTEES: Final[tuple[Guarantee, ...]] = get_args(Guarantee)

BACKOFF = amqp.Backoff(initial=0.02, factor=2, maximum=0.3)
_QUIET = 2.0
"""Seconds without a message after which none comes twice."""
_STUCK = 20.0
"""Seconds without a message after which what is missing will not come: a busy machine takes some to start a server."""


@dataclass
class Tally:
    """What happened."""

    guarantee: Guarantee
    breaks: int = 0
    restored: int = 0
    attempted: int = 0
    accepted: set[int] = field(default_factory=set[int])
    received: Counter[int] = field(default_factory=Counter[int])
    raised: list[str] = field(default_factory=list[str])

    def counts(self) -> dict[str, Any]:
        """All that is counted, in the words of the table above."""
        return {
            "guarantee": self.guarantee,
            "breaks": self.breaks,
            "restored": self.restored,
            "attempted": self.attempted,
            "accepted": len(self.accepted),
            "received": len(self.received),
            "lost": len(self.accepted - self.received.keys()),
            "missing": len(set(range(self.attempted)) - self.received.keys()),
            "duplicated": self.received.total() - len(self.received),
            "raised": len(self.raised),
        }

    @property
    def good(self) -> bool:
        """Whether the guarantee was kept."""
        counts = self.counts()
        wrong = counts["lost"] + counts["missing"] + counts["raised"]
        return not wrong and (self.guarantee == "at-least-once" or not counts["duplicated"])


class Program:
    """A sender and a receiver on one connection each, which know nothing of any of this."""

    def __init__(self, url: str, tally: Tally) -> None:
        self._url = url
        self._tally = tally
        self._room = trio.Semaphore(50)
        self._last = 0.0
        self.sending = True

    async def run(self, breaking: Callable[[], Awaitable[None]]) -> None:
        """Send and receive while ``breaking`` breaks things; then drain."""
        self._last = trio.current_time()
        async with (
            amqp.open_connection(self._url, reconnect=BACKOFF) as sending,
            amqp.open_connection(self._url, reconnect=BACKOFF) as receiving,
            sending.open_sender("q", guarantee=self._tally.guarantee) as sender,
            receiving.open_receiver("q", guarantee=self._tally.guarantee, credit=100) as receiver,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(self._count, sending)
            nursery.start_soon(self._count, receiving)
            nursery.start_soon(self._receive, receiver)
            async with trio.open_nursery() as senders:
                senders.start_soon(self._send, sender, senders)
                await breaking()
                self.sending = False
            while (left := self._patience()) > 0:  # noqa: ASYNC110 - it moves on
                await trio.sleep(min(left, 0.1))
            nursery.cancel_scope.cancel()

    def _patience(self) -> float:
        """Seconds to wait on: not long for what comes twice, and for what has not come until nobody can be expected to."""
        complete = len(self._tally.received) == self._tally.attempted
        return self._last + (_QUIET if complete else _STUCK) - trio.current_time()

    async def _count(self, connection: amqp.Connection) -> None:
        async for change in connection.changes():
            self._tally.restored += change.kind == "restored"

    async def _send(self, sender: amqp.Sender, nursery: trio.Nursery) -> None:
        try:
            while self.sending:
                await self._room.acquire()
                number = self._tally.attempted
                self._tally.attempted += 1
                delivery = await sender.transmit(amqp.Message(number, durable=True))
                nursery.start_soon(self._outcome, delivery, number)
                await trio.sleep(0.0005)
        except Exception as failure:
            self._tally.raised.append(repr(failure))

    async def _outcome(self, delivery: amqp.OutgoingDelivery, number: int) -> None:
        try:
            if isinstance(await delivery.outcome(), amqp.Accepted):
                self._tally.accepted.add(number)
        except Exception as failure:
            self._tally.raised.append(repr(failure))
        self._room.release()

    async def _receive(self, receiver: amqp.Receiver) -> None:
        try:
            async for delivery in receiver:
                self._tally.received[delivery.message.body] += 1
                self._last = trio.current_time()
                delivery.accept()
        except Exception as failure:
            self._tally.raised.append(repr(failure))


async def kill_servers(
    path: Path, breaks: int, guarantee: Guarantee, seed: int = 0, slow: float = 0.0
) -> Tally:
    """Over a process that is killed; ``path`` is where its store is made, each commit of which waits ``slow`` milliseconds."""
    chance = random.Random(seed)
    tally = Tally(guarantee)
    server = Server(path, slow=slow)
    await server.start()

    async def breaking() -> None:
        for _ in range(breaks):
            await trio.sleep(chance.uniform(0.05, 0.4))
            await server.end(signal.SIGKILL)
            tally.breaks += 1
            await server.start()
        await trio.sleep(0.5)

    try:
        await Program(server.url, tally).run(breaking)
    finally:
        await server.end(signal.SIGTERM)
    return tally


async def cut_transports(breaks: int, seed: int = 0) -> Tally:
    """Exactly-once, through a proxy that resets its connections."""
    chance = random.Random(seed)
    tally = Tally("exactly-once")
    container = amqp.Container("soak")
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        async with open_proxy(listener.url) as proxy:

            async def breaking() -> None:
                for _ in range(breaks):
                    await trio.sleep(chance.uniform(0.01, 0.25))
                    proxy.cut("reset")
                    tally.breaks += 1
                await trio.sleep(0.5)

            await Program(proxy.url, tally).run(breaking)
        nursery.cancel_scope.cancel()
    return tally


def main() -> None:
    """All runs; fails where a guarantee was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--breaks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slow", type=float, default=0.0, metavar="MILLISECONDS")
    add_option(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tallies = [
            trio.run(
                *(kill_servers, Path(folder) / guarantee),
                *(arguments.breaks, guarantee, arguments.seed, arguments.slow),
            )
            for guarantee in GUARANTEES
        ]
    tallies.append(trio.run(cut_transports, arguments.breaks, arguments.seed))
    for tally in tallies:
        print(json.dumps(tally.counts()))
        for raised in tally.raised[:5]:
            print(raised, file=sys.stderr)
    write(arguments.results, "comebacks", {"runs": [tally.counts() for tally in tallies]})
    if not all(tally.good for tally in tallies):
        sys.exit("FAILED: see `lost`, `missing`, `duplicated` and `raised`")


if __name__ == "__main__":
    main()
