"""Celery against a broker: ``celery_peer.py URL POOL BACKEND [EXCLUDED...]`` starts a worker and calls its tasks.

``solo`` and ``prefork`` are pools of the worker. Results come by ``rpc``, or by ``files``, which a chord needs. What each
scenario found wrong is printed as JSON, by its name; ``{}`` if nothing was. Runs in the environment of the frameworks,
without this project.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import celery
from celery.exceptions import TaskRevokedError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

URL, POOL, BACKEND, *EXCLUDED = sys.argv[1:]
DIRECTORY = Path(tempfile.mkdtemp(prefix="celery-"))
(DIRECTORY / "results").mkdir()
os.environ["BROKER"] = URL
os.environ["BACKEND"] = "rpc://" if BACKEND == "rpc" else f"file://{DIRECTORY}/results"

import celery_tasks as tasks  # noqa: E402 - it reads these

SECONDS = 30
MOST = 9 if URL.startswith("amqp10") else 10
"""The highest priority: that of JMS, or of the queue's declaration."""


class Worker:
    """A worker that is ready, until its block is left."""

    def __init__(self, pool: str) -> None:
        self.pool = pool
        self.log = DIRECTORY / "log"
        self.start()

    def start(self) -> None:
        self.name = f"worker-{uuid.uuid4().hex[:8]}@interop"
        options = [
            "--pool",
            self.pool,
            "--concurrency",
            "1" if self.pool == "solo" else "2",
            "--loglevel",
            "INFO",
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "celery_tasks", "worker", "-n", self.name, *options],
                cwd=Path(__file__).parent,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + SECONDS
        while f"{self.name} ready." not in self.log.read_text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.end(signal.SIGKILL)
                raise AssertionError(f"the worker does not start: {self.log.read_text()}")
            time.sleep(0.1)

    def end(self, sig: signal.Signals = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            group = sig is signal.SIGKILL
            (os.killpg if group else os.kill)(self.process.pid, sig)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(5)
            raise


def file() -> str:
    return str(DIRECTORY / uuid.uuid4().hex)


def wait_for(condition: Callable[[], Any], seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not come about"
        time.sleep(0.05)


# -- with a worker of either pool ---------------------------------------------------------------


def result(worker: Worker) -> None:
    assert tasks.add.delay(2, 3).get(timeout=SECONDS) == 5


def failure_with_its_exception(worker: Worker) -> None:
    try:
        tasks.divide.delay(1, 0).get(timeout=SECONDS)
    except ZeroDivisionError:
        return
    raise AssertionError("the exception was expected")


def hundred_at_once(worker: Worker) -> None:
    results = [tasks.add.delay(n, n) for n in range(100)]
    assert [each.get(timeout=SECONDS) for each in results] == [2 * n for n in range(100)]


def retry(worker: Worker) -> None:
    assert tasks.third_time.delay().get(timeout=SECONDS) == 2


def countdown(worker: Worker) -> None:
    began = time.monotonic()
    assert tasks.add.apply_async((1, 1), countdown=1.5).get(timeout=SECONDS) == 2
    assert time.monotonic() - began > 1.4


def expired_task_is_not_run(worker: Worker) -> None:
    # The message expires in the broker, too, and is then answered by nobody: the worker has to have it before.
    wait_for(lambda: tasks.app.control.ping([worker.name], timeout=1))
    outcome = tasks.add.apply_async((1, 1), countdown=5, expires=4)
    try:
        outcome.get(timeout=SECONDS)
    except TaskRevokedError:
        return
    raise AssertionError("it ran")


def chain(worker: Worker) -> None:
    chained = celery.chain(tasks.add.s(1, 2), tasks.add.s(3), tasks.add.s(4))
    assert chained().get(timeout=SECONDS) == 10


def group(worker: Worker) -> None:
    grouped = celery.group(tasks.add.s(n, 1) for n in range(10))()
    assert grouped.get(timeout=SECONDS) == list(range(1, 11))


def revoke(worker: Worker) -> None:
    outcome = tasks.add.apply_async((1, 1), countdown=2)
    wait_for(lambda: any(tasks.app.control.inspect([worker.name], timeout=1).scheduled().values()))
    tasks.app.control.revoke(outcome.id)
    try:
        outcome.get(timeout=SECONDS)
    except TaskRevokedError:
        return
    raise AssertionError("it ran")


def inspect_ping(worker: Worker) -> None:
    assert tasks.app.control.inspect(timeout=2).ping()[worker.name] == {"ok": "pong"}


def events(worker: Worker) -> None:
    """They come from two connections: in which order is nobody's promise."""
    expected = {"task-sent", "task-received", "task-started", "task-succeeded"}
    wanted, ready = uuid.uuid4().hex, threading.Event()
    found: set[str] = set()

    def listen() -> None:
        with tasks.app.connection() as connection:
            receiver = tasks.app.events.Receiver(connection)

            def on_event(event: dict[str, Any]) -> None:
                if event.get("uuid") == wanted:
                    found.add(event["type"])
                    receiver.should_stop = expected <= found

            receiver.handlers["*"] = on_event
            receiver.on_consume_ready = lambda *_, **__: ready.set()
            receiver.capture(timeout=SECONDS, wakeup=False)

    listener = threading.Thread(target=listen)
    listener.start()
    assert ready.wait(SECONDS)
    tasks.add.apply_async((1, 1), task_id=wanted).get(timeout=SECONDS)
    listener.join(SECONDS)
    assert expected <= found, found


def priorities(worker: Worker) -> None:
    control, notes = tasks.app.control, file()

    def consumed() -> set[str]:
        return {
            queue["name"] for queue in control.inspect([worker.name], timeout=1).active_queues()[worker.name]
        }

    control.cancel_consumer("ranked", destination=[worker.name])
    wait_for(lambda: "ranked" not in consumed())  # it replies before it cancels
    results = [
        tasks.note.apply_async((notes, str(n)), queue="ranked", priority=n) for n in (1, 5, 8, 5, 0, MOST)
    ]
    control.add_consumer("ranked", destination=[worker.name])
    for each in results:
        each.get(timeout=SECONDS)
    order = Path(notes).read_text().split()
    assert order == [str(MOST), "8", "5", "5", "1", "0"], order


def tasks_that_are_due_later_do_not_hold_up_others(worker: Worker) -> None:
    """A worker raises its prefetch for each of them, and that has to reach its running consumer.

    It raises it when it happens to wake, which may take 2 s for each.
    """
    later = [tasks.add.apply_async((n, n), countdown=12) for n in range(4)]
    tasks.add.delay(1, 1).get(timeout=SECONDS)
    assert not any(each.ready() for each in later), "it waited for those that were due later"
    assert [each.get(timeout=SECONDS) for each in later] == [0, 2, 4, 6]


def redelivery_after_the_worker_was_killed(worker: Worker) -> None:
    begun = file()
    outcome = tasks.hang_once.delay(begun)
    wait_for(Path(begun).exists)
    worker.end(signal.SIGKILL)
    worker.start()
    assert outcome.get(timeout=SECONDS) is True


def redelivery_after_a_process_of_the_pool_was_killed(worker: Worker) -> None:
    assert tasks.die_once.delay(file()).get(timeout=SECONDS) == "alive"


def chord(worker: Worker) -> None:
    joined = celery.chord((tasks.add.s(n, n) for n in range(5)), tasks.total.s())
    assert joined().get(timeout=SECONDS, interval=0.1) == 20


SCENARIOS = {
    "solo": (
        result,
        failure_with_its_exception,
        hundred_at_once,
        retry,
        countdown,
        expired_task_is_not_run,
        chain,
        group,
        revoke,
        inspect_ping,
        events,
        priorities,
        tasks_that_are_due_later_do_not_hold_up_others,
        redelivery_after_the_worker_was_killed,
    ),
    "prefork": (result, hundred_at_once, chord, redelivery_after_a_process_of_the_pool_was_killed),
}


@contextmanager
def working(pool: str) -> Generator[Worker]:
    worker = Worker(pool)
    try:
        yield worker
    finally:
        worker.end()


def main() -> None:
    wrong: dict[str, str] = {}
    with working(POOL) as worker:
        for scenario in SCENARIOS[POOL]:
            if scenario.__name__ in EXCLUDED:
                continue
            try:
                scenario(worker)
            except Exception:
                wrong[scenario.__name__] = traceback.format_exc(limit=-3)
                print(scenario.__name__, wrong[scenario.__name__], file=sys.stderr, flush=True)
    if wrong:
        wrong["log"] = worker.log.read_text()[-4000:]
    print(json.dumps(wrong))


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(DIRECTORY)
