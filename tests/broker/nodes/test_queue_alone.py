"""A queue without a container: what it says to its outlets, and what it does when one fails, or when it is closed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import trio_amqp10 as amqp
from tests.amqp10.server.test_failing_links import In
from trio_amqp10.amqp10.server.native_message import content_of_message, to_transfer
from trio_amqp10.broker.nodes.clock import Clock
from trio_amqp10.broker.nodes.watermark import OVERHEAD, Watermark
from trio_amqp10.container import Container, Queue, QueuePolicy, RefusedError
from trio_amqp10.core.errors import Condition

from .test_pull import Out, attach, fill, filled
from .test_turns import Counted

PEER: Any = SimpleNamespace(container_id="peer", identity=None)


class Telling(Out):
    """Remembers what it was told besides."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.rests: list[int] = []
        self.outgrown: list[int] = []

    def rest(self, more: int) -> None:
        self.rests.append(more)

    def outgrow(self, size: int) -> None:
        self.outgrown.append(size)


def broken(*_: object) -> bool:
    raise RuntimeError("broken")


def size_of(body: Any) -> int:
    """Octets of a message as a peer gets it."""
    return len(to_transfer(content_of_message(amqp.Message(body)))[0])


# -- what outlets are told -------------------------------------------------------------------------


def test_browser_is_told_how_many_there_are_when_its_credit_is_used_up_and_none_at_the_end() -> None:
    queue, browser = filled("a", "b", "c"), Telling(credit=2, copying=True)
    attach(queue, browser)
    assert (browser.given, browser.rests) == (["a", "b"], [3])
    browser.credit = 9
    queue.on_demand(browser)
    assert (browser.given, browser.rests) == (["a", "b", "c"], [3, 0])


def test_browser_is_told_the_size_of_what_it_cannot_have() -> None:
    queue, browser = filled(b"x" * 1000, "small"), Telling(credit=9, copying=True)
    browser.max_message_size = 100
    attach(queue, browser)
    assert (browser.given, browser.outgrown, browser.rests) == (["small"], [size_of(b"x" * 1000)], [0])


def test_consumer_is_told_the_size_of_what_it_cannot_have() -> None:
    queue, consumer = filled(b"x" * 1000, "small"), Telling(credit=9)
    consumer.max_message_size = 100
    attach(queue, consumer)
    assert (consumer.given, consumer.outgrown, consumer.rests) == (["small"], [size_of(b"x" * 1000)], [0])


def test_copy_of_the_first_message_has_the_time_that_is_left_to_it() -> None:
    now = 0.0
    clock = Clock()
    clock.now = lambda: now  # type: ignore[method-assign]
    clock.wall = lambda: now  # type: ignore[method-assign]
    queue = Queue("q", clock=clock)
    fill(queue, amqp.Message("x", ttl=5000))
    now = 2.0
    seen: list[Any] = []
    out = Out(copying=True)
    out.give = lambda content, _lease, _tag=None: seen.append(content.as_message())  # type: ignore[method-assign]
    assert queue.pull(out)
    assert [message.ttl for message in seen] == [3000]
    queue.close()


def test_links_of_a_later_turn_get_the_redirect_although_it_has_ended() -> None:
    clock, turns = Clock(), Counted(1)
    clock.turns = lambda: turns
    queue, outlets, conditions = Queue("q", clock=clock), [Out("a"), Out("b")], list[Any]()
    for outlet in outlets:
        outlet.close = lambda condition, *_: conditions.append(condition)  # type: ignore[method-assign]
    attach(queue, *outlets)
    queue.redirect(RefusedError(Condition.LINK_REDIRECT, "elsewhere"))
    queue.redirect(None)
    turns.run()
    assert conditions == [Condition.LINK_REDIRECT] * 2


# -- outlets that fail -----------------------------------------------------------------------------


