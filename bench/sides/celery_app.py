"""The program of ``celery_side`` and its worker; the broker URL is in the environment."""

from __future__ import annotations

import os

from celery import Celery

import trio_amqp10.kombu  # noqa: F401 - the transport

URL = "CELERY_BENCH_URL"

app = Celery("bench", broker=os.environ.get(URL), backend="rpc://")
app.conf.broker_transport_options = {"confirm_publish": True}
app.conf.worker_prefetch_multiplier = 64


@app.task(name="add")
def add(one: int, other: int) -> int:
    return one + other
