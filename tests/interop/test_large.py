"""One message of 64 MiB with Qpid Proton, each way: streamed here, block by block, on both ends of the wire."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp

from .ours import within

if TYPE_CHECKING:
    from .peers import Client

SIZE = 64 * 1024 * 1024
BLOCK = 1024 * 1024


@pytest.fixture
def large(proton: Client) -> Client:
    """Proton, running the program for large messages in place of the usual one."""
    program = proton.command[-1].replace("proton_peer.py", "proton_large.py")
    return replace(proton, command=[*proton.command[:-1], program])


def test_proton_receives_what_we_stream(large: Client) -> None:
    sha = hashlib.sha256()

    async def run(url: str) -> None:
        async with amqp.open_connection(url) as conn, conn.open_sender("films") as sender:
            async with sender.stream(SIZE) as body:
                for number in range(SIZE // BLOCK):
                    octets = number.to_bytes(4, "big") * (BLOCK // 4)
                    sha.update(octets)
                    await body.send_all(octets)
            assert body.delivery.state == amqp.Accepted()

    with large.listen() as listener:
        within(run, listener.url)
    assert listener.result == {"size": SIZE, "sha256": sha.hexdigest(), "outcome": "accepted"}


def test_we_read_in_chunks_what_proton_sends(large: Client) -> None:
    async def run() -> None:
        sha = hashlib.sha256()
        most = 0

        async def handle(conn: amqp.Connection) -> None:
            nonlocal most
            async for link in conn.incoming_links():
                assert isinstance(link, amqp.IncomingReceiver)
                async with link.accept(streaming=True, credit=1) as receiver:
                    delivery = await receiver.receive()
                    async for chunk in delivery.chunks():
                        most = max(most, len(chunk))
                        sha.update(chunk)
                    delivery.accept()

        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(amqp.serve, handle, "amqp://127.0.0.1:0")
            url = listeners[0].url
            said = await trio.to_thread.run_sync(lambda: large.run("send", url, "films", SIZE))
            assert said == {"size": SIZE, "sha256": sha.hexdigest(), "outcome": "accepted"}
            assert 0 < most <= amqp.Limits().stream_octets  # and not all of it at once
            nursery.cancel_scope.cancel()

    within(run)
