"""A cluster of three workers: rows in the plan, and killed executors and workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.server import Server
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.spark import prepare

from .cluster import ROOT, WORKERS, Cluster, hiding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ROWS = 300
PATIENCE = 400
REQUIRE = "AMQP10_SPARK_REQUIRE"


def skip(why: str) -> None:
    """Skip a test, or fail if all tests are required."""
    if os.environ.get(REQUIRE):
        pytest.fail(why, pytrace=False)
    pytest.skip(why)


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        prepare(tmp_path_factory.mktemp("java"))
    except LocalProtocolError as missing:
        skip(str(missing))


@pytest.fixture(scope="session")
def hidden(java: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that one of the workers does not see."""
    return tmp_path_factory.mktemp("hidden")


@pytest.fixture
def workers() -> tuple[str, ...]:
    """Their names, for a test to have others."""
    return WORKERS


@pytest.fixture
def cluster(hidden: Path, tmp_path: Path, workers: tuple[str, ...]) -> Iterator[Cluster]:
    if hiding() is None:
        skip("a worker cannot be kept from seeing a folder here: neither root nor a user namespace may mount")
    with Cluster(tmp_path, hide=[hidden], workers=workers) as running:
        yield running


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        running.put("q", [b"%d" % number for number in range(ROWS)])
        yield running


class Driver:
    """A program in its own process, and its output."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self._lines = process.stdout

    def started(self) -> None:
        while (line := self._lines.readline()) != "started\n":
            assert line, "the program has ended"

    def rows(self) -> list[tuple[int, str]]:
        """Return the number of each message, and the worker that read it."""
        said, _ = self._process.communicate(timeout=PATIENCE)
        assert self._process.returncode == 0
        last = said.strip().splitlines()[-1:] or ["[]"]
        return [(number, worker) for number, worker in json.loads(last[0])]


@contextmanager
def driving(master: str, server: Server, folder: Path, hidden: Path, **given: Any) -> Iterator[Driver]:
    said = {
        "master": master,
        "root": str(ROOT),
        "cores": len(WORKERS),
        "pause": 0.05,
        "source": {
            "url": server.url,
            "address": "q",
            "spool": str(hidden / folder.name),
            "spool.transport": "inline",
            "columns": "body,seq",
            "minPartitions": "12",
        },
        "out": str(folder / "out"),
        "checkpoint": str(folder / "checkpoint"),
    } | given
    environment = os.environ | {"PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    with (folder / "driver.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark_cluster.driver"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(said))
        process.stdin.close()
        process.stdin = None
        try:
            yield Driver(process)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def until(holds: Callable[[], Any], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


@pytest.mark.parametrize("workers", [("one", "hidden")], ids=["two-workers"])
def test_rows_travel_with_the_plan_to_a_worker_that_sees_no_spool(
    cluster: Cluster, server: Server, tmp_path: Path, hidden: Path, workers: tuple[str, ...]
) -> None:
    with driving(cluster.url, server, tmp_path, hidden, cores=len(workers)) as driver:
        rows = driver.rows()
    assert sorted(number for number, _ in rows) == list(range(ROWS))
    assert {worker for _, worker in rows} == {*workers}
    assert server.held("q") == 0


@pytest.mark.parametrize("victim", ["executor", "worker"])
def test_what_dies_while_rows_are_read_costs_and_repeats_none(
    cluster: Cluster, server: Server, tmp_path: Path, hidden: Path, victim: str
) -> None:
    with driving(cluster.url, server, tmp_path, hidden, pause=0.2) as driver:
        driver.started()
        until(lambda: server.held("q") == 0)  # all is in the spool, and being read
        until(lambda: cluster.executors("one"))
        time.sleep(5)
        if victim == "executor":
            for pid in cluster.executors("one"):
                os.kill(pid, signal.SIGKILL)
        else:
            cluster.kill_worker("one")
        rows = driver.rows()
    assert sorted(number for number, _ in rows) == list(range(ROWS))


def test_sink_of_an_executor_that_dies_loses_nothing(
    cluster: Cluster, server: Server, tmp_path: Path, hidden: Path
) -> None:
    sink = {"url": server.url, "address": "out", "transactions": "ledger", "ledger": "ledger"}
    with driving(cluster.url, server, tmp_path, hidden, pause=0.0, sink=sink) as driver:
        driver.started()
        until(lambda: cluster.executors("two"))
        for pid in cluster.executors("two"):
            os.kill(pid, signal.SIGKILL)
        driver.rows()
    counted = Counter(bytes(message.body) for message in server.take("out"))
    assert counted == Counter(b"%d" % number for number in range(ROWS))
