"""Output modes, tables and joins: what works, and the error of what does not, with a real Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException

from .desk import PATIENCE, numbered
from .peers import lacks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .peers import Peer


class Counts:
    """A stream that counts numbers by their last digit, and its state."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self.fill(0)

    def fill(self, first: int) -> None:
        frame = self._spark.range(first, first + 20, 1, 1)
        frame.write.mode("append").parquet(str(self._folder / "in"))

    def start(self, mode: str, into: Callable[[Any], Any]) -> Any:
        source = self._spark.readStream.schema("id long").parquet(str(self._folder / "in"))
        counted = source.groupBy((source.id % 10).alias("digit")).count()
        frame = counted.selectExpr("cast(digit as string) subject", "cast(count as string) body")
        writer = into(frame.writeStream).option("checkpointLocation", str(self._folder / "checkpoint"))
        return writer.outputMode(mode).trigger(availableNow=True).start()


@pytest.fixture
def counts(spark: Any, tmp_path: Path) -> Counts:
    return Counts(spark, tmp_path)


@lacks("nobody")
@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("complete", r"outputMode\('complete'\) replaces the rows .* in foreachBatch"),
        ("update", "amqp10 does not support Update mode"),  # Spark's own words: the sink is not asked
    ],
)
def test_mode_that_replaces_rows_is_refused(counts: Counts, peer: Peer, mode: str, why: str) -> None:
    with pytest.raises(StreamingQueryException, match=why):
        counts.start(
            mode, lambda writer: writer.format("amqp10").options(url=peer.url, address="out")
        ).awaitTermination(PATIENCE)


@pytest.mark.parametrize(
    "sink",
    [
        pytest.param({}, id="plain"),
        pytest.param(
            {"transactions": "ledger", "ledger": "ledger"}, id="ledger", marks=lacks("transactions")
        ),
    ],
)
def test_rows_that_a_batch_updates_are_sent_in_foreach_batch(
    counts: Counts, peer: Peer, sink: dict[str, str]
) -> None:
    address = peer.address("out")

    def forward(batch: Any, number: int) -> None:
        writer = batch.write.format("amqp10").options(url=peer.url, address=address, **sink)
        writer = writer.option("txn.app", "digits").option("txn.version", number)
        writer.mode("append").save()

    for total in (2, 4):
        query = counts.start("update", lambda writer: writer.foreachBatch(forward))
        assert query.awaitTermination(PATIENCE)
        found = sorted((message.subject, message.body) for message in peer.take("out"))
        assert found == [(str(digit), str(total)) for digit in range(10)]
        counts.fill(20)


@lacks("nobody")
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t USING amqp10 OPTIONS (url 'URL', address 'out')",
        "CREATE TABLE t (body STRING) USING amqp10 OPTIONS (url 'URL', address 'out')",
        "CREATE TABLE t USING amqp10",
        "CREATE TABLE t USING amqp10 AS SELECT 'b' body",
    ],
)
def test_table_is_refused_with_what_works_instead(spark: Any, peer: Peer, statement: str) -> None:
    try:
        with pytest.raises(AnalysisException, match="use CREATE TEMPORARY VIEW"):
            spark.sql(statement.replace("URL", peer.url)).collect()
            spark.sql(
                "INSERT INTO t SELECT 'b'"
            ).collect()  # Spark makes a table with columns without asking us
    finally:
        spark.sql("DROP TABLE IF EXISTS t")


@lacks("copy")
def test_temporary_view_is_browsed(spark: Any, peer: Peer) -> None:
    peer.put("q", numbered(5))
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW dead USING amqp10 OPTIONS (url '{peer.url}', address '{peer.address('q')}')"
    )
    assert spark.sql("SELECT count(*) n FROM dead").collect()[0].n == 5


@lacks("inside")
def test_stream_that_is_joined_with_itself_is_refused_with_what_to_do(
    spark: Any, peer: Peer, tmp_path: Path
) -> None:
    peer.put("q", numbered(5))
    frame = (
        spark.readStream.format("amqp10")
        .options(url=peer.url, address=peer.address("q"), spool=str(tmp_path / "spool"), columns="body,seq")
        .load()
    )
    joined = frame.alias("a").join(frame.alias("b"), "seq").selectExpr("a.body")
    writer = joined.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(StreamingQueryException, match=r"joined with itself .* join it in foreachBatch"):
        writer.trigger(availableNow=True).start().awaitTermination(PATIENCE)
