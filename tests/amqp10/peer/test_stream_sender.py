"""Messages larger than memory: sent block by block, read while they come in, taken back, lost in the middle."""

from __future__ import annotations

from typing import cast

import pytest
import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp

from .helpers import STREAMS, detached, served, stream_pair
from .streams import Sink, sink
from .test_sender import flow, sending, settled

# -- from end to end --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("length", [None, 500_000])
async def test_stream_arrives_as_it_was_sent(kind: str, length: int | None) -> None:
    service = Sink()
    blocks = [bytes([n]) * 50_000 for n in range(10)]
    async with (
        served(service.handle, streams=await stream_pair(kind)) as conn,
        conn.open_sender("q") as sender,
    ):
        async with sender.stream(length, message=amqp.Message(subject="s")) as body:
            for block in blocks:
                await body.send_all(block)
        assert service.got == [b"".join(blocks)]
        assert isinstance(body.delivery.state, amqp.Accepted)
        await sender.send(b"whole")
        assert service.got[1:] == [b"whole"]


async def test_length_makes_one_data_section_and_none_makes_one_for_each_block() -> None:
    async with sink(streaming=False) as (sender, service):

        async def sections(delivery: amqp.Delivery) -> object:
            delivery.accept()
            return delivery.message.sections

        service.read = sections
        async with sender.stream(7) as body:
            await body.send_all(b"one")
            await body.send_all(bytearray(b"two"))
            await body.send_all(memoryview(b"3"))
        async with sender.stream() as body:
            await body.send_all(b"one")
            await body.send_all(b"")
            await body.send_all(b"two")
        for length in (None, 0):
            async with sender.stream(length):
                pass
        one, two, nothing, zero = service.got
        assert one == (amqp.Data(b"onetwo3"),)
        assert two == (amqp.Data(b"one"), amqp.Data(b"two"))
        assert nothing == zero == (amqp.Data(b""),)


async def test_last_block_and_the_end_leave_in_one_write() -> None:
    async with sink() as (sender, service):
        statistics = cast("amqp.Connection", sender.session.connection).statistics
        async with sender.stream() as body:
            await body.send_all(b"one")
            await wait_all_tasks_blocked()
            before = statistics()["writes"]
            await body.send_all(b"two")
            await body.aclose()
            await wait_all_tasks_blocked()
            assert statistics()["writes"] == before + 1
        assert service.got == [b"onetwo"]


async def test_head_comes_before_the_body_and_the_footer_behind_it() -> None:
    seen = trio.Event()

    async def read(delivery: amqp.Delivery) -> object:
        head = await delivery.head()
        assert (head.subject, head.application_properties, head.body) == ("s", {"n": 1}, None)
        assert not delivery.complete
        assert "streamed" in repr(delivery)
        with pytest.raises(amqp.LocalProtocolError, match="not complete"):
            _ = delivery.message
        seen.set()
        got = b"".join([chunk async for chunk in delivery.chunks()])
        delivery.accept()
        assert delivery.complete
        message = delivery.message
        return got, message.footer, message.subject, message.body

    async with sink(read) as (sender, service):
        head = amqp.Message(subject="s", application_properties={"n": 1})
        async with sender.stream(message=head) as body:
            await body.send_all(b"octets")
            await seen.wait()
            body.message.footer = {"crc": 7}
        assert service.got == [(b"octets", {"crc": 7}, "s", None)]


async def test_message_is_whole_when_all_has_come_and_nothing_was_read() -> None:
    async def read(delivery: amqp.Delivery) -> object:
        await delivery.head()
        left = delivery.chunks()
        while not delivery.complete:
            await trio.lowlevel.checkpoint()
        assert delivery.message.body == b"octets"
        with pytest.raises(amqp.LocalProtocolError, match="`message` was read meanwhile"):
            await left.__anext__()
        assert [chunk async for chunk in delivery.chunks()] == [b"oct", b"ets"]
        subjects = (await delivery.head()).subject, delivery.message.subject
        delivery.accept()
        return subjects

    async with sink(read) as (sender, service):
        async with sender.stream(message=amqp.Message(subject="s")) as body:
            await body.send_all(b"oct")
            await body.send_all(b"ets")
        assert service.got == [("s", "s")]


