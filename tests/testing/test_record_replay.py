"""Conversations that are recorded and played again, to a client and to a service, and where they differ."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from tests.naive.performatives import frame, header
from trio_amqp10.testing import (
    Close,
    Disposition,
    Flow,
    Recorder,
    ScriptedPeer,
    chunkings,
    memory_stream_pair,
    open_container,
    open_proxy,
    read_recording,
    replay,
    scripted_stream,
)

if TYPE_CHECKING:
    from pathlib import Path


async def order(connection: amqp.Connection, what: str = "tea") -> None:
    async with connection.open_sender("orders") as sender:
        await sender.send(what)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A client of ours that sends tea to a container of ours."""
    path = tmp_path / "talk.jsonl"

    async def main() -> None:
        async with open_container(["orders"]) as container, trio.open_nursery() as nursery:
            [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
            stream = await trio.open_tcp_stream("127.0.0.1", listener.port)
            with Recorder(path) as recorder:
                async with amqp.open_connection(recorder.record(stream)) as connection:
                    await order(connection)
            recorder.close()
            nursery.cancel_scope.cancel()

    trio.run(main)
    return path


def test_recording_has_both_ways_and_their_times(recording: Path) -> None:
    lines = [json.loads(line) for line in recording.read_text().splitlines()[1:]]
    assert {line["way"] for line in lines} == {">", "<"}
    assert lines[0]["at"] == 0
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
    records = read_recording(recording)
    assert records[0].octets == header()
    assert read_recording(recording, conversation=2) == []


async def test_client_that_does_the_same_passes_the_replay(recording: Path) -> None:
    async def script(peer: ScriptedPeer) -> None:
        await replay(read_recording(recording), peer, "<")

    async with scripted_stream(script) as stream, amqp.open_connection(stream) as connection:
        await order(connection)


async def test_client_that_does_otherwise_is_told_what(recording: Path) -> None:
    async def script(peer: ScriptedPeer) -> None:
        await replay(read_recording(recording), peer, "<")

    with pytest.raises(AssertionError) as raised:
        async with scripted_stream(script) as stream, amqp.open_connection(stream) as connection:
            await order(connection, "coffee")
    assert "payload:" in str(raised.value)
    assert "coffee" in str(raised.value)


async def test_service_passes_the_replay(recording: Path) -> None:
    async with open_container(["orders"]) as container, trio.open_nursery() as nursery:
        [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        async with await ScriptedPeer.dial(listener.url) as peer:
            await replay(read_recording(recording), peer, ">", passing_over=(Flow,))
        async with (
            container.connect() as connection,
            connection.open_receiver("orders") as receiver,
        ):
            bodies = [(await receiver.receive()).message.body for _ in range(2 - 1)]
            assert bodies == ["tea"]
        nursery.cancel_scope.cancel()


async def test_replay_passes_over_what_it_is_told_to(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    ours, theirs = memory_stream_pair()
    flow = frame("flow", incoming_window=1, next_outgoing_id=0, outgoing_window=1)
    with Recorder(path) as recorder:
        recorded = recorder.record(theirs, dialled=False)
        await ours.send_all(flow + frame("close"))
        await recorded.receive_some()
        await recorded.send_all(frame("close"))
    assert [record.way for record in read_recording(path)] == [">", ">", "<"]
    ours, theirs = memory_stream_pair()
    await ours.send_all(flow + flow + frame("close"))
    await replay(read_recording(path), ScriptedPeer(theirs), "<", passing_over=(Flow, Disposition))
    await ScriptedPeer(ours).expect(Close)


async def test_recorder_keeps_no_secret_unless_told_to(tmp_path: Path) -> None:
    octets = frame("sasl-init", mechanism="PLAIN", initial_response=b"\0ada\0xyzzy")
    kept: list[bool] = []
    for secrets in (False, True):
        path = tmp_path / f"{secrets}.jsonl"
        with Recorder(path, secrets=secrets) as recorder:
            stream = recorder.record(memory_stream_pair()[0])
            await stream.send_all(octets)
        await stream.send_all(octets)  # nobody minds that the file is closed
        kept.append(b"xyzzy" in read_recording(path)[0].octets)
    assert kept == [False, True]


async def test_proxy_records_what_passes(tmp_path: Path) -> None:
    async with open_container(["orders"]) as container, trio.open_nursery() as nursery:
        [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        with Recorder(tmp_path / "talk.jsonl") as recorder:
            async with open_proxy(listener.url, recorder=recorder) as proxy:
                for _ in range(2):
                    async with amqp.open_connection(proxy.url) as connection:
                        await order(connection)
                async with amqp.open_connection(proxy.url) as connection:
                    proxy.cut("reset")
                    with pytest.raises(amqp.ConnectionClosedError):
                        await connection.wait_closed()
        nursery.cancel_scope.cancel()
    first, second = (read_recording(tmp_path / "talk.jsonl", number) for number in (1, 2))
    assert first[0].way == second[0].way == ">"
    assert len(first) == len(second) > 10


def test_chunkings_deliver_the_same_octets_in_every_way() -> None:
    ways = list(chunkings(b"abcd", splits=50))
    assert ways[0] == [b"abcd"]
    assert ways[1] == [b"a", b"b", b"c", b"d"]
    assert ways[2:5] == [[b"a", b"bcd"], [b"ab", b"cd"], [b"abc", b"d"]]
    assert len(ways) == 55
    assert all(b"".join(way) == b"abcd" for way in ways)
    assert all(all(piece for piece in way) for way in ways)
    assert list(chunkings(b"abcd", splits=50)) == ways != list(chunkings(b"abcd", splits=50, seed=1))


def test_tap_of_a_stream_that_cannot_be_closed_by_half_cannot_either() -> None:
    from trio_amqp10.amqp10.peer.tapped_stream import tapped

    class Whole(trio.abc.Stream):
        async def send_all(self, data: Any) -> None: ...
        async def wait_send_all_might_not_block(self) -> None: ...
        async def receive_some(self, max_bytes: int | None = None) -> bytes:
            return b""

        async def aclose(self) -> None: ...

    def nothing(_: bytes) -> None: ...

    assert not isinstance(tapped(Whole(), nothing, nothing), trio.abc.HalfCloseableStream)
    assert isinstance(tapped(memory_stream_pair()[0], nothing, nothing), trio.abc.HalfCloseableStream)
