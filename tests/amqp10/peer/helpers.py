"""Two ends of a conversation for the tests of this folder: ours on both sides, or ours and a scripted one."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import lockstep_stream_pair, memory_stream_pair

import trio_amqp10 as amqp
from tests.naive.peer import ScriptedPeer
from tests.naive.performatives import frame
from trio_amqp10.amqp10.peer.listen import Acceptor

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

STREAMS = ["memory", "lockstep", "tcp", "unix"]

unlimited = amqp.Limits(
    max_message_size=None, header_timeout=None, handshake_timeout=None, write_stall=None, close_timeout=1e6
)


async def stream_pair(kind: str, tmp_path: Any = None) -> tuple[trio.abc.Stream, trio.abc.Stream]:
    """Two ends of a stream, of one of STREAMS."""
    if kind == "memory":
        return memory_stream_pair()
    if kind == "lockstep":
        return lockstep_stream_pair()
    if kind == "unix":
        a, b = trio.socket.socketpair()
        return trio.SocketStream(a), trio.SocketStream(b)
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    host, port = listener.socket.getsockname()[:2]
    ours = await trio.open_tcp_stream(host, port)
    theirs = await listener.accept()
    await listener.aclose()
    return ours, theirs


def acceptor(**options: Any) -> Acceptor:
    defaults: dict[str, Any] = {
        "container_id": "service",
        "sasl": amqp.sasl.Server(),
        "limits": amqp.Limits(),
    }
    return Acceptor(**(defaults | options))


async def idle(connection: amqp.Connection) -> None:
    """A handler that accepts no link, and goes when the peer does."""
    await connection.pump.finished.wait()


async def never(connection: amqp.Connection) -> None:
    raise AssertionError("the handler of a connection that should not come to be")


@asynccontextmanager
async def served(
    handler: Callable[[amqp.Connection], Awaitable[object]] = idle,
    *,
    streams: tuple[trio.abc.Stream, trio.abc.Stream] | None = None,
    accept: dict[str, Any] | None = None,
    **dial: Any,
) -> AsyncGenerator[amqp.Connection]:
    """A connection of ours to a service of ours."""
    ours, theirs = streams or memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor(**(accept or {})).run, theirs, handler)
        async with amqp.open_connection(ours, **dial) as connection:
            yield connection
        nursery.cancel_scope.deadline = trio.current_time() + 60


@asynccontextmanager
async def dialled(
    *, begin: bool = True, streams: tuple[trio.abc.Stream, trio.abc.Stream] | None = None, **options: Any
) -> AsyncGenerator[tuple[amqp.Connection, ScriptedPeer]]:
    """A connection of ours to a scripted peer, which has answered open and the default session's begin."""
    ours, theirs = streams or memory_stream_pair()
    peer = ScriptedPeer(theirs)

    async def answer() -> None:
        await peer.accept_open()
        if begin:
            await peer.accept_begin()
        answered.set()

    answered = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        async with amqp.open_connection(ours, **options) as connection:
            await answered.wait()
            yield connection, peer
        await peer.aclose()


@asynccontextmanager
async def listening(
    handler: Callable[[amqp.Connection], Awaitable[object]] = idle,
    *urls: str,
    **options: Any,
) -> AsyncGenerator[list[amqp.Listener]]:
    """``serve`` on real sockets while the block lasts."""
    async with trio.open_nursery() as nursery:
        yield await nursery.start(partial(amqp.serve, handler, *(urls or ("amqp://127.0.0.1:0",)), **options))
        nursery.cancel_scope.cancel()


class Node:
    """A service with whatever addresses a test asks for, which remembers what came.

    ``sink`` accepts, ``echo/REASON`` rejects and so on by the body, ``source`` sends the bodies that it is given.
    """

    def __init__(self, *, credit: int = 100, bodies: tuple[Any, ...] = ()) -> None:
        self.credit = credit
        self.bodies = bodies
        self.got: list[Any] = []
        self.outcomes: list[Any] = []
        self.connections: list[amqp.Connection] = []

    async def handle(self, connection: amqp.Connection) -> None:
        self.connections.append(connection)
        async with trio.open_nursery() as nursery:
            async for link in connection.incoming_links():
                if link.address == "none":
                    await link.refuse("amqp:not-found", "no such node")
                elif isinstance(link, amqp.IncomingReceiver):
                    nursery.start_soon(self.receive, link)
                else:
                    nursery.start_soon(self.send, link)

    async def receive(self, link: amqp.IncomingReceiver) -> None:
        async with link.accept(credit=self.credit) as receiver:
            try:
                async for delivery in receiver:
                    body = delivery.message.body
                    self.got.append(body)
                    if body == "reject":
                        delivery.reject("amqp:not-allowed", "not this one")
                    elif body == "release":
                        delivery.release()
                    elif body == "modify":
                        delivery.modify(delivery_failed=True)
                    elif body != "ignore":
                        delivery.accept()
            except trio.BrokenResourceError:
                pass

    async def send(self, link: amqp.IncomingSender) -> None:
        async with link.accept() as sender:
            try:
                for body in self.bodies:
                    delivery = await sender.transmit(body)
                    self.outcomes.append(delivery)
                await sender.flush()
            except trio.BrokenResourceError:
                pass


def detached(handle: int = 0, condition: str | None = None, text: str = "", *, closed: bool = True) -> bytes:
    """The octets of a detach, with an error or without."""
    error = None if condition is None else ("error", {"condition": condition, "description": text})
    return frame("detach", handle=handle, closed=closed, error=error)


async def answer_attach(peer: Any, *more: bytes, **fields: Any) -> None:
    """Answer an attach with these fields, and send more in the same write."""
    await answer(peer, await peer.expect("attach"), *more, **fields)


async def answer(peer: Any, attach: Any, *more: bytes, **fields: Any) -> None:
    """Answer this attach, likewise."""
    answered: dict[str, Any] = {k: attach[k] for k in ("name", "handle", "source", "target")}
    answered["role"] = not attach["role"]
    if attach["role"]:
        answered["initial_delivery_count"] = 0
    await peer.send(frame("attach", **(answered | fields)), *more)


def opening(conn: amqp.Connection, kind: str, **options: Any) -> Any:
    return conn.open_sender("q", **options) if kind == "sender" else conn.open_receiver("q", **options)


both = pytest.mark.parametrize("kind", ["sender", "receiver"])
