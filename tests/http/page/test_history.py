"""The history: rings of a fixed size, totals and depths, and how often a sample is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from trio_amqp10.container import Container
from trio_amqp10.http.page import history as module
from trio_amqp10.http.page.history import FIGURES, SPANS, History

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_rings_have_what_was_sampled_the_oldest_first(autojump_clock: MockClock) -> None:
    container = Container("box")
    container.add_queue("q")
    history = History(container.management)
    await history.sample()
    await container.send("q", b"12345")
    await trio.sleep(2)
    await history.sample()
    found = history.series(60)
    assert found["age"] == [2.0, 0.0]
    assert (found["arrived"], found["depth"], found["delivered"]) == ([0, 1], [0, 1], [0, 0])
    assert found["octets"][1] > 5
    assert set(found) == {"span", "age", *FIGURES}


async def test_a_day_of_samples_takes_no_more_room_than_an_hour() -> None:
    container = Container("box")
    container.add_queue("q")
    now = 0.0
    history = History(container.management, lambda: now)
    lengths: list[dict[int, int]] = []
    for hour in range(2, 25, 11):
        for _ in range(3700 if hour == 2 else 100):
            now += 1
            await history.sample()
        lengths.append({span: len(history.series(span)["age"]) for span in SPANS})
        now += 60
    [before, *later] = lengths
    assert later == [before, before]
    assert before == {60: 61, 600: 121, 3600: 121}
    assert len(history.depths("q")) == 30


async def test_depths_of_queues_grow_and_are_forgotten_with_the_queue(autojump_clock: MockClock) -> None:
    container = Container("box")
    for name in ("slow", "fast", "still", "gone"):
        container.add_queue(name)
    history = History(container.management)
    await history.sample()
    for name, number in (("slow", 10), ("fast", 30)):
        for _ in range(number):
            await container.send(name, b"x")
    container.remove_node("gone")
    await trio.sleep(10)
    await history.sample()
    assert history.growing(5) == ["fast", "slow"]
    assert history.growing(1) == ["fast"]
    assert (history.growth("fast"), history.growth("still"), history.growth("nope")) == (3.0, 0.0, 0.0)
    assert history.depths("fast") == [0, 30]
    assert history.depths("gone") == []


async def test_depths_of_so_many_queues_are_kept_and_no_more(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(module, "MOST_QUEUES", 2)
    container = Container("box")
    for name in ("a", "b", "c"):
        container.add_queue(name)
    history = History(container.management)
    await history.sample()
    assert (history.depths("b"), history.depths("c"), history.queues) == ([0], [], 3)


async def test_long_sample_is_followed_by_a_long_pause(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    ticks = iter(range(1000))
    monkeypatch.setattr(module, "perf_counter", lambda: next(ticks))
    history = History(Container("box").management)
    with trio.move_on_after(201):
        await history.run()
    assert history.step == 50.0
    assert history.series(3600)["age"] == [201.0, 151.0, 101.0, 51.0, 1.0]


@pytest.mark.logs_errors
async def test_fault_ends_the_samples_and_not_the_server(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    history = History(Container("box").management)

    async def fail() -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError("broken")

    monkeypatch.setattr(history, "sample", fail)
    await history.run()
    assert "no further samples" in caplog.text


async def test_full_queue_whose_senders_wait_is_named() -> None:
    container = Container("box")
    container.add_queue("full", max_length=1)
    container.add_queue("drops", max_length=1, overflow="drop-oldest")
    for name in ("full", "drops"):
        await container.send(name, b"x")
    history = History(container.management)
    await history.sample()
    assert history.full == ("full",)
