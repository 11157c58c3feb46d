"""Through a queue of ``amqp10 serve`` while an operator has its page open, and without HTTP."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from typing import TYPE_CHECKING

from bench.job import Job
from bench.processes import serve
from bench.registry import Figures, Gate, row
from bench.rows.queues import SERVER, Queue, through
from tests.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.lab import Lab

OPEN, CLOSED = "page open", "no HTTP"
PAUSE = 2.0
"""Seconds between two readings of the overview, as in ``main.js``."""
REQUESTS = ("overview", "history?span=60")


@contextmanager
def watching(port: int) -> Iterator[None]:
    """Read what the open page reads, as often as it does, on one connection as a browser does."""
    over = threading.Event()
    failures: list[Exception] = []

    def read() -> None:
        try:
            with closing(HTTPConnection("127.0.0.1", port)) as browser:
                while not over.wait(PAUSE):
                    for request in REQUESTS:
                        browser.request("GET", f"/api/amqp10/{request}")
                        json.load(browser.getresponse())
        except Exception as failure:
            failures.append(failure)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield
    finally:
        over.set()
        reader.join()
    if failures:
        raise failures[0]


@row(
    "queue-page-open",
    "Full message, transient, through a queue in memory: while the page is open, and without HTTP.",
    gates=(Gate(top=(OPEN, SERVER), bottom=(CLOSED, SERVER), most=1.03),),
    quiet=True,
)
def _page_open(lab: Lab) -> Iterator[Callable[[], Figures]]:
    job = Job(role="", count=lab.count(300_000), message="full", durable=False)

    def measure() -> Figures:
        # Two processes differ by some hundredths all their life, so each round has its own.
        port = free_port()
        with ExitStack() as stack:
            closed = Queue(CLOSED, stack.enter_context(serve()), "bench")
            watched = Queue(OPEN, stack.enter_context(serve("--http", f"http://127.0.0.1:{port}")), "bench")
            found = through(closed, job)
            with watching(port):
                return found | through(watched, job)

    yield measure
