"""The pipeline with RabbitMQ 4 at its ends, where that is installed (``tests/interop/install.sh rabbitmq4``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from tests.interop import rabbitmq
from tests.interop.peers import PEERS, is_missing

from .kills import take
from .test_intake import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def broker() -> Iterator[rabbitmq.Broker]:
    missing = is_missing("rabbitmq4")
    if missing:
        pytest.skip(missing)
    running = rabbitmq.start(4, peers=PEERS)
    yield running
    running.stop()


def put(url: str, address: str, first: int, count: int) -> None:
    async def send() -> None:
        async with amqp.open_connection(url) as connection, connection.open_sender(address) as sender:
            for number in range(first, first + count):
                await sender.transmit(amqp.Message(b"%d" % number, message_id=f"m-{number}"))
            await sender.flush()

    trio.run(send)


def source(spark: Any, url: str, address: str, **given: str) -> Any:
    return spark.readStream.format("amqp10").options(url=url, address=address, **given).load()


def run(frame: Any, folder: Path) -> list[int]:
    """All that is there, into files; the rows of each batch."""
    writer = frame.writeStream.format("parquet").option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE)
    return [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]


def found(spark: Any, folder: Path) -> list[int]:
    return sorted(int(bytes(row.body)) for row in spark.read.parquet(str(folder / "out")).collect())


def test_queue_is_emptied_once(spark: Any, broker: rabbitmq.Broker, tmp_path: Path) -> None:
    queue = broker.new_queue()
    put(broker.url, queue, 0, 6000)
    frame = source(spark, broker.url, queue, spool=str(tmp_path / "spool"), dedup="message-id")
    assert sum(run(frame.select("body", "properties.message_id"), tmp_path)) == 6000
    assert found(spark, tmp_path) == list(range(6000))
    assert trio.run(take, broker.url, queue) == []


def test_rows_arrive_with_their_properties(spark: Any, broker: rabbitmq.Broker) -> None:
    queue = broker.new_queue()
    frame = spark.range(0, 3000, 1, 2).selectExpr(
        "cast(cast(id as string) as binary) body",
        "concat('m-', id) message_id",
        "map('n', cast(id as string)) application_properties",
        "named_struct('durable', true) header",
    )
    frame.write.format("amqp10").options(url=broker.url, address=queue).mode("append").save()
    assert sorted(map(int, trio.run(take, broker.url, queue))) == list(range(3000))


def test_stream_is_read_by_number(spark: Any, broker: rabbitmq.Broker, tmp_path: Path) -> None:
    stream = broker.new_stream()
    put(broker.url, stream, 0, 5000)
    frame = source(
        spark, broker.url, stream, mode="log", maxRowsPerTrigger="2000", minPartitions="3", columns="seq,body"
    )
    assert run(frame, tmp_path) == [2000, 2000, 1000]
    put(broker.url, stream, 5000, 100)
    assert run(frame, tmp_path) == [100]
    assert found(spark, tmp_path) == list(range(5100))
    assert all(row.seq == int(bytes(row.body)) for row in spark.read.parquet(str(tmp_path / "out")).collect())
