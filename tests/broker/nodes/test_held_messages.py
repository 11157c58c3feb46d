"""Messages that a queue has given out: what becomes of them, and when they come back."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, queue_of, two
from trio_amqp10.amqp10.spec.messaging import Modified, Rejected, Source
from trio_amqp10.testing import open_container


async def test_queue_gives_a_released_message_again_in_its_old_place_and_uncounted() -> None:
    async with open_container(["q"]) as container, two(container) as (one, other):
        await fill(one, "q", *range(4))
        async with one.open_receiver("q", credit=0) as receiver:
            receiver.grant(2)
            first, second = await receiver.receive(), await receiver.receive()
            second.release()
            first.release()
            await wait_all_tasks_blocked()
            async with other.open_receiver("q") as another:
                deliveries = [await another.receive() for _ in range(4)]
                assert [each.message.body for each in deliveries] == [0, 1, 2, 3]
                assert [each.message.delivery_count for each in deliveries] == [0, 0, 0, 0]
                assert deliveries[0].payload == first.payload


async def test_queue_gives_a_returned_message_before_all_others() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", "a", "b", "c")
        async with conn.open_receiver("q", credit=0) as receiver:
            (await receiver.receive()).release()
            await wait_all_tasks_blocked()
            assert await bodies(receiver, 3) == ["a", "b", "c"]


@pytest.mark.parametrize("failed", [True, False])
async def test_queue_counts_a_failed_attempt_and_merges_annotations_when_modified(failed: bool) -> None:
    sent = amqp.Message("body", subject="s", annotations={"x-old": 1, "x-both": 1}, first_acquirer=True)
    async with open_container(["q"]) as container, two(container) as (one, other):
        await fill(one, "q", sent)
        async with one.open_receiver("q", credit=0) as receiver:
            delivery = await receiver.receive()
            assert delivery.message.first_acquirer
            delivery.modify(delivery_failed=failed, annotations={"x-new": 2, "x-both": 2})
            await wait_all_tasks_blocked()
        async with other.open_receiver("q") as receiver:
            message = (await receiver.receive()).message
            assert message.delivery_count == int(failed)
            assert not message.first_acquirer
            assert message.annotations == {"x-old": 1, "x-both": 2, "x-new": 2}
            assert (message.body, message.subject) == ("body", "s")


PROPERTIES: dict[str, Any] = {
    "message_id": "m-1",
    "user_id": b"ada",
    "to": "q",
    "subject": "s",
    "reply_to": "answers",
    "correlation_id": "m-0",
    "content_type": "text/plain",
    "content_encoding": "gzip",
    "absolute_expiry_time": 4_000_000_000_000,
    "creation_time": 1_000,
    "group_id": "g",
    "group_sequence": 7,
    "reply_to_group_id": "h",
}


@pytest.mark.parametrize("ttl", [None, 60_000])
@pytest.mark.parametrize("how", ["acquired", "released", "failed", "annotated"])
@pytest.mark.parametrize("left_out", ["content_type", "content_encoding", "subject"])
async def test_queue_gives_on_every_property_as_it_came(
    ttl: int | None, how: str, left_out: str, autojump_clock: MockClock
) -> None:
    said = {name: value for name, value in PROPERTIES.items() if name != left_out}
    sent = amqp.Message(b"body", ttl=ttl, first_acquirer=how == "acquired", **said)
    async with open_container(["q"]) as container, two(container) as (one, other):
        await fill(one, "q", sent)
        await trio.sleep(1)
        async with one.open_receiver("q", credit=0) as receiver:
            delivery = await receiver.receive()
            if how == "released":
                delivery.release()
            else:
                annotations = {"x-new": 1} if how == "annotated" else None
                delivery.modify(delivery_failed=how == "failed", annotations=annotations)
            await wait_all_tasks_blocked()
        async with other.open_receiver("q") as receiver:
            again = (await receiver.receive()).message
    for message in (delivery.message, again):
        assert {name: getattr(message, name) for name in PROPERTIES} == {**said, left_out: None}


async def test_queue_puts_no_section_into_a_bare_message_that_it_gives_again() -> None:
    sent = amqp.Message("body")
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", sent)
        async with conn.open_receiver("q", credit=0) as receiver:
            (await receiver.receive()).modify(delivery_failed=True, annotations={"x-a": 1})
            again = (await receiver.receive()).message
            assert (again.delivery_count, again.annotations) == (1, {"x-a": 1})
            assert again.bare == sent.to_payload()


async def test_queue_keeps_a_message_from_the_link_that_finds_it_undeliverable_here() -> None:
    async with (
        open_container(["q"]) as container,
        two(container) as (one, other),
        one.open_receiver("q", credit=5, name="picky") as picky,
    ):
        await fill(one, "q", "bad", "good")
        bad = await picky.receive()
        bad.modify(undeliverable_here=True)
        assert await bodies(picky, 1) == ["good"]
        await fill(one, "q", "more")
        assert await bodies(picky, 1) == ["more"]
        assert queue_of(container).available == 1
        async with other.open_receiver("q") as receiver:
            assert await bodies(receiver, 1) == ["bad"]
        assert len(queue_of(container)) == 0


async def test_queue_finds_the_first_message_that_a_link_may_have_among_returned_ones() -> None:
    async with open_container(["q"]) as container, two(container) as (one, other):
        await fill(one, "q", *range(4))
        async with one.open_receiver("q", credit=0) as picky:
            picky.grant(3)
            zero, first, second = [await picky.receive() for _ in range(3)]
            zero.modify(undeliverable_here=True)
            second.release()
            first.release()
            await wait_all_tasks_blocked()
            picky.grant(10)
            assert await bodies(picky, 3) == [1, 2, 3]
            await wait_all_tasks_blocked()
            assert picky.buffered == 0
            async with other.open_receiver("q") as receiver:
                assert await bodies(receiver, 1) == [0]


async def test_queue_gives_an_accepted_message_to_nobody_again() -> None:
    async with open_container(["q"]) as container, two(container) as (one, other):
        await fill(one, "q", "x")
        for _ in range(2):
            async with one.open_receiver("q", name="n", credit=0) as receiver:
                if queue_of(container).available:
                    (await receiver.receive()).accept()
                receiver.grant(1)
                assert await receiver.drain() == []
        async with other.open_receiver("q", credit=0) as receiver:
            receiver.grant(1)
            assert await receiver.drain() == []


async def test_queue_leases_what_it_moves_and_leaves_what_it_copies() -> None:
    copy = Source(address="q", distribution_mode="copy")
    async with open_container(["q"]) as container, two(container) as (one, other):
        await fill(one, "q", "x", "y")
        queue = queue_of(container)
        async with (
            one.open_receiver("q", credit=0) as mover,
            other.open_receiver("q", source=copy, credit=0) as browser,
            other.open_receiver("q", credit=0) as another,
        ):
            assert mover.remote.source.distribution_mode == "move"
            first = await mover.receive()
            assert (queue.available, queue.leased) == (1, 1)
            assert await bodies(browser, 1) == ["y"]
            assert (queue.available, queue.leased) == (1, 1)
            assert await bodies(another, 1) == ["y"]
            first.accept()
            await wait_all_tasks_blocked()
            assert len(queue) == 0


async def test_queue_drops_a_rejected_message() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", "bad", "worse")
        async with conn.open_receiver("q", credit=0) as receiver:
            (await receiver.receive()).reject("app:bad", "no good")
            bare = await receiver.receive()
            bare.link.session.settlement.dispose(bare, Rejected())
            await wait_all_tasks_blocked()
        assert len(queue_of(container)) == 0


async def test_queue_counts_an_attempt_when_the_connection_is_lost() -> None:
    async with open_container(["q"]) as container, container.connect() as other:
        await fill(other, "q", *range(3))
        async with container.connect() as conn:
            receiver = await conn.open_receiver("q", credit=0).__aenter__()
            receiver.grant(2)  # credit=2 would be renewed, and the third message be on its way too
            assert await bodies(receiver, 2, accept=False) == [0, 1]
            await wait_all_tasks_blocked()
            conn.pump.cancel()
        async with other.open_receiver("q") as receiver:
            deliveries = [await receiver.receive() for _ in range(3)]
            assert [each.message.body for each in deliveries] == [0, 1, 2]
            assert [each.message.delivery_count for each in deliveries] == [1, 1, 0]
            assert not any(each.message.first_acquirer for each in deliveries)


async def test_queue_counts_an_attempt_when_the_session_ends() -> None:
    async with open_container(["q"]) as container, two(container) as (one, other):
        await fill(other, "q", "x")
        async with one.open_session() as session:
            receiver = await session.open_receiver("q").__aenter__()
            await receiver.receive()
        async with other.open_receiver("q") as receiver:
            assert (await receiver.receive()).message.delivery_count == 1


AFTERWARDS: list[tuple[str, str, dict[str, Any], int | None]] = [
    ("accepted", "accept", {}, None),
    ("rejected", "reject", {"condition": "app:bad"}, None),
    ("released", "release", {}, 0),
    ("modified", "modify", {}, 0),
    ("failed", "modify", {"delivery_failed": True}, 1),
    ("undeliverable", "modify", {"undeliverable_here": True}, 0),
    ("failed and undeliverable", "modify", {"delivery_failed": True, "undeliverable_here": True}, 1),
    ("link closed", "close", {}, 1),
    ("connection lost", "lose", {}, 1),
]
"""What ends a delivery, and the delivery-count of the message then; None where it is gone."""


@pytest.mark.parametrize(
    ("end", "arguments", "count"), [row[1:] for row in AFTERWARDS], ids=[r[0] for r in AFTERWARDS]
)
@pytest.mark.parametrize("before", [0, 3])
async def test_queue_gives_a_message_again_with_the_count_and_first_acquirer_that_its_end_leaves(
    end: str, arguments: dict[str, Any], count: int | None, before: int
) -> None:
    message = amqp.Message("m", first_acquirer=True, delivery_count=before, group_id="g", group_sequence=7)
    async with open_container(["q"]) as container, two(container) as (conn, other):
        await fill(other, "q", message)
        receiver = await conn.open_receiver("q", credit=0).__aenter__()
        delivery = await receiver.receive()
        assert (delivery.message.delivery_count, delivery.message.first_acquirer) == (before, True)
        if end == "close":
            await receiver.aclose()
        elif end == "lose":
            conn.pump.cancel()
        else:
            getattr(delivery, end)(**arguments)
        await wait_all_tasks_blocked()
        assert len(queue_of(container)) == (count is not None)
        if count is not None:
            async with other.open_receiver("q", credit=0) as next_one:
                again = await next_one.receive()
                assert (again.message.delivery_count, again.message.first_acquirer) == (before + count, False)
                assert (again.message.group_id, again.message.group_sequence) == ("g", 7)
                again.accept()


async def test_queue_gives_on_what_a_leaving_receiver_did_not_hand_out_in_order() -> None:
    async with open_container(["q"]) as container, two(container) as (one, other):
        await fill(one, "q", *range(20))
        async with other.open_receiver("q", credit=0) as heir:
            async with one.open_receiver("q", credit=10) as receiver:
                assert await bodies(receiver, 3) == [0, 1, 2]
            heir.grant(20)
            assert await bodies(heir, 17) == list(range(3, 20))
        assert len(queue_of(container)) == 0


async def test_queue_loses_nothing_when_a_receive_is_cancelled_at_any_time(autojump_clock: MockClock) -> None:
    got: list[Any] = []
    async with (
        open_container(["q"]) as container,
        two(container) as (one, other),
        other.open_sender("q") as sender,
        one.open_receiver("q", credit=3) as receiver,
    ):

        async def send() -> None:
            for number in range(50):
                await trio.sleep(0.07)
                await sender.send(number)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            while len(got) < 50:
                with trio.move_on_after(0.03):
                    delivery = await receiver.receive()
                    got.append(delivery.message.body)
                    delivery.accept()
    assert got == list(range(50))


async def test_queue_gives_settled_where_the_receiver_asks_for_at_most_once() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", "x")
        async with conn.open_receiver("q", guarantee="at-most-once") as receiver:
            assert (await receiver.receive()).settled
        assert len(queue_of(container)) == 0


async def test_queue_serves_links_that_settle_second() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        async with conn.open_sender("q", guarantee="exactly-once") as sender:
            await sender.send("x")
        async with conn.open_receiver("q", guarantee="exactly-once") as receiver:
            delivery = await receiver.receive()
            delivery.accept()
            await delivery.wait_settled()
        assert len(queue_of(container)) == 0


async def test_queue_takes_what_came_settled() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        async with conn.open_sender("q", guarantee="at-most-once") as sender:
            assert await sender.send("x") is None
        await wait_all_tasks_blocked()
        assert len(queue_of(container)) == 1


async def test_queue_takes_what_came_before_the_link_went() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        async with conn.open_sender("q") as sender:
            for number in range(10):
                await sender.transmit(number)
        await wait_all_tasks_blocked()
        assert len(queue_of(container)) == 10


async def test_row_54_queue_applies_the_default_outcome_to_one_that_is_not_listed() -> None:
    source = Source(
        address="q",
        outcomes=("amqp:accepted:list",),
        default_outcome=Modified(delivery_failed=True),
    )
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", "x")
        async with conn.open_receiver("q", source=source, credit=0) as receiver:
            assert receiver.remote.source.outcomes == ("amqp:accepted:list",)
            delivery = await receiver.receive()
            delivery.reject("app:bad")
            delivery = await receiver.receive()
            assert delivery.message.delivery_count == 1
            delivery.accept()
            await wait_all_tasks_blocked()
        assert len(queue_of(container)) == 0


async def test_queue_does_not_change_what_it_cannot_read_when_it_comes_back() -> None:
    octets = b"\x00\x53\x70no header"
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", amqp.Message.from_payload(octets), amqp.Message.from_payload(b"\x00", 9))
        async with conn.open_receiver("q", credit=0) as receiver:
            receiver.grant(2)
            for _ in range(2):
                (await receiver.receive()).modify(delivery_failed=True)
            receiver.grant(2)
            again = [await receiver.receive(), await receiver.receive()]
            assert [(each.payload, each.message_format) for each in again] == [(octets, 0), (b"\x00", 9)]
