"""A program that uses a connection in every way that there is, and the peer that a script makes of what it dialled.

The program catches what the documentation says that its calls may raise, and nothing else. When the peer is gone, each
of its tasks comes to an end: none waits for what cannot come any more.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.net.memory_streams import memory_stream_pair

from .scenario import PROGRAM_NAMES
from .script import Act, unpack
from .stage import Puppet, UndeclaredError, on_stage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_SENDER, _RECEIVER = PROGRAM_NAMES
_PAUSES: Final = (1.0, 10.0, 70.0, 500.0)


def play(octets: bytes) -> None:
    """Play a script against the program."""
    on_stage(_Play(octets).run)


class _Play:
    def __init__(self, octets: bytes) -> None:
        self._moves = unpack(octets)
        self._octets = len(octets)
        self._busy: set[str] = set()

    async def run(self, clock: MockClock) -> None:
        ours, theirs = memory_stream_pair()
        async with trio.open_nursery() as nursery:
            puppet = Puppet(theirs, nursery)
            nursery.start_soon(self._guarded, "program", self._program, ours)
            for move in self._moves:
                if move.act is Act.CLOCK:
                    clock.jump(move.seconds)
                else:
                    await puppet.move(move)
                if move.act is not Act.WRITE:
                    await wait_all_tasks_blocked()
            puppet.close()
            for pause in _PAUSES:
                await wait_all_tasks_blocked()
                clock.jump(pause)
            await wait_all_tasks_blocked()
            busy = sorted(self._busy)
            nursery.cancel_scope.cancel()
        if busy:
            raise UndeclaredError(f"still waiting when the transport is long gone: {', '.join(busy)}")
        assert puppet.written <= 64 * self._octets + 64 * 1024, (
            f"{puppet.written} written about {self._octets}"
        )

    async def _guarded(self, name: str, call: Callable[..., Awaitable[None]], *args: object) -> None:
        self._busy.add(name)
        try:
            await call(*args)
        except LocalProtocolError as failure:
            # A script knows our UUIDs before we do, and may take the name of a link of ours; no real peer can. And it may
            # permit fewer links than the program opens, which is told to open another session (2.7.2).
            if not any(
                said in str(failure)
                for said in ("exists on this connection already", "that handle-max allows")
            ):
                raise UndeclaredError(f"{name}: the program did nothing wrong: {failure!r}") from failure
        except (amqp.AmqpError, trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        self._busy.discard(name)

    async def _program(self, stream: trio.abc.Stream) -> None:
        tasks = {"send": self._send, "receive": self._receive, "commit": self._commit, "ask": self._ask}
        async with (
            amqp.open_connection(stream, container_id="program") as conn,
            trio.open_nursery() as nursery,
        ):
            for name, task in tasks.items():
                nursery.start_soon(self._guarded, name, task, conn)

    async def _send(self, conn: amqp.Connection) -> None:
        async with conn.open_sender("q", name=_SENDER) as sender:
            delivery = await sender.transmit("first")
            await sender.send("second")
            await delivery.outcome()
            async with sender.stream() as stream:
                await stream.send_all(b"third")

    async def _receive(self, conn: amqp.Connection) -> None:
        async with conn.open_receiver("q", name=_RECEIVER, credit=3) as receiver:
            number = 0
            async for delivery in receiver:
                number += 1
                with suppress(RemoteProtocolError):
                    delivery.message.body  # noqa: B018 - to be read is all that it is for
                if delivery.settled:
                    continue
                with suppress(LocalProtocolError):  # documented: the peer has settled it, or the link is gone
                    (delivery.accept, delivery.release, delivery.reject, delivery.modify)[number % 4]()

    async def _commit(self, conn: amqp.Connection) -> None:
        async with conn.open_sender("q") as sender, conn.open_transaction() as transaction:
            await sender.send("in a transaction", transaction=transaction)

    async def _ask(self, conn: amqp.Connection) -> None:
        async with conn.open_requester("f") as requester:
            await requester.request("what?")
