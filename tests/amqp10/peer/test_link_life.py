"""The life of a link: what each call raises in each state, and what a loss or a cancellation in each state leads to (2.6.3 to 2.6.6)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.link_lifecycle import (
    AWAITED,
    CARRIED,
    ENDED,
    NEW,
    PHASE_CHANGES,
    LinkPhase,
    PhaseChange,
)

from .test_recovery_links import FORCED, Desk
from .town import Town, visiting

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from trio_amqp10.amqp10.peer.connection import Connection

FEW = amqp.Backoff(initial=1, factor=2, maximum=5, jitter=False, attempts=2)
FINAL = amqp.ErrorInfo(condition="amqp:not-allowed", description="never")


class Bureau(Desk):
    """A desk that leaves some attaches unanswered, while it has them in ``mute``."""

    def __init__(self) -> None:
        super().__init__()
        self.mute: set[str] = set()
        self.unanswered: list[Any] = []

    async def attend(self, address: str, link: Any) -> None:
        if address in self.mute:
            self.unanswered.append(link)
        else:
            await super().attend(address, link)


class Scene:
    """A link in one state.

    Attributes:
        town, conn, desk: where.
        sender: the link, once it was opened.
        results: what a task that opens it, or sends on it, came to.
    """

    def __init__(self, town: Town, conn: Connection, desk: Bureau, nursery: trio.Nursery) -> None:
        self.town, self.conn, self.desk = town, conn, desk
        self.sender: Any = None
        self.results: list[Any] = []
        self._nursery = nursery
        self.scope = trio.CancelScope()

    def begin(self, call: Callable[[], Awaitable[Any]]) -> None:
        async def run() -> None:
            with self.scope:
                try:
                    self.results.append(await call())
                except (amqp.AmqpError, trio.ClosedResourceError) as failure:
                    self.results.append(failure)

        self._nursery.start_soon(run)

    async def open(self) -> str:
        self.sender = await self.conn.open_sender("one").__aenter__()
        return "opened"

    async def send(self) -> str:
        await self.sender.send("x")
        return "sent"

    @property
    def links(self) -> int:
        """How often the peer saw an attach."""
        return len(self.desk.times.get("one", ()))


@asynccontextmanager
async def scene(monkeypatch: pytest.MonkeyPatch, state: str, **options: Any) -> AsyncGenerator[Scene]:
    """A link in this state, with a task that waits for it: to be opened, or to send."""
    desk = Bureau()
    async with visiting(monkeypatch, desk.handle, **options) as (town, conn), trio.open_nursery() as nursery:
        there = Scene(town, conn, desk, nursery)
        if state in ("opening", "reopening"):
            desk.mute.add("one")
            there.begin(there.open)
            await wait_all_tasks_blocked()
            if state == "reopening":
                await town.lose()
        else:
            await there.open()
            if state == "returning":
                desk.mute.add("one")
            if state in ("recovering", "returning"):
                await desk.detach("one", FORCED)
            if state == "returning":
                await trio.sleep(1.5)
            if state == "attached":
                desk.answer = False
            there.begin(there.send)
        await wait_all_tasks_blocked()
        assert not there.results
        yield there
        desk.mute.clear()
        desk.answer = True
        nursery.cancel_scope.cancel()


ALIVE = ["opening", "reopening", "attached", "recovering", "returning"]


@pytest.mark.parametrize("state", ALIVE)
async def test_link_is_there_again_when_its_transport_is_lost_in_any_state(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, state: str
) -> None:
    async with scene(monkeypatch, state) as there:
        there.desk.mute.clear()
        there.desk.answer = True
        if state == "reopening":
            assert there.links == 1
            await trio.sleep(3)
        else:
            await there.town.lose()
            await trio.sleep(10)
        assert there.results in (["opened"], ["sent"])
        assert not there.sender.closed
        assert there.sender.state == "ATTACHED"
        await there.send()


@pytest.mark.parametrize("state", ALIVE)
async def test_call_that_is_cancelled_in_any_state_leaves_the_link_as_it_is(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, state: str
) -> None:
    async with scene(monkeypatch, state) as there:
        there.scope.cancel()
        await wait_all_tasks_blocked()
        assert not there.results
        there.desk.mute.clear()
        there.desk.answer = True
        if state in ("opening", "reopening"):  # what was to be opened is not wanted any more
            await there.town.lose()
            await trio.sleep(10)
            assert there.sender is None
            assert there.links <= 2
            await there.open()
        elif state == "returning":
            await there.town.lose()
        await trio.sleep(10)
        await there.send()
        sender: Any = there.sender
        assert sender.state == "ATTACHED"


@pytest.mark.parametrize("state", ALIVE)
async def test_waiting_call_raises_in_any_state_when_the_connection_does_not_come_back(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, state: str
) -> None:
    async with scene(monkeypatch, state, reconnect=FEW) as there:
        if state == "reopening":
            there.town.up = False
        else:
            await there.town.go_down()
        await trio.sleep(20)
        [failure] = there.results
        assert isinstance(failure, amqp.ConnectionClosedError)
        assert there.sender is None or there.sender.closed


@pytest.mark.parametrize("state", ALIVE)
async def test_waiting_call_raises_in_any_state_when_the_connection_is_closed_here(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, state: str
) -> None:
    async with scene(monkeypatch, state) as there:
        await there.conn.aclose()
        await wait_all_tasks_blocked()
        [failure] = there.results
        assert isinstance(failure, trio.ClosedResourceError)
        assert there.sender is None or there.sender.closed


@pytest.mark.parametrize("state", ["attached", "recovering", "returning"])
@pytest.mark.parametrize("way", ["aclose", "detach"])
async def test_waiting_call_raises_in_any_state_when_the_link_is_closed_here(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, state: str, way: str
) -> None:
    async with scene(monkeypatch, state) as there:
        await getattr(there.sender, way)()
        await wait_all_tasks_blocked()
        [failure] = there.results
        assert isinstance(failure, trio.ClosedResourceError)
        assert there.sender.closed
        links = there.links
        await there.town.lose()
        await trio.sleep(20)
        assert there.links == links  # it does not come back


@pytest.mark.parametrize("state", ["attached", "recovering", "returning"])
async def test_waiting_call_raises_in_any_state_when_the_session_is_closed_here(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, state: str
) -> None:
    async with scene(monkeypatch, state) as there:
        await there.sender.session.aclose()
        there.sender.wake()
        await wait_all_tasks_blocked()
        [failure] = there.results
        assert isinstance(failure, trio.ClosedResourceError)
        assert there.sender.closed


@pytest.mark.parametrize("state", ["opening", "attached", "returning"])
@pytest.mark.parametrize("error", [None, FINAL])
async def test_link_is_over_in_any_state_when_the_peer_ends_it_for_good(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, state: str, error: amqp.ErrorInfo | None
) -> None:
    async with scene(monkeypatch, state) as there:
        if state == "attached":
            await there.desk.detach("one", error)
        else:
            link = there.desk.unanswered[-1]
            if error is None:
                end = await link.accept().__aenter__()
                end.abandon()  # attached and detached in one go
            else:
                await link.refuse(error)
        await wait_all_tasks_blocked()
        [failure] = there.results
        if state == "opening" and error is None:
            assert failure == "opened"
            assert there.sender.closed
        elif state == "opening":
            assert isinstance(failure, amqp.LinkRefusedError)
        else:
            assert type(failure) is amqp.LinkDetachedError or error is not None
            assert isinstance(failure, amqp.LinkDetachedError)
            assert there.sender.closed
            for _ in range(2):  # and so is every call from now on
                with pytest.raises(amqp.LinkDetachedError) as again:
                    await there.send()
                assert again.value.error == failure.error == error
        links = there.links
        await there.town.lose()
        await trio.sleep(20)
        assert there.links == links


@pytest.mark.parametrize("state", ["recovering", "returning"])
async def test_link_can_be_left_in_any_state_by_its_block(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, state: str
) -> None:
    desk = Bureau()
    async with visiting(monkeypatch, desk.handle) as (_, conn):
        async with conn.open_receiver("one") as receiver:
            if state == "returning":
                desk.mute.add("one")
            await desk.detach("one", FORCED)
            if state == "returning":
                await trio.sleep(1.5)
                desk.mute.clear()
        assert receiver.closed
        with pytest.raises(trio.ClosedResourceError):
            await receiver.receive()
        assert [each async for each in receiver] == []


async def test_link_that_is_resumed_is_open_again_and_nothing_of_before_ends_it(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    desk = Bureau()
    async with visiting(monkeypatch, desk.handle, reconnect=None) as (_, conn):
        store = amqp.MemoryTerminusStore()
        async with conn.open_sender("one", name="x", store=store) as sender:
            for cancelled in (False, True):
                await sender.detach()
                with pytest.raises(trio.ClosedResourceError):
                    await sender.send("x")
                if cancelled:  # the peer answers the attach and the detach that follows it later, in one go
                    desk.mute.add("one")
                    with trio.move_on_after(1):
                        await sender.resume()
                    desk.mute.clear()
                assert sender.closed
                await sender.resume()
                assert not sender.closed
                with pytest.raises(amqp.LocalProtocolError, match="is attached: detach it first"):
                    await sender.resume()
                await sender.send(cancelled)
            await sender.detach()
            desk.refuse["one"] = "amqp:not-found"
            with pytest.raises(amqp.LinkDetachedError):
                await sender.resume()
            with pytest.raises(amqp.LocalProtocolError, match="cannot be resumed"):
                await sender.resume()
    assert desk.got == [False, True]


def test_table_has_every_state_in_one_class_and_leads_to_each() -> None:
    assert set(PHASE_CHANGES) == set(LinkPhase) == CARRIED | AWAITED | ENDED
    assert not CARRIED & AWAITED
    assert NEW < CARRIED | AWAITED
    assert {to for row in PHASE_CHANGES.values() for to in row.values()} == set(LinkPhase)
    for state in CARRIED | AWAITED:
        assert {
            PhaseChange.CLOSE,
            PhaseChange.DETACH,
            PhaseChange.STOP_RECOVERY,
            PhaseChange.LOSE,
        } < PHASE_CHANGES[state].keys()
    for state in ENDED:  # nothing but the program brings back what is over
        assert {to for to in PHASE_CHANGES[state].values() if to not in ENDED} <= {LinkPhase.RETURNING}
