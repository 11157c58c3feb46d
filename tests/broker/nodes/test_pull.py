"""Pulling one message from a queue, by an outlet that is no consumer; and what a lease says of its message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10.amqp10.server.native_message import content_of_message
from trio_amqp10.broker.nodes.clock import Clock
from trio_amqp10.container import Node, Queue, QueuePolicy, Topic

if TYPE_CHECKING:
    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.entry import Entry


class Peer:
    container_id = "peer"
    identity = None

    def __init__(self) -> None:
        self.tasks: list[Any] = []

    def start_soon(self, function: Any, *args: Any) -> None:
        self.tasks.append((function, args))


class Out:
    """An outlet that remembers what it was given."""

    target = None
    final = False
    subscription_terms = amqp.SubscriptionTerms(name="out")

    def __init__(self, name: str = "out", *, credit: int = 1, copying: bool = False) -> None:
        self.key, self.credit, self.copying = name, credit, copying
        self.peer = Peer()
        self.wants: Any = None
        self.max_message_size: int | None = None
        self.closed = self.failing = False
        self.given: list[Any] = []
        self.leases: list[Entry] = []
        self.redelivered: list[bool] = []

    def ready(self) -> bool:
        return self.credit > len(self.given) and not self.closed

    def give(self, content: Content, lease: Entry | None, _tag: bytes | None = None) -> None:
        if self.failing:
            raise RuntimeError("broken")
        self.given.append(content.as_message().body)
        if lease is not None:
            self.leases.append(lease)
            self.redelivered.append(lease.redelivered)

    def rest(self, more: int) -> None: ...

    def close(self, *_: Any) -> None:
        self.closed = True


def filled(*messages: Any, **rules: Any) -> Queue:
    clock = Clock()
    clock.now = lambda: 0.0  # type: ignore[method-assign]
    queue = Queue("q", policy=QueuePolicy(**rules), clock=clock)
    fill(queue, *messages)
    return queue


def fill(queue: Queue, *messages: Any) -> None:
    for each in messages:
        message = each if isinstance(each, amqp.Message) else amqp.Message(each)
        queue.put(content_of_message(message), None)


def attach(queue: Queue, *outlets: Out) -> None:
    for outlet in outlets:
        queue.add_outlet(outlet)
        queue.on_demand(outlet)


def test_pull_gives_the_first_message_and_leases_it() -> None:
    queue, out = filled("a", "b"), Out()
    assert queue.pull(out)
    assert (out.given, queue.available, queue.leased) == (["a"], 1, 1)
    out.leases[0].accepted()
    assert len(queue) == 1
    assert queue.pull(out)
    assert not queue.pull(out)
    assert out.given == ["a", "b"]


def test_pull_finds_nothing_in_a_node_that_gives_only_to_consumers_or_is_deleted() -> None:
    queue = filled("a")
    queue.close()
    assert not queue.pull(Out())
    assert not Topic("t").pull(Out())
    assert not Node("n").pull(Out())


def test_pull_registers_nothing_and_is_offered_nothing_later() -> None:
    queue, out = filled(), Out(credit=9)
    assert not queue.pull(out)
    fill(queue, "a")
    assert (out.given, queue.available, queue.outlets) == ([], 1, {})


def test_pull_takes_what_is_ready_beside_an_exclusive_consumer() -> None:
    queue, consumer, out = filled("a", "b", exclusive=True), Out("consumer"), Out()
    attach(queue, consumer)
    assert queue.pull(out)
    assert (consumer.given, out.given) == (["a"], ["b"])


def test_pull_does_not_take_the_place_of_the_single_active_consumer() -> None:
    queue, out = filled("a", "b", "c", single_active=True), Out(credit=9)
    assert queue.pull(out)
    consumer = Out("consumer")
    attach(queue, consumer)
    assert consumer.given == ["b"]
    second = Out("second")
    queue.add_outlet(second)
    queue.remove_outlet(consumer)
    queue.on_demand(second)
    assert second.given == []  # "b" is out with the one before
    consumer.leases[0].lost()
    assert second.given == ["b"]


def test_pull_in_a_queue_with_a_single_active_consumer_forgets_what_was_answered() -> None:
    queue, out = filled(single_active=True), Out(credit=1000)
    for number in range(500):
        fill(queue, number)
        assert queue.pull(out)
        out.leases.pop().accepted()
    assert len(queue._pulled) < 100
    fill(queue, "a", "b")
    assert queue.pull(out)
    out.leases.pop().released()
    consumer = Out("consumer", credit=2)
    attach(queue, consumer)
    assert consumer.given == ["a", "b"]


def test_pull_with_a_filter_looks_at_all_that_is_available() -> None:
    queue, out = filled(*range(1300)), Out(credit=9)
    out.wants = lambda content, _origin: content.as_message().body in (1, 1200)
    assert queue.pull(out)
    assert queue.pull(out)
    assert not queue.pull(out)
    assert out.given == [1, 1200]
    assert not queue._available.searches
    for lease in out.leases:
        lease.released()
    assert queue.available == 1300


def test_pull_passes_over_a_message_that_is_too_large() -> None:
    queue, out = filled(b"x" * 1000, "small", b"x" * 1000), Out(credit=9)
    out.max_message_size = 100
    assert queue.pull(out)
    assert not queue.pull(out)
    assert (out.given, out.closed, queue.available) == (["small"], False, 2)
    assert not queue._available.searches


def test_pull_keeps_a_group_with_whom_it_was_given_to() -> None:
    messages = [amqp.Message(body, group_id=body[0]) for body in ("a1", "a2", "b1")]
    queue, out, other = filled(*messages, grouped=True), Out(credit=9), Out("other", credit=9)
    assert queue.pull(out)
    assert queue.pull(other)
    assert not queue.pull(other)
    assert queue.pull(out)
    assert (out.given, other.given) == (["a1", "a2"], ["b1"])
    for lease in out.leases:
        lease.released()
    assert queue.pull(other)
    assert other.given == ["b1", "a1"]


@pytest.mark.parametrize("rules", [{}, {"grouped": True}, {"single_active": True}])
@pytest.mark.logs_errors
def test_pull_puts_the_message_back_when_its_outlet_fails(
    rules: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    queue, out = filled(amqp.Message("a", group_id="g"), "b", **rules), Out()
    out.failing = True
    assert not queue.pull(out)
    assert out.closed
    assert "the link" in caplog.text
    caplog.clear()
    good = Out("good")
    assert queue.pull(good)
    assert (good.given, good.redelivered) == (["a"], [False])


@pytest.mark.logs_errors
def test_pull_ends_the_outlet_whose_filter_fails(caplog: pytest.LogCaptureFixture) -> None:
    queue, out = filled("a"), Out()
    out.wants = lambda _message, _origin: 1 / 0
    assert not queue.pull(out)
    assert out.closed
    assert queue.available == 1
    assert not queue._available.searches
    caplog.clear()


async def test_pull_finds_no_message_that_has_expired(autojump_clock: Any) -> None:
    queue = Queue("q")
    fill(queue, amqp.Message("old", ttl=1000), amqp.Message("new", ttl=5000))
    autojump_clock.jump(2)
    out = Out()
    assert queue.pull(out)
    assert (out.given, queue.figures["expired"]) == (["new"], 1)
    queue.close()


def test_pull_copies_the_first_that_it_wants_to_an_outlet_that_only_looks() -> None:
    queue, out = filled(*range(1300)), Out(credit=9, copying=True)
    assert queue.pull(out)
    out.wants = lambda content, _origin: content.as_message().body == 1200
    assert queue.pull(out)
    out.wants = lambda _message, _origin: False
    assert not queue.pull(out)
    assert (out.given, out.leases, queue.available) == ([0, 1200], [], 1300)


def test_pull_keeps_no_queue_that_is_kept_by_its_links() -> None:
    unused: list[Any] = []
    queue = Queue("q", kept_by=frozenset({"links"}), on_unused=unused.append)
    link, out = Out("link", credit=0), Out()
    queue.add_outlet(link)
    fill(queue, "a")
    assert queue.pull(out)
    assert unused == []
    queue.remove_outlet(link)
    assert unused == [queue]


# -- what a lease says --------------------------------------------------------------------------


def test_lease_is_redelivered_from_the_second_time_on_whoever_had_it() -> None:
    queue, one, other = filled("a"), Out("one", credit=9), Out("other", credit=9)
    assert queue.pull(one)
    one.leases[0].released()
    assert queue.pull(other)
    other.leases[0].released()
    attach(queue, one)
    assert (one.redelivered, other.redelivered) == ([False, True], [True])


@pytest.mark.logs_errors
def test_lease_is_not_redelivered_when_its_first_outlet_failed(caplog: pytest.LogCaptureFixture) -> None:
    queue, bad, good = filled("a"), Out("bad"), Out("good")
    bad.failing = True
    attach(queue, bad, good)
    assert (good.given, good.redelivered) == (["a"], [False])
    caplog.clear()


async def test_lease_is_redelivered_after_a_restart_since_it_may_have_been_out() -> None:
    store = amqp.MemoryStore()
    first = amqp.Container(store=store)
    first.add_queue("q", durable=True)
    await first.send("q", "a")
    second = amqp.Container(store=store)
    queue = second.add_queue("q", durable=True)
    await second.send("q", "b")
    out = Out(credit=9)
    assert queue.pull(out)
    assert queue.pull(out)
    assert (out.given, out.redelivered) == (["a", "b"], [True, False])


def test_lease_of_a_message_that_is_not_stored_has_no_record_and_nothing_to_delete() -> None:
    queue, out = filled("a"), Out()
    assert queue.pull(out)
    assert out.leases[0].record is None
    assert out.leases[0].delete_in_commit() is None
