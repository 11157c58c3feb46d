"""Tasks of Celery for a worker, as ``celery_peer.py`` starts it: ``BROKER`` and ``BACKEND`` are URLs in its environment.

Runs in the environment of the frameworks, without this project.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from celery import Celery
from kombu import Exchange, Queue

if os.environ["BROKER"].startswith("amqp10"):
    import trio_amqp10.kombu  # noqa: F401 - which kombu does not know by itself

app = Celery("interop", broker=os.environ["BROKER"], backend=os.environ.get("BACKEND", "rpc://"))
app.conf.update(
    broker_transport_options=json.loads(os.environ.get("OPTIONS", "{}")),
    broker_connection_retry_on_startup=True,
    result_expires=60,
    task_queues=[
        Queue("celery", Exchange("celery"), routing_key="celery"),
        Queue("ranked", Exchange("ranked"), routing_key="ranked", queue_arguments={"x-max-priority": 10}),
    ],
    task_send_sent_event=True,
    worker_prefetch_multiplier=1,
    worker_send_task_events=True,
)


@app.task
def add(one: int, other: int) -> int:
    return one + other


@app.task
def total(numbers: list[int]) -> int:
    return sum(numbers)


@app.task
def divide(one: int, other: int) -> float:
    return one / other


@app.task(bind=True, max_retries=3)
def third_time(self: Any) -> int:
    """Succeeds when it is tried for the third time."""
    if self.request.retries < 2:
        raise self.retry(countdown=0.1)
    count: int = self.request.retries
    return count


@app.task
def note(file: str, text: str) -> None:
    """Add a line to a file."""
    with Path(file).open("a") as notes:
        notes.write(f"{text}\n")


@app.task(bind=True, acks_late=True)
def hang_once(self: Any, file: str) -> bool:
    """Waits for the worker's end when it runs first; says then whether the message had been delivered before."""
    if not Path(file).exists():
        Path(file).touch()
        time.sleep(120)
    redelivered: bool = self.request.delivery_info["redelivered"]
    return redelivered


@app.task(acks_late=True, reject_on_worker_lost=True)
def die_once(file: str) -> str:
    """Kills the process that it runs in when it runs first."""
    if not Path(file).exists():
        Path(file).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"
