"""Raw exchanges of 0-9-1: the same with RabbitMQ 4, with its emulator and with a container, but for a table of differences.

``python -m tests.interop.test_exchanges PORT [CASE...]`` prints what a server of guest answers, for people.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from trio_amqp10.testing import rabbitmq, running_container

from .exchanges_cases import CASES
from .exchanges_client import Scene
from .exchanges_differences import CONTAINER, EMULATOR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .rabbitmq import Broker

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/rabbitmq.rst"
AT_ONCE = 8


def record_of(name: str, port: int, run: str) -> list[Any]:
    scene = Scene(name, "127.0.0.1", port, run)
    try:
        CASES[name](scene)
    finally:
        scene.close()
    return scene.record


def records(port: int, names: Iterable[str] = CASES) -> dict[str, list[Any]]:
    """What a server answers in each case; each run has queues of its own."""
    run = f"{os.urandom(3).hex()}-"
    chosen = list(names)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(lambda name: record_of(name, port, run), chosen)
        return dict(zip(chosen, found, strict=True))


def differences(expected: dict[str, list[Any]], port: int) -> dict[str, Any]:
    found = records(port)
    differing = [name for name in CASES if found[name] != expected[name]]
    # Where a machine was too slow for the time that a case has, it is asked alone.
    again = {name: record_of(name, port, f"{os.urandom(3).hex()}-") for name in differing}
    return {name: (expected[name], again[name]) for name in differing if again[name] != expected[name]}


@pytest.fixture(scope="module")
def expected(rabbitmq4: Broker) -> dict[str, list[Any]]:
    return records(rabbitmq4.port)


def listed(*tables: dict[str, tuple[str, ...]]) -> set[str]:
    return {name for table in tables for names in table.values() for name in names}


def check(found: dict[str, Any], known: set[str]) -> None:
    more = {name: each for name, each in found.items() if name not in known}
    assert not more, f"{len(more)} cases differ from RabbitMQ and are not in the table: {more}"
    assert not known - found.keys(), "these cases do not differ any more: take them out of the table"


def test_emulator_answers_as_rabbitmq_but_for_the_table(expected: dict[str, list[Any]]) -> None:
    with rabbitmq() as url:
        check(differences(expected, urlsplit(url).port or 0), listed(EMULATOR))


def test_container_answers_as_rabbitmq_but_for_the_tables(expected: dict[str, list[Any]]) -> None:
    with running_container(users={"guest": "guest"}) as url:
        check(differences(expected, urlsplit(url).port or 0), listed(EMULATOR, CONTAINER))


def test_every_difference_has_a_case_and_stands_in_the_manual() -> None:
    assert listed(EMULATOR, CONTAINER) <= CASES.keys()
    page = " ".join(PAGE.read_text().split())
    for reason in (*EMULATOR, *CONTAINER):
        assert reason in page, reason


if __name__ == "__main__":
    for case, answers in records(int(sys.argv[1]), sys.argv[2:] or CASES).items():
        print(case, *answers, sep="\n    ")
