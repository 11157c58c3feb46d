"""EventHubs: what is sent where, where receivers begin, who has to go, what is kept, what is told, and to whom."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.message import Data
from trio_amqp10.peer.errors import LinkRefusedError, LinkStolenError
from trio_amqp10.spec.messaging import Source
from trio_amqp10.testing import event_hubs
from trio_amqp10.testing.azure_emulator import EventHubs, HubOptions
from trio_amqp10.testing.azure_emulator.constants import BATCH_FORMAT, EPOCH, METRICS, SELECTOR
from trio_amqp10.tokens import sign_sas
from trio_amqp10.wire.values import Described, Symbol

from .helpers import HOST, open_client, put, wall, with_wall

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from trio.testing import MockClock

FIRST = "clicks/ConsumerGroups/$Default/Partitions/0"


def hubs_of(**options: Any) -> EventHubs:
    """One with the hub ``clicks``, on a clock that jumps with trio's."""
    with_wall()
    hubs = EventHubs("namespace", wall_clock=wall)
    hubs.add_hub("clicks", HubOptions(**options))
    return hubs


def reading(
    conn: amqp.Connection,
    selector: Any = "amqp.annotation.x-opt-offset > '-1'",
    address: str = FIRST,
    epoch: Any = None,
    **options: Any,
) -> Any:
    spec = None if selector is None else {SELECTOR: Described(SELECTOR, selector)}
    source = Source(address=address, filter=spec)
    properties = None if epoch is None else {EPOCH: epoch}
    return conn.open_receiver(address, source=source, properties=properties, **options)


async def bodies(receiver: amqp.Receiver) -> list[Any]:
    """All that a receiver can have now."""
    return [each.message.body for each in await receiver.drain()]


async def seen(conn: amqp.Connection, selector: Any, address: str = FIRST) -> list[Any]:
    async with reading(conn, selector, address, credit=0) as receiver:
        receiver.grant(100)
        return await bodies(receiver)


@asynccontextmanager
async def opened(**options: Any) -> AsyncGenerator[tuple[EventHubs, amqp.Connection]]:
    hubs = hubs_of(**options)
    async with open_client(hubs) as conn:
        yield hubs, conn


async def read(
    conn: amqp.Connection, kind: str, name: Any = "clicks", operation: str = "READ", **more: Any
) -> Any:
    """What ``$management`` says: the body, or status and condition."""
    said = {"operation": operation, "type": f"com.microsoft:{kind}", "name": name, **more}
    async with conn.open_requester("$management", direct=True) as requester:
        reply = await requester.request(amqp.Message(None, application_properties=said))
    found = reply.application_properties
    return reply.body if found["status-code"] == 200 else (found["status-code"], found["error-condition"])


def batch(*messages: amqp.Message, **more: Any) -> amqp.Message:
    packed = amqp.Message(Data(*[each.to_payload() for each in messages]), **more)
    packed.message_format = BATCH_FORMAT
    return packed


# What is sent, and where it goes ------------------------------------------------------------------


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


async def test_batch_of_something_else_and_an_event_that_is_too_large_are_rejected() -> None:
    async with opened() as (hubs, conn):
        none = amqp.Message("no data")
        none.message_format = BATCH_FORMAT
        for address in ("clicks", "clicks/Partitions/1"):
            async with conn.open_sender(address) as sender:
                with pytest.raises(amqp.DeliveryRejectedError):
                    await sender.send(none)
                with pytest.raises(amqp.DeliveryRejectedError) as refusal:
                    await sender.send(batch(amqp.Message(b"a"), amqp.Message(bytes(1024 * 1024))))
                assert refusal.value.condition == "amqp:link:message-size-exceeded"
        assert len(hubs.hubs["clicks"]) == 0


# Where receivers begin ----------------------------------------------------------------------------


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


async def test_filter_may_be_described_by_its_number_or_not_at_all() -> None:
    async with opened() as (_, conn):
        await put(conn, "clicks/Partitions/0", b"a", b"b")
        text = "amqp.annotation.x-opt-sequence-number > '0'"
        for value in (text, Described(amqp.ULong(0x468C00000004), text)):
            source = Source(address=FIRST, filter={SELECTOR: value})
            async with conn.open_receiver(FIRST, source=source) as receiver:
                assert (await receiver.receive()).message.body == b"b"


# Who receives, and who has to go ------------------------------------------------------------------


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


# What is kept -------------------------------------------------------------------------------------


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


# What is told, and to whom ------------------------------------------------------------------------


