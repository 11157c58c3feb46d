"""A message that one consumer cannot take stays in the queue for the others.

The consumer goes on with the messages after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

import trio_amqp10 as amqp
from tests.broker.nodes.test_pull import Out
from tests.broker.test_endpoints import Talk
from trio_amqp10.amqp10.server.native_message import content_of_message
from trio_amqp10.broker.nodes.node import NotTakenError
from trio_amqp10.container import Container, Node, Queue, QueuePolicy

if TYPE_CHECKING:
    import pytest

    from trio_amqp10.broker.nodes.content import Content
    from trio_amqp10.broker.nodes.entry import Entry


class Choosy(Out):
    """An outlet whose peer cannot take messages with one body."""

    def __init__(self, name: str, cannot: str = "bad", **options: Any) -> None:
        super().__init__(name, **{"credit": 100, **options})
        self.cannot = cannot
        self.tries = 0

    def give(self, content: Content, lease: Entry | None, tag: bytes | None = None) -> None:
        if content.as_message().body == self.cannot:
            self.tries += 1
            raise NotTakenError("it has no form")
        super().give(content, lease, tag)

    def rest(self, more: int) -> None:
        """It is not told how many there are."""

    def outgrow(self, size: int) -> None:
        raise AssertionError(size)

    def close(self, condition: str | None = None, description: str | None = None) -> None:
        raise AssertionError(condition, description)


def put(queue: Queue, *bodies: str, **fields: Any) -> None:
    for body in bodies:
        queue.put(content_of_message(amqp.Message(body, **fields)), None)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each for each in caplog.messages if "stays for other consumers" in each]


def test_message_stays_for_others_and_those_behind_it_come(caplog: pytest.LogCaptureFixture) -> None:
    queue = Queue("q")
    put(queue, "bad", "1", "bad", "2")
    choosy, other = Choosy("choosy"), Choosy("other", cannot="none")
    queue.add_outlet(choosy)  # type: ignore[arg-type]
    queue.on_demand(choosy)  # type: ignore[arg-type]
    assert (choosy.given, queue.available, queue.leased) == (["1", "2"], 2, 2)
    put(queue, "bad", "3")  # while it waits
    assert (choosy.given, queue.available, choosy.tries) == (["1", "2", "3"], 3, 3)
    queue.on_demand(choosy)  # type: ignore[arg-type]
    assert choosy.tries == 3  # what it could not take is not tried again
    queue.add_outlet(other)  # type: ignore[arg-type]
    queue.on_demand(other)  # type: ignore[arg-type]
    assert (other.given, other.redelivered, queue.available) == (["bad"] * 3, [False] * 3, 0)
    other.leases[0].released()
    assert (other.given[3:], choosy.tries, queue.figures["accepted"]) == (["bad"], 3, 0)
    assert len(lines(caplog)) == 3
    assert "message 0 of" in lines(caplog)[0]
    assert "it has no form" in lines(caplog)[0]


def test_message_that_comes_goes_to_the_waiting_consumer_that_can_take_it() -> None:
    queue = Queue("q")
    choosy, other = Choosy("choosy"), Choosy("other", cannot="none")
    for each in (choosy, other):
        queue.add_outlet(each)  # type: ignore[arg-type]
        queue.on_demand(each)  # type: ignore[arg-type]
    put(queue, "bad", "bad", "1")
    assert (other.given, choosy.given, queue.available) == (["bad", "bad"], ["1"], 0)


def test_pull_passes_over_what_its_outlet_cannot_take() -> None:
    queue = Queue("q", policy=QueuePolicy(single_active=True))
    put(queue, "bad", "1")
    first, second = Choosy("first", credit=1), Choosy("second", credit=1)
    assert (queue.pull(first), first.given) == (True, ["1"])  # type: ignore[arg-type]
    assert (queue.pull(second), second.given, queue.available) == (False, [], 1)  # type: ignore[arg-type]


def test_browser_sees_the_others() -> None:
    queue = Queue("q")
    put(queue, "bad", "1")
    browser = Choosy("browser", copying=True)
    assert (queue.pull(browser), browser.given) == (True, ["1"])  # type: ignore[arg-type]
    browser.given.clear()
    queue.add_outlet(browser)  # type: ignore[arg-type]
    queue.on_demand(browser)  # type: ignore[arg-type]
    assert (browser.given, queue.available) == (["1"], 2)
    alone = Queue("alone")
    put(alone, "bad")
    assert not alone.pull(Choosy("again", copying=True))  # type: ignore[arg-type]


def test_group_waits_for_a_consumer_that_can_take_its_first_message() -> None:
    queue = Queue("q", policy=QueuePolicy(grouped=True))
    choosy, other = Choosy("choosy"), Choosy("other", cannot="none")
    queue.add_outlet(choosy)  # type: ignore[arg-type]
    queue.on_demand(choosy)  # type: ignore[arg-type]
    put(queue, "bad", "1", group_id="g")
    put(queue, "2", group_id="h")
    assert choosy.given == ["2"]
    queue.add_outlet(other)  # type: ignore[arg-type]
    queue.on_demand(other)  # type: ignore[arg-type]
    assert other.given == ["bad", "1"]


def test_many_messages_that_one_cannot_take_are_passed_over_in_turns() -> None:
    queue = Queue("q")
    put(queue, *["bad"] * 250, "1")
    choosy = Choosy("choosy")
    queue.add_outlet(choosy)  # type: ignore[arg-type]
    queue.on_demand(choosy)  # type: ignore[arg-type]
    turns = 0
    while choosy.peer.tasks:
        assert choosy.tries <= 100 * (turns + 1)
        _function, args = choosy.peer.tasks.pop()
        turns += 1
        args[0].resumes = False
        queue.on_demand(args[0].outlet)
    assert (choosy.given, choosy.tries, turns) == (["1"], 250, 2)
    for _ in range(300):  # what is remembered of messages that are gone does not pile up
        other = Choosy("other", cannot="none", credit=1)
        assert queue.pull(other)  # type: ignore[arg-type]
        other.leases[0].accepted()
        put(queue, "bad")
    assert len(queue._left_to_others) < 700


async def test_node_that_does_not_pass_over_has_the_outlet_ended(caplog: pytest.LogCaptureFixture) -> None:
    class Given:
        answers: tuple[str, ...] = ()

        def released(self) -> None:
            self.answers += ("released",)

    container = Container()
    container.add_node(Node("plain"))
    lease = Given()
    async with trio.open_nursery() as nursery:
        talk = Talk(container, nursery)

        def refuse(_content: object, _lease: object) -> None:
            raise NotTakenError("it has no form")

        outlet = talk.outlet("plain")
        outlet._send = refuse
        outlet.give(amqp.Message("1"), None)
        assert (outlet.closed, outlet.unsettled) == (False, {})
        outlet.give(amqp.Message("1"), lease)  # type: ignore[arg-type]
        assert (outlet.closed, outlet.unsettled, lease.answers) == (True, {}, ("released",))
        assert talk.ended == ["amqp:resource-limit-exceeded"]
        talk.leave()
    assert caplog.text.count("the peer cannot take a message") == 2
