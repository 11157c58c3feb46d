"""One way of a network: its delay, pieces, rate, stalls and cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.testing import (
    Cut,
    Line,
    Stall,
    open_network,
)

if TYPE_CHECKING:
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


@pytest.mark.parametrize(
    "line",
    [{"chunk": 0}, {"chunk": (3, 2)}, {"delay": -1}, {"jitter": -1}, {"capacity": 0}, {"bandwidth": -1.0}],
    ids=str,
)
def test_line_refuses_what_lets_nothing_pass(line: dict[str, Any]) -> None:
    with pytest.raises(amqp.LocalProtocolError):
        Line(**line)
