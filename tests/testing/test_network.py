"""The simulated network: time, sizes, stalls and cuts, in memory and around streams of others."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import check_half_closeable_stream, wait_all_tasks_blocked
from trio.testing import memory_stream_pair as trio_pair

import trio_amqp10 as amqp
from trio_amqp10.testing import (
    Cut,
    Line,
    Stall,
    open_container,
    open_network,
    open_proxy,
    running_container,
    running_proxy,
)

if TYPE_CHECKING:
    from pathlib import Path

    from trio.testing import MockClock


async def received(stream: trio.abc.ReceiveStream) -> list[tuple[float, bytes]]:
    """What comes until the end, and when."""
    began = trio.current_time()
    return [(round(trio.current_time() - began, 6), bytes(data)) async for data in stream]


async def sent(data: bytes, *, seed: int = 0, **line: Any) -> list[tuple[float, bytes]]:
    """What one write becomes."""
    async with open_network(there=Line(**line), seed=seed) as network:
        await network.near.send_all(data)
        await network.near.send_eof()  # type: ignore[attr-defined]
        return await received(network.far)


async def test_ends_keep_the_rules_of_a_half_closeable_stream() -> None:
    async with AsyncExitStack() as stack:

        async def make() -> tuple[Any, Any]:
            network = await stack.enter_async_context(open_network())
            return network.near, network.far

        await check_half_closeable_stream(make, None)


async def test_line_without_anything_passes_all_at_once(autojump_clock: MockClock) -> None:
    assert await sent(b"abcdef") == [(0.0, b"abcdef")]


async def test_line_delays_each_way_apart(autojump_clock: MockClock) -> None:
    async with open_network(there=Line(delay=2), back=Line(delay=3)) as network:
        began = trio.current_time()
        await network.near.send_all(b"ping")
        assert await network.far.receive_some() == b"ping"
        assert trio.current_time() - began == pytest.approx(2)
        await network.far.send_all(b"pong")
        assert await network.near.receive_some() == b"pong"
        assert trio.current_time() - began == pytest.approx(5)


async def test_line_carries_several_pieces_at_once(autojump_clock: MockClock) -> None:
    async with open_network(there=Line(delay=2)) as network:
        await network.near.send_all(b"one")
        await trio.sleep(1)
        await network.near.send_all(b"two")
        assert await network.far.receive_some() == b"one"
        began = trio.current_time()
        assert await network.far.receive_some() == b"two"
        assert trio.current_time() - began == pytest.approx(1)


async def test_line_cuts_into_pieces(autojump_clock: MockClock) -> None:
    assert await sent(b"abc", chunk=1) == [(0.0, b"a"), (0.0, b"b"), (0.0, b"c")]
    assert [len(data) for _, data in await sent(bytes(10), chunk=4)] == [4, 4, 2]
    sizes = [len(data) for _, data in await sent(bytes(1000), chunk=(1, 100))]
    assert sum(sizes) == 1000
    assert len(set(sizes)) > 5


async def test_same_seed_gives_the_same_run(autojump_clock: MockClock) -> None:
    runs = [await sent(bytes(1000), seed=seed, chunk=(1, 100), delay=1, jitter=5) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    times = [when for when, _ in runs[0]]
    assert times == sorted(times)
    assert all(1 <= when <= 6 for when in times)


async def test_line_has_so_many_octets_a_second(autojump_clock: MockClock) -> None:
    assert await sent(bytes(8), bandwidth=2.0, chunk=4, delay=10) == [(12.0, bytes(4)), (14.0, bytes(4))]


async def test_writer_waits_while_too_much_is_under_way(autojump_clock: MockClock) -> None:
    async with open_network(there=Line(delay=10, capacity=1000)) as network:
        written = 0

        async def write() -> None:
            nonlocal written
            while True:
                await network.near.send_all(bytes(100_000))
                written += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            await trio.sleep(1)
            assert written == 3  # in the buffer of the stream itself
            got = 0
            while got < 100_000:
                got += len(await network.far.receive_some())
            assert trio.current_time() > 900
            nursery.cancel_scope.cancel()


async def test_line_stalls_after_so_many_octets(autojump_clock: MockClock) -> None:
    assert await sent(b"abcdef", stall=Stall(at=4, seconds=60)) == [(0.0, b"abcd"), (60.0, b"ef")]


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


@pytest.mark.parametrize("at", [0, 1, 3])
async def test_cut_with_eof_ends_both_ways_and_loses_what_follows(at: int, autojump_clock: MockClock) -> None:
    async with open_network(there=Line(cut=Cut(at=at, how="eof"))) as network:
        await network.near.send_all(b"abcdef")
        assert b"".join([data async for data in network.far]) == b"abcdef"[:at]
        assert await network.near.receive_some() == b""
        await network.near.send_all(b"into the void")
        assert network.ending == "eof"


@pytest.mark.parametrize("at", [0, 1, 3])
async def test_cut_with_reset_breaks_both_ends(at: int, autojump_clock: MockClock) -> None:
    async with open_network(there=Line(cut=Cut(at=at, how="reset"))) as network:
        got = b""
        with pytest.raises(trio.BrokenResourceError, match="reset"):
            await network.near.send_all(b"abcdef")
            while True:
                got += await network.far.receive_some()
        if at:
            assert got == b"abcdef"[:at]
        with pytest.raises(trio.BrokenResourceError):
            await network.near.receive_some()
        with pytest.raises(trio.BrokenResourceError):
            await network.near.send_all(b"x")


async def test_cut_with_silence_lets_nothing_pass_any_more(autojump_clock: MockClock) -> None:
    async with open_network(there=Line(cut=Cut(at=3, how="silence"))) as network:
        await network.near.send_all(b"abcdef")
        assert await network.far.receive_some() == b"abc"
        await network.far.send_all(b"back")
        for end in (network.near, network.far):
            with trio.move_on_after(600) as patience:
                await end.receive_some()
            assert patience.cancelled_caught


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


@pytest.mark.parametrize(
    "line",
    [{"chunk": 0}, {"chunk": (3, 2)}, {"delay": -1}, {"jitter": -1}, {"capacity": 0}, {"bandwidth": -1.0}],
    ids=str,
)
def test_line_refuses_what_lets_nothing_pass(line: dict[str, Any]) -> None:
    with pytest.raises(amqp.LocalProtocolError):
        Line(**line)


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

    from trio_amqp10.peer.listen import Acceptor

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


# -- at a port ------------------------------------------------------------------------------------


async def test_proxy_leads_to_a_peer_and_is_cut_there() -> None:
    async with open_container(["orders"]) as container, trio.open_nursery() as nursery:
        [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        cut = Line(cut=Cut(at=600, how="reset"))
        async with open_proxy(listener.url, there=[cut, Line(chunk=7)], back=Line(chunk=3)) as proxy:
            with pytest.raises(amqp.ConnectionClosedError):
                async with (
                    amqp.open_connection(proxy.url) as connection,
                    connection.open_sender("orders") as sender,
                ):
                    for number in range(100):
                        await sender.send(number)
            assert proxy.networks[0].there.octets == 600
            async with amqp.open_connection(proxy.url) as connection:
                async with connection.open_sender("orders") as sender:
                    await sender.send("again")
                proxy.cut("eof")
                with pytest.raises(amqp.ConnectionClosedError, match="without a close"):
                    await connection.wait_closed()
            assert [network.ending for network in proxy.networks] == ["reset", "eof"]
        nursery.cancel_scope.cancel()


async def test_proxy_ends_the_stream_where_nobody_answers() -> None:
    async with open_container() as container, trio.open_nursery() as nursery:
        [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        nursery.cancel_scope.cancel()
    async with open_proxy(listener.url, there=[]) as proxy:
        with pytest.raises(amqp.ConnectionClosedError):
            async with amqp.open_connection(proxy.url):
                pass
        with pytest.raises(KeyError):
            async with open_proxy(listener.url):
                raise KeyError


def test_running_proxy_is_for_code_that_is_not_trio() -> None:
    async def use(url: str) -> None:
        async with amqp.open_connection(url) as connection, connection.open_sender("orders") as sender:
            await sender.send("tea")

    with running_container() as url, running_proxy(url, there=Line(chunk=2)) as proxied:
        assert proxied != url
        trio.run(use, proxied)


async def test_proxy_keeps_credentials_and_leads_to_unix_sockets(tmp_path: Path) -> None:
    sasl = amqp.sasl.Server(users={"a:d@": "e/n"})
    container = amqp.Container("behind")
    async with trio.open_nursery() as nursery:
        urls = ("amqp://127.0.0.1:0", f"amqp+unix://{tmp_path}/socket")
        listeners: list[amqp.Listener] = await nursery.start(partial(container.serve, *urls, sasl=sasl))
        for listener in listeners:
            target = listener.url.replace("127.0.0.1", "a%3Ad%40:e%2Fn@127.0.0.1")
            async with open_proxy(target) as proxy:
                assert proxy.url.startswith("amqp://a%3Ad%40:e%2Fn@127.0.0.1:") is (target != listener.url)
                url = proxy.url if "@" in proxy.url else proxy.url.replace("//", "//a%3Ad%40:e%2Fn@")
                async with amqp.open_connection(url) as connection:
                    assert connection.remote.container_id == "behind"
        nursery.cancel_scope.cancel()
