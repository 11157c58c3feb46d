"""The simulated network: stalls and cuts when told, in memory and around streams of others."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import check_half_closeable_stream, wait_all_tasks_blocked
from trio.testing import memory_stream_pair as trio_pair

import trio_amqp10 as amqp
from trio_amqp10.testing import (
    Cut,
    Line,
    open_network,
)

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_ends_keep_the_rules_of_a_half_closeable_stream() -> None:
    async with AsyncExitStack() as stack:

        async def make() -> tuple[Any, Any]:
            network = await stack.enter_async_context(open_network())
            return network.near, network.far

        await check_half_closeable_stream(make, None)


async def test_network_stalls_and_resumes_when_told(autojump_clock: MockClock) -> None:
    async with open_network(there=Line(delay=1)) as network:
        await network.near.send_all(b"one")
        await trio.sleep(0.5)
        network.stall()
        with trio.move_on_after(100) as patience:
            await network.far.receive_some()
        assert patience.cancelled_caught
        network.resume()
        assert await network.far.receive_some() == b"one"
        assert network.there.octets == 3
        assert network.back.octets == 0


async def test_network_is_cut_when_told_and_once(autojump_clock: MockClock) -> None:
    async with open_network() as network:
        network.cut()
        network.cut("eof")
        assert network.ending == "reset"
        with pytest.raises(trio.BrokenResourceError):
            await network.far.receive_some()


async def test_closing_one_end_ends_the_other(autojump_clock: MockClock) -> None:
    async with open_network() as network:
        await network.near.aclose()
        assert await network.far.receive_some() == b""
        with pytest.raises(trio.BrokenResourceError):
            while True:
                await network.far.send_all(b"x")
                await wait_all_tasks_blocked()


async def test_block_that_raises_leaves_with_that(autojump_clock: MockClock) -> None:
    with pytest.raises(KeyError):
        async with open_network():
            raise KeyError


async def test_network_goes_around_a_stream_of_yours(autojump_clock: MockClock) -> None:
    ours, theirs = trio_pair()
    async with open_network(ours, there=Line(delay=5), back=Line(cut=Cut(at=2))) as network:
        assert network.far is ours
        began = trio.current_time()
        await network.near.send_all(b"ping")
        assert await theirs.receive_some() == b"ping"
        assert trio.current_time() - began == pytest.approx(5)
        await theirs.send_all(b"pong")
        assert b"".join([data async for data in network.near]) == b"po"
        assert await theirs.receive_some() == b""


async def test_stream_that_cannot_be_closed_by_half_is_closed(autojump_clock: MockClock) -> None:
    class Whole(trio.abc.Stream):
        def __init__(self, stream: trio.abc.Stream) -> None:
            self.stream = stream

        async def send_all(self, data: Any) -> None:
            await self.stream.send_all(data)

        async def wait_send_all_might_not_block(self) -> None: ...

        async def receive_some(self, max_bytes: int | None = None) -> bytes:
            return bytes(await self.stream.receive_some(max_bytes))

        async def aclose(self) -> None:
            await self.stream.aclose()

    for how in ("eof", "reset"):
        ours, theirs = trio_pair()
        async with open_network(Whole(ours), there=Line(cut=Cut(at=1, how=how))) as network:  # type: ignore[arg-type]
            await network.near.send_all(b"ab")
            assert b"".join([data async for data in theirs]) == b"a"
    ours, theirs = trio_pair()
    async with open_network(Whole(ours)) as network:
        await network.near.send_eof()  # type: ignore[attr-defined]
        assert await theirs.receive_some() == b""


@pytest.mark.parametrize(
    "line", [Line(chunk=1), Line(chunk=(1, 40), delay=0.2, jitter=0.5), Line(bandwidth=2000.0)], ids=range(3)
)
async def test_connection_works_over_a_bad_network(line: Line, autojump_clock: MockClock) -> None:
    got: list[Any] = []

    async def handle(connection: amqp.Connection) -> None:
        async for link in connection.incoming_links():
            assert isinstance(link, amqp.IncomingReceiver)
            async with link.accept() as receiver:
                async for delivery in receiver:
                    got.append(delivery.message.body)
                    delivery.accept()

    from trio_amqp10.amqp10.peer.listen import Acceptor

    acceptor = Acceptor(container_id="far", sasl=amqp.sasl.Server(), limits=amqp.Limits())
    async with open_network(there=line, back=line) as network, trio.open_nursery() as nursery:
        nursery.start_soon(acceptor.run, network.far, handle)
        async with (
            amqp.open_connection(network.near) as connection,
            connection.open_sender("orders") as sender,
        ):
            for number in range(5):
                await sender.send(number)
        nursery.cancel_scope.cancel()
    assert got == [0, 1, 2, 3, 4]
