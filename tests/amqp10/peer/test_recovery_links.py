"""Links of connections that come back: what is attached again, what is sent again, what is lost (2.6.5, 2.6.12)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp

from .test_resume import Ledger
from .town import EVEN, URL, Still, Town, visiting

if TYPE_CHECKING:
    from trio_amqp10.amqp10.peer.connection import Connection

FORCED = amqp.ErrorInfo(condition="amqp:link:detach-forced", description="idle")


class Desk:
    """Accepts links, refuses or ends them as it is told, and remembers when they were attached.

    Attributes:
        refuse: addresses that are answered with an error, and which.
        end: addresses over which the whole session is ended, and with which error (RabbitMQ 4.0 does).
        links: our ends of what is attached, by address, newest last.
        times: when each was attached.
        got: bodies.
        answer: accept what comes.
    """

    def __init__(self) -> None:
        self.refuse: dict[str, str] = {}
        self.end: dict[str, str] = {}
        self.links: dict[str, list[Any]] = {}
        self.times: dict[str, list[float]] = {}
        self.got: list[Any] = []
        self.outbox: list[Any] = []
        self.answer = True
        self.settled = False

    async def handle(self, conn: Connection) -> None:
        async with trio.open_nursery() as nursery:
            async for link in conn.incoming_links():
                address = str(link.address)
                self.times.setdefault(address, []).append(round(trio.current_time()))
                if address in self.end:
                    error = amqp.ErrorInfo(condition=self.end[address], description=address)
                    engine: Any = link
                    await engine.engine.session.owner.aclose(error)
                elif address in self.refuse:
                    await link.refuse(self.refuse[address], "not this one")
                else:
                    nursery.start_soon(self.attend, address, link)

    async def attend(self, address: str, link: Any) -> None:
        async with link.accept() as end:
            self.links.setdefault(address, []).append(end)
            try:
                if isinstance(link, amqp.IncomingReceiver):
                    async for delivery in end:
                        self.got.append(delivery.message.body)
                        if self.answer:
                            delivery.accept()
                else:
                    while not end.closed:
                        while self.outbox and not end.closed:
                            await end.transmit(self.outbox[0], settled=self.settled)
                            del self.outbox[0]
                        await end.wait()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass

    async def detach(self, address: str, error: amqp.ErrorInfo | None = FORCED) -> None:
        await wait_all_tasks_blocked()
        await self.links[address][-1].aclose(error)
        await wait_all_tasks_blocked()


# -- one link -----------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", ["amqp:link:detach-forced", "amqp:not-found", "amqp:internal-error"])
async def test_link_that_the_peer_detaches_comes_back_alone(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, condition: str
) -> None:
    desk = Desk()
    async with (
        visiting(monkeypatch, desk.handle) as (town, conn),
        conn.open_sender("one") as one,
        conn.open_sender("two") as two,
    ):
        changes = conn.changes()
        await desk.detach("one", amqp.ErrorInfo(condition=condition))
        assert not one.closed
        await two.send("at once")
        assert len(desk.links["one"]) == 1
        await one.send("later")
    assert desk.got == ["at once", "later"]
    assert {address: len(ends) for address, ends in desk.links.items()} == {"one": 2, "two": 1}
    assert len(town.dialled) == 1
    assert (await anext(changes)).kind == "stopped"


async def test_pauses_grow_while_the_peer_refuses_the_link(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    desk = Desk()
    async with (
        visiting(monkeypatch, desk.handle) as (_, conn),
        conn.open_sender("one") as one,
    ):
        began = desk.times["one"][0]
        desk.refuse["one"] = "amqp:not-found"
        await desk.detach("one")
        await trio.sleep(13)
        assert one.address == "one"  # what was attached last, and not the refusal
        desk.refuse.clear()
        await one.send("x")
    assert [time - began for time in desk.times["one"]] == [0, 1, 3, 7, 12, 17]


async def test_pauses_grow_while_the_peer_takes_the_link_and_ends_it_at_once(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    desk = Desk()
    async with (
        visiting(monkeypatch, desk.handle) as (_, conn),
        conn.open_sender("one") as one,
    ):
        began = desk.times["one"][0]
        for _ in range(3):
            await desk.detach("one")
            await trio.sleep(2 * len(desk.links["one"]) + 0.1)
        await trio.sleep(60)
        await desk.detach("one")  # as idle links are
        await one.send("x")
    times = [time - began for time in desk.times["one"]]
    assert times[:4] == [0, 1, 3, 7]
    assert times[4] == pytest.approx(2.1 + 4.1 + 6.1 + 60 + 1, abs=1)  # the pause is short again


async def test_link_raises_what_ended_it_when_its_attempts_are_used_up(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    desk = Desk()
    desk.answer = False
    few = amqp.Backoff(initial=1, jitter=False, attempts=2)
    async with (
        visiting(monkeypatch, desk.handle, reconnect=few) as (_, conn),
        conn.open_sender("one") as one,
    ):
        delivery = await one.transmit("x")
        desk.refuse["one"] = "amqp:not-found"
        await desk.detach("one")
        with pytest.raises(amqp.LinkDetachedError, match="amqp:not-found: not this one"):
            await delivery.outcome()
        with pytest.raises(amqp.LinkDetachedError, match="amqp:not-found"):
            await one.send("y")
        assert one.closed
        assert not conn.closed


@pytest.mark.parametrize(
    "condition", ["amqp:link:stolen", "amqp:unauthorized-access", "amqp:not-allowed", "amqp:not-implemented"]
)
async def test_link_that_is_detached_with_a_final_error_stays_so(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, condition: str
) -> None:
    desk = Desk()
    desk.answer = False
    async with (
        visiting(monkeypatch, desk.handle) as (_, conn),
        conn.open_sender("one") as one,
    ):
        delivery = await one.transmit("x")
        await desk.detach("one", amqp.ErrorInfo(condition=condition))
        for call in (delivery.outcome, one.flush):
            with pytest.raises(amqp.LinkDetachedError, match=condition):
                await call()
        await trio.sleep(100)
        assert len(desk.times["one"]) == 1


async def test_link_that_is_refused_with_a_final_error_after_a_restore_is_over(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    desk = Desk()
    async with (
        visiting(monkeypatch, desk.handle) as (town, conn),
        conn.open_sender("one") as one,
        conn.open_sender("two") as two,
    ):
        desk.refuse["one"] = "amqp:unauthorized-access"
        await town.lose()
        await two.send("x")
        with pytest.raises(amqp.LinkDetachedError, match="unauthorized-access"):
            await one.send("y")


async def test_link_that_is_detached_without_an_error_has_ended(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    desk = Desk()
    async with (
        visiting(monkeypatch, desk.handle) as (_, conn),
        conn.open_receiver("one") as one,
    ):
        await desk.detach("one", None)
        assert [delivery async for delivery in one] == []


async def test_two_consumers_do_not_steal_a_link_from_each_other_for_ever(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    desk = Desk()
    stolen: list[str] = []
    opened = 0

    async def consume(conn: Connection, name: str) -> None:
        nonlocal opened
        opened += 1
        try:
            async with conn.open_receiver("one", name="the same") as receiver:
                async for _ in receiver:
                    pass
        except amqp.LinkStolenError:
            stolen.append(name)

    holders: list[Any] = []

    async def handle(conn: Connection) -> None:  # a broker that looks at names alone, across connections
        async for link in conn.incoming_links():
            opening = link.accept()
            end = await opening.__aenter__()
            holders.append(end)
            if len(holders) > 1:
                await holders[-2].detach(amqp.ErrorInfo(condition="amqp:link:stolen"))

    del desk
    async with (
        Town(monkeypatch, handle).open() as town,
        amqp.open_connection(URL, reconnect=EVEN) as a,
        amqp.open_connection(URL, reconnect=EVEN) as b,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(consume, a, "a")
        await wait_all_tasks_blocked()
        nursery.start_soon(consume, b, "b")
        await trio.sleep(300)
        assert stolen == ["a"]
        assert len(holders) == 2
        assert len(town.dialled) == 2
        nursery.cancel_scope.cancel()


# -- one session --------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", ["amqp:not-found", "amqp:not-implemented", "amqp:unauthorized-access"])
async def test_session_that_ends_over_one_address_takes_no_other_link_with_it(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, condition: str
) -> None:
    desk = Desk()
    desk.end["bad"] = condition
    async with (
        visiting(monkeypatch, desk.handle) as (town, conn),
        conn.open_sender("one") as one,
        conn.open_receiver("two") as two,
    ):
        with pytest.raises(amqp.LinkRefusedError, match=condition):
            async with conn.open_sender("bad"):
                pass
        await one.send("x")
        desk.outbox.append("y")
        desk.links["two"][-1].wake()
        assert (await two.receive()).message.body == "y"
        assert conn.recovery is not None
        assert len(conn.recovery.sessions) == 1
    assert len(town.dialled) == 1


async def test_link_that_ends_its_session_again_and_again_does_so_alone(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    desk = Desk()
    async with (
        visiting(monkeypatch, desk.handle) as (town, conn),
        conn.open_sender("one") as one,
        conn.open_sender("bad") as bad,
        conn.open_sender("three") as three,
    ):
        desk.end["bad"] = "amqp:not-found"
        await town.lose()
        await one.send(1)
        await three.send(3)
        await trio.sleep(30)
        attached = {address: len(ends) for address, ends in desk.links.items()}
        assert attached["bad"] == 1
        assert attached["one"] <= 3
        assert attached["three"] <= 3
        assert len(desk.times["bad"]) >= 4
        assert conn.recovery is not None
        desk.end.clear()
        await bad.send(2)
    assert sorted(desk.got) == [1, 2, 3]
    assert len(town.dialled) == 2


async def test_session_that_ends_with_a_final_error_takes_its_links_with_it(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    desk = Desk()
    async with (
        visiting(monkeypatch, desk.handle) as (_, conn),
        conn.open_sender("one") as one,
    ):
        await desk.links["one"][0].session.aclose(
            amqp.ErrorInfo(condition="amqp:not-allowed", description="no")
        )
        with pytest.raises(amqp.SessionEndedError, match="amqp:not-allowed: no"):
            await one.send("x")
        async with conn.open_sender("one") as again:
            await again.send("y")


async def test_links_end_with_a_session_of_the_users(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    desk = Desk()
    async with visiting(monkeypatch, desk.handle) as (town, conn):
        async with conn.open_session() as session:
            sender = await session.open_sender("one").__aenter__()
        with pytest.raises(trio.ClosedResourceError):
            await sender.send("x")
        await town.lose()
        await trio.sleep(2)
        with pytest.raises(trio.ClosedResourceError):
            await sender.send("x")
        assert len(desk.times["one"]) == 1


async def test_links_of_a_session_come_back_on_it(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    desk = Desk()
    async with (
        visiting(monkeypatch, desk.handle) as (town, conn),
        conn.open_session() as session,
        session.open_sender("one") as one,
    ):
        await town.lose()
        await one.send("x")
        assert one.session is session
        async with session.open_sender("two") as two:
            await two.send("y")


# -- receivers ----------------------------------------------------------------------------------


async def test_credit_that_was_granted_comes_back_with_the_link(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    desk = Desk()
    async with (
        visiting(monkeypatch, desk.handle) as (town, conn),
        conn.open_receiver("one", credit=0) as receiver,
    ):
        receiver.grant(3)
        desk.outbox = [1]
        (await receiver.receive()).accept()
        await town.go_down()
        receiver.grant(2)
        town.up = True
        desk.outbox = [2, 3, 4, 5, 6, 7]
        await trio.sleep(10)
        assert (receiver.buffered, receiver.credit) == (4, 0)
        assert [d.message.body for d in await receiver.receive_many(9)] == [2, 3, 4, 5]


@pytest.mark.parametrize("when", ["lost while it drains", "drains while it is lost"])
async def test_drain_leaves_no_credit_across_a_loss(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, when: str
) -> None:
    desk = Desk()
    async with (
        visiting(monkeypatch, desk.handle) as (town, conn),
        conn.open_receiver("one", credit=10) as receiver,
    ):
        await wait_all_tasks_blocked()
        if when == "drains while it is lost":
            await town.go_down()
            assert await receiver.drain() == []
        else:
            town.up = False
            conn.pump.cancel()  # before the drain can be heard
            async with trio.open_nursery() as nursery:
                nursery.start_soon(receiver.drain)
                await trio.sleep(3)
                town.up = True
        town.up = True
        desk.outbox = [1]
        await trio.sleep(10)
        assert (receiver.credit, receiver.buffered) == (0, 0)
        receiver.grant(1)
        assert (await receiver.receive()).message.body == 1


@pytest.mark.parametrize("drains", [1, 2])
async def test_credit_of_a_drain_is_not_counted_against_what_is_granted_later(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, drains: int
) -> None:
    desk = Desk()
    async with (
        visiting(monkeypatch, desk.handle) as (town, conn),
        conn.open_receiver("one", credit=0) as receiver,
    ):
        receiver.grant(5)
        await wait_all_tasks_blocked()
        town.up = False
        conn.pump.cancel()  # before the drain can be heard
        async with trio.open_nursery() as nursery:
            nursery.start_soon(receiver.use_up)
            await trio.sleep(3)
            if drains == 1:
                receiver.set_credit(3)
            else:
                nursery.start_soon(receiver.use_up)
                await wait_all_tasks_blocked()
                receiver.grant(3)
            town.up = True
        desk.outbox = [1, 2, 3, 4]
        await trio.sleep(10)
        assert (receiver.buffered, receiver.credit) == (3, 0)


async def test_what_came_at_most_once_is_kept_and_the_rest_comes_again(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    desk = Desk()
    desk.outbox = [1, 2]
    desk.settled = True
    async with (
        visiting(monkeypatch, desk.handle) as (town, conn),
        conn.open_receiver("one", guarantee="at-most-once", credit=5) as receiver,
    ):
        await wait_all_tasks_blocked()
        await town.lose()
        await trio.sleep(3)
        assert receiver.buffered == 2
        desk.outbox = [3]
        desk.links["one"][-1].wake()
        assert [(await receiver.receive()).message.body for _ in range(3)] == [1, 2, 3]


async def test_outcome_of_a_delivery_that_went_with_the_transport_is_nobodys(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    container = amqp.Container("town")
    async with (
        visiting(monkeypatch, container.handle) as (town, conn),
        conn.open_sender("q") as sender,
        conn.open_receiver("q") as receiver,
    ):
        for number in range(4):
            await sender.send(number)
        before = [await receiver.receive() for _ in range(4)]
        await town.go_down()
        before[0].accept()
        before[1].reject()
        town.up = True
        await sender.send(4)
        before[2].release()
        before[3].modify()
        with pytest.raises(amqp.LocalProtocolError, match="already given"):
            before[0].accept()
        assert not before[0].settled
        with pytest.raises(amqp.ConnectionClosedError, match="is not known"):
            await before[0].wait_settled()
        again = [await receiver.receive() for _ in range(5)]
        assert [delivery.message.body for delivery in again] == [0, 1, 2, 3, 4]
        for delivery in again:
            delivery.accept()


async def test_outcome_raises_when_the_link_does_not_come_back(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    desk = Desk()
    desk.outbox = [1]
    async with (
        visiting(monkeypatch, desk.handle) as (_, conn),
        conn.open_receiver("one") as receiver,
    ):
        delivery = await receiver.receive()
        await desk.detach("one", amqp.ErrorInfo(condition="amqp:link:stolen"))
        with pytest.raises(amqp.LocalProtocolError, match="its link is gone"):
            delivery.accept()


async def test_dynamic_node_has_another_address_after_the_loss(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async with (
        visiting(monkeypatch) as (town, conn),
        conn.open_receiver(None, source=amqp.Source(dynamic=True)) as receiver,
    ):
        lost: list[str | None] = []
        restored: list[str | None] = []
        receiver.watch_lost(lambda: lost.append(receiver.address))
        receiver.watch_restored(lambda: restored.append(receiver.address))
        first = receiver.address
        await town.lose()
        await trio.sleep(2)
        assert lost == [first]
        assert restored == [receiver.address]
        assert receiver.address not in (None, first)


# -- guarantees ---------------------------------------------------------------------------------


async def test_at_most_once_drops_what_was_under_way(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    desk = Desk()
    async with (
        visiting(monkeypatch, desk.handle) as (town, conn),
        conn.open_sender("one", guarantee="at-most-once") as sender,
    ):
        await sender.send(0)
        await wait_all_tasks_blocked()
        delivery = await sender.transmit(1)
        conn.pump.cancel()  # before it is written
        await trio.sleep(3)
        assert await delivery.outcome() is None
        await sender.send(2)
        await wait_all_tasks_blocked()
    assert desk.got == [0, 2]
    assert len(town.dialled) == 2


async def test_at_least_once_sends_again_in_order_what_has_no_outcome(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    desk = Desk()
    desk.answer = False
    large = "x" * 200_000
    async with (
        visiting(monkeypatch, desk.handle) as (town, conn),
        conn.open_sender("one") as sender,
    ):
        deliveries = [await sender.transmit(body) for body in (1, large, 3)]
        await wait_all_tasks_blocked()
        assert desk.got == [1, large, 3]
        await town.lose()
        desk.answer = True
        assert sender.unsettled == 3
        deliveries.append(await sender.transmit(4))
        for delivery in deliveries:
            assert await delivery.outcome() == amqp.Accepted()
        await sender.flush()
    assert desk.got[3:] == [1, large, 3, 4]


async def test_exactly_once_is_resumed_with_a_peer_that_kept_the_link(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    ledger = Ledger()
    ledger.decide = False
    async with (
        visiting(monkeypatch, ledger.handle) as (town, conn),
        conn.open_sender("q", guarantee="exactly-once") as sender,
    ):
        deliveries = [await sender.transmit(n) for n in range(3)]
        await town.lose()
        ledger.got[0].accept()
        await trio.sleep(3)
        ledger.got[1].accept()
        assert await deliveries[0].outcome() == amqp.Accepted()
        assert await deliveries[1].outcome() == amqp.Accepted()
        await town.lose()
        ledger.got[2].accept()
        assert await deliveries[2].outcome() == amqp.Accepted()
    assert ledger.bodies == [0, 1, 2]


async def test_exactly_once_is_in_doubt_with_a_peer_that_forgot_the_link(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    ledger = Ledger(forget=True)
    ledger.decide = False
    async with (
        visiting(monkeypatch, ledger.handle) as (town, conn),
        conn.open_sender("q", guarantee="exactly-once") as sender,
    ):
        delivery = await sender.transmit("one")
        await town.lose()
        with pytest.raises(amqp.DeliveryInDoubtError) as doubt:
            await delivery.outcome()
        assert doubt.value.message.body == "one"
        ledger.decide = True
        await sender.send("two")
    assert ledger.bodies == ["one", "two"]


async def test_exactly_once_receiver_goes_on_with_what_it_holds(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    ledger = Ledger()
    ledger.outbox = ["one", "two", "three"]
    async with (
        visiting(monkeypatch, ledger.handle) as (town, conn),
        conn.open_receiver("q", guarantee="exactly-once") as receiver,
    ):
        held = [await receiver.receive(), await receiver.receive()]
        await town.go_down()
        held[0].accept()
        town.up = True
        third = await receiver.receive()
        held[1].accept()
        third.accept()
        for delivery in (*held, third):
            await delivery.wait_settled()
        assert third.message.body == "three"
        assert [await sent.outcome() for sent in ledger.sent] == [amqp.Accepted()] * 3


async def test_link_is_over_when_another_peer_settles_weaker(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    modes = [amqp.ReceiverSettleMode.SECOND, amqp.ReceiverSettleMode.FIRST]
    got: list[Any] = []

    async def handle(conn: Connection) -> None:
        async for link in conn.incoming_links():
            incoming: Any = link
            incoming.engine.remote.rcv_settle_mode = modes.pop(0)  # which ours is to be, too
            receiver = await incoming.accept().__aenter__()
            with suppress(trio.BrokenResourceError):
                got.append((await receiver.receive()).message.body)

    async with (
        visiting(monkeypatch, handle) as (town, conn),
        conn.open_sender("q", guarantee="exactly-once") as sender,
    ):
        await sender.transmit("x")
        await town.lose()
        with pytest.raises(amqp.GuaranteeNotSupportedError, match="exactly-once"):
            await sender.send("y")
        assert sender.closed
        await wait_all_tasks_blocked()
    assert not modes
    assert got == ["x"]  # and nothing was sent again


async def test_delivery_can_be_forgotten_while_its_link_is_lost(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    desk = Desk()
    desk.answer = False
    async with (
        visiting(monkeypatch, desk.handle) as (town, conn),
        conn.open_sender("one") as sender,
    ):
        delivery = await sender.transmit("x")
        await town.go_down()
        delivery.settle()
        with pytest.raises(amqp.LocalProtocolError, match="settled already"):
            delivery.settle()
        town.up = True
        desk.answer = True
        await sender.send("y")
    assert desk.got == ["x", "y"]


# -- streams ------------------------------------------------------------------------------------


async def test_stream_that_is_cut_in_the_middle_raises_at_both_ends(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    cut: list[str] = []
    whole: list[bytes] = []

    async def handle(conn: Connection) -> None:
        async for link in conn.incoming_links():
            assert isinstance(link, amqp.IncomingReceiver)
            opening = link.accept(streaming=True)
            try:
                async with opening as receiver:
                    async for delivery in receiver:
                        whole.append(b"".join([chunk async for chunk in delivery.chunks()]))
                        delivery.accept()
            except amqp.ConnectionClosedError:
                cut.append("there")

    async with (
        visiting(monkeypatch, handle) as (town, conn),
        conn.open_sender("q") as sender,
    ):
        with pytest.raises(amqp.ConnectionClosedError, match="is not known"):
            async with sender.stream() as body:
                await body.send_all(b"x" * 1000)
                await town.lose()
                await trio.sleep(3)
                await body.send_all(b"y" * 1000)
        async with sender.stream() as body:
            await body.send_all(b"z" * 1000)
        assert not sender.unsettled
    assert cut == ["there"]
    assert whole == [b"z" * 1000]


async def test_stream_that_waits_for_room_raises_when_it_is_cut(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async def handle(conn: Connection) -> None:  # takes the link, and reads nothing
        async for link in conn.incoming_links():
            assert isinstance(link, amqp.IncomingReceiver)
            opening = link.accept(streaming=True)
            await opening.__aenter__()

    async with (
        visiting(monkeypatch, handle) as (town, conn),
        conn.open_sender("q") as sender,
        trio.open_nursery() as nursery,
    ):
        raised = trio.Event()

        async def stream() -> None:
            with pytest.raises(amqp.ConnectionClosedError):
                async with sender.stream() as body:
                    await body.send_all(bytes(50_000_000))
            raised.set()

        nursery.start_soon(stream)
        await town.go_down()
        await raised.wait()
        town.up = True


@pytest.mark.parametrize("guarantee", ["at-most-once", "at-least-once"])
async def test_reader_of_a_stream_hears_that_it_was_cut_and_the_next_one_is_whole(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, guarantee: Any
) -> None:
    rounds = 0

    async def handle(conn: Connection) -> None:
        nonlocal rounds
        async for link in conn.incoming_links():
            rounds += 1
            opening: Any = link.accept()
            sender = await opening.__aenter__()
            try:
                async with sender.stream() as body:
                    await body.send_all(b"x" * 1000)
                    if rounds == 1:
                        await trio.sleep_forever()
            except amqp.AmqpError:
                pass

    async with (
        visiting(monkeypatch, handle) as (town, conn),
        conn.open_receiver("q", streaming=True, guarantee=guarantee) as receiver,
        trio.open_nursery() as nursery,
    ):
        delivery = await receiver.receive()
        chunks = delivery.chunks()
        assert await anext(chunks) == b"x" * 1000

        async def read_on() -> None:
            with pytest.raises(amqp.ConnectionClosedError, match="is not known"):
                await anext(chunks)

        nursery.start_soon(read_on)
        await town.lose()
        again = await receiver.receive()
        assert not again.complete or again.inflow is not None  # streams still
        assert b"".join([chunk async for chunk in again.chunks()]) == b"x" * 1000
        if not again.settled:
            again.accept()
        nursery.cancel_scope.deadline = trio.current_time() + 1


# -- the other direction ------------------------------------------------------------------------


async def test_links_that_the_peer_opened_are_its_to_open_again(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    ended: list[Any] = []

    async def handle(conn: Connection) -> None:
        try:
            async with conn.open_sender("ours") as sender:
                await sender.send(len(town.conns))
                await trio.sleep_forever()
        except trio.BrokenResourceError:
            pass

    async def attend(link: Any) -> None:
        try:
            async with link.accept() as receiver:
                async for delivery in receiver:
                    delivery.accept()
                    ended.append(delivery.message.body)
        except amqp.ConnectionClosedError as gone:
            ended.append(gone)

    async with (
        visiting(monkeypatch, handle) as (town, conn),
        trio.open_nursery() as nursery,
    ):
        links = conn.incoming_links()
        nursery.start_soon(attend, await anext(links))
        await trio.sleep(1)
        await town.lose()
        nursery.start_soon(attend, await anext(links))
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    first, gone, second = ended
    assert (first, second) == (1, 2)
    assert isinstance(gone, amqp.ConnectionClosedError)


async def test_consumer_that_accepts_too_late_goes_on(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    node = Still(bodies=("a",))
    async with (
        visiting(monkeypatch, node.handle) as (town, conn),
        conn.open_receiver("source") as receiver,
        trio.open_nursery() as nursery,
    ):

        async def consume() -> None:
            async for delivery in receiver:
                await trio.sleep(3)
                delivery.accept()  # the first time it is too late to be heard

        nursery.start_soon(consume)
        await trio.sleep(0.5)
        await town.lose()
        await trio.sleep(10)
        nursery.cancel_scope.cancel()
    assert len(node.outcomes) == 2
    assert node.outcomes[1].state == amqp.Accepted()
