"""A queue whose messages expire, against a model: nothing late is given, nothing else is lost."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scaled import scaled
from trio_amqp10.broker.nodes.clock import Clock
from trio_amqp10.container import Queue, QueuePolicy

from .test_queue_model import Arrived, In, Out

steps = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "wait", "credit", "accept", "release", "lose"]), st.integers(0, 5)
    ),
    max_size=60,
)


@settings(max_examples=scaled(150), deadline=None)
@given(steps, st.booleans(), st.sampled_from([None, 3]))
def test_queue_gives_all_that_has_not_expired_and_nothing_that_has(
    script: list[tuple[str, int]], selective: bool, max_length: int | None
) -> None:
    now = 0.0
    queue = Queue("q", clock=Clock(lambda: 0.0, lambda: now), policy=QueuePolicy(max_length=max_length))
    source, out = In(), Out(2, selective=selective)
    queue.add_inlet(source)
    queue.add_outlet(out)
    deadlines: list[float] = []
    arrivals: list[Arrived] = []
    settled: set[int] = set()

    def alive() -> set[int]:
        held = {number for number, _ in out.held}
        taken = {number for number, each in enumerate(arrivals) if each.accepted}
        for number in taken:
            if deadlines[number] < 0:
                deadlines[number] = now - deadlines[number]
        return {number for number in taken - settled if number in held or deadlines[number] > now}

    for what, count in script:
        if what == "put":
            arrived = Arrived(len(arrivals))
            arrived.message.ttl = 1000 * count + 1000
            arrivals.append(arrived)
            deadlines.append(-count - 1.0)  # seconds from its arrival, which is when it is taken
            source.arrivals.append(arrived)
            queue.on_arrivals(source)
        elif what == "wait":
            now += count / 2
            queue.sweep()
        elif what == "credit":
            out.credit += count
            before = len(out.seen)
            queue.on_demand(out)
            alive()
            assert all(deadlines[number] > now for number in out.seen[before:])
        elif out.held:
            number, lease = out.held.pop(count % len(out.held))
            if what == "accept":
                settled.add(number)
                lease.accepted()
            elif what == "release":
                lease.released()
            else:
                lease.lost()
        assert len(queue) == len(alive())
        if out.credit:
            held = {number for number, _ in out.held}
            assert not [number for number in alive() - held if out.may_have(number)]