# -- back-pressure ----------------------------------------------------------------------------------


async def test_sender_waits_for_the_reader_and_other_links_do_not() -> None:
    go = trio.Event()

    async def read(delivery: amqp.Delivery) -> object:
        got = 0
        async for chunk in delivery.chunks():
            await go.wait()
            got += len(chunk)
        delivery.accept()
        return got

    service = Sink(read)
    limits = amqp.Limits(stream_octets=256 * 1024)
    async with (
        served(service.handle, accept={"limits": limits}, streams=memory_stream_pair()) as conn,
        conn.open_sender("stream") as sender,
        conn.open_sender("else", own_session=True) as other,
    ):
        sent = 0

        async def send() -> None:
            nonlocal sent
            async with sender.stream() as body:
                for _ in range(100):
                    await body.send_all(bytes(64 * 1024))
                    sent += 64 * 1024

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            await wait_all_tasks_blocked()
            assert sent < 1024 * 1024
            assert sender.session.engine.windows.remote_incoming_window == 0
            await other.transmit(b"gets through")
            go.set()
        assert service.got[-1] == 6_400 * 1024


async def test_streams_of_several_links_interleave() -> None:
    async with sink() as (sender, service):
        conn = sender.session.connection
        async with conn.open_sender("other") as other, trio.open_nursery() as nursery:

            async def send(link: amqp.Sender, octet: bytes) -> None:
                async with link.stream() as body:
                    for _ in range(30):
                        await body.send_all(octet * 40_000)

            nursery.start_soon(send, sender, b"a")
            nursery.start_soon(send, other, b"b")
        assert sorted(service.got) == [b"a" * 1_200_000, b"b" * 1_200_000]


async def test_other_messages_wait_until_the_stream_is_over() -> None:
    async with sink() as (sender, service):
        async with trio.open_nursery() as nursery, sender.stream() as body:
            nursery.start_soon(sender.send, b"after")
            with pytest.raises(trio.WouldBlock):
                sender.send_nowait(b"now")
            await body.send_all(b"before")
        assert service.got == [b"before", b"after"]


# -- taken back -------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", range(4))
async def test_leaving_by_an_exception_aborts_and_the_link_goes_on(blocks: int) -> None:
    async with sink() as (sender, service):
        with pytest.raises(ZeroDivisionError):
            async with sender.stream() as body:
                for _ in range(blocks):
                    await body.send_all(bytes(100_000))
                    await wait_all_tasks_blocked()
                raise ZeroDivisionError
        assert body.delivery.settled
        assert sender.unsettled == 0
        await sender.send(b"next")
        *aborted, last = service.got
        assert last == b"next"
        assert all(isinstance(one, amqp.DeliveryAbortedError) for one in aborted)
        assert isinstance(await body.delivery.outcome(), amqp.Released)


async def test_leaving_by_cancellation_aborts() -> None:
    async with sink() as (sender, service):
        with trio.CancelScope() as scope:
            async with sender.stream() as body:
                await body.send_all(b"begun")
                await wait_all_tasks_blocked()
                scope.cancel()
                await body.send_all(b"never")
        assert scope.cancelled_caught
        await sender.send(b"next")
        assert isinstance(service.got[0], amqp.DeliveryAbortedError)
        assert service.got[1] == b"next"


async def test_send_all_that_is_cancelled_aborts_and_the_stream_is_over() -> None:
    async with sending(close_timeout=0.1) as (sender, peer):
        await peer.send(flow(10, 0, incoming_window=1))
        await wait_all_tasks_blocked()
        with pytest.raises(trio.ClosedResourceError):
            async with sender.stream() as body:
                with trio.move_on_after(0.01):
                    await body.send_all(bytes(1000))
                await body.send_all(b"more")
        assert not body.delivery.state
        assert body.delivery.settled


