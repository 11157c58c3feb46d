"""Registers ``format("amqp10")``; Spark finds ``DefaultSource`` in ``pyspark_*``."""

from trio_amqp10.spark.datasource import Amqp10DataSource as DefaultSource

__all__ = ["DefaultSource"]
