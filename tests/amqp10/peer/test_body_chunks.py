"""The body of a message is read in chunks, while it arrives (3.2.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from tests.naive.performatives import frame

from .helpers import detached
from .streams import sink
from .test_receiver import receiving

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_chunks_of_a_whole_message_are_those_of_its_sections() -> None:
    async with sink(streaming=False) as (sender, service):
        await sender.send(amqp.Message(amqp.Data(b"one", b"two"), subject="s"))
        assert service.got == [b"onetwo"]


async def test_chunks_refuse_a_body_that_is_no_data_and_message_has_it() -> None:
    async def read(delivery: amqp.Delivery) -> object:
        with pytest.raises(amqp.LocalProtocolError, match="amqp:amqp-value"):
            await delivery.chunks().__anext__()
        while not delivery.complete:
            await trio.lowlevel.checkpoint()
        delivery.accept()
        return delivery.message.body

    async with sink(read) as (sender, service):
        text = "x" * 300_000
        await sender.send(text)
        assert service.got == [text]


async def test_octets_that_are_no_message_raise_in_chunks(autojump_clock: MockClock) -> None:
    async with receiving(streaming=True, own_session=False) as (receiver, peer):
        await peer.send(
            frame("transfer", handle=0, delivery_id=0, delivery_tag=b"t", more=True, payload=b"\x40")
        )
        delivery = await receiver.receive()
        with pytest.raises(amqp.RemoteProtocolError, match="begins no section"):
            await delivery.head()
        delivery.reject("amqp:decode-error")


@pytest.mark.parametrize("discard", [False, True])
async def test_leaving_chunks_early_keeps_the_delivery_and_the_link(discard: bool) -> None:
    async def read(delivery: amqp.Delivery) -> object:
        async for chunk in delivery.chunks():
            if discard:
                delivery.discard()
            delivery.accept()
            return len(chunk) > 0
        raise AssertionError

    async with sink(read) as (sender, service):
        for _ in range(3):
            async with sender.stream() as body:
                for _ in range(60):
                    await body.send_all(bytes(100_000))
        assert service.got == [True] * 3
        assert sender.unsettled == 0


async def test_chunks_that_were_left_go_on_where_they_were() -> None:
    async def read(delivery: amqp.Delivery) -> object:
        got = [await delivery.chunks().__anext__(), await delivery.chunks().__anext__()]
        with trio.move_on_after(0.01):
            got.append(await delivery.chunks().__anext__())
        go.set()
        got += [chunk async for chunk in delivery.chunks()]
        delivery.accept()
        return got

    go = trio.Event()
    async with sink(read) as (sender, service):
        async with sender.stream() as body:
            await body.send_all(b"one")
            await body.send_all(b"two")
            await go.wait()
            await body.send_all(b"three")
        assert service.got == [[b"one", b"two", b"three"]]


async def test_link_detached_in_the_middle_raises_in_chunks(autojump_clock: MockClock) -> None:
    async with receiving(streaming=True, own_session=False) as (receiver, peer):
        octets = b"\x00\x53\x75\xa0\x09some"
        await peer.send(
            frame("transfer", handle=0, delivery_id=0, delivery_tag=b"t", more=True, payload=octets)
        )
        delivery = await receiver.receive()
        chunks = delivery.chunks()
        assert await chunks.__anext__() == b"some"
        await peer.send(detached(0, "amqp:internal-error"))
        with pytest.raises(amqp.LinkDetachedError):
            await chunks.__anext__()