async def test_abort_and_leaving_normally_sends_nothing_more() -> None:
    async with sink() as (sender, service):
        async with sender.stream() as body:
            await body.send_all(b"begun")
            body.abort()
        await sender.send(b"next")
        assert service.got[-1] == b"next"
        sender.stream().abort()


async def test_octets_missing_of_the_length_abort() -> None:
    async with sink() as (sender, service):
        with pytest.raises(amqp.LocalProtocolError, match="2 octets are missing"):
            async with sender.stream(5) as body:
                await body.send_all(b"abc")
        await sender.send(b"next")
        assert service.got[-1] == b"next"
        assert sender.unsettled == 0


@pytest.mark.parametrize("wait", [False, True])
async def test_aclose_ends_without_an_outcome_and_is_cancelled_into_an_abort(wait: bool) -> None:
    async with sending(close_timeout=0.1) as (sender, peer):
        await peer.send(flow(10, 0, incoming_window=2))
        await wait_all_tasks_blocked()
        async with sender.stream() as body:
            await body.send_all(b"m")
            if wait:
                await peer.send(flow(10, 0, next_incoming_id=2, incoming_window=5))
                await wait_all_tasks_blocked()
                await body.aclose()
                await body.aclose()
                assert not body.delivery.settled
            else:
                with trio.move_on_after(0.05):
                    await body.aclose()
                assert body.delivery.settled
        assert "over" in repr(body)


# -- the receiver's word ------------------------------------------------------------------------------


async def test_refusal_on_the_way_ends_the_stream() -> None:
    async def read(delivery: amqp.Delivery) -> object:
        await delivery.chunks().__anext__()
        delivery.reject("amqp:not-allowed", "enough")
        with pytest.raises(amqp.LocalProtocolError, match="discarded"):
            await delivery.chunks().__anext__()
        with pytest.raises(amqp.LocalProtocolError, match="discarded"):
            _ = delivery.message
        return "rejected"

    async with sink(read) as (sender, service):
        with pytest.raises(amqp.DeliveryRejectedError, match="enough"):
            async with sender.stream() as body:
                while True:
                    await body.send_all(bytes(100_000))
        service.read = service.join
        await sender.send(b"next")
        assert service.got == ["rejected", b"next"]


async def test_refusal_at_the_end_raises_on_leaving() -> None:
    async def read(delivery: amqp.Delivery) -> object:
        assert b"".join([chunk async for chunk in delivery.chunks()]) == b"all of it"
        delivery.release()
        return None

    async with sink(read) as (sender, _):
        with pytest.raises(amqp.DeliveryReleasedError):
            async with sender.stream() as body:
                await body.send_all(b"all of it")


async def test_accept_before_the_end_is_legal_and_reading_goes_on() -> None:
    async def read(delivery: amqp.Delivery) -> object:
        delivery.accept()
        return sum([len(chunk) async for chunk in delivery.chunks()])

    async with sink(read) as (sender, service):
        async with sender.stream() as body:
            for _ in range(100):
                await body.send_all(bytes(100_000))
            await body.aclose()
        assert isinstance(await body.delivery.outcome(), amqp.Accepted)
        await sender.send(b"")
        assert service.got == [10_000_000, 0]


# -- lost -------------------------------------------------------------------------------------------


async def test_connection_lost_in_the_middle_raises_at_both_ends() -> None:
    ours, theirs = memory_stream_pair()
    service = Sink()
    async with served(service.handle, streams=(ours, theirs)) as conn, conn.open_sender("q") as sender:
        with pytest.raises(amqp.ConnectionClosedError):
            async with sender.stream() as body:
                await body.send_all(bytes(100_000))
                await wait_all_tasks_blocked()
                await trio.aclose_forcefully(theirs)
                while True:
                    await body.send_all(bytes(100_000))
        await service.changed.wait()
        assert isinstance(service.got[0], amqp.ConnectionClosedError)


async def test_link_detached_in_the_middle_raises_in_send_all_and_aclose() -> None:
    for method in ("send_all", "aclose", "wait"):
        async with sending(close_timeout=0.1) as (sender, peer):
            with pytest.raises(amqp.LinkDetachedError):
                async with sender.stream() as body:
                    await body.send_all(b"m")
                    await peer.send(detached(0, "amqp:internal-error"))
                    await wait_all_tasks_blocked()
                    if method == "send_all":
                        await body.send_all(b"m")
                    elif method == "wait":
                        await body.wait_send_all_might_not_block()


