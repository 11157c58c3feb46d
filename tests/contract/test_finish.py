"""A container that finishes gives the reply of the request under way, and nothing that waits, in each protocol with requests."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091

from .protocols import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def ask_10(url: str, dialect: str) -> bytes:
    async with (
        amqp.open_connection(url, dialect=dialect, sasl=amqp.sasl.Anonymous()) as conn,
        conn.open_requester("double") as requester,
    ):
        return bytes((await requester.request(b"tea")).body)


async def ask_091(url: str) -> bytes:
    async with (
        amqp091.open_connection(url.replace("amqp:", "amqp091:")) as conn,
        conn.open_requester("double") as requester,
    ):
        return (await requester.request(b"tea")).body


ASK: dict[str, Callable[[str], Awaitable[bytes]]] = {
    "1.0": partial(ask_10, dialect="1.0"),
    "1.0-draft-2010": partial(ask_10, dialect="1.0-draft-2010"),
    "0-9-1": ask_091,
}


@pytest.mark.parametrize("protocol", ASK)
async def test_reply_of_the_request_under_way_arrives(protocol: str) -> None:
    container = amqp.Container("shop")
    container.add_queue("waiting")
    await container.send("waiting", b"another")
    replies: list[bytes] = []
    finishing = trio.Event()

    @container.function("double")
    async def double(message: amqp.Message) -> Any:
        finishing.set()
        while not container.resting:
            await trio.lowlevel.checkpoint()
        return bytes(message.body) * 2

    async def client(url: str) -> None:
        replies.append(await ASK[protocol](url))

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            dialects = () if protocol == "1.0" else (protocol,)
            [listener] = await nursery.start(
                partial(container.serve, "amqp://127.0.0.1:0", dialects=dialects)
            )
            nursery.start_soon(client, listener.url)
            await finishing.wait()
            assert await container.finish(10)
            while not replies:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert replies == [b"teatea"]


async def test_queue_gives_nothing_new_meanwhile() -> None:
    container = amqp.Container("shop")
    container.add_queue("waiting")
    async with container.connect() as conn, conn.open_receiver("waiting") as receiver:
        await conn.open_receiver("waiting").__aenter__()
        assert await container.finish(10)
        await container.send("waiting", b"another")
        with trio.move_on_after(0.05) as waited:
            await receiver.receive()
        assert waited.cancelled_caught


def test_every_client_with_requests_asks_here() -> None:
    assert PROTOCOLS.keys() - ASK.keys() == {"10.3", "amqp-fast"}  # they have no requester
