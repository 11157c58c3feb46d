"""The checker of ``make soak``: what it counts, and a short run of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

import trio_amqp10 as amqp
from tests.soak.comebacks import kill_servers
from tests.soak.kills import Plan, Tally, body_of, run

if TYPE_CHECKING:
    from pathlib import Path


def taken(tally: Tally, name: str, at: float = 0.0) -> None:
    tally.take(amqp.Message(body_of(name), message_id=name))
    tally.handled.setdefault(name, at)


def test_tally_counts_what_is_lost_recovered_unexpected_and_torn() -> None:
    tally = Tally(attempted={"a", "b", "c", "p", "q"}, accepted={"a", "b"}, pairs=[("p", "q")])
    for name in ("a", "c", "p"):
        taken(tally, name)
    tally.take(amqp.Message(b"other octets", message_id="c"))
    taken(tally, "never sent")
    counts = tally.counts()
    assert tally.lost == {"b"}
    assert tally.torn == [("p", "q")]
    assert (counts["recovered"], counts["unexpected"], counts["received"]) == (3, 2, 4)


def test_tally_explains_a_duplicate_by_a_kill_just_after_it_was_handled() -> None:
    tally = Tally(attempted={"a", "b"}, killed=[10.0])
    taken(tally, "a", at=9.5)
    taken(tally, "b", at=5.0)
    assert tally.counts()["duplicated"] == 0
    taken(tally, "a")
    taken(tally, "b")
    assert tally.counts()["duplicated"] == 2
    assert tally.unexplained == ["b"]


async def test_container_loses_nothing_that_it_accepted_when_it_is_killed(tmp_path: Path) -> None:
    with trio.fail_after(60):
        tally = await run(tmp_path / "store", Plan(kills=1, senders=2, receivers=1, controllers=1, most=0.4))
    counts = tally.counts()
    assert counts["kills"] == 1
    assert counts["accepted"] > 0
    assert {key: counts[key] for key in ("lost", "unexpected", "unexplained", "torn")} == {
        "lost": 0,
        "unexpected": 0,
        "unexplained": 0,
        "torn": 0,
    }


async def test_nothing_is_lost_or_doubled_exactly_once_when_the_container_is_killed(tmp_path: Path) -> None:
    with trio.fail_after(60):
        tally = await kill_servers(tmp_path / "store", 2, "exactly-once")
    assert tally.good, tally.counts()
    assert (tally.breaks, tally.raised) == (2, [])
    assert tally.accepted
