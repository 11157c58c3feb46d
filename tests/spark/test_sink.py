"""Rows to a peer, and a queue to rows, with a real Spark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

import trio_amqp10 as amqp
from trio_amqp10.amqp10.message.sections import FOOTER, PROPERTIES, scan

from .desk import PATIENCE, dotted, numbered
from .peers import lacks

if TYPE_CHECKING:
    from pathlib import Path

    from .failures import Failures
    from .peers import Peer
    from .server import Server


def write(frame: Any, peer: Peer, **given: str) -> None:
    options = {"url": peer.url, "address": peer.address("out")}
    options |= dotted(given)
    frame.write.format("amqp10").options(**options).mode("append").save()


def test_rows_are_messages(spark: Any, peer: Peer) -> None:
    frame = spark.range(0, 500, 1, 2).selectExpr(
        "cast(id as string) body",
        "concat('s', id) subject",
        "map('n', cast(id as string)) application_properties",
    )
    write(frame, peer)
    messages = peer.take("out")
    assert sorted(int(message.body) for message in messages) == list(range(500))
    assert all(message.subject == f"s{message.body}" for message in messages)
    assert all(message.application_properties == {"n": message.body} for message in messages)
    assert len({message.message_id for message in messages}) == 500


def test_values_of_maps_have_the_types_of_spark_and_void_is_null(spark: Any, peer: Peer) -> None:
    frame = spark.sql(
        "select 'b' body, null subject, map('n', cast(1 as int), 'none', null) application_properties"
    )
    write(frame, peer)
    [message] = peer.take("out")
    assert (message.subject, message.application_properties) == (None, {"n": 1, "none": None})
    assert type(message.application_properties["n"]) is amqp.Int


def test_rows_may_come_from_another_thread_that_has_the_session(spark: Any, peer: Peer) -> None:
    def write_here() -> None:
        spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)
        write(spark.sql("select 'b' body"), peer)

    with ThreadPoolExecutor(1) as threads:
        threads.submit(write_here).result()
    assert [message.body for message in peer.take("out")] == ["b"]


@lacks("nobody")
@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("cast(id as string) body, id as colour", "no part of a message is called 'colour'"),
        ("id as body", "column 'body' is int64, and must be binary or a string"),
        ("'s' as subject", "needs a column 'body'"),
        ("'b' body, 'v' value", "keep one"),
        (
            "'b' body, map('d', current_date()) application_properties",
            "'application_properties' is map<string, date32",
        ),
        ("'b' body, named_struct('colour', 1) properties", "has no field 'colour'"),
        ("'b' body, named_struct('priority', 'x') header", "field 'priority' of 'header'"),
    ],
)
def test_columns_that_cannot_be_a_message_are_refused(
    spark: Any, peer: Peer, expression: str, message: str
) -> None:
    with pytest.raises(Exception, match=message):
        write(spark.sql(f"select {expression} from range(1)"), peer)


def test_unknown_columns_may_be_ignored(spark: Any, peer: Peer) -> None:
    frame = spark.sql("select 'b' body, 5 colour")
    write(frame, peer, ignoreUnknownColumns="true")
    assert [message.body for message in peer.take("out")] == ["b"]


def test_row_that_a_full_queue_rejects_fails_the_write(spark: Any, peer: Peer) -> None:
    with pytest.raises(Exception, match="was rejected"):
        write(spark.sql("select 'b' body from range(5)"), peer, address=peer.bounded("few", 2))


@lacks("conditions")
def test_rejected_row_fails_the_write_with_its_condition(spark: Any, server: Server) -> None:
    async def refuse(delivery: amqp.Delivery) -> None:
        delivery.reject("app:no", "not that")

    server.ask(lambda: server.container.consumer("odd")(refuse))
    with pytest.raises(Exception, match="app:no: not that"):
        write(spark.sql("select 'b' body"), server, address="odd")


@lacks("copy")
def test_browse_leaves_the_queue_as_it_is(spark: Any, peer: Peer) -> None:
    peer.put("q", [amqp.Message(b"%d" % n, application_properties={"n": n}) for n in range(2500)])
    reader = spark.read.format("amqp10").option("url", peer.url).option("address", "q")
    assert reader.load().count() == 2500
    assert reader.option("browseLimit", "1200").load().count() == 1200
    assert reader.option("selector", "n > 2490").load().count() == 9
    assert reader.option("selector", "n > 2490").load().limit(3).count() == 3
    assert peer.held("q") == 2500


ARCHIVED = [
    amqp.Message(b"a", message_id=1, annotations={"x-opt": amqp.UByte(1)}, footer={"f": b"\xff"}),
    amqp.Message(amqp.Sequence([amqp.Decimal32(b"\x22\x50\x00\x01")], [None])),
    amqp.Message(amqp.Data(b"a", b"b"), application_properties={"c": amqp.Char("x")}),
]


@lacks("copy")
def test_archive_of_what_was_browsed_is_sent_again_bit_by_bit(spark: Any, peer: Peer, tmp_path: Path) -> None:
    peer.put("q", ARCHIVED)
    source = spark.read.format("amqp10").option("url", peer.url).option("address", peer.address("q"))
    source.option("includeRaw", "true").load().write.parquet(str(tmp_path / "archive"))
    write(spark.read.parquet(str(tmp_path / "archive")).coalesce(1).orderBy("seq"), peer)
    assert [message.to_payload() for message in peer.take("out")] == [each.to_payload() for each in ARCHIVED]


def bare(message: amqp.Message) -> bytes:
    """The bare message, which no peer may change, bit by bit (3.2)."""
    spans = scan(payload := message.to_payload())
    return b"".join(payload[slice(*span)] for span in spans[PROPERTIES:FOOTER] if span is not None)


def test_archive_of_what_was_taken_is_sent_again_bit_by_bit(spark: Any, peer: Peer, tmp_path: Path) -> None:
    peer.put("q", ARCHIVED)
    frame = (
        spark.readStream.format("amqp10")
        .options(url=peer.url, address=peer.address("q"), spool=str(tmp_path / "spool"), includeRaw="true")
        .load()
    )
    writer = frame.writeStream.format("parquet").option("path", str(tmp_path / "archive"))
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    assert writer.trigger(availableNow=True).start().awaitTermination(PATIENCE)
    assert peer.held("q") == 0
    write(spark.read.parquet(str(tmp_path / "archive")).coalesce(1).orderBy("seq"), peer)
    again = peer.take("out")
    assert [bare(message) for message in again] == [bare(message) for message in ARCHIVED]
    assert again[0].annotations["x-opt"] == 1
    assert again[0].footer == {"f": b"\xff"}


def stream(spark: Any, peer: Peer, folder: Path, source: dict[str, str], sink: dict[str, str]) -> Any:
    """A query from queue ``q`` to queue ``out``."""
    frame = (
        spark.readStream.format("amqp10")
        .options(url=peer.url, address=peer.address("q"), spool=str(folder / "spool"), **source)
        .load()
        .select("body", "body_type", "application_properties")
    )
    return (
        frame.writeStream.format("amqp10")
        .options(
            url=peer.url, address=peer.address("out"), checkpointLocation=str(folder / "checkpoint"), **sink
        )
        .trigger(availableNow=True)
        .start()
    )


def test_messages_of_a_stream_are_named_after_query_batch_partition_and_row(
    spark: Any, peer: Peer, tmp_path: Path
) -> None:
    peer.put("q", numbered(20))
    query = stream(spark, peer, tmp_path, {"maxRowsPerTrigger": "10"}, {"dedup.id": "artemis"})
    query.awaitTermination(PATIENCE)
    messages = peer.take("out")
    names = [message.message_id for message in messages]
    assert names == [f"{query.id}-{batch}-0-{row}" for batch in (0, 1) for row in range(10)]
    assert all(each.application_properties["_AMQ_DUPL_ID"] == each.message_id for each in messages)


@pytest.mark.parametrize(
    ("sink", "repeated"),
    [
        pytest.param({}, True, id="plain"),
        pytest.param(
            {"transactions": "ledger", "ledger": "ledger"}, False, id="ledger", marks=lacks("transactions")
        ),
    ],
)
def test_write_with_a_name_is_the_same_one_when_it_is_repeated(
    spark: Any, peer: Peer, sink: dict[str, str], repeated: bool
) -> None:
    for version in ("7", "7", "8"):
        frame = spark.sql("select 'b' body from range(5)").coalesce(1)
        write(frame, peer, **{"txn.app": "orders", "txn.version": version}, **sink)
    names = [message.message_id for message in peer.take("out")]
    first, second = [
        [f"orders@{peer.address('out')}-{version}-0-{row}" for row in range(5)] for version in (7, 8)
    ]
    assert names == (first * 2 if repeated else first) + second


@pytest.mark.parametrize(
    ("sink", "repeated"),
    [
        pytest.param({}, True, id="plain"),
        pytest.param({"transactions": "task"}, True, id="task", marks=lacks("transactions")),
        pytest.param(
            {"transactions": "ledger", "ledger": "ledger"}, False, id="ledger", marks=lacks("transactions")
        ),
    ],
)
def test_crash_between_sink_and_commit_log_repeats_a_batch_but_with_a_ledger(
    spark: Any, peer: Peer, tmp_path: Path, failures: Failures, sink: dict[str, str], repeated: bool
) -> None:
    peer.put("q", numbered(50))
    failures.crash("committed")
    query = stream(spark, peer, tmp_path, {}, sink)
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(PATIENCE)
    stream(spark, peer, tmp_path, {}, sink).awaitTermination(PATIENCE)
    messages = peer.take("out")
    assert len(messages) == (100 if repeated else 50)
    assert len({message.message_id for message in messages}) == 50  # by which a peer can tell the repeats


@pytest.mark.parametrize(
    ("sink", "count"),
    [
        pytest.param({}, 60, id="plain"),
        pytest.param({"transactions": "task"}, 30, id="task", marks=lacks("transactions")),
    ],
)
def test_task_that_dies_after_sending_is_tried_again(
    spark: Any, peer: Peer, tmp_path: Path, failures: Failures, sink: dict[str, str], count: int
) -> None:
    """Nothing of a transaction that was not discharged is there."""
    peer.put("q", numbered(30))
    failures.crash("sent")
    stream(spark, peer, tmp_path, {}, sink).awaitTermination(PATIENCE)
    assert failures.crashed("sent")
    assert len(peer.take("out")) == count


def test_rows_that_cannot_be_sent_are_in_files_that_spark_reads(
    spark: Any, peer: Peer, tmp_path: Path
) -> None:
    frame = spark.sql("select cast(id as string) body, cast(id * 100 as int) priority from range(5)")
    write(frame, peer, onReject="deadletter-path", deadletterPath=str(tmp_path))
    assert sorted(message.body for message in peer.take("out")) == ["0", "1", "2"]
    rows = spark.read.parquet(str(tmp_path)).orderBy("body").collect()
    assert [(row.body, row.priority) for row in rows] == [("3", 300), ("4", 400)]
    assert all("priority" in row.reject_reason for row in rows)
