"""Count an access log in Spark, into Parquet and a topic: ``spark_pipeline.py``.

A container in this process has the lines of a log, made with a seed. Spark takes them from their queue, counts requests by minute
and status, keeps the counts, and sends them to a topic, which a receiver reads. Spark blocks, so it has its own thread.
"""

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import trio

import trio_amqp10 as amqp
from trio_amqp10.spark import QueryWatch, prepare

LINES = 20_000
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",  # for so few rows
    "spark.sql.session.timeZone": "UTC",
}


def access_log(count: int, seed: int = 10) -> Iterator[str]:
    """Lines in the Common Log Format, about twenty a second."""
    chance = random.Random(seed)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for _ in range(count):
        now += timedelta(seconds=chance.expovariate(20))
        host = f"10.0.{chance.randrange(4)}.{chance.randrange(256)}"
        path = chance.choice(["/", "/tea", "/coffee", "/basket"])
        [status] = chance.choices([200, 304, 404, 500], [90, 6, 3, 1])
        yield f'{host} - - [{now:%d/%b/%Y:%H:%M:%S %z}] "GET {path} HTTP/1.1" {status} {chance.randrange(9000)}'


def pipeline(url: str, folder: str) -> None:
    """Copy the queue to Parquet, and Parquet to the topic.

    Each query reads the available rows; another run would continue after them.
    """
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    spark = SparkSession.builder.master("local[2]").config(map=SETTINGS).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    lines = spark.readStream.format("amqp10").options(
        url=url, address="access-log", spool=f"{folder}/spool", columns="body_text", maxRowsPerTrigger="5000"
    )
    requests = lines.load().select(
        f.to_timestamp(f.regexp_extract("body_text", r"\[(.*)\]", 1), "dd/MMM/yyyy:HH:mm:ss Z").alias("time"),
        f.regexp_extract("body_text", r'" (\d+) ', 1).alias("status"),
    )
    minutes = requests.withWatermark("time", "10 seconds").groupBy(f.window("time", "1 minute"), "status")
    counts = minutes.count().select(f.col("window.start").alias("minute"), "status", "count")
    counting = counts.writeStream.format("parquet").option("path", f"{folder}/counts").queryName("counting")
    with QueryWatch(spark, f"{folder}/spool", on_figures=print):  # a line for each batch
        run(counting, f"{folder}/checkpoint-1")

    kept = spark.readStream.schema(counts.schema).parquet(f"{folder}/counts")
    rows = kept.select(f.to_json(f.struct("*")).alias("body"), f.col("status").alias("subject"))
    run(rows.writeStream.format("amqp10").options(url=url, address="traffic"), f"{folder}/checkpoint-2")
    spark.stop()


def run(writer: Any, checkpoint: str) -> None:
    """Do what there is to do."""
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()


def plot(by_minute: Counter[str]) -> None:
    """Bars, for a terminal; # is fifty requests or part of them."""
    for minute, count in sorted(by_minute.items()):
        print(f"{minute[11:16]} {'#' * -(-count // 50)} {count}")


async def main(lines: int) -> None:
    print("Spark runs on", prepare())
    container = amqp.Container("shop")
    container.add_queue("access-log")
    container.add_topic("traffic")
    told, by_minute = Counter[str](), Counter[str]()
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        for line in access_log(lines):
            await container.send("access-log", line)
        print(f"the queue has {lines:,} lines; Spark starts, and counts them")
        async with container.connect() as conn, conn.open_receiver("traffic", credit=0) as receiver:
            with tempfile.TemporaryDirectory() as folder:
                await trio.to_thread.run_sync(partial(pipeline, listener.url, folder))
            receiver.grant(lines)
            for delivery in await receiver.drain():  # all messages of the topic
                row = json.loads(delivery.message.body)
                told[str(delivery.message.subject)] += row["count"]
                by_minute[row["minute"]] += row["count"]
                delivery.accept()
        nursery.cancel_scope.cancel()
    plot(by_minute)
    print("requests by status, of the minutes that are over:", dict(sorted(told.items())))
    print(f"{told.total()} of {lines} requests; the others are of the last minute, which may go on")


if __name__ == "__main__":
    trio.run(main, int(sys.argv[1]) if sys.argv[1:] else LINES)
