"""Fixtures for the real peers: one that is missing is a skip, or an error where interop is required.

``CI`` or ``INTEROP_REQUIRE=1`` in the environment require it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from . import rabbitmq
from .peers import PEERS, Capture, Client, client, is_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def need(name: str) -> None:
    """Skip, or fail, with the command that installs it."""
    if reason := is_missing(name):
        if os.environ.get("CI") or os.environ.get("INTEROP_REQUIRE") == "1":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def proton() -> Client:
    need("proton")
    return client("proton")


@pytest.fixture(scope="session")
def rhea() -> Client:
    need("rhea")
    return client("rhea")


@pytest.fixture(scope="session", params=["proton", "rhea"])
def peer(request: pytest.FixtureRequest) -> Client:
    """Each of the peers that are clients and servers, in turn."""
    found: Client = request.getfixturevalue(request.param)
    return found


def _broker(major: int) -> Iterator[rabbitmq.Broker]:
    need(f"rabbitmq{major}")
    broker = rabbitmq.start(major, peers=PEERS)
    try:
        yield broker
    finally:
        broker.stop()


@pytest.fixture(scope="session")
def rabbitmq4() -> Iterator[rabbitmq.Broker]:
    yield from _broker(4)


@pytest.fixture(scope="session")
def rabbitmq3() -> Iterator[rabbitmq.Broker]:
    yield from _broker(3)


@pytest.fixture(scope="session", params=["rabbitmq4", "rabbitmq3"])
def broker(request: pytest.FixtureRequest) -> rabbitmq.Broker:
    """Each broker in turn."""
    found: rabbitmq.Broker = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def capture(tmp_path: Path) -> Callable[[int], Capture]:
    """``with capture(port) as seen:`` records that port of the loopback."""
    need("tshark")
    return lambda port: Capture(port, tmp_path / f"{port}.pcapng")
