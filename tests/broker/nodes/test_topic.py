"""Topics: every receiver gets every message, by itself; none waits for another."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, two
from trio_amqp10.amqp10.peer.errors import LinkDetachedError
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.amqp10.wire.values import Described, Symbol
from trio_amqp10.container import Container
from trio_amqp10.core.errors import LocalProtocolError


def with_topic(max_backlog: int | None = 10_000) -> Container:
    container = Container()
    container.add_topic("t", max_backlog=max_backlog)
    return container


async def test_topic_gives_every_message_to_every_receiver_in_order() -> None:
    async with two(with_topic()) as (one, other):
        await fill(one, "t", "before anybody came")
        async with one.open_receiver("t", credit=3) as first, other.open_receiver("t") as second:
            await fill(other, "t", *range(50))
            assert await bodies(first, 50) == list(range(50))
            assert await bodies(second, 50) == list(range(50))
            async with one.open_receiver("t") as third:
                await fill(one, "t", "late")
                for receiver in (first, second, third):
                    assert await bodies(receiver, 1) == ["late"]
                    assert receiver.buffered == 0


async def test_topic_gives_back_to_a_receiver_what_it_did_not_accept_and_to_no_other() -> None:
    async with (
        two(with_topic()) as (one, other),
        one.open_receiver("t", credit=1) as first,
        other.open_receiver("t", credit=1) as second,
    ):
        await fill(one, "t", amqp.Message("x", first_acquirer=True, annotations={"x-a": 1}))
        (await first.receive()).modify(delivery_failed=True, annotations={"x-a": 2})
        again = await first.receive()
        assert (again.message.delivery_count, again.message.annotations) == (1, {"x-a": 2})
        assert not again.message.first_acquirer
        again.reject("app:bad")
        delivery = await second.receive()
        assert (delivery.message.delivery_count, delivery.message.annotations) == (0, {"x-a": 1})
        assert delivery.message.first_acquirer
        delivery.accept()
        await wait_all_tasks_blocked()
        assert first.buffered == second.buffered == 0


async def test_topic_forgets_what_a_receiver_did_not_settle_when_its_link_goes() -> None:
    async with two(with_topic()) as (one, other):
        async with one.open_receiver("t") as receiver:
            await fill(other, "t", "x", "y")
            await receiver.receive()
        async with one.open_receiver("t") as receiver:
            await fill(other, "t", "z")
            assert await bodies(receiver, 1) == ["z"]


async def test_topic_detaches_a_receiver_that_is_too_far_behind_and_serves_the_others() -> None:
    async with (
        two(with_topic(max_backlog=5)) as (one, other),
        one.open_receiver("t", credit=0) as slow,
        other.open_receiver("t", credit=3) as quick,
    ):
        for number in range(6):
            await fill(one, "t", number)
            assert await bodies(quick, 1) == [number]
        with pytest.raises(LinkDetachedError) as detached:
            await slow.receive()
        assert detached.value.condition == "amqp:resource-limit-exceeded"
        assert "max_backlog=5" in str(detached.value)
        await fill(one, "t", "on")
        assert await bodies(quick, 1) == ["on"]


async def test_topic_does_not_count_what_has_expired_as_backlog(autojump_clock: MockClock) -> None:
    async with (
        two(with_topic(max_backlog=2)) as (one, other),
        one.open_receiver("t", credit=0) as receiver,
    ):
        await fill(other, "t", amqp.Message(1, ttl=1000), amqp.Message(2, ttl=5000))
        await trio.sleep(2)
        await fill(other, "t", 3)
        receiver.grant(2)
        delivery = await receiver.receive()
        assert (delivery.message.body, delivery.message.ttl) == (2, 3000)
        delivery.accept()
        assert await bodies(receiver, 1) == [3]


async def test_topic_of_unlimited_backlog_keeps_all() -> None:
    async with two(with_topic(None)) as (one, other), one.open_receiver("t", credit=0) as receiver:
        await fill(other, "t", *range(100))
        receiver.grant(100)
        assert await bodies(receiver, 100) == list(range(100))


@pytest.mark.parametrize("mode", ["copy", "move"])
async def test_topic_gives_only_what_passes_the_filter_and_keeps_nothing_else(mode: str) -> None:
    topical: Any = Described(Symbol("apache.org:legacy-amqp-topic-binding:string"), "prices.*.oil")
    source = Source(
        address="t", distribution_mode=mode, filter={"s": topical}, capabilities=("topic", "queue")
    )
    async with (
        two(with_topic(max_backlog=3)) as (one, other),
        one.open_receiver("t", source=source, credit=0) as receiver,
    ):
        answer = receiver.remote.source
        assert list(answer.filter) == ["s"]
        assert list(answer.capabilities) == ["topic"]
        assert answer.distribution_mode == mode
        for subject in ("prices.north.oil", "prices.oil", "x", "y", "z", "prices.south.oil"):
            await fill(other, "t", amqp.Message(subject, subject=subject))
        receiver.grant(5)
        drained = await receiver.drain()
        assert [each.message.body for each in drained] == ["prices.north.oil", "prices.south.oil"]


async def test_topic_gives_urgent_messages_first_to_who_is_behind() -> None:
    async with two(with_topic()) as (one, other), one.open_receiver("t", credit=0) as receiver:
        await fill(other, "t", "usual", amqp.Message("urgent", priority=9))
        receiver.grant(2)
        assert await bodies(receiver, 2) == ["urgent", "usual"]


async def test_topic_that_is_removed_ends_its_links() -> None:
    container = with_topic()
    async with (
        two(container) as (one, other),
        one.open_receiver("t") as receiver,
        other.open_sender("t") as sender,
    ):
        await sender.send("x")
        await receiver.receive()
        container.remove_node("t")
        with pytest.raises(LinkDetachedError) as detached:
            await receiver.receive()
        assert detached.value.condition == "amqp:resource-deleted"


async def test_topic_takes_messages_by_the_relay_and_from_within() -> None:
    container = with_topic()
    async with two(container) as (one, other), one.open_receiver("t") as receiver:
        async with other.open_sender(None) as sender:
            await sender.send(amqp.Message("relayed", to="t"))
        await container.send("t", "from within")
        assert await bodies(receiver, 2) == ["relayed", "from within"]


def test_topic_refuses_a_backlog_of_nothing() -> None:
    container = Container()
    with pytest.raises(LocalProtocolError):
        container.add_topic("t", max_backlog=0)
    topic = container.add_topic("t")
    assert repr(topic) == "<Topic 't' senders=0 receivers=0>"
    assert topic.max_backlog == 10_000


async def test_new_limits_of_a_topic_hold_for_subscriptions_that_it_has() -> None:
    container = Container()
    topic = container.add_topic("t", max_backlog=2, overflow="reject")
    async with two(container) as (one, other), other.open_receiver("t", credit=0) as receiver:
        await fill(one, "t", 1, 2)
        with pytest.raises(amqp.DeliveryRejectedError, match="more than max_backlog=2"):
            await fill(one, "t", 3)
        topic.update(max_backlog=3, overflow="drop-oldest", max_subscriptions=1)
        await fill(one, "t", 3, 4)
        receiver.grant(3)
        assert await bodies(receiver, 3) == [2, 3, 4]
        with pytest.raises(amqp.LinkRefusedError, match="max_subscriptions=1 already"):
            async with other.open_receiver("t"):
                raise AssertionError("not reached")
        with pytest.raises(LocalProtocolError, match="max_backlog=0: expected at least 1"):
            topic.update(max_backlog=0, overflow="wait", max_subscriptions=None)
        assert (topic.max_backlog, topic.overflow) == (3, "drop-oldest")


@pytest.mark.parametrize(
    "limits", [{"max_backlog": 9, "overflow": "wait"}, {"max_backlog": 1, "overflow": "drop-oldest"}]
)
async def test_sender_that_waits_for_room_goes_on_with_new_limits(limits: dict[str, Any]) -> None:
    container = Container()
    topic = container.add_topic("t", max_backlog=1, overflow="wait")
    async with two(container) as (one, other), other.open_receiver("t", credit=0):
        await fill(one, "t", 1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fill, one, "t", 2)
            await wait_all_tasks_blocked()
            assert topic.statistics()["arrived"] == 1
            topic.update(**limits, max_subscriptions=None)
            with trio.fail_after(60):
                while topic.statistics()["arrived"] != 2:
                    await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("overflow", ["reject", "drop-oldest"])
async def test_message_of_a_commit_that_waits_is_given_out_if_the_topic_changes_its_mind(
    overflow: Any,
) -> None:
    container = Container()
    topic = container.add_topic("t", max_backlog=1, overflow="wait")
    async with (
        two(container) as (one, other),
        one.open_sender("t") as sender,
        other.open_receiver("t", credit=0) as receiver,
    ):
        async with one.open_transaction() as transaction:
            for number in range(3):
                await sender.send(number, transaction=transaction)
        assert topic.statistics()["arrived"] == 1  # the others wait for room
        topic.update(max_backlog=1, overflow=overflow, max_subscriptions=None)
        await wait_all_tasks_blocked()
        receiver.grant(3)
        given = [delivery.message.body for delivery in await receiver.drain()]
        assert given == ([0, 1, 2] if overflow == "reject" else [2])
