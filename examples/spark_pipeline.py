"""A queue to parquet and back to another queue: ``python spark_pipeline.py URL FOLDER``, with a container at URL."""

import os
import sys

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

from pyspark.sql import SparkSession


def main(url: str, folder: str, spark: SparkSession) -> None:
    """Take the orders that are there, keep them, and announce each."""
    orders = (
        spark.readStream.format("amqp10").options(url=url, address="orders", spool=f"{folder}/spool").load()
    )
    kept = orders.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    kept.trigger(availableNow=True).start(f"{folder}/orders").awaitTermination()

    announced = spark.read.parquet(f"{folder}/orders").selectExpr("'shipped' subject", "body_text body")
    announced.write.format("amqp10").options(url=url, address="shipments").mode("append").save()
    print(f"{announced.count()} orders")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], SparkSession.builder.master("local[2]").getOrCreate())
