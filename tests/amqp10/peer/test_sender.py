"""The sending end: credit, room, outcomes, drain, order among many tasks."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair, memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.naive.peer import WINDOWS
from tests.naive.performatives import frame, parse_sections

from .helpers import STREAMS, Node, acceptor, dialled, served, stream_pair

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from tests.naive.peer import ScriptedPeer


@asynccontextmanager
async def sending(
    credit: int = 10,
    begin: dict[str, Any] | None = None,
    attach: dict[str, Any] | None = None,
    source: amqp.Source | None = None,
    **options: Any,
) -> AsyncGenerator[tuple[amqp.Sender, ScriptedPeer]]:
    """A sender of ours to a scripted receiver, which has granted so much credit."""
    async with dialled(begin=False, **options) as (conn, peer):

        async def answer() -> None:
            await peer.accept_begin(**(begin or {}))
            await peer.accept_attach(credit=credit, **(attach or {}))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            sender = await conn.open_sender("q", source=source).__aenter__()
        await wait_all_tasks_blocked()
        assert sender.credit == credit
        yield sender, peer


def flow(credit: int, count: int, **fields: Any) -> bytes:
    usual: dict[str, Any] = {**WINDOWS, "next_incoming_id": count, "handle": 0}
    usual |= {"delivery_count": count, "link_credit": credit, **fields}
    return frame("flow", **usual)


def settled(first: int, last: int | None = None, state: Any = ("accepted", {})) -> bytes:
    return frame("disposition", role=True, first=first, last=last, settled=True, state=state)


# -- outcomes -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", STREAMS)
async def test_send_returns_accepted_and_raises_any_other_outcome(kind: str) -> None:
    node = Node()
    async with served(node.handle, streams=await stream_pair(kind)) as conn, conn.open_sender("q") as sender:
        assert isinstance(await sender.send("fine"), amqp.Accepted)
        with pytest.raises(amqp.DeliveryRejectedError, match="amqp:not-allowed: not this one") as rejected:
            await sender.send("reject")
        assert rejected.value.condition == "amqp:not-allowed"
        with pytest.raises(amqp.DeliveryReleasedError):
            await sender.send("release")
        with pytest.raises(amqp.DeliveryModifiedError) as modified:
            await sender.send("modify")
        assert modified.value.outcome.delivery_failed
        assert isinstance(modified.value.delivery, amqp.OutgoingDelivery)


async def test_outcome_is_a_plain_object_after_transmit() -> None:
    node = Node()
    async with served(node.handle) as conn, conn.open_sender("q") as sender:
        bodies = ["fine", "reject", "release", "modify"]
        deliveries = [await sender.transmit(body) for body in bodies]
        outcomes = [await delivery.outcome() for delivery in deliveries]
        assert [type(one) for one in outcomes] == [amqp.Accepted, amqp.Rejected, amqp.Released, amqp.Modified]
        for delivery in deliveries:
            await delivery.wait_settled()
            assert delivery.settled
        assert sender.unsettled == 0


async def test_send_returns_none_when_it_is_sent_settled() -> None:
    node = Node()
    async with served(node.handle) as conn, conn.open_sender("q", guarantee="at-most-once") as sender:
        assert await sender.send("x") is None
        delivery = await sender.transmit("y")
        assert delivery.settled
        assert await delivery.outcome() is None
        await delivery.wait_settled()
        await sender.flush()


async def test_outcome_of_a_settlement_without_a_state_is_the_default(autojump_clock: MockClock) -> None:
    async with sending() as (sender, peer):
        delivery = await sender.transmit("x")
        await peer.send(settled(0, state=None))
        assert isinstance(await delivery.outcome(), amqp.Released)
    source = amqp.Source(default_outcome=amqp.Modified(delivery_failed=True))
    async with sending(source=source) as (sender, peer):
        delivery = await sender.transmit("x")
        await peer.send(settled(0, state=None))
        assert isinstance(await delivery.outcome(), amqp.Modified)


async def test_default_outcome_is_that_of_the_source_as_the_sender_has_it(autojump_clock: MockClock) -> None:
    wished: Any = ("source", {"address": "q", "default_outcome": ("modified", {"delivery_failed": True})})
    async with sending(attach={"source": wished}) as (sender, peer):
        delivery = await sender.transmit("x")
        await peer.send(settled(0, state=None))
        assert isinstance(await delivery.outcome(), amqp.Released)


@pytest.mark.parametrize("watched", ["before", "after"])
async def test_watched_delivery_wakes_whoever_waits_for_it(watched: str, autojump_clock: MockClock) -> None:
    called: list[str] = []
    async with sending() as (sender, peer):
        delivery = await sender.transmit("x")
        delivery.watch(lambda: called.append("first"))
        if watched == "before":
            delivery.watch(lambda: called.append("last"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(delivery.outcome)
            nursery.start_soon(delivery.wait_decided)
            await wait_all_tasks_blocked()
            if watched == "after":
                delivery.watch(lambda: called.append("last"))
                await wait_all_tasks_blocked()
            await peer.send(settled(0))
    assert "last" in called
    assert "first" not in called


async def test_outcome_waits_for_more_than_received(autojump_clock: MockClock) -> None:
    async with sending() as (sender, peer):
        delivery = await sender.transmit("x")
        received: Any = ("received", {"section_number": 0, "section_offset": 0})
        await peer.send(frame("disposition", role=True, first=0, settled=False, state=received))
        with trio.move_on_after(5):
            await delivery.outcome()
            raise AssertionError("received is no outcome")
        await peer.send(settled(0))
        assert isinstance(await delivery.outcome(), amqp.Accepted)


async def test_outcome_can_be_awaited_by_many_and_again_after_a_cancellation(
    autojump_clock: MockClock,
) -> None:
    async with sending() as (sender, peer):
        delivery = await sender.transmit("x")
        with trio.move_on_after(1):
            await delivery.outcome()
        got: list[Any] = []

        async def wait() -> None:
            got.append(await delivery.outcome())

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            await peer.send(settled(0))
        assert [type(one) for one in got] == [amqp.Accepted] * 3


async def test_unknown_outcome_is_told_of_somehow(autojump_clock: MockClock) -> None:
    async with sending() as (sender, peer):
        raised: list[Exception] = []

        async def send() -> None:
            try:
                await sender.send("x")
            except amqp.AmqpError as failure:
                raised.append(failure)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            await peer.expect("transfer")
            await peer.send(settled(0, state=(0x4242, [])))
        assert len(raised) == 1


async def test_watch_is_called_when_the_receiver_speaks_or_the_link_goes(autojump_clock: MockClock) -> None:
    async with sending() as (sender, peer):
        calls: list[str] = []
        first, second = await sender.transmit("x"), await sender.transmit("y")
        first.watch(lambda: calls.append("first"))
        second.watch(lambda: calls.append("second"))
        await peer.send(settled(0))
        await wait_all_tasks_blocked()
        assert calls == ["first"]
        await peer.send(frame("detach", handle=0, closed=True))
        await wait_all_tasks_blocked()
        assert calls == ["first", "second"]


async def test_sender_may_settle_before_the_receiver(autojump_clock: MockClock) -> None:
    async with sending() as (sender, peer):
        delivery = await sender.transmit("x")
        delivery.settle()
        assert sender.unsettled == 0
        await peer.expect("transfer")
        await peer.expect("disposition", role=False, first=0, settled=True)
        with pytest.raises(amqp.LocalProtocolError, match="settled already"):
            delivery.settle()
        await delivery.wait_settled()


async def test_exactly_once_is_settled_by_both() -> None:
    node = Node()
    async with served(node.handle) as conn, conn.open_sender("q", guarantee="exactly-once") as sender:
        for number in range(10):
            assert isinstance(await sender.send(number), amqp.Accepted)
        assert sender.unsettled == 0
    assert node.got == list(range(10))


async def test_tag_is_ours_or_the_callers(autojump_clock: MockClock) -> None:
    async with sending() as (sender, peer):
        made = await sender.transmit("x")
        given = await sender.transmit("x", tag=b"mine")
        assert given.tag == b"mine"
        assert (await peer.expect("transfer"))["delivery_tag"] == made.tag
        await peer.expect("transfer", delivery_tag=b"mine")
        with pytest.raises(amqp.LocalProtocolError, match="at most 32"):
            await sender.transmit("x", tag=b"t" * 33)
        await peer.expect_nothing(1)
        assert repr(made).startswith("<OutgoingDelivery")


async def test_message_that_cannot_be_encoded_is_not_sent(autojump_clock: MockClock) -> None:
    async with sending() as (sender, peer):
        for send in (sender.send, sender.transmit):
            with pytest.raises(amqp.LocalProtocolError):
                await send(object())
        with pytest.raises(amqp.LocalProtocolError):
            sender.send_nowait(object())
        await peer.expect_nothing(1)
        assert sender.credit == 10


async def test_message_keeps_its_format() -> None:
    got: list[tuple[int, bytes]] = []

    async def handle(conn: amqp.Connection) -> None:
        async for link in conn.incoming_links():
            assert isinstance(link, amqp.IncomingReceiver)
            async with link.accept() as receiver:
                async for delivery in receiver:
                    got.append((delivery.message.message_format, delivery.payload))
                    delivery.accept()

    async with served(handle) as conn, conn.open_sender("q") as sender:
        await sender.send(amqp.Message.from_payload(b"not sections", 7))
        sender.send_nowait(amqp.Message.from_payload(b"nor these", 8))
        await sender.transmit(amqp.Message.from_payload(b"nor those", 9))
        await sender.flush()
    assert got == [(7, b"not sections"), (8, b"nor these"), (9, b"nor those")]


# -- credit and room ------------------------------------------------------------------------


async def test_sender_waits_for_credit(autojump_clock: MockClock) -> None:
    async with sending(credit=2) as (sender, peer):
        for _ in range(2):
            await sender.transmit("x")
        with pytest.raises(trio.WouldBlock):
            sender.send_nowait("x")
        for wait in (sender.wait_sendable, lambda: sender.transmit("x")):
            with trio.move_on_after(1) as scope:
                await wait()
            assert scope.cancelled_caught
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.wait_sendable)
            await wait_all_tasks_blocked()
            await peer.send(flow(1, 2))
        sender.send_nowait("y")
        assert sender.credit == 0
        bodies = [parse_sections((await peer.expect("transfer")).payload)[0][1] for _ in range(3)]
        assert bodies == ["x", "x", "y"]
        await peer.expect_nothing(1)


async def test_cancelled_transmit_sent_nothing(autojump_clock: MockClock) -> None:
    async with sending(credit=1) as (sender, peer):
        with trio.CancelScope() as scope:
            scope.cancel()
            await sender.transmit("never")
        assert scope.cancelled_caught
        await sender.transmit("first")
        with trio.move_on_after(1):
            await sender.transmit("never")
        await peer.send(flow(5, 1))
        await wait_all_tasks_blocked()
        await sender.transmit("second")
        for body in ("first", "second"):
            assert parse_sections((await peer.expect("transfer")).payload) == [("amqp-value", body)]
        await peer.expect_nothing(1)


async def test_sender_waits_for_the_window_of_the_session(autojump_clock: MockClock) -> None:
    async with sending(credit=100, begin={"incoming_window": 3}) as (sender, peer):
        # The scripted flow that grants credit announces the usual window: shut it again.
        await peer.send(flow(100, 0, incoming_window=3))
        await wait_all_tasks_blocked()
        sent = 0

        async def send_all() -> None:
            nonlocal sent
            for number in range(10):
                await sender.transmit(number)
                sent += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_all)
            await wait_all_tasks_blocked()
            assert sent == 3
            for count in range(3, 10):
                await peer.send(flow(100 - count, count, incoming_window=1))
                await wait_all_tasks_blocked()
                assert sent == count + 1
        assert sent == 10


async def test_large_message_goes_through_a_window_of_one_and_the_smallest_frames(
    autojump_clock: MockClock,
) -> None:
    node = Node(credit=1)
    limits = amqp.Limits(incoming_window=1, max_frame_size=512)
    body = bytes(range(256)) * 400
    accept = {"limits": limits}
    async with served(node.handle, accept=accept, limits=limits) as conn, conn.open_sender("q") as sender:
        await sender.send(body)
        await sender.send("behind it")
    assert node.got == [body, "behind it"]


async def test_large_messages_of_many_links_take_turns(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    order: list[str] = []

    async def handle(conn: amqp.Connection) -> None:
        async def receive(link: Any) -> None:
            async with link.accept() as receiver:
                async for delivery in receiver:
                    order.append(link.address)
                    delivery.accept()

        async with trio.open_nursery() as nursery:
            async for link in conn.incoming_links():
                nursery.start_soon(receive, link)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor().run, theirs, handle)
        async with (
            amqp.open_connection(ours) as conn,
            conn.open_sender("large") as large,
            conn.open_sender("small") as small,
        ):
            await small.wait_sendable()
            await large.transmit(b"x" * 2_000_000)
            await small.transmit(b"y" * 100_000)
            await large.flush()
            await small.flush()
    assert order == ["small", "large"]


async def test_row_63_sender_waits_for_room_when_the_peer_does_not_read(autojump_clock: MockClock) -> None:
    ours, theirs = lockstep_stream_pair()
    limits = amqp.Limits(output_soft=10_000)
    async with sending(credit=1000, limits=limits, streams=(ours, theirs)) as (sender, peer):
        sent = 0

        async def send_all() -> None:
            nonlocal sent
            while True:
                await sender.transmit(b"x" * 1000)
                sent += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_all)
            await wait_all_tasks_blocked()
            assert 10 <= sent <= 24
            assert sender._conn.engine.write_buffer.size <= 11_100
            with pytest.raises(trio.WouldBlock):
                sender.send_nowait(b"x")
            was = sent
            await peer.expect("transfer")
            await wait_all_tasks_blocked()
            assert sent > was
            nursery.cancel_scope.cancel()


async def test_row_63_peer_that_never_reads_is_given_up(autojump_clock: MockClock) -> None:
    ours, theirs = lockstep_stream_pair()
    async with sending(credit=1000, streams=(ours, theirs)) as (sender, _):
        began = trio.current_time()
        with pytest.raises(amqp.ConnectionClosedError, match="read nothing for 30 s") as caught:
            while True:
                await sender.transmit(b"x" * 10_000)
        assert isinstance(caught.value.__cause__, TimeoutError)
        assert 30 <= trio.current_time() - began <= 32


async def test_message_beyond_what_the_receiver_takes_is_refused_here_or_there() -> None:
    node = Node()
    async with served(node.handle, accept={"limits": amqp.Limits(max_message_size=100_000)}) as conn:
        async with conn.open_sender("q") as sender:
            await sender.send(b"x" * 90_000)
            with pytest.raises((amqp.LocalProtocolError, amqp.LinkDetachedError)) as caught:
                await sender.send(b"x" * 200_000)
            if isinstance(caught.value, amqp.LinkDetachedError):
                assert caught.value.condition == "amqp:link:message-size-exceeded"
        async with conn.open_sender("q") as sender:
            await sender.send("the connection goes on")
    assert node.got == [b"x" * 90_000, "the connection goes on"]


async def test_message_of_64_mib_is_too_much_for_the_defaults_and_fine_without_a_limit() -> None:
    body = bytes(64 * 1024 * 1024)
    node = Node()
    async with served(node.handle) as conn, conn.open_sender("q") as sender:
        with pytest.raises((amqp.LocalProtocolError, amqp.LinkDetachedError)):
            await sender.send(body)
    free = amqp.Limits(max_message_size=None, partial_octets=None)
    async with served(node.handle, accept={"limits": free}) as conn, conn.open_sender("q") as sender:
        await sender.send(body)
    assert len(node.got) == 1
    assert node.got[0] == body


# -- drain ----------------------------------------------------------------------------------


async def test_drain_gives_credit_back_when_nobody_sends(autojump_clock: MockClock) -> None:
    async with sending(credit=10) as (sender, peer):
        await peer.send(flow(10, 0, drain=True))
        await peer.expect("flow", link_credit=0, delivery_count=10, drain=True)
        assert sender.credit == 0


@pytest.mark.parametrize("other", ["flush", "outcome", "aclose of another link"])
async def test_drain_gives_credit_back_when_the_tasks_wait_for_something_else(
    other: str, autojump_clock: MockClock
) -> None:
    async with sending(credit=10) as (sender, peer):
        delivery = await sender.transmit("x")
        await peer.expect("transfer")
        async with trio.open_nursery() as nursery:
            if other == "flush":
                nursery.start_soon(sender.flush)
            else:
                nursery.start_soon(delivery.outcome)
            await wait_all_tasks_blocked()
            await peer.send(flow(9, 1, drain=True))
            await peer.expect("flow", link_credit=0, delivery_count=10)
            await peer.send(settled(0))


async def test_drain_is_answered_by_those_who_wait_to_send(autojump_clock: MockClock) -> None:
    async with sending(credit=0) as (sender, peer):
        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(sender.transmit, number)
            await wait_all_tasks_blocked()
            await peer.send(flow(5, 0, drain=True))
        for _ in range(3):
            await peer.expect("transfer")
        await peer.expect("flow", link_credit=0, delivery_count=5)


async def test_drain_is_answered_when_who_waits_to_send_is_cancelled(autojump_clock: MockClock) -> None:
    async with sending(credit=0) as (sender, peer):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.transmit, "never")
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await peer.send(flow(5, 0, drain=True))
        await peer.expect("flow", link_credit=0, delivery_count=5)
        await peer.expect_nothing(1)
    async with sending(credit=5, begin={"incoming_window": 0}) as (sender, peer):
        # Credit but no window: who waits keeps the credit, and gives it back on leaving.
        await peer.send(flow(5, 0, incoming_window=0))
        await wait_all_tasks_blocked()
        with trio.move_on_after(1):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(sender.transmit, "never")
                await wait_all_tasks_blocked()
                await peer.send(flow(5, 0, incoming_window=0, drain=True))
        await peer.expect("flow", link_credit=0, delivery_count=5)


async def test_drain_of_who_sends_without_waiting_is_answered_by_give_back(autojump_clock: MockClock) -> None:
    async with sending(credit=0) as (sender, peer):
        sender.give_back()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.wait_sendable)
            await wait_all_tasks_blocked()
            await peer.send(flow(5, 0, drain=True))
        assert sender.draining
        sender.send_nowait("x")
        await peer.expect("transfer")
        sender.give_back()
        await peer.expect("flow", link_credit=0, delivery_count=5)


class AfterFirstStep(trio.abc.Instrument):
    """Calls something when a task of that name has run for the first time, and is not done."""

    def __init__(self, name: str, call: Callable[[], object]) -> None:
        self.name = name
        self.call: Callable[[], object] | None = call

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task.name.endswith(self.name) and self.call is not None:
            call, self.call = self.call, None
            call()


async def test_drain_that_comes_while_somebody_looks_for_credit_is_kept(autojump_clock: MockClock) -> None:
    async with sending(credit=5) as (sender, peer):

        def drain() -> None:
            sender._link.drain = True
            sender.wake()

        trio.lowlevel.add_instrument(AfterFirstStep("wait_sendable", drain))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.wait_sendable)
        assert sender.draining
        sender.send_nowait("x")
        await peer.expect("transfer")
        sender.give_back()
        await peer.expect("flow", link_credit=0, delivery_count=5)


# -- many tasks -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", STREAMS)
async def test_many_tasks_on_one_link_lose_nothing_and_keep_their_own_order(kind: str) -> None:
    tasks, each = 8, 50
    node = Node(credit=7)
    async with served(node.handle, streams=await stream_pair(kind)) as conn, conn.open_sender("q") as sender:

        async def work(task: int) -> None:
            for number in range(each):
                if number % 3:
                    await sender.transmit([task, number])
                else:
                    await sender.send([task, number])

        async with trio.open_nursery() as nursery:
            for task in range(tasks):
                nursery.start_soon(work, task)
        await sender.flush()
    assert len(node.got) == tasks * each
    for task in range(tasks):
        assert [number for owner, number in node.got if owner == task] == list(range(each))


async def test_flush_waits_for_all_and_can_be_cancelled(autojump_clock: MockClock) -> None:
    async with sending() as (sender, peer):
        await sender.flush()
        for _ in range(3):
            await sender.transmit("x")
        await peer.send(settled(0, 1))
        with trio.move_on_after(1) as scope:
            await sender.flush()
        assert scope.cancelled_caught
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.flush)
            nursery.start_soon(sender.flush)
            await wait_all_tasks_blocked()
            await peer.send(settled(2))


async def test_passed_deadline_is_seen_by_who_sends_without_blocking() -> None:
    node = Node(credit=100_000)
    async with served(node.handle) as conn, conn.open_sender("q", guarantee="at-most-once") as sender:
        await sender.wait_sendable()
        calls = 0
        with trio.move_on_after(0) as scope:
            while calls < 1000:
                await sender.transmit("x")
                calls += 1
        assert scope.cancelled_caught
        assert calls <= 64


async def test_senders_that_never_block_share_the_loop() -> None:
    node = Node(credit=100_000)
    async with served(node.handle) as conn, conn.open_sender("q", guarantee="at-most-once") as sender:
        await sender.wait_sendable()
        turns: list[int] = []

        async def work(task: int) -> None:
            for _ in range(640):
                await sender.transmit("x")
                if not turns or turns[-1] != task:
                    turns.append(task)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, 1)
            nursery.start_soon(work, 2)
        assert len(turns) >= 6


# -- leaving ----------------------------------------------------------------------------------


async def handled_slowly(seconds: float, got: list[Any]) -> Any:
    async def handle(conn: amqp.Connection) -> None:
        async for link in conn.incoming_links():
            assert isinstance(link, amqp.IncomingReceiver)
            async with link.accept() as receiver:
                async for delivery in receiver:
                    await trio.sleep(seconds)
                    got.append(delivery.message.body)
                    delivery.accept()

    return handle


async def left_after_transmitting(seconds: float, error: Exception | None = None) -> tuple[list[Any], float]:
    """What a receiver that takes its time has accepted when the sender's block is left, and how long that took."""
    got: list[Any] = []
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor().run, theirs, await handled_slowly(seconds, got))
        async with amqp.open_connection(ours) as conn:
            began = trio.current_time()
            try:
                async with conn.open_sender("work") as sender:
                    for number in range(4):
                        await sender.transmit(number)
                    if error is not None:
                        raise error
            except ValueError:
                pass
            took = trio.current_time() - began
            accepted = list(got)
    return accepted, took


async def test_leaving_lets_the_receiver_finish_what_it_has(autojump_clock: MockClock) -> None:
    assert await left_after_transmitting(1.0) == ([0, 1, 2, 3], 4.0)


async def test_leaving_waits_for_a_receiver_no_longer_than_the_close_timeout(
    autojump_clock: MockClock,
) -> None:
    accepted, took = await left_after_transmitting(2.0)
    assert accepted == [0, 1]
    assert took == 5.0


async def test_leaving_by_an_exception_waits_for_no_outcome(autojump_clock: MockClock) -> None:
    accepted, took = await left_after_transmitting(1.0, ValueError("no more"))
    assert accepted == []
    assert took == 0.0
