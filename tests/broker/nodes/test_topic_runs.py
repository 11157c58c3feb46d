"""How a topic gives messages that came together: subscription by subscription, each in order, and all before an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trio_amqp10 as amqp
from tests.amqp10.server.test_failing_links import Arrived, In
from trio_amqp10.broker.nodes.clock import Clock
from trio_amqp10.container import Topic

from .test_pull import Out
from .test_turns import Counted

if TYPE_CHECKING:
    from trio_amqp10.broker.nodes.topic import Spill


class Seen(Out):
    """Notes what it is given in a list that all share; with ``until``, it leaves with its last message."""

    def __init__(self, topic: Topic, name: str, seen: list[tuple[str, Any]], until: int = 1000) -> None:
        super().__init__(name, credit=1000)
        self.subscription_terms = amqp.SubscriptionTerms(name=name)
        self._topic, self._seen, self._until = topic, seen, until

    def give(self, content: Any, lease: Any, _tag: bytes | None = None) -> None:
        super().give(content, lease)
        self._seen.append((self.key, self.given[-1]))
        if len(self.given) == self._until:
            self._topic.remove_outlet(self)


def stage(
    names: str, turn: int = 10**9, **rules: Any
) -> tuple[Topic, Counted, dict[str, Seen], list[tuple[str, Any]]]:
    """A topic without a container, with a subscription for each letter."""
    clock, turns = Clock(), Counted(turn)
    clock.turns = lambda: turns
    topic, seen = Topic("t", clock=clock, **rules), list[tuple[str, Any]]()
    outlets = {name: Seen(topic, name, seen) for name in names}
    for outlet in outlets.values():
        topic.add_outlet(outlet)
        topic.on_demand(outlet)
    return topic, turns, outlets, seen


def send(topic: Topic, *messages: Any) -> tuple[In, list[Arrived]]:
    """Let a link bring these messages together."""
    inlet = In()
    arrivals = [Arrived(each if isinstance(each, amqp.Message) else amqp.Message(each)) for each in messages]
    topic.add_inlet(inlet)  # type: ignore[arg-type]
    inlet.arrivals += arrivals
    topic.on_arrivals(inlet)  # type: ignore[arg-type]
    return inlet, arrivals


def test_one_subscription_after_the_other_gets_all_messages_that_came_together() -> None:
    topic, _, _, seen = stage("ab")
    _, arrivals = send(topic, 1, 2, 3)
    assert seen == [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("b", 3)]
    assert {each.state for each in arrivals} == {"accepted"}


@pytest.mark.parametrize(
    ("body", "together"), [(b"small", 64), (bytes(40_000), 2), (bytes(70_000), 1)], ids=str
)
def test_messages_and_octets_of_a_run_are_limited(body: bytes, together: int) -> None:
    topic, _, _, seen = stage("ab")
    send(topic, *[body] * (together + 1))
    assert [name for name, _ in seen] == ["a"] * together + ["b"] * together + ["a", "b"]


@pytest.mark.parametrize(("max_backlog", "together"), [(None, 64), (500, 6), (99, 1)])
def test_run_is_a_small_part_of_what_a_subscription_may_fall_behind(
    max_backlog: int | None, together: int
) -> None:
    topic, _, _, seen = stage("ab", max_backlog=max_backlog)
    send(topic, *range(together + 1))
    assert [name for name, _ in seen] == ["a"] * together + ["b"] * together + ["a", "b"]


@pytest.mark.parametrize("overflow", ["reject", "wait"])
def test_where_room_decides_each_message_is_asked_for_alone(overflow: Spill) -> None:
    topic, _, outlets, seen = stage("ab", overflow=overflow, max_backlog=2)
    inlet, arrivals = send(topic, 1, 2, 3)
    assert seen == [("a", 1), ("b", 1), ("a", 2), ("b", 2)]
    assert [each.state for each in arrivals] == [
        "accepted",
        "accepted",
        "rejected" if overflow == "reject" else None,
    ]
    assert len(inlet.arrivals) == (overflow == "wait")
    for lease in list(outlets["a"].leases):
        lease.accepted()
    outlets["b"].leases[0].accepted()
    topic.on_arrivals(inlet)  # type: ignore[arg-type]
    assert seen[4:] == ([("a", 3), ("b", 3)] if overflow == "wait" else [])


def test_full_subscription_rejects_only_what_it_wants_and_its_filter_has_turns() -> None:
    topic, turns, outlets, seen = stage("ab", turn=1, overflow="reject", max_backlog=1)
    send(topic, 1)
    turns.run()
    outlets["b"].leases[0].accepted()
    for subscription in topic.subscriptions.values():
        subscription.wants = lambda content, _: content.as_message().body != 2
    _, unwanted = send(topic, 2)
    turns.run()
    _, wanted = send(topic, 3)
    turns.run()
    assert (unwanted[0].state, wanted[0].state) == ("accepted", "rejected")
    assert seen == [("a", 1), ("b", 1)]


def test_what_came_before_a_durable_message_is_accepted_and_what_came_after_it_too() -> None:
    topic, _, _, seen = stage("ab")
    topic.refuses_durable = True
    _, arrivals = send(topic, 1, amqp.Message(2, durable=True), 3, amqp.Message(4, durable=True))
    assert [each.state for each in arrivals] == ["accepted", "rejected"] * 2
    assert seen == [("a", 1), ("b", 1), ("a", 3), ("b", 3)]


@settings(max_examples=50)
@given(
    turn=st.integers(1, 9),
    count=st.integers(0, 6),
    leaving=st.dictionaries(st.sampled_from("abc"), st.integers(1, 6)),
)
def test_each_subscription_gets_all_in_order_whatever_the_turns_and_who_leaves(
    turn: int, count: int, leaving: dict[str, int]
) -> None:
    topic, turns, outlets, _ = stage("abc", turn)
    for name, until in leaving.items():
        outlets[name]._until = until
    _, arrivals = send(topic, *range(count))
    turns.run()
    assert all(each.state == "accepted" for each in arrivals)
    for name, outlet in outlets.items():
        assert outlet.given == list(range(min(count, leaving.get(name, count))))


def test_sender_that_leaves_between_turns_has_its_answers_and_no_more_are_taken() -> None:
    topic, turns, _, seen = stage("ab", turn=1)
    inlet, arrivals = send(topic, *range(3))
    topic.remove_inlet(inlet)  # type: ignore[arg-type]
    turns.run()
    assert seen in ([], [(name, number) for name in "ab" for number in range(3)])
    assert all((each.state == "accepted") is bool(seen) for each in arrivals)
