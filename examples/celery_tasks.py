"""Run Celery over AMQP 1.0: ``amqp10 serve --management``, then a worker."""

from __future__ import annotations

from celery import Celery

import trio_amqp10.kombu  # noqa: F401  # pyright: ignore[reportUnusedImport] - makes amqp10:// known

app = Celery("tasks", broker="amqp10://localhost:5672", backend="rpc://")


@app.task
def add(one: int, other: int) -> int:
    return one + other
