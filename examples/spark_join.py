"""Join orders with their payments in Spark: ``python spark_join.py [URL]``.

One streaming query reads two queues, and writes Parquet.

It sends orders and payments of one morning, made with a seed, to the queues ``join-orders`` and ``join-payments``: of a container in
this process, or of the peer at ``URL``, whose queues it then empties. An order counts as paid if its payment came within ten minutes.
Spark keeps an order in its state until the watermark, which is that of the slower queue, has passed those ten minutes: then no
payment of it can come any more, and an order without one is written as unpaid. The program takes what is there, prints how many orders
are paid, unpaid, and too recent to decide, with three that are unpaid, and ends. With a lasting folder, the next run would continue from there.
"""

import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import trio

import trio_amqp10 as amqp
from trio_amqp10.spark import prepare
from trio_amqp10.testing import running_container

ORDERS, PAYMENTS = "join-orders", "join-payments"
USAGE = "usage: python spark_join.py [URL]"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",  # for so few rows
    "spark.sql.session.timeZone": "UTC",
}
Event = tuple[int, datetime]
"""The number of an order, and when it was made or paid."""


def morning(count: int, seed: int = 10) -> tuple[list[Event], list[Event]]:
    """Return orders, one every half minute, and payments, in order of time.

    Four in five orders are paid, some of them too late.
    """
    chance = random.Random(seed)
    begin = datetime(2026, 1, 1, 8, tzinfo=UTC)
    orders = [(number, begin + timedelta(seconds=30 * number)) for number in range(count)]
    paid = [each for each in orders if chance.random() < 0.8]
    payments = [(number, at + timedelta(seconds=chance.expovariate(1 / 300))) for number, at in paid]
    return orders, sorted(payments, key=lambda each: each[1])


def messages(events: list[Event]) -> Iterator[amqp.Message]:
    for number, at in events:
        yield amqp.Message(b"", application_properties={"number": number, "at": at})


async def send(url: str, queues: dict[str, list[Event]]) -> None:
    async with amqp.open_connection(url) as connection:
        for address, events in queues.items():
            async with connection.open_sender(address) as sender:
                for message in messages(events):
                    await sender.transmit(message)
                await sender.flush()  # returns when all are accepted


def join(url: str, folder: str) -> tuple[int, list[Event]]:
    """Take what is in the queues: how many orders are paid, and those that are not."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    spark = SparkSession.builder.master("local[2]").config(map=SETTINGS).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    def events(address: str, number: str, at: str) -> Any:
        source = spark.readStream.format("amqp10").options(
            url=url, address=address, spool=f"{folder}/{address}", columns="seq", maxRowsPerTrigger="500"
        )
        rows = source.option("propertyColumns", "number long, at timestamp").load()
        rows = rows.select(f.col("number").alias(number), f.col("at").alias(at))
        return rows.withWatermark(at, "1 minute")  # by how much a queue may be out of order

    in_time = f.expr("number = pays AND paid BETWEEN ordered AND ordered + INTERVAL 10 MINUTES")
    orders = events(ORDERS, "number", "ordered")
    joined = orders.join(events(PAYMENTS, "pays", "paid"), in_time, "leftOuter")
    writer = joined.writeStream.format("parquet").option("path", f"{folder}/orders")
    writer = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
    writer.start().awaitTermination()

    kept = spark.read.parquet(f"{folder}/orders")
    unpaid = kept.where("pays IS NULL").orderBy("ordered").collect()
    paid = kept.where("pays IS NOT NULL").count()
    spark.stop()
    return paid, [(row.number, row.ordered) for row in unpaid]


def main(url: str | None = None) -> None:
    orders, payments = morning(1000)
    with nullcontext(url) if url else running_container() as peer, tempfile.TemporaryDirectory() as folder:
        try:
            trio.run(send, peer, {ORDERS: orders, PAYMENTS: payments})
        except (OSError, amqp.AmqpError) as wrong:  # no server listens there, or it is no URL
            sys.exit(f"{wrong}\n{USAGE}")
        print("Spark runs on", prepare())
        paid, unpaid = join(peer, folder)
    print(f"{len(orders)} orders and {len(payments)} payments were sent")
    print(f"paid within ten minutes: {paid}")
    print(f"not paid in time: {len(unpaid)}")
    print(f"too young to tell: {len(orders) - paid - len(unpaid)}")
    for number, at in unpaid[:3]:
        print(f"order {number} of {at:%H:%M:%S} is unpaid")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(USAGE)
    main(*sys.argv[1:])
