"""Nodes of a hub: where events go, and what becomes of those that are too large."""

from __future__ import annotations

from typing import Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10.amqp10.message import Data
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.core.errors import MessageSizeError
from trio_amqp10.testing.azure_emulator.constants import BATCH_FORMAT

from .helpers import bodies, opened, put, reading


def batch(*messages: amqp.Message, **more: Any) -> amqp.Message:
    packed = amqp.Message(Data(*[each.to_payload() for each in messages]), **more)
    packed.message_format = BATCH_FORMAT
    return packed


async def test_events_without_a_key_go_round_and_those_with_one_stay_together() -> None:
    async with opened(partition_count=4) as (hubs, conn):
        hub = hubs.hubs["clicks"]
        await put(conn, "clicks", *[b"%d" % number for number in range(8)])
        assert [len(each) for each in hub.partitions.values()] == [2, 2, 2, 2]
        keys = [f"key {number}" for number in range(40)]
        keyed = [amqp.Message(key, annotations={"x-opt-partition-key": key}) for key in keys * 2]
        await put(conn, "clicks", *keyed)
        for key in keys:
            where = hub.partition_of(key)
            assert [each.body for each in where.messages].count(key) == 2
        assert min(len(each) for each in hub.partitions.values()) > 2


async def test_batch_goes_to_one_partition_with_its_key() -> None:
    async with opened(partition_count=4) as (hubs, conn):
        key = {Symbol("x-opt-partition-key"): "ada"}
        own = amqp.Message(b"b", annotations={"x-opt-partition-key": "its own"})
        await put(conn, "clicks", batch(amqp.Message(b"a"), own, annotations=key))
        messages = hubs.hubs["clicks"].partition_of("ada").messages
        assert [(each.body, each.annotations["x-opt-partition-key"]) for each in messages] == [
            (b"a", "ada"),
            (b"b", "its own"),
        ]
        assert [each.annotations["x-opt-sequence-number"] for each in messages] == [0, 1]


async def test_batch_of_something_else_is_rejected_and_one_that_is_too_large_is_not_sent() -> None:
    async with opened() as (hubs, conn):
        none = amqp.Message("no data")
        none.message_format = BATCH_FORMAT
        for address in ("clicks", "clicks/Partitions/1"):
            async with conn.open_sender(address) as sender:
                with pytest.raises(amqp.DeliveryRejectedError):
                    await sender.send(none)
                assert sender.remote.max_message_size == 1_048_576
                with pytest.raises(MessageSizeError, match="takes 1048576 on this link"):
                    await sender.send(batch(amqp.Message(b"a"), amqp.Message(bytes(1024 * 1024))))
        assert len(hubs.hubs["clicks"]) == 0


async def test_groups_read_the_same_events_each_at_its_own_pace() -> None:
    async with opened(consumer_groups=("audit",)) as (_, conn):
        await put(conn, "clicks/Partitions/0", b"a", b"b", b"c")
        other = "CLICKS/consumergroups/Audit/partitions/0"
        async with reading(conn, credit=0) as slow, reading(conn, address=other) as quick:
            slow.grant(1)
            assert (await slow.receive()).message.body == b"a"
            assert [(await quick.receive()).message.body for _ in range(3)] == [b"a", b"b", b"c"]
            slow.grant(5)
            assert await bodies(slow) == [b"b", b"c"]


async def test_event_that_is_too_large_is_passed_over_and_its_receiver_ended_when_nothing_else_is_left() -> (
    None
):
    async with opened(partition_count=1) as (_, conn):
        await put(conn, "clicks", b"1", bytes(5000), b"3")
        async with reading(conn, max_message_size=1000) as receiver, reading(conn) as other:
            assert [(await receiver.receive()).message.body for _ in range(2)] == [b"1", b"3"]
            for delivery in list(receiver._queue):
                delivery.accept()
            assert [(await other.receive()).message.body for _ in range(3)] == [b"1", bytes(5000), b"3"]
            await put(conn, "clicks", b"4")
            assert (await other.receive()).message.body == b"4"


async def test_receiver_of_events_that_are_all_too_large_is_ended_and_no_sender_is() -> None:
    async with opened(partition_count=1) as (_, conn), conn.open_sender("clicks") as sender:
        async with reading(conn, max_message_size=1000, guarantee="at-most-once") as receiver:
            await sender.send(bytes(5000))
            with pytest.raises(amqp.LinkDetachedError) as detached:
                await receiver.receive()
            assert detached.value.condition == "amqp:link:message-size-exceeded"
        await sender.send(bytes(5000))
