"""The rows, in the order of the table."""

from . import direct, latency, queues, growth, memory, codec, amqp091  # noqa: F401, I001 - each registers its own
