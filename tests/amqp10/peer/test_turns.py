"""No connection keeps others waiting: what is read between two turns of another task, counted on every transport layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import memory_stream_pair
from wsproto.events import BytesMessage, Event, Ping

from tests.naive.performatives import frame, header
from tests.net.test_websocket import websocket_pair
from trio_amqp10.net.tls_stream import start_tls

from .authority import believing, serving
from .helpers import acceptor, idle, stream_pair

if TYPE_CHECKING:
    from collections.abc import Callable

    import trio_amqp10 as amqp
    from trio_amqp10.net.websocket import WebSocketStream

MOST = 2 * 64
"""Frames: each of two tasks has one turn in a pass of the scheduler, and these may lie back to back."""

FLOW = frame("flow", next_incoming_id=0, incoming_window=9, next_outgoing_id=0, outgoing_window=9)
FLOODS = {
    "flows": FLOW * 2_000,
    "echoes": frame(
        "flow", next_incoming_id=0, incoming_window=9, next_outgoing_id=0, outgoing_window=9, echo=True
    )
    * 2_000,
    "dispositions": frame("disposition", role=True, first=0, last=2**31 - 1, settled=True) * 4_000,
}


async def tls_pair() -> tuple[trio.abc.Stream, trio.abc.Stream]:
    ours, theirs = memory_stream_pair()
    pair: dict[str, trio.abc.Stream] = {}

    async def accept() -> None:
        pair["server"] = await start_tls(theirs, serving(), server_side=True)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept)
        pair["client"] = await start_tls(ours, believing(), server_hostname="localhost")
    return pair["client"], pair["server"]


async def make_pair(kind: str) -> tuple[trio.abc.Stream, trio.abc.Stream]:
    if kind == "websocket":
        return await websocket_pair()
    return await (tls_pair() if kind == "tls" else stream_pair(kind))


class Turns:
    """A task that wants a turn whenever it can have one, and notes what was counted between two."""

    def __init__(self, count: Callable[[], int]) -> None:
        self.count = count
        self.steps: list[int] = []

    async def take(self, whole: int) -> None:
        before = 0
        while before < whole:
            await trio.lowlevel.checkpoint()
            now = self.count()
            self.steps.append(now - before)
            before = now


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.parametrize("kind", ["memory", "tcp", "tls", "websocket"])
async def test_flood_of_frames_lets_others_have_their_turn_after_64(kind: str, flood: str) -> None:
    ours, theirs = await make_pair(kind)
    served: list[amqp.Connection] = []

    async def handle(connection: amqp.Connection) -> None:
        served.append(connection)
        await idle(connection)

    async def drain() -> None:
        while await ours.receive_some(65_536):
            pass

    frames = FLOODS[flood].count(b"S\x13") + FLOODS[flood].count(b"S\x15") + 2
    turns = Turns(lambda: served[0].engine.frames_in if served else 0)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(acceptor().run, theirs, handle)
            nursery.start_soon(drain)
            begin = frame("begin", next_outgoing_id=0, incoming_window=9, outgoing_window=9)
            await ours.send_all(header("amqp") + frame("open", container_id="flood") + begin)
            while not served:
                await trio.lowlevel.checkpoint()
            served[0].pump.read_size = 256 * 1024
            nursery.start_soon(ours.send_all, FLOODS[flood])
            await turns.take(frames)
            nursery.cancel_scope.cancel()
    await trio.aclose_forcefully(ours)
    assert sum(turns.steps) == frames
    assert max(turns.steps) <= MOST


@pytest.mark.parametrize("event", [Ping(), BytesMessage(data=b""), BytesMessage(data=b"x")])
async def test_flood_of_websocket_frames_lets_others_have_their_turn_after_64(event: Event) -> None:
    client, server = await websocket_pair()
    counted = 0
    inner: Any = server._connection  # pyright: ignore[reportPrivateUsage]
    events = inner.events

    def counting() -> Any:
        nonlocal counted
        for each in events():
            counted += 1
            yield each

    inner.events = counting
    raw = b"".join(client._connection.send(event) for _each in range(5_000))  # pyright: ignore[reportPrivateUsage]
    turns = Turns(lambda: counted)

    async def read(stream: WebSocketStream) -> None:
        while True:
            await stream.receive_some(256 * 1024)

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, server)
            nursery.start_soon(client._stream.send_all, raw)  # pyright: ignore[reportPrivateUsage]
            await turns.take(5_000)
            nursery.cancel_scope.cancel()
    assert max(turns.steps) <= MOST
