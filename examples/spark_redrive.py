"""Send selected dead letters back to the queues in which they died.

Run it with ``python spark_redrive.py [URL QUEUE FOLDER FILTER]``.

``QUEUE`` of the peer at ``URL`` has dead letters of a ``Container``: ``x-opt-deadletter-source`` is the queue in which each died, and other
annotations have the reason and the condition. ``FILTER`` is a JMS selector over properties and annotations, for example ``subject = 'tea'`` or
``amqp.annotation.x-opt-deadletter-reason = 'expired'``. The peer applies it, so all other dead letters stay where they are.
Without arguments a container in this process has two queues, whose consumer rejects all orders, and those that were rejected because the
shop was closed are sent again. It prints how many messages were sent, and in the second case how many each queue has now; then it ends.

At least once: a message is taken off ``QUEUE`` when it is on disk in ``FOLDER``, and it is done there when the peer has accepted it in its
first queue. If the program is killed at any moment, run it again with the same ``FOLDER``, which goes on where it was: nothing is lost, and
messages that were being sent may be there twice. They are the same octets, with the same message-id if they have one. ``FOLDER`` must
be on a disk that lasts, and belongs to one ``URL`` and ``QUEUE``. Run it when the cause is mended, or they die again.
"""

import sys
import tempfile

import trio

import trio_amqp10 as amqp
from trio_amqp10.spark import prepare
from trio_amqp10.testing import running_container

USAGE = "usage: python spark_redrive.py [URL QUEUE FOLDER FILTER]"
CLOSED = "amqp.annotation.x-opt-deadletter-condition = 'shop:closed'"
SOURCE = "x-opt-deadletter-source"
SETTINGS = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


def redrive(url: str, queue: str, folder: str, selector: str) -> int:
    """Send again what the selector selects, and return how many messages that were."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    spark = SparkSession.builder.master("local[2]").config(map=SETTINGS).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    dead = spark.readStream.format("amqp10").options(
        url=url,
        address=queue,
        selector=f"({selector}) AND amqp.annotation.{SOURCE} IS NOT NULL",  # what cannot be sent back stays
        spool=f"{folder}/spool",
        columns="message_annotations,raw",
        includeRaw="true",
    )
    source = f.col("message_annotations")[SOURCE]
    again = dead.load().select(source.alias("address"), "raw").writeStream.format("amqp10").option("url", url)
    query = again.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    query.awaitTermination()
    sent = sum(each["numInputRows"] for each in query.recentProgress)
    spark.stop()
    return int(sent)


async def check(url: str, queue: str, selector: str) -> None:
    """Whether the peer is there, and takes the filter; takes nothing."""
    name = amqp.Symbol("apache.org:selector-filter:string")
    source = amqp.Source(address=queue, filter={name: amqp.Described(name, selector)})
    async with (
        amqp.open_connection(url) as connection,
        connection.open_receiver(queue, source=source, credit=0),
    ):
        pass


async def reject_all(url: str, queues: list[str]) -> None:
    """Send twenty orders to each queue, and reject all.

    Some are rejected because the shop is closed, others because they are invalid.
    """
    async with amqp.open_connection(url) as connection:
        for queue in queues:
            async with connection.open_sender(queue) as sender, connection.open_receiver(queue) as receiver:
                for number in range(20):
                    await sender.send(amqp.Message(f"{queue} {number}", message_id=f"{queue}-{number}"))
                    delivery = await receiver.receive()
                    delivery.reject("shop:closed" if number % 4 else "shop:unknown-tea")


def demo() -> None:
    container = amqp.Container("shop")
    queues = {name: container.add_queue(name, dead_letter="dead") for name in ("orders", "parcels")}
    queues["dead"] = container.add_queue("dead")
    with running_container(container=container) as url, tempfile.TemporaryDirectory() as folder:
        trio.run(reject_all, url, ["orders", "parcels"])
        print(f"dead: {len(queues['dead'])} messages")
        print(f"{redrive(url, 'dead', folder, CLOSED)} messages were sent again")
        for name, queue in queues.items():
            print(f"{name}: {len(queue)} messages")


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            print("Spark runs on", prepare())
            demo()
        case [url, queue, folder, selector]:
            try:
                trio.run(check, url, queue, selector)
            except (OSError, amqp.AmqpError) as wrong:
                sys.exit(f"{wrong}\n{USAGE}")
            print("Spark runs on", prepare())
            print(f"{redrive(url, queue, folder, selector)} messages were sent again")
        case _:
            sys.exit(USAGE)
