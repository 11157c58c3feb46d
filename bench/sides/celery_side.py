"""Celery with a worker: ``python -m bench.sides.celery_side JOB``; the role is the scheme of the broker URL.

Both the worker and the caller use that transport, for tasks and for results.
"""

from __future__ import annotations

import os
import subprocess
import sys

from .lines import Span, go, read_job, tell


def main() -> None:
    job = read_job()
    os.environ["CELERY_BENCH_URL"] = job.url.replace("amqp://", f"{job.role}://")
    from .celery_app import add  # reads it

    command = ["-m", "celery", "-A", "bench.sides.celery_app", "worker", "--pool", "solo"]
    worker = subprocess.Popen(
        [sys.executable, *command, "--loglevel", "ERROR"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        add.delay(1, 1).get(timeout=60)
        go()
        span = Span()
        results = [add.delay(number, number) for number in range(job.count)]
        for result in results:
            result.get(timeout=60)
        tell(result=span.end(job.count))
    finally:
        worker.terminate()
        worker.wait(30)


if __name__ == "__main__":
    main()
