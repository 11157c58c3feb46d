"""A program that uses a cluster: ``python -m tests.spark_cluster.driver``.

It reads its work as JSON from the standard input.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from trio_amqp10.spark import prepare


def session(master: str, root: str, cores: int) -> Any:
    """A session on a cluster."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "500m",
        "spark.executor.cores": "1",
        "spark.executorEnv.PYTHONPATH": root,
        "spark.locality.wait": "0s",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
        "spark.cores.max": str(cores),
    }
    return SparkSession.builder.master(master).config(map=settings).getOrCreate()


def main() -> None:
    """Read a queue slowly, record the worker of each row, and perhaps send it on."""
    given = json.load(sys.stdin)
    prepare()
    spark = session(given["master"], given["root"], given["cores"])
    from pyspark.sql import functions as f

    @f.udf("string")
    def worker(_seq: int) -> str:
        time.sleep(given["pause"])
        return os.environ.get("AMQP10_WORKER", "")

    source = spark.readStream.format("amqp10").options(**given["source"]).load()
    rows = source.withColumn("worker", worker("seq"))
    if given.get("sink"):
        rows = rows.drop("worker").select("body")
        writer = rows.writeStream.format("amqp10").options(**given["sink"])
    else:
        writer = rows.writeStream.format("parquet").option("path", given["out"])
    query = writer.option("checkpointLocation", given["checkpoint"]).trigger(availableNow=True).start()
    print("started", flush=True)
    query.awaitTermination()
    if not given.get("sink"):
        kept = spark.read.parquet(given["out"]).collect()
        print(json.dumps([[int(row.body), row.worker] for row in kept]), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
