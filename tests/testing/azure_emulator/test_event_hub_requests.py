"""Requests about a hub and its partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10.core.tokens import sign_sas
from trio_amqp10.testing.azure_emulator.namespace import KEY, KEY_NAME

from .helpers import HOST, hubs_of, opened, put, read, wall

if TYPE_CHECKING:
    from trio.testing import MockClock


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
        ({"kind": "eventhub", "name": "clicks/Partitions/0"}, (404, "amqp:not-found")),
        ({"kind": "eventhub", "name": "$cbs"}, (401, "amqp:unauthorized-access")),
        ({"kind": "queue"}, (501, "amqp:not-implemented")),
        ({"kind": "eventhub", "operation": "DELETE"}, (501, "amqp:not-implemented")),
    ],
)
async def test_request_that_cannot_be_answered_says_why(
    asked: dict[str, Any], answer: tuple[int, str]
) -> None:
    async with opened() as (_, conn):
        assert await read(conn, **asked) == answer


@pytest.mark.parametrize("kind", ["eventhub", "partition"])
@pytest.mark.parametrize("name", ["clicks", "CLICKS", "nothing", "clicks/Partitions/0"])
async def test_hub_without_a_token_is_refused_alike_whether_it_exists(
    autojump_clock: MockClock, kind: str, name: str
) -> None:
    hubs = hubs_of()
    hubs.add_hub("other")
    async with hubs.container.connect() as conn:
        await conn.put_token(f"{HOST}/other", sign_sas(f"{HOST}/", KEY_NAME, KEY, wall() + 60))
        assert await read(conn, kind, name, partition="0") == (401, "amqp:unauthorized-access")
