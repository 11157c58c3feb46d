"""A real peer for every test, and one Spark for all of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop import rabbitmq
from tests.interop.peers import PEERS, is_missing
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spark import prepare

from .broker import BrokerLogs, BrokerPeer
from .desk import Desk
from .logs import LogServer
from .objects import CREDENTIALS, ObjectServer
from .server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .peers import Logs, Peer

WHOLE = "AMQP10_SPARK_WHOLE"
OURS, RABBITMQ = "ours", "rabbitmq4"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slow ones (``kill -9`` and the like) run where the whole is asked for; with RabbitMQ, what it does not lack."""
    if not os.environ.get(WHOLE):
        items[:] = [item for item in items if item.get_closest_marker("whole") is None]
    items[:] = [item for item in items if _is_possible(item)]


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
    """Whose peer a test has."""
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
    """A container in another thread, on TCP, for what is not for RabbitMQ."""
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
    """Ours, for what is not for RabbitMQ."""
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
    os.environ.update(CREDENTIALS)  # of an object store that a test may have later


@pytest.fixture(scope="session")
def hooks_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Set before Spark starts, for it hands on what it has."""
    from trio_amqp10.spark.failure_points import HOOKS

    folder = tmp_path_factory.mktemp("hooks")
    os.environ[HOOKS] = str(folder)
    return folder


@pytest.fixture
def hooks(hooks_folder: Path) -> Iterator[Path]:
    """Where files make processes of Spark's crash or dawdle; what a test leaves there is for no other."""
    yield hooks_folder
    for left in hooks_folder.iterdir():
        left.unlink()


@pytest.fixture(scope="session")
def spark(java: None, hooks_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The session: two cores, three attempts for each task."""
    from pyspark.sql import SparkSession

    scratch = tmp_path_factory.mktemp("scratch")
    session = (
        SparkSession.builder.master("local[2,3]")
        .config("spark.ui.enabled", "false")
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
