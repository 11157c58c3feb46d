"""Arrivals, outlets and leases that a dialect need not write itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

import trio_amqp10 as amqp
from tests.container.helpers import queue_of
from tests.container.toy import line_of
from trio_amqp10.broker.endpoints import GivenLease, PublishedArrival, Publisher, WindowOutlet
from trio_amqp10.container import Container, Node, Quotas, RefusedError

from .test_connected_peer_base import Guest

if TYPE_CHECKING:
    from trio_amqp10.broker.nodes.content import Content


class Talk:
    """What a peer published and received."""

    def __init__(self, container: Container, nursery: trio.Nursery) -> None:
        self.container = container
        self.peer = Guest(container)
        container.enter(self.peer, nursery)
        self.answers: list[str | None] = []
        self.given: list[tuple[str, GivenLease]] = []
        self.ended: list[str | None] = []
        self.publisher = Publisher(self.peer, container.find, lambda: None)

    def publish(self, address: str, text: str) -> PublishedArrival:
        def answered(refusal: RefusedError | None) -> None:
            self.answers.append(None if refusal is None else refusal.condition)

        arrival = PublishedArrival(line_of(text.encode()), answered)
        self.publisher.publish(address, arrival)
        return arrival

    def outlet(self, address: str, window: int | None = None, **options: Any) -> WindowOutlet:
        def send(content: Content, lease: GivenLease) -> None:
            self.given.append((content.octets.decode(errors="replace"), lease))

        return WindowOutlet(
            self.peer,
            self.container.find(address),
            send,
            lambda condition, _: self.ended.append(condition),
            window=window,
            **options,
        )

    def leave(self) -> None:
        self.publisher.close()
        self.container.leave(self.peer)


async def test_arrival_is_answered_once() -> None:
    seen: list[RefusedError | None] = []
    for answer, condition in (
        (PublishedArrival.accept, None),
        (PublishedArrival.reject, "amqp:internal-error"),
        (PublishedArrival.release, "amqp:precondition-failed"),
        (PublishedArrival.modify, "amqp:precondition-failed"),
    ):
        arrival = PublishedArrival(line_of(b"x"), seen.append)
        arrival.record_acceptance()
        assert not arrival.keep()
        answer(arrival)
        last = seen[-1]
        assert (None if last is None else last.condition) == condition
        assert (arrival.settled, arrival.message.body) == (True, b"x")
        with pytest.raises(amqp.LocalProtocolError, match="answered already"):
            arrival.accept()
    assert len(seen) == 4


async def test_publisher_ends_the_inlets_of_a_node_that_is_removed() -> None:
    container = Container()
    container.add_queue("q", max_length=1)
    async with trio.open_nursery() as nursery:
        talk = Talk(container, nursery)
        talk.publish("q", "one")
        talk.publish("q", "two")
        assert (talk.answers, talk.publisher.waiting) == ([None], 1)
        queue = queue_of(container)
        container.remove_node("q")
        assert talk.answers == [None, "amqp:precondition-failed"]
        assert (talk.publisher.waiting, talk.publisher.inlets, queue.inlets) == (0, {}, {})
        talk.publish("q", "to another of this name")
        assert talk.answers[2:] == [None]
        talk.leave()


async def test_publisher_makes_nothing_that_it_may_not_use() -> None:
    container = Container(quotas=Quotas(links=1))
    async with trio.open_nursery() as nursery:
        talk = Talk(container, nursery)
        assert talk.peer.link_count == 1
        with pytest.raises(RefusedError, match="links=1"):
            talk.publish("q", "x")
        assert container.nodes == {}
        talk.leave()


async def test_window_is_given_so_many_and_more_when_one_is_answered() -> None:
    container = Container()
    async with trio.open_nursery() as nursery:
        talk = Talk(container, nursery)
        for text in "abcd":
            talk.publish("q", text)
        outlet = talk.outlet("q", 2)
        outlet.begin()
        assert [text for text, _ in talk.given] == ["a", "b"]
        assert (talk.peer.leases, len(outlet.unsettled)) == (2, 2)
        talk.given[0][1].accepted()
        talk.given[1][1].rejected("amqp:decode-error", "no good")
        assert [text for text, _ in talk.given] == ["a", "b", "c", "d"]
        talk.given[2][1].modified(failed=True, undeliverable_here=False, annotations=None)
        assert talk.given[4][0] == "c"
        assert talk.given[4][1].redelivered
        outlet.end()
        outlet.end()
        assert (talk.peer.leases, len(queue_of(container)), queue_of(container).leased) == (0, 2, 0)
        talk.leave()
    assert talk.ended == []


async def test_window_that_the_node_ends_is_told_once_and_its_leases_may_be_answered() -> None:
    container = Container()
    async with trio.open_nursery() as nursery:
        talk = Talk(container, nursery)
        talk.publish("q", "a")
        outlet = talk.outlet("q")
        outlet.begin()
        await outlet.flush()
        outlet.rest(0)
        outlet.outgrow(1)
        queue = queue_of(container)
        container.remove_node("q")
        await outlet.aclose()
        assert talk.ended == ["amqp:resource-deleted"]
        assert (outlet.closed, outlet.ready(), queue.outlets) == (True, False, {})
        talk.given[0][1].accepted()
        assert talk.peer.leases == 0
        talk.leave()


async def test_window_takes_nothing_while_its_peer_rests_or_has_too_much() -> None:
    container = Container(max_unsettled_octets=10)
    async with trio.open_nursery() as nursery:
        talk = Talk(container, nursery)
        for text in ("x" * 10, "y"):
            talk.publish("q", text)
        outlet = talk.outlet("q")
        outlet.begin()
        assert len(talk.given) == 1
        talk.given[0][1].released()
        while len(talk.given) < 2:
            await trio.lowlevel.checkpoint()
        talk.peer.resting = True
        talk.given[1][1].accepted()
        await trio.testing.wait_all_tasks_blocked()
        assert len(talk.given) == 2
        assert not talk.outlet("q").pull()
        outlet.end()
        talk.leave()


async def test_lease_of_a_node_that_wants_no_answer_and_a_message_of_amqp_are_given_too() -> None:
    container = Container()
    node = Node("n")
    container.add_node(node)
    async with trio.open_nursery() as nursery:
        talk = Talk(container, nursery)
        outlet = talk.outlet("n")
        outlet.give(amqp.Message(b"octets"), None)
        [(text, lease)] = talk.given
        assert text.endswith("octets")
        assert (lease.record, lease.redelivered, lease.delete_in_commit()) == (None, False, None)
        lease.accepted()
        assert talk.peer.leases == 0
        talk.leave()


async def test_lease_is_that_of_the_node() -> None:
    container = Container(store=amqp.MemoryStore())
    async with trio.open_nursery() as nursery:
        talk = Talk(container, nursery)
        talk.publish("q", "a")
        await container.flush()
        await trio.testing.wait_all_tasks_blocked()
        outlet = talk.outlet("q")
        assert outlet.pull()
        [(_, lease)] = talk.given
        assert lease.record is not None
        undo = lease.delete_in_commit()
        assert undo is not None
        undo()
        outlet.end()
        assert queue_of(container).leased == 0
        talk.leave()
