"""Processes are killed under load: no message is missing, few come twice.

Slow: these run where AMQP10_SPARK_WHOLE is set (``make test-spark WHOLE=1``); more of it is ``make soak-spark``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .kills import EXTERNAL, HOMES, Ordeal

if TYPE_CHECKING:
    from pathlib import Path

    from .objects import ObjectServer

pytestmark = pytest.mark.whole

KILLS = 3


@pytest.mark.parametrize(
    ("peer", "dedup", "sink"), [(peer, *way) for peer, (_, ways) in HOMES.items() for way in ways]
)
def test_kills_lose_nothing_and_repeat_only_what_may_be(
    java: None, request: pytest.FixtureRequest, tmp_path: Path, peer: str, dedup: str, sink: str
) -> None:
    if peer == "rabbitmq":
        request.getfixturevalue("broker")  # skips or fails if there is none
    home = HOMES[peer][0]
    found = Ordeal(tmp_path, dedup=dedup, sink=sink, home=home).run(KILLS + home.mortal)
    assert (found.missing, found.left) == (0, 0)
    assert found.repeated <= found.allowed


@pytest.mark.parametrize("kind", ["folder", "objects"])
def test_kills_of_lanes_lose_nothing_and_repeat_nothing_that_has_an_id(
    java: None, objects: ObjectServer, tmp_path: Path, kind: str
) -> None:
    store = objects if kind == "objects" else None
    found = Ordeal(tmp_path, dedup="message-id", sink="files", objects=store, lanes=2).run(KILLS + 2)
    assert (found.missing, found.left, found.repeated) == (0, 0, 0)


@pytest.mark.parametrize("kind", ["folder", "objects"])
def test_lanes_that_are_gone_are_read_by_others_and_new_ones_join_a_running_query(
    java: None, objects: ObjectServer, tmp_path: Path, kind: str
) -> None:
    store = objects if kind == "objects" else None
    found = Ordeal(tmp_path, dedup="message-id", sink="files", objects=store, lanes=EXTERNAL).take_over(KILLS)
    assert (found.missing, found.left, found.repeated) == (0, 0, 0)