# -- what is not possible ---------------------------------------------------------------------------


async def test_stream_raises_when_it_is_used_wrongly() -> None:
    async with sink() as (sender, _service):
        with pytest.raises(amqp.LocalProtocolError, match="length=-1"):
            sender.stream(-1)
        with pytest.raises(amqp.LocalProtocolError, match="was not entered"):
            await sender.stream().send_all(b"m")
        await sender.stream().aclose()
        with pytest.raises(amqp.LocalProtocolError, match="write the body to the stream"):
            async with sender.stream(message=amqp.Message("body")):
                raise AssertionError
        async with sender.stream(3) as body:
            with pytest.raises(amqp.LocalProtocolError, match="entered only once"):
                await body.__aenter__()
            with pytest.raises(amqp.LocalProtocolError, match="4 octets: only 3"):
                await body.send_all(b"1234")
            await body.wait_send_all_might_not_block()
            await body.send_all(b"123")
            await body.aclose()
            with pytest.raises(trio.ClosedResourceError):
                await body.send_all(b"")


async def test_stream_is_busy_while_another_task_sends() -> None:
    async with sending(close_timeout=0.1) as (sender, peer):
        await peer.send(flow(10, 0, incoming_window=1))
        await wait_all_tasks_blocked()
        async with sender.stream() as body, trio.open_nursery() as nursery:
            nursery.start_soon(body.send_all, bytes(1000))
            await wait_all_tasks_blocked()
            with pytest.raises(trio.BusyResourceError):
                await body.send_all(b"m")
            nursery.cancel_scope.cancel()
        assert body.delivery.settled


async def test_stream_larger_than_the_peer_takes_raises_before_anything_is_sent() -> None:
    async with sink(max_message_size=1000) as (sender, service):
        with pytest.raises(amqp.LocalProtocolError, match="takes 1000"):
            async with sender.stream(1000):
                raise AssertionError
        with pytest.raises(amqp.LocalProtocolError, match="takes 1000"):
            async with sender.stream() as body:
                await body.send_all(bytes(900))
                await body.send_all(bytes(900))
        await sender.send(b"next")
        assert service.got[-1] == b"next"


async def test_stream_sent_settled_has_no_outcome() -> None:
    service = Sink()
    async with (
        served(service.handle) as conn,
        conn.open_sender("q", guarantee="at-most-once") as sender,
    ):
        async with sender.stream(tag=b"t") as body:
            await body.send_all(b"m")
        assert (body.delivery.sent_settled, body.delivery.tag) == (True, b"t")
        await service.changed.wait()
        assert service.got == [b"m"]


async def test_entering_waits_for_credit_and_is_cancelled_without_a_trace() -> None:
    async with sending(credit=0, close_timeout=0.1) as (sender, peer):
        with trio.move_on_after(0.01) as scope:
            async with sender.stream():
                raise AssertionError
        assert scope.cancelled_caught
        await peer.send(flow(1, 0))
        async with sender.stream() as body:
            await body.send_all(b"m")
            await peer.send(settled(0))
            await wait_all_tasks_blocked()
        assert isinstance(body.delivery.state, amqp.Accepted)


async def test_streaming_receiver_has_a_session_of_its_own_unless_told_otherwise() -> None:
    container = amqp.Container("c")
    async with served(container.handle) as conn:
        async with conn.open_sender("q") as sender, conn.open_receiver("q", streaming=True) as receiver:
            assert receiver.session is not sender.session
            assert receiver.credit == 10
            async with sender.stream() as body:
                await body.send_all(bytes(200_000))
            delivery = await receiver.receive()
            assert sum([len(chunk) async for chunk in delivery.chunks()]) == 200_000
            delivery.accept()
        async with conn.open_receiver("q", streaming=True, own_session=False) as receiver:
            assert receiver.session is sender.session