async def test_hub_and_partition_are_described(autojump_clock: MockClock) -> None:
    async with opened(partition_count=3) as (_, conn):
        told = await read(conn, "eventhub", "CLICKS")
        assert told["name"] == "clicks"
        assert told["created_at"] == round(wall() * 1000)
        assert (told["partition_count"], list(told["partition_ids"])) == (3, ["0", "1", "2"])
        told = await read(conn, "partition", partition="2")
        assert {key: told[key] for key in told if key != "type"} == {
            "name": "clicks",
            "partition": "2",
            "begin_sequence_number": 0,
            "last_enqueued_sequence_number": -1,
            "last_enqueued_offset": "-1",
            "last_enqueued_time_utc": -62_135_596_800_000,
            "is_partition_empty": True,
        }
        await put(conn, "clicks/Partitions/2", b"a")
        told = await read(conn, "partition", partition="2")
        assert told["last_enqueued_sequence_number"] == 0
        assert told["last_enqueued_time_utc"] == round(wall() * 1000)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ({"kind": "partition", "partition": "9"}, (400, "com.microsoft:argument-out-of-range")),
        ({"kind": "partition"}, (400, "com.microsoft:argument-out-of-range")),
        ({"kind": "eventhub", "name": "nothing"}, (404, "amqp:not-found")),
        ({"kind": "eventhub", "name": "$cbs"}, (404, "amqp:not-found")),
        ({"kind": "queue"}, (501, "amqp:not-implemented")),
        ({"kind": "eventhub", "operation": "DELETE"}, (501, "amqp:not-implemented")),
    ],
)
async def test_request_that_cannot_be_answered_says_why(
    asked: dict[str, Any], answer: tuple[int, str]
) -> None:
    async with opened() as (_, conn):
        assert await read(conn, **asked) == answer


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


async def test_token_is_good_for_its_hub_or_group_and_what_it_permits() -> None:
    with_wall()
    keys = {"reader": ("a key", "receive"), "sender": ("another", "send")}
    hubs = EventHubs(keys=keys, wall_clock=wall)
    hubs.add_hub("clicks")
    hubs.add_hub("other")

    async def put_token(conn: amqp.Connection, name: str, path: str) -> None:
        await conn.put_token(f"{HOST}/{path}", sign_sas(f"{HOST}/{path}", name, keys[name][0], wall() + 600))

    async def refused(conn: amqp.Connection, address: str) -> bool:
        try:
            async with conn.open_sender(address):
                return False
        except LinkRefusedError as refusal:
            return bool(refusal.condition == "amqp:unauthorized-access")

    async with hubs.container.connect() as conn:
        with pytest.raises(LinkRefusedError, match="amqp:unauthorized-access"):
            await read(conn, "eventhub")
        # So azure-eventhub writes it.
        await put_token(conn, "reader", "clicks/consumergroups/$default")
        async with reading(conn):
            pass
        assert await read(conn, "eventhub") == (401, "amqp:unauthorized-access")
        assert await refused(conn, "clicks")
    async with hubs.container.connect() as conn:
        await put_token(conn, "sender", "clicks")
        assert (await read(conn, "eventhub"))["name"] == "clicks"
        assert await read(conn, "eventhub", "other") == (401, "amqp:unauthorized-access")
        await put(conn, f"{HOST}/clicks/Partitions/1", b"a")
        assert await refused(conn, "other")
        with pytest.raises(LinkRefusedError, match="amqp:unauthorized-access"):
            async with reading(conn):
                pass
    assert len(hubs.hubs["clicks"]) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"partition_count": 0},
        {"max_events": 0},
        {"message_retention": 0.0},
        {"consumer_groups": ("",)},
        {"consumer_groups": "audit"},
        {"consumer_groups": ("audit", "Audit")},
        {"consumer_groups": ("$default",)},
    ],
)
def test_hub_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError):
        EventHubs().add_hub("clicks", HubOptions(**wrong))


def test_hub_of_a_name_that_is_taken_is_refused() -> None:
    hubs = EventHubs()
    hubs.add_hub("clicks")
    with pytest.raises(LocalProtocolError):
        hubs.add_hub("Clicks")
    assert list(hubs.hubs) == ["clicks"]


def test_stand_in_runs_in_a_thread_and_says_where() -> None:
    async def main(port: int, wanted: Sequence[bytes]) -> list[Any]:
        token = amqp.SasTokens("RootManageSharedAccessKey", "SAS_KEY_VALUE")
        async with (
            amqp.open_connection(f"amqp://127.0.0.1:{port}") as conn,
            conn.keep_token(f"sb://127.0.0.1:{port}/clicks", token),
        ):
            await put(conn, "clicks", *wanted)
            async with reading(conn) as receiver:
                return [(await receiver.receive()).message.body for _ in wanted]

    with event_hubs({"clicks": 1}) as connection_string:
        found = re.fullmatch(
            r"Endpoint=sb://127\.0\.0\.1:(\d+);SharedAccessKeyName=RootManageSharedAccessKey;"
            r"SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;",
            connection_string,
        )
        assert found is not None
        assert trio.run(main, int(found[1]), [b"a", b"b"]) == [b"a", b"b"]
    hubs = EventHubs()
    hubs.add_hub("mine")
    with event_hubs(namespace=hubs) as connection_string:
        assert connection_string.startswith("Endpoint=sb://127.0.0.1:")


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
