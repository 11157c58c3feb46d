"""Places where tests let processes fail are steps of the product."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from .failures import EXIT_CODE, Failures
from .failures.sitecustomize import PLACES, PRODUCT
from .server import Server

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = "from pathlib import Path; from trio_amqp10.spark.storage import FolderStore; FolderStore(Path()).delete('segments/x')"

READER = """
import json, sys
from trio_amqp10.spark.options import QueueOptions
from trio_amqp10.spark.readers import QueueStreamReader
reader = QueueStreamReader(QueueOptions.parse(json.loads(sys.argv[1])))
reader.prepareForTriggerAvailableNow()
start = reader.initialOffset()
reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))
"""


def run(failures: Failures, folder: Path, program: str = PROGRAM, *arguments: str) -> int:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=os.environ | failures.environment(),
        cwd=folder,
        check=False,
    ).returncode


@pytest.fixture
def own(tmp_path: Path) -> Failures:
    folder = tmp_path / "failures"
    folder.mkdir()
    return Failures(folder)


@pytest.mark.parametrize("place", PLACES)
def test_each_place_is_a_step_of_the_product(place: str) -> None:
    for step in PLACES[place]:
        step.owner(importlib.import_module(f"{PRODUCT}.{step.module}"))


def test_place_that_does_not_exist_is_an_error(own: Failures) -> None:
    with pytest.raises(AssertionError, match="'nowhere' is none of the places"):
        own.crash("nowhere")


def test_process_dies_once(own: Failures, tmp_path: Path) -> None:
    own.crash("deleted")
    assert run(own, tmp_path) == EXIT_CODE
    assert own.crashed("deleted")
    assert run(own, tmp_path) == 0
    own.end()


def test_place_that_no_process_reaches_is_an_error(own: Failures, tmp_path: Path) -> None:
    own.delay("deleted", 0.01)
    assert run(own, tmp_path) == 0
    own.end()
    own.crash("deleted")
    own.delay("sent", 0.01)
    with pytest.raises(AssertionError, match=r"\['crash-deleted', 'delay-sent'\]"):
        own.end()


@pytest.mark.parametrize(
    "place", ["unwritten", "written", "published", "synced", "settled", "offset", "planned"]
)
def test_reader_dies_at_each_of_its_places(own: Failures, tmp_path: Path, place: str) -> None:
    with Server() as server:
        server.put("q", [b"tea"])
        given = {"url": server.url, "address": "q", "spool": str(tmp_path / "spool")}
        own.crash(place)
        assert run(own, tmp_path, READER, json.dumps(given)) == EXIT_CODE
    own.end()
