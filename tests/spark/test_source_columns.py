"""Columns for where and when a message entered its log or queue, from each kind of peer."""

from __future__ import annotations

import datetime
import re
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.spark.message_encoder import encode_batch
from trio_amqp10.spark.offset_reader import read
from trio_amqp10.spark.options import LogOptions, OptionError, QueueOptions, SinkOptions
from trio_amqp10.spark.rows import RowMaker, Rows
from trio_amqp10.spark.schema import check_sink, read_schema
from trio_amqp10.spark.segments import SegmentReader
from trio_amqp10.spark.source_columns import SOURCE_COLUMNS, partition_of
from trio_amqp10.spark.spool import Spool
from trio_amqp10.spark.spool_receiver import SpoolReceiver
from trio_amqp10.testing import service_bus
from trio_amqp10.testing.azure_emulator import HubOptions

from .desk import PATIENCE
from .hubs import KEY, KEY_NAME, HubServer
from .logs import LogServer
from .test_rows import Came, batch_of

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ["enqueued_time", "sequence_number", "offset", "partition_key", "partition"]


def row_with(annotations: dict[str, Any] | None, **given: str) -> dict[str, Any]:
    payload = amqp.Message(b"x", annotations=annotations).to_payload()
    found: dict[str, Any] = batch_of(
        [payload], **({"sourceColumns": "true", "columns": ",".join(COLUMNS)} | given)
    ).to_pylist()[0]
    return found  # fmt: skip


NOTHING = dict.fromkeys(COLUMNS)


def test_columns_are_there_where_they_are_wanted() -> None:
    given = {"url": "amqp://h", "address": "q", "spool": "/s"}
    assert not {*COLUMNS} & {*read_schema(QueueOptions.parse(given)).names}
    wanted = QueueOptions.parse(given | {"sourceColumns": "true"})
    assert [name for name in read_schema(wanted).names if name in SOURCE_COLUMNS] == COLUMNS
    assert read_schema(
        QueueOptions.parse(given | {"sourceColumns": "true", "columns": "offset,body"})
    ).names == [
        "offset",
        "body",
    ]
    with pytest.raises(OptionError, match="no column 'offset'"):
        read_schema(QueueOptions.parse(given | {"columns": "offset,body"}))
    with pytest.raises(OptionError, match="'Partition' is a column already"):
        read_schema(
            QueueOptions.parse(given | {"sourceColumns": "true", "propertyColumns": "Partition string"})
        )
    assert (
        read_schema(QueueOptions.parse(given | {"propertyColumns": "partition string"})).names[-1]
        == "partition"
    )


@pytest.mark.parametrize(
    ("annotations", "found"),
    [
        (None, {}),
        ({"x-opt-sequence-number": 7, "x-opt-partition-id": amqp.Short(3)}, {"sequence_number": 7, "partition": "3"}),
        ({"x-opt-offset": "4294967296", "x-opt-partition-key": "ada"}, {"offset": "4294967296", "partition_key": "ada"}),
        ({"x-stream-offset": amqp.ULong(9)}, {"sequence_number": 9, "offset": "9"}),
        ({"x-stream-offset": amqp.ULong(2**63)}, {"offset": str(2**63)}),
        ({"x-opt-enqueued-time": "noon", "x-opt-sequence-number": "7"}, {}),
        ({"x-opt-enqueued-time": None, "x-opt-rabbitmq-received-time": amqp.Timestamp(1500)},
         {"enqueued_time": datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, datetime.UTC)}),
    ],
)  # fmt: skip
def test_values_have_their_types_and_others_are_null(
    annotations: dict[str, Any] | None, found: dict[str, Any]
) -> None:
    assert row_with(annotations) == NOTHING | found


def test_maps_keep_the_annotations_and_each_row_has_its_own() -> None:
    payloads = [
        amqp.Message(b"x", annotations={"x-opt-sequence-number": number}).to_payload() for number in (1, 1, 2)
    ]
    rows = batch_of(payloads, sourceColumns="true", columns="sequence_number,message_annotations").to_pylist()
    assert [row["sequence_number"] for row in rows] == [1, 1, 2]
    assert [dict(row["message_annotations"]) for row in rows] == [
        {"x-opt-sequence-number": str(number)} for number in (1, 1, 2)
    ]


def test_message_without_sections_is_a_row_beside_all_other_columns() -> None:
    given = {"sourceColumns": "true", "propertyTypes": "true", "propertyColumns": "n long"}
    [row] = batch_of([b"opaque"], message_format=9, **given).to_pylist()
    assert (row["body"], row["n"]) == (b"opaque", None)
    assert {name: row[name] for name in COLUMNS} == NOTHING


@pytest.mark.parametrize(
    ("address", "streams", "partition"),
    [
        ("clicks/Partitions/0", (), "0"),
        ("/queues/clicks-0", ("clicks",), "0"),
        ("/queues/my%20clicks-amer", ("my clicks",), "amer"),
        ("/queues/clicks-eu-1", ("clicks", "clicks-eu"), "1"),
        ("/queues/clicks-0", (), None),
        ("orders", ("clicks",), None),
    ],
)
def test_partition_is_that_of_the_address(
    address: str, streams: tuple[str, ...], partition: str | None
) -> None:
    assert partition_of(address, streams) == partition


