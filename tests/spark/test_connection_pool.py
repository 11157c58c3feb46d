"""Connections that wait for the next task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10.spark.connection_pool import borrow, run_in_pool
from trio_amqp10.spark.options import SinkOptions

from .desk import until

if TYPE_CHECKING:
    from .peers import Peer


def options(peer: Peer, **given: str) -> SinkOptions:
    return SinkOptions.parse({"url": peer.url} | given)


async def use(given: SinkOptions, failure: Exception | None = None) -> Any:
    async with borrow(given) as connection:
        if failure is not None:
            raise failure
        return connection


def test_connection_is_kept_for_the_next_task_whatever_its_address(peer: Peer) -> None:
    first = run_in_pool(use, options(peer, address="a"))
    assert run_in_pool(use, options(peer, address="b")) is first
    assert not first.closed


def test_another_peer_or_user_gets_another(peer: Peer) -> None:
    first = run_in_pool(use, options(peer))
    assert run_in_pool(use, options(peer, containerId="other")) is not first


def test_connection_of_a_task_that_failed_is_closed(peer: Peer) -> None:
    first = run_in_pool(use, options(peer))
    with pytest.raises(KeyError, match="odd"):
        run_in_pool(use, options(peer), KeyError("odd"))
    assert run_in_pool(use, options(peer)) is not first
    until(lambda: first.closed)


def test_connection_that_was_lost_meanwhile_is_not_used(peer: Peer) -> None:
    first = run_in_pool(use, options(peer))
    peer.down()
    until(lambda: first.closed)
    with pytest.raises(OSError, match="refused"):
        run_in_pool(use, options(peer))
    peer.up()
    assert run_in_pool(use, options(peer)) is not first


def test_idle_connection_is_closed_in_the_end(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_amqp10.spark.connection_pool._IDLE", 0.05)
    first = run_in_pool(use, options(peer))
    until(lambda: first.closed)
    monkeypatch.undo()
    assert run_in_pool(use, options(peer)) is not first
