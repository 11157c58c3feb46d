"""A real peer for every test, and one Spark for all of them.

Tests with the fixture ``spark`` are marked ``session``, so that the others can run beside them (``make test-spark``).
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop import rabbitmq
from tests.interop.peers import PEERS, is_missing
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.spark import prepare

from .broker import BrokerLogs, BrokerPeer
from .desk import Desk
from .failures import HERE, Failures
from .logs import LogServer
from .objects import CREDENTIALS, ObjectServer
from .server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .peers import Logs, Peer

WHOLE = "AMQP10_SPARK_WHOLE"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of each Java: none lives so long that it earns the time of the second compiler."""
OURS, RABBITMQ = "ours", "rabbitmq4"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out slow tests, unless all are wanted, and tests of what RabbitMQ lacks."""
    if not os.environ.get(WHOLE):
        items[:] = [item for item in items if item.get_closest_marker("whole") is None]
    items[:] = [item for item in items if _is_possible(item)]
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("session")


def _is_possible(item: pytest.Item) -> bool:
    assert isinstance(item, pytest.Function)
    lacking = item.get_closest_marker("lacks")
    if lacking is None and {"server", "log_server"} & {*item.fixturenames}:
        raise pytest.UsageError(f"{item.nodeid}: needs a container of ours: say why, with @lacks(...)")
    return lacking is None or item.callspec.params["which"] == OURS


def _fail_or_skip(message: str, *variables: str) -> None:
    """A failure where one of these is set."""
    if any(map(os.environ.get, variables)):
        pytest.fail(message, pytrace=False)
    pytest.skip(message)


@pytest.fixture(params=[OURS, RABBITMQ])
def which(request: pytest.FixtureRequest) -> str:
    """The name of the peer of a test."""
    return str(request.param)


@pytest.fixture
def peer(which: str, request: pytest.FixtureRequest) -> Iterator[Peer]:
    """Each peer that has queues, in turn: see ``peers``."""
    if which == OURS:
        with Server() as running:
            yield running
    else:
        with BrokerPeer(request.getfixturevalue("broker")) as running:
            yield running


@pytest.fixture
def server(peer: Peer) -> Server:
    """A container in another thread, on TCP, for tests that RabbitMQ cannot run."""
    assert isinstance(peer, Server)
    return peer


@pytest.fixture
def logs(which: str, request: pytest.FixtureRequest) -> Iterator[Logs]:
    """Each peer that has logs, in turn."""
    if which == OURS:
        with LogServer() as running:
            yield running
    else:
        yield BrokerLogs(request.getfixturevalue("broker"))


@pytest.fixture
def log_server(logs: Logs) -> LogServer:
    """A ``LogServer``, for tests that RabbitMQ cannot run."""
    assert isinstance(logs, LogServer)
    return logs


@pytest.fixture(scope="session")
def broker() -> Iterator[rabbitmq.Broker]:
    """A node of RabbitMQ 4."""
    missing = is_missing("rabbitmq4")
    if missing:
        _fail_or_skip(missing, "CI", "INTEROP_REQUIRE", "AMQP10_SPARK_REQUIRE")
    running = rabbitmq.start(4, peers=PEERS)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def objects() -> Iterator[ObjectServer]:
    """An object store that speaks S3."""
    with ObjectServer() as running:
        yield running


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A Java that Spark starts with, in the environment."""
    try:
        prepare(tmp_path_factory.mktemp("java"))
    except LocalProtocolError as missing:
        _fail_or_skip(str(missing), "AMQP10_SPARK_REQUIRE")
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_SUBMIT_OPTS"] = QUICK_START
    os.environ.update(CREDENTIALS)  # of an object store that a test may have later


@pytest.fixture(scope="session")
def all_failures(tmp_path_factory: pytest.TempPathFactory) -> Failures:
    """Set the environment before Spark starts, because its processes inherit it."""
    failures = Failures(tmp_path_factory.mktemp("failures"))
    os.environ.update(failures.environment())
    sys.path.insert(0, HERE)  # which the processes of lanes have from this one
    return failures


@pytest.fixture
def failures(all_failures: Failures) -> Iterator[Failures]:
    """Let processes of Spark and of lanes die or wait.

    A test fails if no process has come to a place that it named.
    """
    yield all_failures
    all_failures.end()


@pytest.fixture(scope="session")
def spark(java: None, all_failures: Failures, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The session: two cores, three attempts for each task."""
    from pyspark.sql import SparkSession

    scratch = tmp_path_factory.mktemp("scratch")
    session = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.local.dir", str(scratch))
        .config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={scratch}")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def desk(peer: Peer, tmp_path: Path) -> Iterator[Desk]:
    one = Desk(peer, tmp_path)
    yield one
    one.stop()
