"""Messages that are too large for a link go to the other links (2.7.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, queue_of, two
from tests.container.wire import on_the_wire
from trio_amqp10.amqp10.server.native_message import content_of_message
from trio_amqp10.amqp10.spec.messaging import ExpiryPolicy, Source
from trio_amqp10.amqp10.spec.transport import Role, Transfer
from trio_amqp10.broker.nodes import consumers
from trio_amqp10.container import Container, Node

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE_EXCEEDED = "amqp:link:message-size-exceeded"
LARGE = bytes(1000)


async def refused(receiver: amqp.Receiver) -> None:
    """The link ends, because there is nothing for it that it takes."""
    with pytest.raises(amqp.LinkDetachedError) as detached, trio.fail_after(60):
        await receiver.receive()
    assert detached.value.condition == SIZE_EXCEEDED


async def refused_at_once(opening: Any) -> None:
    """The same, perhaps while the link is being opened."""
    with pytest.raises(amqp.LinkDetachedError) as detached, trio.fail_after(60):
        async with opening as receiver:
            await receiver.receive()
    assert detached.value.condition == SIZE_EXCEEDED


async def test_queue_keeps_messages_for_others_when_thirty_links_attach_that_take_none_of_them() -> None:
    container = Container()
    container.add_queue("q")
    async with two(container) as (one, other):
        await fill(one, "q", *[LARGE] * 20)
        for _ in range(30):
            await refused_at_once(other.open_receiver("q", max_message_size=100))
        assert (queue_of(container).available, queue_of(container).leased) == (20, 0)
        async with one.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            assert delivery.message.delivery_count == 0
            delivery.accept()
            assert len(await bodies(receiver, 19)) == 19
    assert not len(queue_of(container))


async def test_queue_gives_a_link_the_messages_behind_those_that_are_too_large_and_ends_it_after_them() -> (
    None
):
    container = Container()
    container.add_queue("q")
    async with two(container) as (one, other):
        await fill(one, "q", LARGE, b"1", LARGE, b"2", LARGE)
        async with other.open_receiver("q", max_message_size=100) as receiver:
            first, second = [await receiver.receive() for _ in range(2)]
            assert [first.message.body, second.message.body] == [b"1", b"2"]
            await trio.testing.wait_all_tasks_blocked()
            first.accept()
            assert not receiver.closed  # not while the second is unsettled: it would count as failed
            await trio.testing.wait_all_tasks_blocked()
            second.accept()
            await refused(receiver)
        async with one.open_receiver("q") as receiver:
            assert await bodies(receiver, 3) == [LARGE] * 3


@pytest.mark.parametrize("make", [Container.add_queue, Container.add_topic], ids=["queue", "topic"])
async def test_node_takes_messages_of_all_senders_when_a_link_waits_that_takes_none_of_them(
    make: Callable[..., Any],
) -> None:
    container = Container()
    make(container, "q")
    async with two(container) as (one, other):
        async with one.open_sender("q") as sender, other.open_receiver("q", max_message_size=100) as receiver:
            await sender.send(b"small")
            assert await bodies(receiver, 1) == [b"small"]
            await sender.send(LARGE)
            await refused(receiver)
            await sender.send(LARGE)
        if make is Container.add_queue:
            async with one.open_receiver("q") as receiver:
                assert await bodies(receiver, 2) == [LARGE] * 2


async def test_queue_leaves_a_link_in_peace_when_another_takes_what_is_too_large_for_it() -> None:
    container = Container()
    container.add_queue("q")
    async with (
        two(container) as (one, other),
        one.open_sender("q") as sender,
        other.open_receiver("q", max_message_size=100) as small,
        other.open_receiver("q") as receiver,
    ):
        for _ in range(10):
            await sender.send(LARGE)
            assert await bodies(receiver, 1) == [LARGE]
        await receiver.aclose()
        await sender.send(b"small")
        assert await bodies(small, 1) == [b"small"]


async def test_single_active_consumer_that_takes_no_message_makes_way_for_the_next() -> None:
    container = Container()
    queue = container.add_queue("q", single_active=True)
    async with two(container) as (one, other):
        await fill(one, "q", LARGE, b"behind")
        async with (
            other.open_receiver("q", max_message_size=100) as small,
            other.open_receiver("q") as receiver,
        ):
            assert await bodies(small, 1) == [b"behind"]
            await refused(small)
            assert await bodies(receiver, 1) == [LARGE]
    assert not len(queue)


async def test_group_goes_to_another_consumer_when_its_next_message_is_too_large_for_the_one_that_has_it() -> (
    None
):
    container = Container()
    queue = container.add_queue("q", grouped=True)
    async with (
        two(container) as (one, other),
        other.open_receiver("q", max_message_size=100) as small,
        one.open_sender("q") as sender,
    ):
        for body in (b"1", LARGE, b"3"):
            await sender.send(amqp.Message(body, group_id="g"))
        first = await small.receive()
        assert first.message.body == b"1"
        async with other.open_receiver("q") as receiver:
            await trio.testing.wait_all_tasks_blocked()
            first.accept()
            assert await bodies(receiver, 2) == [LARGE, b"3"]
    assert not len(queue)


async def test_group_stands_still_for_a_link_that_cannot_take_its_first_message_and_the_link_is_ended() -> (
    None
):
    container = Container()
    queue = container.add_queue("q", grouped=True)
    async with two(container) as (one, other):
        for body in (LARGE, b"2"):
            await fill(one, "q", amqp.Message(body, group_id="g"))
        await refused_at_once(other.open_receiver("q", max_message_size=100))
        async with one.open_receiver("q") as receiver:
            assert await bodies(receiver, 2) == [LARGE, b"2"]
    assert not len(queue)


async def test_browser_sees_what_it_takes_and_is_ended_when_only_larger_messages_are_left() -> None:
    container = Container()
    queue = container.add_queue("q")
    async with two(container) as (one, other):
        await fill(one, "q", b"1", LARGE, b"2")
        async with other.open_receiver(
            "q", source=amqp.Source(address="q", distribution_mode="copy"), max_message_size=100
        ) as browser:
            assert await bodies(browser, 2) == [b"1", b"2"]
            await refused(browser)
        assert queue.available == 3


async def test_lasting_subscription_keeps_what_was_too_large_for_its_link_until_a_link_takes_it() -> None:
    container = Container()
    container.add_topic("t")
    async with two(container) as (one, other):
        options: Any = {"name": "sub", "expiry_policy": "never"}
        async with other.open_receiver("t", max_message_size=100, **options) as small:
            await fill(one, "t", LARGE)
            await refused(small)
        async with other.open_receiver("t", **options) as receiver:
            assert await bodies(receiver, 1) == [LARGE]


async def test_message_that_outgrew_its_link_when_it_came_back_goes_to_another() -> None:
    container = Container()
    queue = container.add_queue("q")
    async with two(container) as (one, other):
        await fill(one, "q", LARGE)
        limit = queue.octets
        async with other.open_receiver("q", max_message_size=limit) as receiver:
            delivery = await receiver.receive()
            delivery.modify(delivery_failed=True, annotations={"x-opt-why": "the annotations make it larger"})
            await refused(receiver)
        assert (queue.available, queue.leased) == (1, 0)
        async with one.open_receiver("q") as receiver:
            assert await bodies(receiver, 1) == [LARGE]


async def test_queue_tests_each_message_that_is_too_large_once_however_many_smaller_ones_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tests = 0
    passes = consumers.QueueReader.passes

    def counting(self: consumers.QueueReader, entry: Any) -> bool:
        nonlocal tests
        tests += 1
        return passes(self, entry)

    monkeypatch.setattr(consumers.QueueReader, "passes", counting)
    container = Container()
    queue = container.add_queue("q")
    message = amqp.Message.from_payload(amqp.Message(bytes(200)).to_payload())
    for _ in range(100_000):
        queue.put(content_of_message(message), None)
    for number in range(300):
        message = amqp.Message.from_payload(amqp.Message(number).to_payload())
        queue.put(content_of_message(message), None)
    async with (
        container.connect() as conn,
        conn.open_receiver("q", max_message_size=100, credit=3) as receiver,
    ):
        assert await bodies(receiver, 300) == list(range(300))
    assert queue.available == 100_000
    assert tests == 100_000 + 300


async def test_request_is_rejected_when_its_reply_is_too_large_for_the_link_and_later_ones_are_answered() -> (
    None
):
    container = Container()

    @container.function("f")
    async def repeat(message: amqp.Message) -> bytes:
        return bytes(message.body)

    async with (
        container.connect() as conn,
        conn.open_receiver("f", target=amqp.Target(address="me"), max_message_size=200) as replies,
        conn.open_sender("f") as sender,
    ):
        with pytest.raises(amqp.DeliveryRejectedError) as rejected:
            await sender.send(amqp.Message(1000, reply_to="me"))
        assert rejected.value.condition == SIZE_EXCEEDED
        await sender.send(amqp.Message(10, reply_to="me"))
        assert await bodies(replies, 1) == [bytes(10)]
    assert container.nodes["f"].statistics()["dropped"] == 1


async def test_link_for_replies_is_ended_when_a_reply_is_too_large_and_the_request_was_sent_settled() -> None:
    container = Container()

    @container.function("f")
    async def repeat(message: amqp.Message) -> bytes:
        return bytes(message.body)

    async with (
        container.connect() as conn,
        conn.open_receiver("f", target=amqp.Target(address="me"), max_message_size=200) as replies,
        conn.open_sender("f", guarantee="at-most-once") as sender,
    ):
        await sender.send(amqp.Message(1000, reply_to="me"))
        await refused(replies)
        await sender.send(amqp.Message(10))


async def test_producer_that_sends_what_is_too_large_ends_its_link_and_no_other() -> None:
    container = Container()

    @container.producer("p")
    async def produce(link: amqp.Sender) -> None:
        await link.send(LARGE)

    async with two(container) as (one, other), one.open_receiver("p") as receiver:
        await refused_at_once(other.open_receiver("p", max_message_size=100))
        assert await bodies(receiver, 1) == [LARGE]


async def test_transaction_acquires_what_its_link_takes_and_leaves_the_rest_to_others() -> None:
    container = Container()
    queue = container.add_queue("q")
    async with two(container) as (one, other):
        await fill(one, "q", LARGE, b"1")
        async with (
            other.open_receiver("q", max_message_size=100, credit=0) as receiver,
            other.open_transaction() as txn,
        ):
            receiver.grant(2, transaction=txn)
            (await receiver.receive()).accept(transaction=txn)
            assert (queue.available, queue.leased) == (1, 1)
        await trio.testing.wait_all_tasks_blocked()
        assert (queue.available, queue.leased) == (1, 0)
        async with one.open_receiver("q") as receiver:
            assert await bodies(receiver, 1) == [LARGE]


async def test_node_of_ones_own_that_gives_too_much_to_a_link_ends_that_link_and_gets_its_message_back() -> (
    None
):
    returned: list[str] = []

    class Noted:
        def __getattr__(self, name: str) -> Callable[..., None]:
            return lambda *_, **__: returned.append(name)

    class Shout(Node):
        accepts_senders = accepts_receivers = True

        def on_arrivals(self, inlet: Any) -> None:
            while (arrival := inlet.take()) is not None:
                for outlet in list(self.outlets):
                    if outlet.ready():
                        outlet.give(arrival.message, Noted() if outlet.max_message_size == 100 else None)
                arrival.accept()

        def on_demand(self, outlet: Any) -> None:
            outlet.rest(0)

    shout = Shout("s")
    container = Container()
    container.add_node(shout)
    async with (
        two(container) as (one, other),
        one.open_sender("s") as sender,
        other.open_receiver("s", max_message_size=100) as small,
        one.open_receiver("s") as receiver,
    ):
        await sender.send(LARGE)
        await refused(small)
        await sender.send(LARGE)
        assert await bodies(receiver, 2) == [LARGE] * 2
        assert returned == ["released"]


async def test_message_goes_back_when_the_link_is_taken_up_with_a_limit_that_is_too_small_for_it() -> None:
    container = amqp.Container()
    queue = container.add_queue("q", delivery_limit=1)
    source = Source(address="q", expiry_policy=ExpiryPolicy.CONNECTION_CLOSE, timeout=60)
    await container.send("q", bytes(1000))
    await container.send("q", "small")
    async with on_the_wire(container, "program") as peer:
        await peer.attach("q", Role.RECEIVER, name="n", source=source)
        await peer.grant(2)
        await peer.expect(Transfer)
        await peer.expect(Transfer)
    await trio.testing.wait_all_tasks_blocked()
    assert (queue.available, queue.leased) == (0, 2)
    for _ in range(2):
        async with on_the_wire(container, "program") as peer:
            attached = await peer.attach(
                "q", Role.RECEIVER, name="n", source=source, max_message_size=100, unsettled={}
            )
            assert attached.source is not None
            await peer.grant(2)
            small = await peer.expect(Transfer)
            assert small.delivery_tag != b"\0\0\0\0"
            await trio.testing.wait_all_tasks_blocked()
            assert (queue.available, queue.leased) == (1, 1)
        await trio.testing.wait_all_tasks_blocked()
    async with container.connect() as conn, conn.open_receiver("q", credit=0) as other:
        delivery = await other.receive()
        assert delivery.message.body == bytes(1000)
        assert not delivery.message.delivery_count
        delivery.accept()
