"""A partition: numbers and times of its events, and when they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.wire.values import Symbol

from .helpers import bodies, opened, put, read, reading, seen

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_event_is_numbered_dated_and_never_taken_away(autojump_clock: MockClock) -> None:
    async with opened() as (hubs, conn):
        forged = {Symbol("x-opt-sequence-number"): 77, Symbol("x-opt-mine"): "kept"}
        await put(conn, "clicks/Partitions/0", amqp.Message(b"a", annotations=forged, durable=True))
        await trio.sleep(10)
        await put(conn, "clicks/Partitions/0", b"b")
        for _ in range(2):
            async with reading(conn) as receiver:
                got = [(await receiver.receive()).message for _ in range(2)]
        sizes = len(amqp.Message(b"a", annotations=forged, durable=True).to_payload())
        assert [each.annotations["x-opt-sequence-number"] for each in got] == [0, 1]
        assert [each.annotations["x-opt-offset"] for each in got] == ["0", str(sizes)]
        times = [each.annotations["x-opt-enqueued-time"] for each in got]
        assert times[1] - times[0] == 10_000
        assert (got[0].annotations["x-opt-mine"], got[0].durable, got[1].durable) == ("kept", True, False)
        assert [each.body for each in hubs.hubs["clicks"].partitions["0"].messages] == [b"a", b"b"]
        assert len(hubs.hubs["clicks"]) == 2


async def test_events_end_when_they_are_too_many_or_too_old(autojump_clock: MockClock) -> None:
    async with opened(max_events=3, message_retention=60.0) as (hubs, conn):
        await put(conn, "clicks/Partitions/0", *[b"%d" % number for number in range(5)])
        assert await seen(conn, None) == [b"2", b"3", b"4"]
        assert await seen(conn, "amqp.annotation.x-opt-sequence-number > '0'") == [b"2", b"3", b"4"]
        await trio.sleep(30)
        await put(conn, "clicks/Partitions/0", b"5")
        await trio.sleep(31)
        assert await seen(conn, None) == [b"5"]
        assert (await read(conn, "partition", partition="0"))["begin_sequence_number"] == 5
        await trio.sleep(30)
        assert len(hubs.hubs["clicks"]) == 0
        told = await read(conn, "partition", partition="0")
        assert (told["begin_sequence_number"], told["last_enqueued_sequence_number"]) == (6, 5)
        assert told["is_partition_empty"] is True


async def test_receiver_that_falls_behind_goes_on_with_what_is_there() -> None:
    async with opened(max_events=3) as (_, conn):
        await put(conn, "clicks/Partitions/0", b"0")
        async with reading(conn, credit=0) as receiver:
            receiver.grant(1)
            await receiver.receive()
            await put(conn, "clicks/Partitions/0", *[b"%d" % number for number in range(1, 7)])
            receiver.grant(10)
            assert await bodies(receiver) == [b"4", b"5", b"6"]
