"""The rows, in the order of the table."""

from . import direct, interpreters, latency, queues, watched, growth  # noqa: F401, I001 - each registers its own
from . import memory, restart, codec, amqp091, asyncio_front, celery  # noqa: F401 - each registers its own
