"""Spark looks into packages called ``pyspark_...`` for this name: so ``format("amqp10")`` needs no registration."""

from trio_amqp10.spark.datasource import Amqp10DataSource as DefaultSource

__all__ = ["DefaultSource"]