@pytest.mark.logs_errors
def test_browser_that_fails_is_ended_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    queue, bad, good = filled(), Out("bad", copying=True), Out("good", credit=9, copying=True)
    bad.failing = True
    attach(queue, bad, good)
    fill(queue, "a", "b")
    assert (bad.closed, good.closed, good.given) == (True, False, ["a", "b"])
    caplog.clear()


@pytest.mark.logs_errors
def test_message_that_an_outlet_did_not_take_leaves_those_alone_who_do_not_want_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue, bad, picky = filled(), Out("bad"), Out("picky")
    picky.wants = lambda content, _origin: content.as_message().body == "b"
    bad.failing = True
    attach(queue, picky)
    fill(queue, "a")
    attach(queue, bad)
    assert (bad.closed, picky.closed, queue.available) == (True, False, 1)
    fill(queue, "b")
    assert picky.given == ["b"]
    caplog.clear()


@pytest.mark.logs_errors
def test_outlet_that_fails_when_it_is_asked_is_ended(caplog: pytest.LogCaptureFixture) -> None:
    queue, bad = filled("a"), Out("bad")
    bad.ready = broken  # type: ignore[method-assign]
    attach(queue, bad)
    assert (bad.closed, queue.available) == (True, 1)
    caplog.clear()


@pytest.mark.parametrize("call", ["ready", "give"])
@pytest.mark.logs_errors
def test_message_goes_to_the_next_that_waits_when_one_fails(
    call: str, caplog: pytest.LogCaptureFixture
) -> None:
    queue, bad, worse, good = filled(), Out("bad"), Out("worse"), Out("good")
    attach(queue, bad, worse, good)
    for each in (bad, worse):
        setattr(each, call, broken)
    fill(queue, "a")
    assert (bad.closed, worse.closed, good.given, good.redelivered) == (True, True, ["a"], [False])
    good.leases[0].released()
    assert queue.pull(out := Out())
    assert out.redelivered == [True]
    caplog.clear()


@pytest.mark.parametrize(
    ("answer", "left", "given"), [("accepted", 0, 0), ("released", 1, 0), ("released", 1, 1)]
)
@pytest.mark.logs_errors
def test_answer_counts_of_an_outlet_that_fails_after_it(
    answer: str, left: int, given: int, caplog: pytest.LogCaptureFixture
) -> None:
    queue, bad, good = filled(), Out("bad"), Out("good", credit=given)

    def answer_and_fail(_content: Any, lease: Any, _tag: Any = None) -> None:
        getattr(lease, answer)()
        broken()

    bad.give = answer_and_fail  # type: ignore[method-assign]
    attach(queue, bad, good)
    fill(queue, "a")
    assert (bad.closed, len(queue), len(good.given)) == (True, left, given)
    assert (queue.available, queue.leased) == (left - given, given)
    caplog.clear()


def test_consumers_take_turns() -> None:
    queue, outs = filled(), [Out(str(number), credit=2) for number in range(3)]
    attach(queue, *outs)
    fill(queue, *range(6))
    assert [out.given for out in outs] == [[0, 3], [1, 4], [2, 5]]


def test_message_of_just_the_size_that_a_waiting_consumer_takes_goes_to_it() -> None:
    queue, first, second = filled(), Out("first"), Out("second")
    second.max_message_size = size_of("x" * 100)
    attach(queue, first)
    fill(queue, "x" * 100)
    attach(queue, second)
    first.leases[0].modified(failed=False, undeliverable_here=True, annotations=None)
    assert (first.given, second.given) == (["x" * 100], ["x" * 100])


# -- a single active consumer ----------------------------------------------------------------------


def test_consumer_that_is_not_the_active_one_rests() -> None:
    queue, active, other = filled("a", single_active=True), Telling("active"), Telling("other")
    attach(queue, active, other)
    assert (active.given, other.given, other.rests) == (["a"], [], [0])


