"""Positions: where a receiver begins, and what is no position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.errors import LinkRefusedError
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.amqp10.wire.values import Described
from trio_amqp10.testing.azure_emulator.constants import SELECTOR

from .helpers import FIRST, opened, put, reading, seen

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_receiver_begins_where_its_filter_says(autojump_clock: MockClock) -> None:
    async with opened() as (hubs, conn):
        for number in range(5):
            await put(conn, "clicks/Partitions/0", b"%d" % number)
            await trio.sleep(1)
        messages = hubs.hubs["clicks"].partitions["0"].messages
        offset = messages[2].annotations["x-opt-offset"]
        when = int(messages[2].annotations["x-opt-enqueued-time"])
        cases = {
            "x-opt-sequence-number > '2'": [b"3", b"4"],
            "x-opt-sequence-number >= '2'": [b"2", b"3", b"4"],
            "x-opt-sequence-number > '-1'": [b"0", b"1", b"2", b"3", b"4"],
            "x-opt-sequence-number > '4'": [],
            f"x-opt-offset > '{offset}'": [b"3", b"4"],
            f"x-opt-offset >= '{offset}'": [b"2", b"3", b"4"],
            f"x-opt-offset > '{int(offset) - 1}'": [b"2", b"3", b"4"],
            "x-opt-offset > '-1'": [b"0", b"1", b"2", b"3", b"4"],
            "x-opt-offset > '@latest'": [],
            f"x-opt-enqueued-time > '{when}'": [b"3", b"4"],
            f"x-opt-enqueued-time >= '{when}'": [b"2", b"3", b"4"],
            f"x-opt-enqueued-time > '{when * 2}'": [],
        }
        for selector, wanted in cases.items():
            assert await seen(conn, f"amqp.annotation.{selector}") == wanted, selector
        assert await seen(conn, None) == [b"0", b"1", b"2", b"3", b"4"]
        async with reading(conn, "amqp.annotation.x-opt-offset > '@latest'") as receiver:
            assert SELECTOR in receiver.remote.source.filter
            await put(conn, "clicks/Partitions/0", b"5")
            assert (await receiver.receive()).message.body == b"5"


@pytest.mark.parametrize(
    "selector",
    [
        "x-opt-offset > '-1'",
        "amqp.annotation.x-opt-offset < '3'",
        "amqp.annotation.x-opt-publisher > '3'",
        "amqp.annotation.x-opt-offset > 'soon'",
        "amqp.annotation.x-opt-sequence-number > '@latest'",
        "amqp.annotation.x-opt-sequence-number > '0'",
        "amqp.annotation.x-opt-offset > '0'",
        b"amqp.annotation.x-opt-offset > '-1'",
    ],
)
async def test_position_that_is_none_is_refused(selector: Any) -> None:
    async with opened() as (_, conn):
        with pytest.raises(LinkRefusedError) as refusal:
            async with reading(conn, selector):
                pass
        assert refusal.value.condition == "com.microsoft:argument-error"


async def test_filter_may_be_described_by_its_number_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    # A client of this library does not send the plain text; others do.
    monkeypatch.setattr("trio_amqp10.amqp10.peer.receiver.check_source", lambda source: None)
    async with opened() as (_, conn):
        await put(conn, "clicks/Partitions/0", b"a", b"b")
        text = "amqp.annotation.x-opt-sequence-number > '0'"
        for value in (text, Described(amqp.ULong(0x468C00000004), text)):
            source = Source(address=FIRST, filter={SELECTOR: value})
            async with conn.open_receiver(FIRST, source=source) as receiver:
                assert (await receiver.receive()).message.body == b"b"
