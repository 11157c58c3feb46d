"""Rows to a peer, and a queue to rows, with a real Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

import trio_amqp10 as amqp

from .test_intake import PATIENCE, numbered

if TYPE_CHECKING:
    from pathlib import Path

    from .server import Server


def write(frame: Any, server: Server, **given: str) -> None:
    options = {"url": server.url, "address": "out"}
    options |= {name.replace("_", "."): value for name, value in given.items()}
    frame.write.format("amqp10").options(**options).mode("append").save()


def test_rows_are_messages(spark: Any, server: Server) -> None:
    frame = spark.range(0, 500, 1, 2).selectExpr(
        "cast(id as string) body",
        "concat('s', id) subject",
        "map('n', cast(id as string)) application_properties",
    )
    write(frame, server)
    messages = server.take("out")
    assert sorted(int(message.body) for message in messages) == list(range(500))
    assert all(message.subject == f"s{message.body}" for message in messages)
    assert all(message.application_properties == {"n": int(message.body)} for message in messages)
    assert len({message.message_id for message in messages}) == 500


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("cast(id as string) body, id as colour", "no part of a message is called 'colour'"),
        ("id as body", "column 'body' is int64, and has to be binary or a string"),
        ("'s' as subject", "needs a column 'body'"),
        ("'b' body, 'v' value", "keep one"),
        ("'b' body, named_struct('colour', 1) properties", "has no field 'colour'"),
        ("'b' body, named_struct('priority', 'x') header", "field 'priority' of 'header'"),
    ],
)
def test_columns_that_cannot_be_a_message_are_refused(
    spark: Any, server: Server, expression: str, message: str
) -> None:
    with pytest.raises(Exception, match=message):
        write(spark.sql(f"select {expression} from range(1)"), server)


def test_unknown_columns_may_be_ignored(spark: Any, server: Server) -> None:
    frame = spark.sql("select 'b' body, 5 colour")
    write(frame, server, ignoreUnknownColumns="true")
    assert [message.body for message in server.take("out")] == ["b"]


def test_rejected_row_fails_the_write_with_its_condition(spark: Any, server: Server) -> None:
    async def refuse(delivery: amqp.Delivery) -> None:
        delivery.reject("app:no", "not that")

    server.ask(lambda: server.container.consumer("odd")(refuse))
    with pytest.raises(Exception, match="app:no: not that"):
        write(spark.sql("select 'b' body"), server, address="odd")


def test_browse_leaves_the_queue_as_it_is(spark: Any, server: Server) -> None:
    server.put("q", [amqp.Message(b"%d" % n, application_properties={"n": n}) for n in range(2500)])
    reader = spark.read.format("amqp10").option("url", server.url).option("address", "q")
    assert reader.load().count() == 2500
    assert reader.option("browseLimit", "1200").load().count() == 1200
    assert reader.option("selector", "n > 2490").load().count() == 9
    assert reader.option("selector", "n > 2490").load().limit(3).count() == 3
    assert server.held("q") == 2500


def test_archive_is_sent_again_bit_by_bit(spark: Any, server: Server, tmp_path: Path) -> None:
    sent = [
        amqp.Message(b"a", message_id=1, annotations={"x-opt": amqp.UByte(1)}, footer={"f": b"\xff"}),
        amqp.Message(amqp.Sequence([amqp.Decimal32(b"\x22\x50\x00\x01")], [None])),
        amqp.Message(amqp.Data(b"a", b"b"), application_properties={"c": amqp.Char("x")}),
    ]
    server.put("q", sent)
    source = spark.read.format("amqp10").option("url", server.url).option("address", "q")
    source.option("includeRaw", "true").load().write.parquet(str(tmp_path / "archive"))
    write(spark.read.parquet(str(tmp_path / "archive")).coalesce(1).orderBy("seq"), server)
    assert [message.to_payload() for message in server.take("out")] == [each.to_payload() for each in sent]


def stream(spark: Any, server: Server, folder: Path, source: dict[str, str], sink: dict[str, str]) -> Any:
    """A query from queue ``q`` to queue ``out``."""
    frame = (
        spark.readStream.format("amqp10")
        .options(url=server.url, address="q", spool=str(folder / "spool"), **source)
        .load()
        .select("body", "body_type", "application_properties")
    )
    return (
        frame.writeStream.format("amqp10")
        .options(url=server.url, address="out", checkpointLocation=str(folder / "checkpoint"), **sink)
        .trigger(availableNow=True)
        .start()
    )


def test_messages_of_a_stream_are_named_after_query_batch_partition_and_row(
    spark: Any, server: Server, tmp_path: Path
) -> None:
    server.put("q", numbered(20))
    query = stream(spark, server, tmp_path, {"maxRowsPerTrigger": "10"}, {"dedup.id": "artemis"})
    query.awaitTermination(PATIENCE)
    messages = server.take("out")
    names = [message.message_id for message in messages]
    assert names == [f"{query.id}-{batch}-0-{row}" for batch in (0, 1) for row in range(10)]
    assert all(each.application_properties["_AMQ_DUPL_ID"] == each.message_id for each in messages)


@pytest.mark.parametrize(
    ("sink", "repeated"),
    [
        ({}, True),
        ({"transactions": "task"}, True),
        ({"transactions": "ledger", "ledger": "ledger"}, False),
    ],
    ids=["plain", "task", "ledger"],
)
def test_crash_between_sink_and_commit_log_repeats_a_batch_but_with_a_ledger(
    spark: Any, server: Server, tmp_path: Path, hooks: Path, sink: dict[str, str], repeated: bool
) -> None:
    server.put("q", numbered(50))
    (hooks / "crash-committed").touch()
    query = stream(spark, server, tmp_path, {}, sink)
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(PATIENCE)
    stream(spark, server, tmp_path, {}, sink).awaitTermination(PATIENCE)
    messages = server.take("out")
    assert len(messages) == (100 if repeated else 50)
    assert len({message.message_id for message in messages}) == 50  # by which a peer can tell the repeats


def test_task_that_dies_after_sending_is_tried_again(
    spark: Any, server: Server, tmp_path: Path, hooks: Path
) -> None:
    """Nothing of a transaction that was not discharged is there."""
    for sink, count in ({}, 60), ({"transactions": "task"}, 30):
        folder = tmp_path / str(count)
        server.put("q", numbered(30))
        (hooks / "crash-sent").touch()
        stream(spark, server, folder, {}, sink).awaitTermination(PATIENCE)
        assert not (hooks / "crash-sent").exists()
        assert len(server.take("out")) == count