def test_pulled_message_that_came_back_does_not_hide_what_the_active_consumer_has() -> None:
    queue, active, out = filled("a", "b", single_active=True), Out("active"), Out("out")
    attach(queue, active)
    assert queue.pull(out)
    out.leases[0].released()
    next_ = Out("next")
    attach(queue, next_)
    queue.remove_outlet(active)
    queue.on_demand(next_)
    assert next_.given == []  # "a" is out with the one before
    active.leases[0].accepted()
    assert next_.given == ["b"]


# -- what it keeps of links ------------------------------------------------------------------------


def test_queue_keeps_nothing_of_an_outlet_that_is_gone() -> None:
    queue, browser, picky = filled("a"), Out("browser", copying=True), Out("picky")
    picky.wants = lambda _content, _origin: False
    attach(queue, browser, picky)
    assert (len(queue._browsers), len(queue._available.searches)) == (1, 1)
    queue.remove_outlet(browser)
    queue.remove_outlet(picky)
    assert (len(queue._browsers), len(queue._available.searches)) == (0, 0)


def test_queue_keeps_nothing_of_an_inlet_that_is_gone() -> None:
    queue, inlet = filled(), In()
    queue.add_inlet(inlet)  # type: ignore[arg-type]
    assert len(queue._origins) == 1
    queue.remove_inlet(inlet)  # type: ignore[arg-type]
    assert not queue._origins


def test_inlet_that_does_not_wait_for_room_may_be_forgotten() -> None:
    queue = filled("a", max_length=1)
    queue.forget_waiting(In())  # type: ignore[arg-type]
    assert len(queue) == 1


def test_queue_that_is_kept_by_its_maker_goes_with_it() -> None:
    unused: list[Any] = []
    queue = Queue("q", kept_by=frozenset({"maker"}), on_unused=unused.append)
    queue.has_maker = True
    queue.check_used()
    assert unused == []
    queue.has_maker = False
    queue.check_used()
    assert unused == [queue]
    other = Queue("other", kept_by=frozenset({"maker"}), on_unused=unused.append)
    other.check_used()
    assert unused == [queue, other]


def test_queue_counts_where_it_is_told_to() -> None:
    queue, watermark = filled("a", "b"), Watermark()
    queue.count_in(watermark)
    assert queue.watermark is queue.held.watermark is watermark
    assert watermark.octets == queue.octets + 2 * OVERHEAD
    fill(queue, "c")
    assert watermark.octets == queue.octets + 3 * OVERHEAD
    queue.purge()
    assert watermark.octets == 0


# -- bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spare", "full"), [(0, True), (1, False)])
def test_queue_is_full_from_its_last_octet_on(spare: int, full: bool) -> None:
    queue = filled("a")
    queue.update(QueuePolicy(max_octets=queue.octets + spare, overflow="reject"))
    assert queue.is_full is full
    assert queue.gather(content_of_message(amqp.Message("b")), None) is not full


# -- where dead letters go, and the end ------------------------------------------------------------


def test_dead_letters_are_found_in_a_container_and_at_another_address() -> None:
    with pytest.raises(RefusedError, match="'q' is in no container") as nowhere:
        filled().find_dead_letters("dead")
    assert nowhere.value.condition == "amqp:not-found"
    queue = Container().add_queue("q")
    with pytest.raises(RefusedError, match="cannot be its own dead-letter address") as itself:
        queue.find_dead_letters("q")
    assert itself.value.condition == "amqp:not-allowed"


def test_closed_queue_takes_no_links_and_gives_nothing() -> None:
    queue, consumer = filled("a"), Out(credit=0)
    unused: list[Any] = []
    queue._on_unused = unused.append
    attach(queue, consumer)
    queue.close()
    assert consumer.closed
    for check in (
        lambda: queue.check_inlet(PEER),
        lambda: queue.check_outlet(
            PEER, copying=False, target=None, subscription_terms=Out.subscription_terms
        ),
    ):
        with pytest.raises(RefusedError, match="'q' is deleted") as refused:
            check()
        assert refused.value.condition == "amqp:not-found"
    assert not queue.pull(Out())
    queue.close()
    assert (len(queue), queue.octets, unused) == (0, 0, [])
