"""Receivers of a hub: epochs, how many there may be, and what they are told."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.errors import LinkRefusedError, LinkStolenError
from trio_amqp10.testing.azure_emulator.constants import METRICS

from .helpers import FIRST, opened, put, reading

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_higher_epoch_takes_a_partition_over() -> None:
    async with opened() as (_, conn):
        await put(conn, "clicks/Partitions/0", b"a")
        async with reading(conn) as plain, reading(conn, epoch=1) as one:
            with pytest.raises(LinkStolenError, match="this one has no epoch"):
                while True:
                    await plain.receive()
            for epoch in (None, 0):
                with pytest.raises(LinkStolenError, match=r"has the epoch 1"):
                    async with reading(conn, epoch=epoch):
                        pass
            assert (await one.receive()).message.body == b"a"
            async with reading(conn, epoch=1) as same:
                with pytest.raises(LinkStolenError, match="this one has the epoch 1"):
                    await one.receive()
                assert (await same.receive()).message.body == b"a"
        await wait_all_tasks_blocked()
        async with reading(conn) as plain:
            assert (await plain.receive()).message.body == b"a"


async def test_epoch_that_is_no_number_is_refused() -> None:
    async with opened() as (_, conn):
        for epoch in (-1, "high", True):
            with pytest.raises(LinkRefusedError, match=r"microsoft:epoch .*a number of at least 0"):
                async with reading(conn, epoch=epoch):
                    pass


async def test_sixth_receiver_of_a_group_at_a_partition_is_refused() -> None:
    async with opened() as (_, conn), AsyncExitStack() as stack:
        for _ in range(5):
            await stack.enter_async_context(reading(conn))
        with pytest.raises(LinkRefusedError) as refusal:
            async with reading(conn):
                pass
        assert refusal.value.condition == "amqp:resource-limit-exceeded"
        async with reading(conn, address=FIRST[:-1] + "1"):
            pass


async def test_receiver_is_told_how_far_the_partition_goes_where_it_asks(autojump_clock: MockClock) -> None:
    async with opened() as (_, conn):
        await put(conn, "clicks/Partitions/0", b"a", b"b")
        async with reading(conn, capabilities=(METRICS,)) as receiver:
            said = (await receiver.receive()).message.delivery_annotations
            assert said["last_enqueued_sequence_number"] == 1
            assert int(said["last_enqueued_offset"]) == len(amqp.Message(b"a").to_payload())
            assert said["last_enqueued_time_utc"] <= said["runtime_info_retrieval_time_utc"]
        async with reading(conn) as receiver:
            assert not (await receiver.receive()).message.delivery_annotations


async def test_partition_or_group_that_there_is_not_is_refused() -> None:
    async with opened() as (_, conn):
        for address, condition in (
            ("clicks/ConsumerGroups/$Default/Partitions/2", "com.microsoft:argument-out-of-range"),
            ("clicks/ConsumerGroups/audit/Partitions/0", "amqp:not-found"),
            ("nothing/ConsumerGroups/$Default/Partitions/0", "amqp:not-found"),
        ):
            with pytest.raises(LinkRefusedError) as refusal:
                async with reading(conn, address=address):
                    pass
            assert refusal.value.condition == condition
        with pytest.raises(LinkRefusedError, match="argument-out-of-range"):
            async with conn.open_sender("clicks/Partitions/2"):
                pass
