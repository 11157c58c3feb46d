"""Queues, through real links in memory: order, competition, what is passed on."""

from __future__ import annotations

import pytest
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, queue_of, two
from trio_amqp10.amqp10.peer.errors import LinkDetachedError
from trio_amqp10.amqp10.spec.messaging import Accepted
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.testing import open_container


async def test_queue_accepts_a_message_once_it_holds_it() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        async with conn.open_sender("q") as sender:
            assert isinstance(await sender.send("one"), Accepted)
        assert len(queue_of(container)) == 1


async def test_queue_shows_its_length_and_links() -> None:
    async with (
        open_container(["q"]) as container,
        container.connect() as conn,
        conn.open_sender("q") as sender,
        conn.open_receiver("q", credit=0),
    ):
        await sender.send("one")
        assert repr(queue_of(container)) == "<Queue 'q' length=1 links=2>"


async def test_queue_keeps_order_when_receivers_come_late() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", *range(250))
        async with conn.open_receiver("q", credit=10) as receiver:
            assert await bodies(receiver, 250) == list(range(250))
        assert len(queue_of(container)) == 0


@pytest.mark.parametrize("waits", [False, True])
async def test_queue_keeps_the_order_of_messages_that_come_together(waits: bool) -> None:
    messages = [amqp.Message(n, ttl=None if n % 3 else 60_000) for n in range(200)]
    async with (
        open_container(["q"]) as container,
        container.connect() as conn,
        conn.open_sender("q") as sender,
        conn.open_receiver("q", credit=150 if waits else 0) as receiver,
    ):
        await wait_all_tasks_blocked()
        deliveries = [sender.send_nowait(message) for message in messages]
        assert all([isinstance(await each.outcome(), Accepted) for each in deliveries])
        if not waits:
            receiver.grant(len(messages))
        assert await bodies(receiver, len(messages)) == list(range(len(messages)))


async def test_queue_accepts_what_came_with_a_message_that_ends_the_link() -> None:
    container = amqp.Container()
    container.add_queue("q")
    queue_of(container).refuses_durable = True
    mixed = amqp.SenderSettleMode.MIXED
    async with container.connect() as conn, conn.open_sender("q", snd_settle_mode=mixed) as sender:
        before = [sender.send_nowait(n) for n in range(3)]
        sender.send_nowait(amqp.Message("durable", durable=True), settled=True)
        assert [await each.outcome() for each in before] == [Accepted()] * 3
        with pytest.raises(LinkDetachedError):
            await sender.send("behind")
    assert len(queue_of(container)) == 3


async def test_queue_that_keeps_nothing_on_disk_counts_the_durable_ones_that_it_refuses() -> None:
    container = amqp.Container()
    queue = container.add_queue("q")
    queue.refuses_durable = True
    async with container.connect() as conn, conn.open_sender("q") as sender:
        for _ in range(2):
            with pytest.raises(amqp.DeliveryRejectedError, match="stores no messages"):
                await sender.send(amqp.Message("durable", durable=True))
    assert (queue.figures["refused"], len(queue)) == (2, 0)


async def test_outcomes_of_many_count_before_the_end_of_their_link() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", *range(40))
        async with conn.open_receiver("q", credit=40) as receiver:
            for _ in range(30):
                (await receiver.receive()).accept()
        await wait_all_tasks_blocked()
        queue = queue_of(container)
        assert (len(queue), queue.figures["accepted"], queue.leased) == (10, 30, 0)
        [peer] = container.connected
        assert peer.leases == 0


async def test_queue_passes_on_the_octets_that_came() -> None:
    message = amqp.Message(
        {"a": [1, 2.5, None]},
        message_id=7,
        durable=True,
        annotations={"x-note": 1},
        application_properties={"n": 1},
        footer={"crc": b"123"},
    )
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", message)
        async with conn.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            assert delivery.payload == message.to_payload()
            delivery.accept()


async def test_queue_keeps_a_message_whose_to_names_another_node() -> None:
    async with open_container(["q", "other"]) as container, container.connect() as conn:
        await fill(conn, "q", amqp.Message("x", to="other"))
        assert (len(queue_of(container)), len(queue_of(container, "other"))) == (1, 0)
        async with conn.open_receiver("q") as receiver:
            assert (await receiver.receive()).message.to == "other"


async def test_queue_drops_delivery_annotations_which_were_for_this_hop_only() -> None:
    plain = amqp.Message("body", priority=7, annotations={"kept": 1})
    annotated = amqp.Message("body", priority=7, annotations={"kept": 1}, delivery_annotations={"hop": 1})
    bare = amqp.Message("body", delivery_annotations={"hop": 1})
    empty_header = b"\x00\x53\x70\x45" + amqp.Message("x").to_payload()
    odd = amqp.Message.from_payload(b"no sections at all")
    other_format = amqp.Message.from_payload(b"\x00\x53\x71...", 42)
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", annotated, bare, amqp.Message.from_payload(empty_header), odd, other_format)
        async with conn.open_receiver("q") as receiver:
            came = [await receiver.receive() for _ in range(5)]
            assert [delivery.payload for delivery in came] == [
                plain.to_payload(),
                amqp.Message("body").to_payload(),
                empty_header,
                b"no sections at all",
                b"\x00\x53\x71...",
            ]
            assert came[4].message_format == 42


@pytest.mark.parametrize("credit", [1, 7])
async def test_queue_gives_to_those_who_have_credit_in_turn(credit: int) -> None:
    async with (
        open_container(["q"]) as container,
        two(container) as (one, other),
        one.open_receiver("q", credit=credit) as first,
        other.open_receiver("q", credit=credit) as second,
    ):
        await wait_all_tasks_blocked()
        await fill(one, "q", *range(2 * credit))
        await wait_all_tasks_blocked()
        assert await bodies(first, credit, accept=False) == list(range(0, 2 * credit, 2))
        assert await bodies(second, credit, accept=False) == list(range(1, 2 * credit, 2))


async def test_queue_passes_over_a_receiver_without_credit() -> None:
    async with (
        open_container(["q"]) as container,
        two(container) as (one, other),
        one.open_receiver("q", credit=0) as idle,
        other.open_receiver("q", credit=5) as busy,
    ):
        await wait_all_tasks_blocked()
        await fill(one, "q", *range(5))
        assert await bodies(busy, 5) == list(range(5))
        assert idle.buffered == 0


async def test_queue_sends_what_is_larger_than_a_frame_and_goes_on_behind_it() -> None:
    large = bytes(300_000)
    async with open_container(["q"]) as container, two(container) as (one, other):
        await fill(one, "q", large, "small", large)
        async with other.open_receiver("q") as receiver:
            assert await bodies(receiver, 3) == [large, "small", large]


async def test_queue_removed_ends_its_links_and_forgets_its_messages() -> None:
    async with open_container(["q"]) as container, container.connect() as conn:
        await fill(conn, "q", 1, 2)
        queue = queue_of(container)
        async with conn.open_sender("q") as sender, conn.open_receiver("q", credit=1) as receiver:
            held = await receiver.receive()
            container.remove_node("q")
            with pytest.raises(LinkDetachedError) as detached:
                await receiver.receive()
            assert detached.value.condition == "amqp:resource-deleted"
            with pytest.raises(LinkDetachedError):
                await sender.send(1)
            with pytest.raises(LocalProtocolError):
                held.release()
        assert len(queue) == 0
        with pytest.raises(LocalProtocolError):
            container.remove_node("q")
