"""Termini expire in time, and what one costs does not grow with how many are kept."""

from __future__ import annotations

from math import inf, log2

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.steps import steps
from trio_amqp10.container.links.deadlines import Deadlines
from trio_amqp10.container.links.kept import Kept, Key
from trio_amqp10.container.links.termini import Termini
from trio_amqp10.peer.memory import Retention
from trio_amqp10.spec.messaging import ExpiryPolicy
from trio_amqp10.spec.transport import Role


def key(name: str) -> Key:
    return Key("peer", name, Role.RECEIVER)


class Nobody:
    """A link that has a terminus."""

    def steal(self) -> None: ...

    def suspend(self, condition: str, description: str) -> None: ...

    def close(self, condition: str | None = None, description: str | None = None) -> None: ...

    def expire(self) -> None: ...


@given(st.lists(st.tuples(st.integers(0, 5), st.one_of(st.integers(0, 20), st.just(inf))), max_size=300))
def test_deadlines_give_what_is_due_and_each_once(acts: list[tuple[int, float]]) -> None:
    deadlines, termini = Deadlines(), [Kept(key(str(n)), None) for n in range(5)]
    model = dict.fromkeys(termini, inf)
    for which, time in acts:
        if which < 5:
            deadlines.add(termini[which], time)
            model[termini[which]] = time
        else:
            due = deadlines.due(time)
            assert set(due) == {each for each, when in model.items() if when <= time and when < inf}
            model.update(dict.fromkeys(due, inf))
            for each in due:
                each.deadline = inf
        assert deadlines.next() <= min(model.values())


def test_terminus_that_comes_and_goes_costs_no_more_where_more_are_kept() -> None:
    counts = {}
    retention = Retention(expiry_policy=ExpiryPolicy.LINK_DETACH, timeout=60)
    for size in (10, 1_000, 100_000):
        calls = list[float]()
        termini = Termini(lambda: 0.0, lambda when, _call, calls=calls: calls.append(when), limit=10**6)  # type: ignore[misc]
        holder = Nobody()
        for n in range(size):
            kept = termini.claim(key(f"link {n}"), None, retention, holder, forgotten=False)
            termini.release(kept, holder, closed=False)

        def churn(termini: Termini = termini, holder: Nobody = holder) -> None:
            for _again in range(3):
                kept = termini.claim(key("link 5"), None, retention, holder, forgotten=False)
                termini.release(kept, holder, closed=False)

        counts[size] = steps(churn)
        assert calls == [60.0]  # one timer will do
    assert all(count <= 1.2 * counts[10] + 50 * log2(size / 10) for size, count in counts.items()), counts


def test_termini_expire_in_time_when_an_earlier_deadline_counts_no_more() -> None:
    now, calls = 0.0, list[float]()
    termini = Termini(lambda: now, lambda when, _call: calls.append(when))
    holder = Nobody()
    first, second = (
        termini.claim(
            key(name),
            None,
            Retention(expiry_policy=ExpiryPolicy.LINK_DETACH, timeout=timeout),
            holder,
            forgotten=False,
        )
        for name, timeout in (("a", 10), ("b", 20))
    )
    termini.release(first, holder, closed=False)
    termini.release(second, holder, closed=False)
    termini.claim(key("a"), None, first.retention, holder, forgotten=False)
    for now in (10.0, 20.0):
        assert calls[-1] == now
        termini.sweep()
    assert (calls, len(termini)) == ([10.0, 20.0], 1)
