"""Links that are detached and taken up again, over connections that come and go (2.6.5, 2.6.13)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp

from .helpers import served

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio_amqp10.amqp10.peer.connection import Connection


class Ledger:
    """A service that keeps its links, and holds each message until it is told what to make of it.

    Attributes:
        got: deliveries, in the order in which they came.
        decide: accept each at once.
        outbox: what it sends to who wants to receive, over all links.
        sent: what it has sent.
    """

    def __init__(self, *, forget: bool = False) -> None:
        self.store: amqp.TerminusStore | None = None if forget else amqp.MemoryTerminusStore()
        self.got: list[amqp.Delivery] = []
        self.decide = True
        self.outbox: list[Any] = []
        self.sent: list[amqp.OutgoingDelivery] = []

    @property
    def bodies(self) -> list[Any]:
        return [delivery.message.body for delivery in self.got]

    async def handle(self, conn: Connection) -> None:
        async with trio.open_nursery() as nursery:
            async for link in conn.incoming_links():
                if isinstance(link, amqp.IncomingReceiver):
                    nursery.start_soon(self._receive, link)
                else:
                    nursery.start_soon(self._send, link)

    async def _receive(self, link: amqp.IncomingReceiver) -> None:
        receiver = await link.accept(credit=10, store=self.store).__aenter__()
        try:
            async for delivery in receiver:
                self.got.append(delivery)
                if self.decide:
                    delivery.accept()
        except amqp.AmqpError:
            pass

    async def _send(self, link: amqp.IncomingSender) -> None:
        sender = await link.accept(store=self.store).__aenter__()
        try:
            while self.outbox:
                self.sent.append(await sender.transmit(self.outbox[0]))
                del self.outbox[0]
        except amqp.AmqpError:
            pass


@asynccontextmanager
async def connected(ledger: Ledger, limits: amqp.Limits | None = None) -> AsyncGenerator[Connection]:
    """A connection of the program to the service."""
    limits = limits or amqp.Limits()
    async with served(
        ledger.handle, accept={"limits": limits}, container_id="program", limits=limits
    ) as conn:
        yield conn


async def cut(conn: Connection) -> None:
    """The transport goes, after all that was said has been read."""
    await wait_all_tasks_blocked()
    conn.pump.cancel()
    await conn.pump.finished.wait()
    await wait_all_tasks_blocked()


async def test_sender_takes_up_its_link_after_a_detach() -> None:
    ledger = Ledger()
    ledger.decide = False
    async with connected(ledger) as conn:
        opening = conn.open_sender(
            "q", guarantee="exactly-once", expiry_policy=amqp.ExpiryPolicy.CONNECTION_CLOSE
        )
        async with opening as sender:
            delivery = await sender.transmit("one")
            await wait_all_tasks_blocked()
            await sender.detach()
            with pytest.raises(trio.ClosedResourceError):
                await delivery.outcome()
            ledger.got[0].accept()  # nobody hears it yet
            await sender.resume()
            assert await delivery.outcome() == amqp.Accepted()
            assert not sender.unsettled
            ledger.decide = True
            await sender.send("two")
    assert ledger.bodies == ["one", "two"]


async def test_sender_takes_up_its_link_on_another_connection() -> None:
    ledger = Ledger()
    ledger.decide = False
    options: dict[str, Any] = {"name": "x", "store": amqp.MemoryTerminusStore(), "guarantee": "exactly-once"}
    async with connected(ledger) as conn:
        sender = await conn.open_sender("q", **options).__aenter__()
        deliveries = [await sender.transmit(body) for body in ("one", "two")]
        await cut(conn)
    ledger.got[0].accept()
    async with connected(ledger) as conn, conn.open_sender("q", **options) as again:
        assert again.resumed == deliveries[1:] or again.resumed == deliveries
        assert await deliveries[0].outcome() == amqp.Accepted()
        ledger.got[1].reject("amqp:not-allowed")
        outcome = await deliveries[1].outcome()
        assert isinstance(outcome, amqp.Rejected)
        assert not again.resumed
    assert ledger.bodies == ["one", "two"]
    assert len(options["store"]) == 0  # closed for good


async def test_block_that_a_lost_connection_ends_leaves_its_link_in_the_store() -> None:
    ledger = Ledger()
    ledger.decide = False
    options: dict[str, Any] = {"name": "x", "store": amqp.MemoryTerminusStore(), "guarantee": "exactly-once"}
    async with connected(ledger) as conn:
        with pytest.raises(amqp.ConnectionClosedError):
            async with conn.open_sender("q", **options) as sender:
                delivery = await sender.transmit("one")
                await cut(conn)
                await delivery.outcome()
    assert len(options["store"]) == 1
    async with connected(ledger) as conn, conn.open_sender("q", **options) as again:
        assert again.resumed == [delivery]
        ledger.got[0].accept()
        assert await delivery.outcome() == amqp.Accepted()
    assert ledger.bodies == ["one"]
    assert len(options["store"]) == 0  # closed, and the peer knows


async def test_receiver_takes_up_its_link_with_what_it_holds() -> None:
    ledger = Ledger()
    ledger.outbox = ["one", "two", "three"]
    options: dict[str, Any] = {"name": "x", "store": amqp.MemoryTerminusStore(), "guarantee": "exactly-once"}
    async with connected(ledger) as conn:
        receiver = await conn.open_receiver("q", credit=3, **options).__aenter__()
        held = await receiver.receive()
        done = await receiver.receive()
        await cut(conn)
    done.accept()
    async with connected(ledger) as conn, conn.open_receiver("q", **options) as again:
        third = await again.receive()
        assert third.message.body == "three"
        held.accept()
        third.accept()
        for delivery in (held, done, third):
            await delivery.wait_settled()
        assert [await sent.outcome() for sent in ledger.sent] == [amqp.Accepted()] * 3
        assert not again.buffered


async def test_receiver_without_credit_gets_what_is_to_be_resumed() -> None:
    ledger = Ledger()
    ledger.outbox = ["one"]
    options: dict[str, Any] = {"name": "x", "store": amqp.MemoryTerminusStore(), "guarantee": "exactly-once"}
    async with connected(ledger) as conn:
        receiver = await conn.open_receiver("q", credit=0, **options).__aenter__()
        held = await receiver.receive()
        await cut(conn)
    async with connected(ledger) as conn, conn.open_receiver("q", credit=0, **options) as again:
        held.accept()
        await held.wait_settled()
        assert again.credit == 0


async def test_outcome_is_in_doubt_when_the_peer_forgot_the_link() -> None:
    ledger = Ledger(forget=True)
    ledger.decide = False
    options: dict[str, Any] = {"name": "x", "store": amqp.MemoryTerminusStore(), "guarantee": "exactly-once"}
    async with connected(ledger) as conn:
        sender = await conn.open_sender("q", **options).__aenter__()
        delivery = await sender.transmit("one", tag=b"t")
        await cut(conn)
    async with connected(ledger) as conn, conn.open_sender("q", **options):
        with pytest.raises(amqp.DeliveryInDoubtError, match=r"delivery b't' is in doubt") as doubt:
            await delivery.outcome()
        assert doubt.value.message.body == "one"
        assert doubt.value.delivery is delivery
    assert ledger.bodies == ["one"]


async def test_messages_are_sent_again_at_least_once_when_the_peer_forgot_the_link() -> None:
    ledger = Ledger(forget=True)
    ledger.decide = False
    options: dict[str, Any] = {"name": "x", "store": amqp.MemoryTerminusStore()}
    async with connected(ledger) as conn:
        sender = await conn.open_sender("q", **options).__aenter__()
        delivery = await sender.transmit("one")
        await cut(conn)
    ledger.decide = True
    async with connected(ledger) as conn, conn.open_sender("q", **options):
        assert await delivery.outcome() == amqp.Accepted()
    assert ledger.bodies == ["one", "one"]


async def test_maps_that_fit_no_frame_are_worked_off_in_turns() -> None:
    ledger = Ledger()
    ledger.decide = False
    store = amqp.MemoryTerminusStore()
    options: dict[str, Any] = {"name": "x", "store": store, "guarantee": "exactly-once"}
    count = 60
    small = amqp.Limits(max_frame_size=512)
    async with connected(ledger, small) as conn:
        sender = await conn.open_sender("q", **options).__aenter__()
        tags = [b"a tag that is long: %010d" % n for n in range(count)]
        deliveries = [await sender.transmit(n, tag=tag) for n, tag in enumerate(tags)]
        await cut(conn)
    for delivery in ledger.got:
        delivery.accept()
    ledger.decide = True
    async with connected(ledger, small) as conn, conn.open_sender("q", **options) as again:
        for sent in deliveries:
            assert await sent.outcome() == amqp.Accepted()
        await again.send("new")
        assert not again.unsettled
    assert ledger.bodies == [*range(count), "new"]


async def test_maps_that_fit_no_frame_are_worked_off_again_the_next_time() -> None:
    ledger = Ledger()
    options: dict[str, Any] = {"name": "x", "store": amqp.MemoryTerminusStore(), "guarantee": "exactly-once"}
    small = amqp.Limits(max_frame_size=512)
    bodies = range(60)
    sender: amqp.Sender | None = None
    for turn in range(3):
        ledger.decide = False
        async with connected(ledger, small) as conn:
            if sender is None:
                sender = await conn.open_sender("q", **options).__aenter__()
            else:
                await sender.resume(conn)
                await sender.flush()
            tags = [b"a tag that is long: %010d" % (n + turn * len(bodies)) for n in bodies]
            for n, tag in zip(bodies, tags, strict=True):
                await sender.transmit(n, tag=tag)
            await cut(conn)
        for delivery in ledger.got[turn * len(bodies) :]:
            delivery.accept()
    assert ledger.bodies == [*bodies] * 3


async def test_resume_says_why_not() -> None:
    ledger = Ledger()
    async with connected(ledger) as conn:
        async with conn.open_sender("q") as plain:
            await plain.detach()
            with pytest.raises(amqp.LocalProtocolError, match="cannot be resumed"):
                await plain.resume()
        async with conn.open_sender("q", expiry_timeout=5) as sender:
            with pytest.raises(amqp.LocalProtocolError, match="is attached: detach it first"):
                await sender.resume()
        with pytest.raises(amqp.LocalProtocolError, match="cannot be resumed"):
            await sender.resume()
        with pytest.raises(amqp.LocalProtocolError, match="needs a name"):
            conn.open_sender("q", store=amqp.MemoryTerminusStore())
        with pytest.raises(amqp.LocalProtocolError, match="expiry_timeout=-1"):
            conn.open_sender("q", expiry_timeout=-1)


async def test_attach_asks_for_what_the_program_wants_kept() -> None:
    ledger = Ledger()
    async with connected(ledger) as conn:
        opening = conn.open_receiver(
            "q", durable=True, expiry_policy=amqp.ExpiryPolicy.NEVER, expiry_timeout=1.5
        )
        async with opening as receiver:
            source = receiver.remote.source
            assert source is not None
            assert source.durable == amqp.TerminusDurability.UNSETTLED_STATE
            assert (source.expiry_policy, source.timeout) == ("never", 2)


async def test_link_is_resumed_on_the_connection_that_is_named() -> None:
    ledger = Ledger()
    async with connected(ledger) as first, connected(ledger) as second:
        sender = await first.open_sender("q", expiry_timeout=5).__aenter__()
        await sender.detach()
        await sender.resume(second)
        assert sender.session.connection is second
        assert sender
        assert second