def test_partition_of_a_super_stream_is_in_every_row() -> None:
    given = {"url": "amqp://h", "mode": "log", "superStreams": "clicks", "sourceColumns": "true"}
    maker, rows = RowMaker(LogOptions.parse(given), address="/queues/clicks-amer"), Rows()
    maker.gather(rows, [Came(amqp.Message(b"x").to_payload())], 7)
    assert maker.batch(rows, [0]).column("partition").to_pylist() == ["amer"]


def test_sink_accepts_the_columns_of_a_source_and_does_not_send_them() -> None:
    batch = batch_of(
        [amqp.Message(b"x").to_payload()], sourceColumns="true", columns="body,offset,enqueued_time"
    )
    check_sink(batch.schema, ignore_unknown=False, has_address=True)
    sink = SinkOptions.parse({"url": "amqp://h", "address": "q", "dedup.id": "none"})
    assert encode_batch(batch, sink).messages[0].to_payload() == amqp.Message(b"x").to_payload()
    with pytest.raises(OptionError, match="no part of a message is called 'offset'"):
        check_sink(
            pa.schema([("body", pa.binary()), ("offset", pa.int64())]), ignore_unknown=False, has_address=True
        )


# With peers ---------------------------------------------------------------------------------------


def test_events_of_a_hub_have_number_offset_time_key_and_partition(tmp_path: Path) -> None:
    before = time.time()
    with HubServer(clicks=HubOptions(partition_count=2)) as hubs:

        async def send() -> None:
            async with (
                amqp.open_connection(hubs.url) as connection,
                connection.keep_token("sb://127.0.0.1/clicks", amqp.SasTokens(KEY_NAME, KEY)),
                connection.open_sender("clicks") as sender,
            ):
                await sender.transmit(amqp.Message(b"x", annotations={"x-opt-partition-key": "ada"}))

        trio.run(send)
        hubs.fill(0, 1)
        hubs.fill(1, 1)
        given = {"address": "clicks", "sourceColumns": "true", "columns": ",".join((*COLUMNS, "body"))}
        options = LogOptions.parse(hubs.options(tmp_path, **given))
        partitions = hubs.namespace.hubs["clicks"].partitions
        rows = [
            (name, number, row)
            for name, partition in partitions.items()
            for batch in read(options, f"clicks/Partitions/{name}", 0, partition.end)
            for number, row in enumerate(batch.to_pylist())
        ]
    assert len(rows) == 3
    for name, number, row in rows:
        assert (row["partition"], row["sequence_number"]) == (name, number)
        assert row["offset"].isdigit()
        assert before - 1 < row["enqueued_time"].timestamp() < time.time() + 1
    assert [row["partition_key"] for _, _, row in rows if row["body"] == b"x"] == ["ada"]
    assert {row["partition_key"] for _, _, row in rows if row["body"] != b"x"} == {None}


def test_messages_of_service_bus_have_number_and_time(tmp_path: Path) -> None:
    with service_bus(["orders"]) as text:
        found = re.search(r":([0-9]+);", text)
        assert found is not None
        url = f"amqp://127.0.0.1:{found[1]}"
        (tmp_path / "key").write_text(KEY)

        async def send() -> None:
            async with (
                amqp.open_connection(url) as connection,
                connection.keep_token("sb://127.0.0.1/orders", amqp.SasTokens(KEY_NAME, KEY)),
                connection.open_sender("orders") as sender,
            ):
                for _ in range(3):
                    await sender.transmit(b"x")

        trio.run(send)
        options = QueueOptions.parse(
            {
                "url": url,
                "address": "orders",
                "token": "sas",
                "username": KEY_NAME,
                "secretFile": str(tmp_path / "key"),
                "spool": str(tmp_path / "spool"),
                "sourceColumns": "true",
                "columns": ",".join(COLUMNS),
            }
        )
        spool = Spool(options.spool)
        receiver = SpoolReceiver(options, spool, emptying=True)
        receiver.wait_until(lambda: False)
        receiver.stop()
        receiver.check()
        rows = [
            row
            for batch in SegmentReader(options).read(spool.slices(0, spool.end))
            for row in batch.to_pylist()
        ]
        spool.close()
    assert [row["sequence_number"] for row in rows] == [1, 2, 3]
    assert all(abs(row["enqueued_time"].timestamp() - time.time()) < 60 for row in rows)


def test_stream_of_rabbitmq_is_read_with_offsets_as_columns(spark: Any, tmp_path: Path) -> None:
    with LogServer() as logs:
        logs.fill("one", 30)
        given = {"url": logs.url, "address": "one", "mode": "log", "sourceColumns": "true"}
        batch = spark.read.format("amqp10").options(**given, columns="offset,sequence_number").load()
        assert batch.where("sequence_number >= 20").count() == 10
        assert batch.schema.simpleString() == "struct<offset:string,sequence_number:bigint>"
        stream = spark.readStream.format("amqp10").options(**given).load()
        writer = stream.select(*COLUMNS).writeStream.format("parquet").option("path", str(tmp_path / "out"))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        assert writer.start().awaitTermination(PATIENCE)
    rows = spark.read.parquet(str(tmp_path / "out")).orderBy("sequence_number").collect()
    assert [(row.sequence_number, row.offset) for row in rows] == [(each, str(each)) for each in range(30)]
