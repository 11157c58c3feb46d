"""Subscriptions to topics: shared by links, kept for those who come again, and bounded."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, two
from trio_amqp10.amqp10.peer.errors import (
    DeliveryRejectedError,
    LinkDetachedError,
    LinkRefusedError,
    TransactionRolledBackError,
)
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.container import Container, Topic
from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


def with_topic(**options: Any) -> tuple[Container, Topic]:
    container = Container()
    return container, container.add_topic("t", **options)


def source(*capabilities: str, **fields: Any) -> Source:
    return Source(address="t", capabilities=capabilities, **fields)


def lasting(*capabilities: str, **fields: Any) -> Source:
    return source(*capabilities, **{"expiry_policy": "never", "durable": 2, **fields})


@asynccontextmanager
async def detaching(
    conn: amqp.Connection, name: str, what: Source, **options: Any
) -> AsyncGenerator[amqp.Receiver, None]:
    """A receiver whose link is detached in the end, and not closed."""
    async with conn.open_receiver("t", name=name, source=what, **options) as receiver:
        yield receiver
        receiver._link.detach(closed=False)
        await wait_all_tasks_blocked()


async def unsubscribe(conn: amqp.Connection, name: str, *desired: str) -> Any:
    """Attach without a source, as JMS clients do; the source in the answer, or the error."""
    session = conn.session_for(None, own=False)
    link = session.engine.receiver(name)
    link.attach(desired_capabilities=desired)
    await wait_all_tasks_blocked()
    found = link.error or link.remote.source
    link.detach()
    await wait_all_tasks_blocked()
    return found


# -- kept ----------------------------------------------------------------------------------------


async def test_lasting_subscription_gathers_messages_while_nobody_is_attached() -> None:
    container, topic = with_topic()
    async with two(container) as (one, _):
        async with (
            container.connect(container_id="me") as mine,
            detaching(mine, "news", lasting(), credit=0) as receiver,
        ):
            answer = receiver.remote.source
            assert (answer.expiry_policy, answer.durable) == ("never", 2)
            await fill(one, "t", 1, 2)
            first = await receiver.receive()
            first.accept()
            await receiver.receive()
        await fill(one, "t", 3)
        assert topic.statistics()["messages"] == 2
        async with (
            container.connect(container_id="me") as again,
            again.open_receiver("t", name="news", source=lasting()) as receiver,
        ):
            deliveries = [await receiver.receive() for _ in range(2)]
            assert [each.message.body for each in deliveries] == [2, 3]
            assert [each.message.delivery_count for each in deliveries] == [1, 0]
        assert not topic.subscriptions, "closed, not detached"


async def test_subscription_with_a_filter_lasts_as_its_options_say() -> None:
    container, _ = with_topic()
    selector = amqp.Described(amqp.Symbol("apache.org:selector-filter:string"), "n > 1")
    options: dict[str, Any] = {"source": Source(filter={"s": selector}), "name": "news"}
    options |= {"durable": True, "expiry_policy": "never", "credit": 0}
    async with container.connect(container_id="me") as mine:
        async with mine.open_receiver("t", **options) as receiver:
            answer = receiver.remote.source
            assert (answer.address, answer.expiry_policy, answer.durable) == ("t", "never", 2)
            await receiver.detach()
        for n in (1, 2):
            await container.send("t", amqp.Message(n, application_properties={"n": n}))
        async with mine.open_receiver("t", **options) as receiver:
            receiver.grant(2)
            assert [each.message.body for each in await receiver.drain()] == [2]


async def test_lasting_subscription_is_kept_where_the_connection_is_lost() -> None:
    container, topic = with_topic()
    async with container.connect() as other:
        async with container.connect(container_id="me") as mine:
            receiver = mine.open_receiver("t", name="news", source=lasting())
            await receiver.__aenter__()
            await mine.aclose()
        await fill(other, "t", "kept")
        assert topic.statistics()["messages"] == 1


async def test_subscription_of_another_name_or_container_is_another() -> None:
    container, topic = with_topic()
    async with container.connect(container_id="me") as mine, container.connect(container_id="you") as yours:
        async with detaching(mine, "a", lasting()), detaching(mine, "b", lasting()):
            pass
        async with detaching(yours, "a", lasting()):
            pass
        async with mine.open_receiver("t", name="a", source=source()):
            assert len(topic.subscriptions) == 4
        assert len(topic.subscriptions) == 3


async def test_subscription_stays_so_many_seconds_as_its_source_says(autojump_clock: MockClock) -> None:
    container, topic = with_topic()
    brief = source(timeout=10, expiry_policy="connection-close", durable=1)
    async with two(container) as (one, other):
        for wait, gathered in ((9, 1), (11, 0)):
            async with detaching(one, "news", brief, credit=0) as receiver:
                answer = receiver.remote.source
                assert (answer.expiry_policy, answer.timeout, answer.durable) == ("link-detach", 10, 2)
                assert len(await receiver.drain()) == 0
            await trio.sleep(wait)
            await fill(other, "t", "x")
            assert topic.statistics()["messages"] == gathered
            for each in list(topic.subscriptions.values()):
                topic._end(each, amqp.Condition.RESOURCE_DELETED, "next")


async def test_subscription_without_a_timeout_goes_with_its_link() -> None:
    container, topic = with_topic()
    async with container.connect() as conn:
        async with detaching(conn, "news", source(durable=2)) as receiver:
            answer = receiver.remote.source
            assert (answer.expiry_policy, answer.durable) == ("link-detach", 0)
        assert not topic.subscriptions


async def test_subscription_begins_anew_with_another_filter() -> None:
    container, topic = with_topic()
    subject = amqp.Described(amqp.Symbol("amqp:properties-filter"), {"subject": "s"})
    async with two(container) as (one, other):
        async with detaching(one, "news", lasting(), credit=0):
            pass
        await fill(other, "t", "unfiltered")
        narrow = lasting(filter={"f": subject})
        async with detaching(one, "news", narrow, credit=0) as receiver:
            assert await receiver.drain() == []
        await fill(other, "t", "dropped", amqp.Message("kept", subject="s"))
        async with one.open_receiver("t", name="news", source=narrow, credit=0) as receiver:
            assert await bodies(receiver, 1) == ["kept"]
            assert len(topic.subscriptions) == 1


async def test_subscription_is_taken_over_by_the_same_link_on_another_connection() -> None:
    container, topic = with_topic()
    async with (
        container.connect(container_id="me") as old,
        container.connect(container_id="me") as new,
        old.open_receiver("t", name="news", source=lasting(), credit=0) as lost,
    ):
        await fill(new, "t", 1)
        await lost.receive()
        async with new.open_receiver("t", name="news", source=lasting()) as receiver:
            with pytest.raises(LinkDetachedError) as stolen:
                await lost.receive()
            assert stolen.value.condition == "amqp:link:stolen"
            assert await bodies(receiver, 1) == [1]
        assert not topic.subscriptions


async def test_topic_has_only_so_many_subscriptions() -> None:
    container, topic = with_topic(max_subscriptions=1)
    async with two(container) as (one, other):
        async with detaching(one, "news", lasting()):
            pass
        with pytest.raises(LinkRefusedError) as refused:
            async with other.open_receiver("t"):
                pass
        assert refused.value.condition == "amqp:resource-limit-exceeded"
        async with one.open_receiver("t", name="news", source=lasting()):
            pass
        async with other.open_receiver("t"):
            assert len(topic.subscriptions) == 1


# -- unsubscribed --------------------------------------------------------------------------------


async def test_lasting_subscription_is_found_and_ended_by_a_link_without_a_source() -> None:
    container, topic = with_topic()
    container.add_queue("q")
    async with two(container) as (one, other):
        async with detaching(one, "news", lasting()):
            assert (await unsubscribe(one, "other")).condition == "amqp:not-found"
        assert (await unsubscribe(other, "news")).condition == "amqp:not-found"
        found = await unsubscribe(one, "news")
        assert (found.address, found.expiry_policy) == ("t", "never")
        assert not topic.subscriptions


async def test_lasting_subscription_that_all_share_is_found_by_its_name_alone() -> None:
    container, topic = with_topic()
    async with two(container) as (one, other):
        shared = lasting("shared", "global")
        async with detaching(one, "news|1", shared) as receiver:
            assert list(receiver.remote.source.capabilities) == ["shared", "global"]
            error = await unsubscribe(other, "news|global", "shared", "global")
            assert error.condition == "amqp:resource-locked"
        assert (await unsubscribe(other, "news|global")).condition == "amqp:not-found"
        found = await unsubscribe(other, "news|global", "shared", "global")
        assert (found.address, found.distribution_mode) == ("t", "move")
        assert not topic.subscriptions


@pytest.mark.parametrize("there", ["nothing", "kept", "in use"])
async def test_subscription_that_all_share_is_not_told_to_who_may_not_receive_it(there: str) -> None:
    container = Container(authorise=lambda access: access.container_id == "me" or access.action == "open")
    container.add_topic("t")
    async with (
        container.connect(container_id="me") as mine,
        container.connect(container_id="other") as other,
    ):
        shared = source("shared", "global", expiry_policy="never")
        if there != "nothing":
            receiver = await mine.open_receiver("t", name="news", source=shared).__aenter__()
            if there == "kept":
                await receiver.detach()
        error = await unsubscribe(other, "news", "shared", "global")
    assert error.condition == "amqp:not-found"
    assert error.description == "the attach has no source, and no source is kept for a link 'news'"


async def test_subscription_is_found_beside_one_of_its_name_that_is_not_permitted() -> None:
    """The answers take a moment, as those of a service do."""

    async def authorise(access: Any) -> bool:
        await trio.lowlevel.checkpoint()
        return access.container_id == "all" or access.address != "a"

    container = Container(authorise=authorise)
    shared = {"capabilities": ("shared", "global"), "expiry_policy": "never"}
    async with container.connect(container_id="all") as conn, container.connect() as other:
        for address in ("a", "b"):
            container.add_topic(address)
            receiver = conn.open_receiver(address, name="s|1", source=Source(address=address, **shared))
            await (await receiver.__aenter__()).detach()
        assert (await unsubscribe(other, "s", "shared", "global")).address == "b"
        assert (await unsubscribe(other, "s", "shared", "global")).condition == "amqp:not-found"
        assert (await unsubscribe(conn, "s", "shared", "global")).address == "a"


async def test_own_subscription_that_is_not_permitted_any_more_is_not_said_to_be_gone() -> None:
    permitted = True
    container = Container(authorise=lambda access: permitted or access.action == "open")
    container.add_topic("t")
    async with container.connect(container_id="me") as mine:
        async with detaching(mine, "news", lasting()):
            pass
        permitted = False
        assert (await unsubscribe(mine, "news")).condition == "amqp:unauthorized-access"


@pytest.mark.parametrize("gone", ["subscription", "link"])
async def test_what_goes_while_its_permission_is_awaited_is_not_attached(
    gone: str, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    asks = False

    async def authorise(_: object) -> bool:
        if asks:
            await trio.sleep(5)
        return True

    container = Container(authorise=authorise)
    topic = container.add_topic("t")
    async with two(container) as (one, other):
        short = source("shared", "global", expiry_policy="link-detach", timeout=3)
        async with detaching(one, "news", short):
            pass
        asks = True
        link = other.session_for(None, own=False).engine.receiver("news")
        link.attach(desired_capabilities=("shared", "global"))
        await wait_all_tasks_blocked()
        if gone == "link":
            link.detach()
        await trio.sleep(6 if gone == "subscription" else 2)
        assert len(topic.subscriptions) == (gone == "link")
        await trio.sleep(6)
        assert gone == "link" or link.error.condition == "amqp:not-found"
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


# -- shared --------------------------------------------------------------------------------------


@pytest.mark.parametrize("everybody", [True, False])
async def test_shared_subscription_divides_its_messages_among_its_links(everybody: bool) -> None:
    container, topic = with_topic()
    shared = source("shared", "global") if everybody else source("shared")
    names = [None, None] if everybody else ["me", "me"]
    async with (
        container.connect(container_id=names[0]) as one,
        container.connect(container_id=names[1]) as other,
        one.open_receiver("t", name="s|1", source=shared, credit=2) as first,
        other.open_receiver("t", name="s|2", source=shared, credit=2) as second,
        other.open_receiver("t", credit=9) as alone,
    ):
        await wait_all_tasks_blocked()
        await fill(one, "t", *range(4))
        assert await bodies(alone, 4) == [0, 1, 2, 3]
        assert len(topic.subscriptions) == 2
        mine = [(await first.receive()), (await first.receive())]
        assert [each.message.body for each in mine] == [0, 2]
        await first.aclose()
        assert sorted(await bodies(second, 4)) == [0, 1, 2, 3]


async def test_shared_subscription_goes_with_its_last_link_unless_it_lasts() -> None:
    container, topic = with_topic()
    async with two(container) as (one, other):
        for shared, left in ((source("shared", "global"), 0), (lasting("shared", "global"), 1)):
            async with detaching(one, "s", shared):
                async with detaching(other, "s|2", shared):
                    pass
                assert len(topic.subscriptions) == 1
            assert len(topic.subscriptions) == left


async def test_shared_subscription_refuses_a_link_with_another_filter_while_it_is_used() -> None:
    container, topic = with_topic()
    subject = amqp.Described(amqp.Symbol("amqp:properties-filter"), {"subject": "s"})
    narrow = source("shared", "global", filter={"f": subject})
    async with two(container) as (one, other), one.open_receiver("t", name="s", source=narrow):
        with pytest.raises(LinkRefusedError) as refused:
            async with other.open_receiver("t", name="s|2", source=source("shared", "global")):
                pass
        assert refused.value.condition == "amqp:precondition-failed"
        async with other.open_receiver("t", name="s|2", source=narrow):
            assert len(topic.subscriptions) == 1


# -- bounded -------------------------------------------------------------------------------------


async def test_subscription_that_is_detached_for_its_backlog_is_over_and_begins_anew() -> None:
    container, topic = with_topic(max_backlog=2)
    async with two(container) as (one, other):
        async with detaching(one, "news", lasting()):
            pass
        await fill(other, "t", 1, 2)
        assert topic.statistics()["messages"] == 2
        await fill(other, "t", 3)
        assert not topic.subscriptions
        async with one.open_receiver("t", name="news", source=lasting()) as receiver:
            await fill(other, "t", 4)
            assert await bodies(receiver, 1) == [4]


async def test_topic_that_drops_gives_the_slow_the_latest_and_others_all() -> None:
    container, topic = with_topic(max_backlog=2, overflow="drop-oldest")
    async with (
        two(container) as (one, other),
        one.open_receiver("t", credit=0) as slow,
        other.open_receiver("t", credit=9) as quick,
    ):
        for number in range(5):
            await fill(one, "t", number)
            assert await bodies(quick, 1) == [number]
            await wait_all_tasks_blocked()
        held = [await slow.receive(), await slow.receive()]
        assert [each.message.body for each in held] == [3, 4]
        await fill(one, "t", "lost, since both are out")
        for each in held:
            each.accept()
        await wait_all_tasks_blocked()
        await fill(one, "t", "next")
        assert await bodies(slow, 1) == ["next"]
    assert topic.statistics()["arrived"] == 7


async def test_topic_that_rejects_gives_a_message_to_all_or_nobody() -> None:
    container, _ = with_topic(max_backlog=1, overflow="reject")
    subject = amqp.Described(amqp.Symbol("amqp:properties-filter"), {"subject": "s"})
    async with (
        two(container) as (one, other),
        one.open_receiver("t", source=source(filter={"f": subject}), credit=0) as slow,
        other.open_receiver("t", credit=9) as quick,
    ):
        await fill(one, "t", amqp.Message(1, subject="s"))
        assert await bodies(quick, 1) == [1]
        await wait_all_tasks_blocked()
        with pytest.raises(DeliveryRejectedError) as rejected:
            await fill(one, "t", amqp.Message(2, subject="s"))
        assert rejected.value.condition == "amqp:resource-limit-exceeded"
        await fill(one, "t", 3)
        assert await bodies(quick, 1) == [3]
        with pytest.raises(TransactionRolledBackError):
            async with one.open_transaction() as txn, one.open_sender("t") as sender:
                await sender.send(4, transaction=txn)
        assert await bodies(slow, 1) == [1]
        await wait_all_tasks_blocked()
        async with one.open_transaction() as txn, one.open_sender("t") as sender:
            await sender.send(5, transaction=txn)
        assert await bodies(quick, 1) == [5]


async def test_topic_that_waits_lets_the_slowest_set_the_pace() -> None:
    container, _ = with_topic(max_backlog=2, overflow="wait")
    async with (
        two(container) as (one, other),
        one.open_receiver("t", credit=0) as slow,
        other.open_receiver("t", credit=9) as quick,
        one.open_sender("t") as sender,
    ):
        deliveries = [await sender.transmit(number) for number in range(5)]
        await wait_all_tasks_blocked()
        assert [each.settled for each in deliveries] == [True, True, False, False, False]
        assert await bodies(quick, 2) == [0, 1]
        assert await bodies(slow, 1) == [0]
        assert await bodies(quick, 1) == [2]
        assert quick.buffered == 0
        await slow.aclose()  # and with it, whatever it was behind
        assert await bodies(quick, 2) == [3, 4]
        await sender.flush()


async def test_topic_that_waits_forgets_a_sender_that_is_gone() -> None:
    container, topic = with_topic(max_backlog=1, overflow="wait")
    async with two(container) as (one, other), other.open_receiver("t", credit=0) as slow:
        async with one.open_sender("t") as sender:
            for number in range(3):
                await sender.transmit(number)
            await wait_all_tasks_blocked()
            await one.aclose()
        assert not topic._blocked
        assert await bodies(slow, 1) == [0]


@pytest.mark.parametrize("wrong", [{"max_backlog": 0}, {"max_subscriptions": 0}, {"overflow": "flood"}])
def test_topic_refuses_what_makes_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError, match=next(iter(wrong))):
        Container().add_topic("t", **wrong)
