"""A queue against a model: whatever outlets and leases do, nothing is lost, doubled or out of order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import trio_amqp10 as amqp
from tests.scaled import scaled
from trio_amqp10.amqp10.server.native_message import content_of_message
from trio_amqp10.container import Queue, QueuePolicy


class In:
    """An inlet with what is pushed to it."""

    peer = SimpleNamespace(container_id="from", identity=None)
    is_committed = False

    def __init__(self) -> None:
        self.arrivals: list[Any] = []

    def take(self) -> Any:
        return self.arrivals.pop(0) if self.arrivals else None

    def close(self, condition: str | None = None, description: str | None = None) -> None: ...


class Arrived:
    settled = False
    state: Any = None

    def __init__(self, number: int, priority: int | None = None) -> None:
        self.message = amqp.Message(number, priority=priority)
        self.accepted = 0

    @property
    def content(self) -> Any:
        return content_of_message(self.message)

    def accept(self) -> None:
        self.accepted += 1


class Out:
    """An outlet with credit."""

    peer: Any = None
    target = None
    closed = False
    max_message_size = None
    subscription_terms = amqp.SubscriptionTerms(name="")

    def __init__(self, key: int, copying: bool = False, selective: bool = False) -> None:
        self.key = key
        self.selective = selective
        self.wants = (lambda content, origin: self.may_have(content.as_message().body)) if selective else None
        self.copying = copying
        self.credit = 0
        self.held: list[tuple[int, Any]] = []
        self.seen: list[int] = []
        self.more: int | None = None

    def may_have(self, number: int) -> bool:
        return not self.selective or self.key in (0, 1) or bool(number % self.key)

    def ready(self) -> bool:
        return self.credit > 0

    def give(self, content: Any, lease: Any, tag: bytes | None = None) -> None:
        assert self.credit > 0
        self.credit -= 1
        body = content.as_message().body
        self.seen.append(body)
        if lease is not None:
            self.held.append((body, lease))

    def rest(self, more: int) -> None:
        self.more = more


PRIORITIES = (4, 4, 7, 200, 0)

steps = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "put",
                "put",
                "credit",
                "credit",
                "accept",
                "release",
                "release",
                "fail",
                "refuse",
                "lose",
                "leave",
            ]
        ),
        st.integers(0, 3),
        st.sampled_from([1, 1, 1, 2, 4]),
    ),
    max_size=60,
)


@settings(max_examples=scaled(250), deadline=None)
@given(steps, st.sampled_from([None, 1, 5]), st.booleans(), st.booleans())
def test_queue_keeps_every_message_once_and_gives_the_first_that_may_be_had(
    script: list[tuple[str, int, int]], max_length: int | None, selective: bool, prioritised: bool
) -> None:
    queue = Queue("q", policy=QueuePolicy(max_length=max_length))
    source = In()
    queue.add_inlet(source)
    outlets: dict[int, Out] = {}
    arrivals: list[Arrived] = []
    done: set[int] = set()
    excluded: dict[int, set[int]] = {}

    def place(number: int) -> tuple[int, int]:
        return (-min(PRIORITIES[number % 5], 9) if prioritised else 0), number

    def held() -> set[int]:
        return {number for out in outlets.values() for number, _ in out.held}

    for what, who, count in script:
        out = outlets.get(who)
        if out is None:
            out = outlets[who] = Out(who, selective=selective and who > 0)
            queue.add_outlet(out)
            queue.on_demand(out)
        if what == "put":
            for _ in range(count):
                priority = PRIORITIES[len(arrivals) % 5] if prioritised else None
                arrivals.append(Arrived(len(arrivals), priority))
                source.arrivals.append(arrivals[-1])
            queue.on_arrivals(source)
        elif what == "credit":
            taken = {n for n, each in enumerate(arrivals) if each.accepted}
            waiting = sorted(
                (n for n in taken - done - held() if who not in excluded.get(n, set()) and out.may_have(n)),
                key=place,
            )
            before = len(out.seen)
            out.credit += count
            queue.on_demand(out)
            got = out.seen[before:]
            assert got[: len(waiting)] == waiting[: len(got)]
            assert len(got) >= min(count, len(waiting))
        elif what == "leave":
            del outlets[who]
            queue.remove_outlet(out)
            for _, lease in out.held:
                lease.lost()
        elif out.held:
            number, lease = out.held.pop((count - 1) % len(out.held))
            if what == "accept":
                done.add(number)
                lease.accepted()
            elif what == "release":
                lease.released()
            elif what == "lose":
                lease.lost()
            elif what == "fail":
                lease.modified(failed=True, undeliverable_here=False, annotations=None)
            else:
                excluded.setdefault(number, set()).add(who)
                lease.modified(failed=False, undeliverable_here=True, annotations=None)
        numbers = [number for each in outlets.values() for number, _ in each.held]
        assert len(numbers) == len(set(numbers)), "two have one message"
        assert not set(numbers) & done
        taken = {n for n, each in enumerate(arrivals) if each.accepted}
        assert len(queue) == len(taken) - len(done)
        assert queue.available == len(queue) - len(numbers)
        for key, each in outlets.items():  # nobody waits while there is something for him
            if each.credit:
                free = taken - done - set(numbers)
                assert all(key in excluded.get(n, set()) or not each.may_have(n) for n in free)
    assert all(each.accepted <= 1 for each in arrivals)
    _drain(queue, done, arrivals, place)


def _drain(queue: Queue, done: set[int], arrivals: list[Arrived], place: Any) -> None:
    """Whoever comes last gets all that is left, in order."""
    browser = Out(98, copying=True)
    queue.add_outlet(browser)
    browser.credit = 1000
    queue.on_demand(browser)
    assert browser.seen == sorted(browser.seen, key=place)
    assert len(browser.seen) >= queue.available
    last = Out(99)
    queue.add_outlet(last)
    last.credit = 1000
    while True:
        queue.on_demand(last)
        if not last.held:
            break
        for number, lease in last.held:
            done.add(number)
            lease.accepted()
        last.held.clear()
    if queue.policy.max_length is None:
        assert last.seen == sorted(last.seen, key=place)
        assert last.seen[: len(browser.seen)] == browser.seen
    assert last.more == 0
    leased = len(queue)
    assert len(done) + leased == sum(each.accepted for each in arrivals)
