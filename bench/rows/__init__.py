"""The rows, in the order of the table."""

from . import direct, latency, queues, watched, growth, memory, restart, codec, amqp091, asyncio_front, celery  # noqa: F401, I001 - each registers its own
