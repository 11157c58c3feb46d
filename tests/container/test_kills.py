"""The checker of ``make soak``: what it counts, and a short run of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from tests.soak import kills_dialects
from tests.soak.comebacks import kill_servers
from tests.soak.kills import Plan, Tally, body_of, run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.whole


def taken(tally: Tally, name: str) -> None:
    tally.take(name, body_of(name))


def test_tally_counts_what_is_lost_recovered_unexpected_and_torn() -> None:
    tally = Tally(attempted={"a", "b", "c", "p", "q"}, accepted={"a", "b"}, pairs=[("p", "q")])
    for name in ("a", "c", "p"):
        taken(tally, name)
    tally.take("c", b"other octets")
    taken(tally, "never sent")
    counts = tally.counts()
    assert tally.lost == {"b"}
    assert tally.torn == [("p", "q")]
    assert (counts["recovered"], counts["unexpected"], counts["received"]) == (3, 2, 4)


def tally_of(*names: str) -> Tally:
    """Return the tally of messages that were sent, received and accepted."""
    tally = Tally()
    for name in names:
        tally.send(name)
        taken(tally, name)
        tally.settle(name, 0)
    return tally


def test_tally_does_not_explain_a_duplicate_without_a_kill() -> None:
    tally = tally_of("a")
    taken(tally, "a")
    assert tally.counts()["duplicated"] == 1
    assert tally.unexplained == ["a"]


def test_tally_explains_a_duplicate_by_a_kill_before_it_must_have_been_stored() -> None:
    tally = tally_of("a")
    tally.send("c")
    tally.kill()
    tally.accept("c")
    taken(tally, "a")
    assert not tally.unexplained


def test_tally_does_not_explain_a_duplicate_of_what_was_stored_before_the_kill() -> None:
    tally = tally_of("a")
    tally.send("c")
    tally.accept("c")
    tally.kill()
    taken(tally, "a")
    assert tally.unexplained == ["a"]


def test_tally_does_not_count_what_is_found_read_after_the_kill() -> None:
    tally = tally_of("a")
    tally.send("b")
    taken(tally, "b")
    tally.kill()
    tally.settle("b", 0)
    taken(tally, "b")
    assert not tally.unexplained


def test_tally_expects_what_it_hears_of_late() -> None:
    tally = Tally()
    taken(tally, "a")
    assert tally.unexpected == ["a"]
    tally.attempted.add("a")
    assert not tally.unexpected


async def test_container_loses_nothing_that_it_accepted_when_it_is_killed(tmp_path: Path) -> None:
    with trio.fail_after(180):
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


async def test_container_loses_nothing_when_it_is_killed_while_it_reads_its_store(tmp_path: Path) -> None:
    plan = Plan(kills=3, senders=2, receivers=2, controllers=1, least=0.1, most=0.3, stock=3000)
    with trio.fail_after(180):
        tally = await run(tmp_path / "store", plan)
    counts = tally.counts()
    assert counts["kills"] == 4
    assert counts["accepted"] > 6000
    assert not tally.faults(), counts


async def test_nothing_is_lost_or_doubled_exactly_once_when_the_container_is_killed(tmp_path: Path) -> None:
    with trio.fail_after(180):
        tally = await kill_servers(tmp_path / "store", 2, "exactly-once")
    assert tally.good, tally.counts()
    assert (tally.breaks, tally.raised) == (2, [])
    assert tally.accepted


@pytest.mark.parametrize("dialect", kills_dialects.DIALECTS)
async def test_container_loses_nothing_that_it_confirmed_by_another_protocol_when_it_is_killed(
    dialect: str, tmp_path: Path
) -> None:
    plan = Plan(kills=2, senders=2, most=0.4)
    with trio.fail_after(120):
        tally = await kills_dialects.run(tmp_path / "store", dialect, plan, kills_dialects.PIKA.exists())
    counts = tally.counts()
    assert counts["kills"] == 2
    assert {name.partition("-")[0] for name in tally.accepted} >= {"one", "two"}
    assert [counts[key] for key in ("lost", "unexpected", "unexplained")] == [0, 0, 0]
