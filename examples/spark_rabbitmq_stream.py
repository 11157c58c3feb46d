"""Copy a RabbitMQ 4 stream to Parquet, and to another stream, in Spark.

Run it with ``python spark_rabbitmq_stream.py URL``.

``URL`` is that of a RabbitMQ 4, such as ``amqp://guest:guest@localhost:5672``. Two streams are made there for this run, and deleted at its end.
A stream keeps and numbers its messages, so Spark needs no spool: its checkpoint has the number up to which it has read. The first run of the query
finds 500 clicks, the second one just the 100 that came since: each click is in the Parquet files once, and would be
with a query that is killed and run again, in a folder that lasts; this one is temporary.
Then the clicks on tea are sent to the other stream, at least once, and its end is read as a range, by numbers. It prints the
rows and numbers of each step.
"""

import sys
import tempfile
from typing import Any
from uuid import uuid4

import trio

import trio_amqp10 as amqp
from trio_amqp10 import rabbitmq
from trio_amqp10.spark import prepare

USAGE = "usage: python spark_rabbitmq_stream.py URL"
PAGES = ("tea", "coffee", "basket", "tea", "about")
SETTINGS = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


async def declare(url: str, *names: str) -> None:
    async with amqp.open_connection(url) as connection, rabbitmq.open_management(connection) as broker:
        for name in names:
            await broker.declare_queue(name, type="stream")


async def delete(url: str, *names: str) -> None:
    async with amqp.open_connection(url) as connection, rabbitmq.open_management(connection) as broker:
        for name in names:
            await broker.delete_queue(name)


async def click(url: str, address: str, count: int) -> None:
    """Visitors."""
    async with amqp.open_connection(url) as connection, connection.open_sender(address) as sender:
        for number in range(count):
            await sender.transmit(PAGES[number % len(PAGES)])
        await sender.flush()  # returns when all are confirmed


def keep(spark: Any, url: str, address: str, folder: str) -> None:
    """Into Parquet, what came since the last run."""
    source = spark.readStream.format("amqp10").options(
        url=url, address=address, mode="log", columns="seq,body_text"
    )
    writer = source.load().writeStream.format("parquet").option("path", f"{folder}/clicks")
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
    query = writer.start()
    query.awaitTermination()
    print(f"read from the stream: {sum(each['numInputRows'] for each in query.recentProgress)} clicks")


def send_back(spark: Any, url: str, address: str, folder: str) -> None:
    """Out of Parquet, and look at what came last."""
    kept = spark.read.parquet(f"{folder}/clicks")
    first, last = kept.selectExpr("min(seq)", "max(seq)").first()
    print(f"in Parquet: {kept.count()} clicks, numbers {first} to {last}")
    tea = kept.where("body_text = 'tea'").orderBy("seq").coalesce(1)  # one partition keeps the order
    rows = tea.selectExpr("body_text AS body", "CAST(seq AS string) AS subject")
    rows.write.format("amqp10").options(url=url, address=address).mode("append").save()
    sent = tea.count()
    source = spark.read.format("amqp10").options(
        url=url, address=address, mode="log", columns="seq,properties"
    )
    end = (
        source.options(startingOffsets=str(sent - 3), endingOffsets=str(sent)).load().orderBy("seq").collect()
    )
    print(f"sent to the other stream: {sent} clicks, the last of them:")
    for row in end:
        print(f"{row.seq} is click {row.properties.subject}")


def main(url: str) -> None:
    names = [f"clicks-{uuid4().hex[:8]}-{what}" for what in ("all", "tea")]
    clicks, tea = map(rabbitmq.queue_address, names)
    try:
        trio.run(declare, url, *names)
    except (OSError, amqp.AmqpError) as wrong:  # no server listens there, or it is no URL
        sys.exit(f"{wrong}\n{USAGE}")
    try:
        print("Spark runs on", prepare())
        from pyspark.sql import SparkSession

        spark: Any = SparkSession.builder.master("local[2]").config(map=SETTINGS).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        with tempfile.TemporaryDirectory() as folder:
            for count in (500, 100):
                trio.run(click, url, clicks, count)
                keep(spark, url, clicks, folder)
            send_back(spark, url, tea, folder)
        spark.stop()
    finally:
        trio.run(delete, url, *names)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) == 2 else sys.exit(USAGE))
