"""Connections that come back: dialling, giving up, and what happens to those who wait (2.4)."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.lowlevel
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.naive.peer import ScriptedPeer
from tests.naive.performatives import frame

from .helpers import idle
from .test_cancellation import CancelAtStep
from .town import EVEN, URL, Still, Town, visiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.peer.connection import Connection

URLS = ["amqp://127.0.0.1:1", "amqp://127.0.0.1:2", "amqp://127.0.0.1:3"]


def closing(condition: str | None, text: str = "not now") -> Any:
    """A handler that closes every connection at once."""

    async def handle(conn: Connection) -> None:
        await conn.aclose(
            None if condition is None else amqp.ErrorInfo(condition=condition, description=text)
        )

    return handle


async def silent(stream: trio.abc.Stream) -> None:
    """A peer that takes the transport, and says nothing."""
    await trio.sleep_forever()


# -- dialling -----------------------------------------------------------------------------------


async def test_sends_wait_until_the_peer_is_back(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async with (
        visiting(monkeypatch) as (town, conn),
        conn.open_sender("q") as sender,
        conn.open_receiver("q") as receiver,
    ):
        await sender.send("one")
        assert (await receiver.receive()).message.body == "one"
        town.up = False
        await town.lose()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.send, "two")
            await trio.sleep(10)
            assert conn.closed is False
            assert sender.closed is False
            town.up = True
        assert (await receiver.receive()).message.body == "one"  # which it had not settled
        second = await receiver.receive()
        assert second.message.body == "two"
        second.accept()
    assert town.times == [0, 1, 3, 7, 12]


async def test_first_dial_goes_through_the_list_and_then_waits(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async with Town(monkeypatch, idle).open() as town, trio.open_nursery() as nursery:
        town.up = False

        async def come_up() -> None:
            await trio.sleep(2)
            town.closed = set(URLS[:2])
            town.up = True

        nursery.start_soon(come_up)
        async with amqp.open_connection(URLS, reconnect=EVEN):
            pass
    ports = [(time, url[-1]) for time, url in town.dialled]
    assert ports == [(0, "1"), (0, "2"), (0, "3"), (1, "1"), (1, "2"), (1, "3"), (3, "1"), (3, "2"), (3, "3")]


async def test_first_dial_raises_when_its_attempts_are_used_up(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async with Town(monkeypatch).open() as town:
        town.up = False
        few = amqp.Backoff(initial=1, factor=2, maximum=5, jitter=False, attempts=2)
        with pytest.raises(OSError, match="nobody there"):
            async with amqp.open_connection(URL, reconnect=few):
                pass
    assert town.times == [0, 1, 3]


async def test_changes_report_the_attempts_of_the_first_dial(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with Town(monkeypatch, idle).open() as town, trio.open_nursery() as nursery:
        town.up = False
        dialling = amqp.open_connection(URL, reconnect=EVEN)
        changes = dialling.changes()
        kinds: list[str] = []

        async def watch() -> None:
            async for change in changes:
                kinds.append(change.kind)
                town.up = len(kinds) >= 3

        nursery.start_soon(watch)
        async with dialling:
            await wait_all_tasks_blocked()
    assert kinds == ["failed", "failed", "failed", "restored", "stopped"]
    warned = [each for each in caplog.messages if each.startswith("dialling has failed")]
    assert len(warned) == 2  # the first time and the second


async def test_changes_end_when_the_first_dial_gives_up(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async with Town(monkeypatch, idle).open() as town:
        town.up = False
        dialling = amqp.open_connection(URL, reconnect=amqp.Backoff(give_up_after=60))
        changes = dialling.changes()
        with pytest.raises(OSError, match="nobody there"), trio.fail_after(61):
            await dialling.__aenter__()
        assert [change.kind async for change in changes] == ["failed", "stopped"]
        with pytest.raises(amqp.LocalProtocolError, match="reconnect=True"):
            amqp.open_connection(URL).changes()


async def test_changes_report_failed_attempts_where_asked_for(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async with visiting(monkeypatch) as (town, conn):
        every, few = conn.changes(attempts=True), conn.changes()
        town.up = False
        await town.lose()
        await trio.sleep(10)
        town.up = True
        await trio.sleep(10)
        assert [(await every.__anext__()).kind for _ in range(3)] == ["lost", "failed", "restored"]
        assert [(await few.__anext__()).kind for _ in range(2)] == ["lost", "restored"]


async def test_loss_leads_to_the_next_url_of_the_list(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async with (
        Town(monkeypatch, idle).open() as town,
        amqp.open_connection(URLS, reconnect=EVEN) as conn,
    ):
        changes = conn.changes()
        town.closed = {URLS[1]}
        await town.lose()
        kinds = [await anext(changes), await anext(changes)]
        assert [change.kind for change in kinds] == ["lost", "restored"]
        assert kinds[1].url == URLS[2]
        assert isinstance(kinds[0].reason, amqp.ConnectionClosedError)
        assert not conn.closed
    assert [url[-1] for _, url in town.dialled] == ["1", "2", "3"]
    assert (await anext(changes)).kind == "stopped"
    with pytest.raises(StopAsyncIteration):
        await anext(changes)


async def test_pause_is_short_again_after_an_attach_was_answered(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async with (
        visiting(monkeypatch, Still().handle) as (town, conn),
        conn.open_sender("sink") as sender,
    ):
        await town.go_down()
        await trio.sleep(4)
        town.up = True
        await sender.send("x")
        await town.lose()
        await sender.send("x")
    assert town.times == [0, 1, 3, 7, 8]


async def test_pauses_grow_on_when_a_peer_opens_and_closes_at_once(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async with visiting(monkeypatch, closing(None)) as (town, conn):
        await trio.sleep(16)
        assert not conn.closed
        town.handle = idle
        await trio.sleep(10)
        await town.lose()  # and it has lasted
        await trio.sleep(1.5)
    assert town.times == [0, 1, 3, 7, 12, 17, 27]


async def test_pauses_grow_when_a_peer_does_not_speak_amqp(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async def web(stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 503 Service Unavailable\r\n\r\n")

    async with Town(monkeypatch, idle).open() as town, trio.open_nursery() as nursery:
        town.answer = web

        async def repair() -> None:
            await trio.sleep(2)
            town.answer = None

        nursery.start_soon(repair)
        async with amqp.open_connection(URL, reconnect=EVEN) as conn:
            town.answer = web
            await town.lose()
            await trio.sleep(2)
            town.answer = None
            await trio.sleep(2)
            assert conn.recovery is not None
            assert not conn.recovery.down
        town.answer = web
        with pytest.raises(amqp.RemoteProtocolError):
            async with amqp.open_connection(URL):
                pass
    assert len(town.dialled) == 6


async def test_peers_that_are_silent_are_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async with (
        Town(monkeypatch, Still().handle).open() as town,
        amqp.open_connection(URLS, reconnect=EVEN) as conn,
        conn.open_sender("sink") as sender,
    ):
        town.answer = silent
        await town.lose()
        await trio.sleep(2)
        town.answer = None
        await sender.send("x")
    assert [url[-1] for _, url in town.dialled] == ["1", "2", "3"]


# -- errors that are final ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "condition",
    ["amqp:unauthorized-access", "amqp:not-allowed", "amqp:not-implemented", "amqp:invalid-field"],
)
async def test_close_with_a_final_error_is_not_answered_by_dialling_again(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, condition: str
) -> None:
    async with Town(monkeypatch, idle).open() as town:
        with pytest.raises(amqp.ConnectionClosedError, match=condition):
            async with amqp.open_connection(URL, reconnect=EVEN) as conn:
                changes = conn.changes()
                await wait_all_tasks_blocked()
                await town.conns[0].aclose(amqp.ErrorInfo(condition=condition, description="no"))
                change = await anext(changes)
                assert change.kind == "stopped"
                assert isinstance(change.reason, amqp.ConnectionClosedError)
                assert conn.closed
                with pytest.raises(amqp.ConnectionClosedError):
                    async with conn.open_session():
                        pass
                await conn.wait_closed()
    assert town.times == [0]


@pytest.mark.parametrize("condition", ["amqp:connection:forced", "amqp:resource-limit-exceeded", None])
async def test_close_with_an_error_that_may_pass_is(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, condition: str | None
) -> None:
    async with (
        visiting(monkeypatch, Still().handle) as (town, conn),
        conn.open_sender("sink") as sender,
    ):
        error = None if condition is None else amqp.ErrorInfo(condition=condition)
        await town.conns[0].aclose(error)
        await sender.send("x")
    assert town.times == [0, 1]


async def test_first_dial_raises_at_once_when_the_peer_closes_with_a_final_error(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async def refuse(stream: trio.abc.Stream) -> None:
        peer = ScriptedPeer(stream)
        await peer.accept_anonymous()
        await peer.expect_header("amqp")
        error = ("error", {"condition": "amqp:not-allowed", "description": "not you"})
        await peer.send(b"AMQP\0\1\0\0", frame("open", container_id="p"), frame("close", error=error))
        await trio.sleep(1)
        await peer.aclose()

    async with Town(monkeypatch).open() as town:
        town.answer = refuse
        with pytest.raises(amqp.ConnectionClosedError, match="not you"):
            async with amqp.open_connection(URLS, reconnect=EVEN) as conn:
                await conn.wait_closed()
    assert len(town.dialled) == 1


async def test_failed_authentication_is_never_tried_again(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    url = "amqp://guest:right@127.0.0.1:1"
    users = amqp.sasl.Server(users={"guest": "right"})
    async with Town(monkeypatch, idle, sasl=users).open() as town:
        with pytest.raises(amqp.SecurityError):
            async with amqp.open_connection(url, reconnect=EVEN) as conn:
                town.options["sasl"] = amqp.sasl.Server(users={"guest": "changed"})
                await town.lose()
                await conn.wait_closed()
        with pytest.raises(amqp.SecurityError):
            async with amqp.open_connection([url, *URLS], reconnect=EVEN):
                pass
    assert len(town.dialled) == 3


async def test_everybody_hears_that_it_was_given_up(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    few = amqp.Backoff(initial=1, factor=2, maximum=5, jitter=False, attempts=3)
    heard: list[str] = []

    async def hear(name: str, call: Callable[[], Any]) -> None:
        with pytest.raises(amqp.ConnectionClosedError, match=r"3 attempts .* failed: nobody there") as gone:
            await call()
        assert isinstance(gone.value.__cause__, OSError)
        heard.append(name)

    async def opens() -> None:
        async with conn.open_sender("sink"):
            pass

    async with (
        visiting(monkeypatch, Still().handle, reconnect=few) as (town, conn),
        conn.open_sender("sink") as sender,
        conn.open_receiver("source") as receiver,
    ):
        delivery = await sender.transmit("ignore")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hear, "wait_closed", conn.wait_closed)
            nursery.start_soon(hear, "outcome", delivery.outcome)
            nursery.start_soon(hear, "settled", delivery.wait_settled)
            nursery.start_soon(hear, "flush", sender.flush)
            nursery.start_soon(hear, "receive", receiver.receive)
            nursery.start_soon(hear, "iterate", receiver.__anext__)
            await town.go_down()
            nursery.start_soon(hear, "send", lambda: sender.send("x"))
            nursery.start_soon(hear, "open", opens)
            nursery.start_soon(hear, "incoming", conn.incoming_links().__anext__)
            nursery.start_soon(hear, "session", lambda: conn.open_session().__aenter__())
    assert len(heard) == 10
    assert town.times == [0, 1, 3, 7]


async def test_backoff_refuses_what_are_no_pauses() -> None:
    for wrong in ({"initial": -1}, {"factor": 0.5}, {"initial": 2, "maximum": 1}, {"attempts": 0}):
        with pytest.raises(amqp.LocalProtocolError):
            amqp.Backoff(**wrong)
    pauses = amqp.Backoff(initial=1, maximum=3).pauses()
    for most in (1, 2, 3, 3):
        assert most / 2 <= next(pauses) <= most
    with pytest.raises(amqp.LocalProtocolError, match="cannot be dialled again"):
        amqp.open_connection(trio.testing.memory_stream_pair()[0], reconnect=True)


# -- while it is down ---------------------------------------------------------------------------


async def test_what_the_peer_said_can_be_read_while_it_is_down(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async with (
        visiting(monkeypatch, Still().handle) as (town, conn),
        conn.open_sender("sink") as sender,
        conn.open_receiver("source") as receiver,
    ):
        town.answer = silent
        await town.lose()
        await trio.sleep(2)  # it is dialled by now, and silent
        assert conn.remote.container_id == "service"
        assert (sender.address, receiver.address) == ("sink", "source")
        assert (sender.credit, sender.unsettled, receiver.buffered) == (sender.credit, 0, 0)
        assert "service" in repr(conn)
        assert "sink" in repr(sender)
        town.answer = None
        await sender.send("x")


async def test_links_and_sessions_that_are_opened_while_it_is_down_wait(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    node = Still()

    async def on_the_connection() -> None:
        async with conn.open_sender("sink", name=None) as sender:
            await sender.send("one")

    async def on_a_session() -> None:
        async with conn.open_session() as session, session.open_sender("sink") as sender:
            await sender.send("two")

    async def exactly_once() -> None:
        async with conn.open_sender("sink", guarantee="exactly-once", own_session=True) as sender:
            await sender.send("three")

    async with visiting(monkeypatch, node.handle) as (town, conn):
        await town.go_down()
        async with trio.open_nursery() as nursery:
            for call in (on_the_connection, on_a_session, exactly_once):
                nursery.start_soon(call)
            await trio.sleep(20)
            assert len(town.conns) == 1
            town.up = True
    assert sorted(node.got) == ["one", "three", "two"]


async def test_link_is_opened_on_the_next_transport_when_the_first_goes_meanwhile(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    node = Still()
    async with visiting(monkeypatch, idle) as (town, conn):
        opened = trio.Event()

        async def opens() -> None:
            async with conn.open_sender("sink") as sender:
                await sender.send("x")
            opened.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(opens)
            await wait_all_tasks_blocked()
            assert not opened.is_set()
            town.handle = node.handle
            await town.lose()
    assert node.got == ["x"]


@pytest.mark.parametrize("moment", ["at once", "in a pause", "in a handshake"])
async def test_connection_can_be_closed_while_it_is_down(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, moment: str
) -> None:
    ended: list[str] = []

    async def waits(name: str, call: Callable[[], Any], error: type[BaseException]) -> None:
        with pytest.raises(error):
            await call()
        ended.append(name)

    async with Town(monkeypatch, Still().handle).open() as town:
        began = trio.current_time()
        async with (
            amqp.open_connection(URL, reconnect=EVEN) as conn,
            conn.open_sender("sink") as sender,
            conn.open_receiver("source") as receiver,
        ):
            delivery = await sender.transmit("ignore")
            if moment == "in a handshake":
                town.answer = silent
            else:
                town.up = False
            async with trio.open_nursery() as nursery:
                closed = trio.ClosedResourceError
                nursery.start_soon(waits, "outcome", delivery.outcome, closed)
                nursery.start_soon(waits, "receive", receiver.receive, closed)
                nursery.start_soon(waits, "iterate", receiver.__anext__, StopAsyncIteration)
                await town.lose()
                nursery.start_soon(waits, "send", lambda: sender.send("x"), closed)
                nursery.start_soon(waits, "open", conn.open_sender("sink").__aenter__, closed)
                nursery.start_soon(waits, "session", conn.open_session().__aenter__, closed)
                if moment != "at once":
                    await trio.sleep(1.5)
                await conn.aclose()
        assert trio.current_time() - began <= 1.5 + 5
        assert sorted(ended) == ["iterate", "open", "outcome", "receive", "send", "session"]
        await conn.wait_closed()


async def test_blocks_can_be_left_while_it_is_down(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async with Town(monkeypatch, Still().handle).open() as town:
        async with amqp.open_connection(URL, reconnect=EVEN) as conn:
            async with (
                conn.open_session() as session,
                session.open_sender("sink"),
                conn.open_receiver("source", own_session=True),
                conn.open_receiver("source", guarantee="at-most-once", credit=5),
                conn.open_requester("sink", reply_to="source"),
            ):
                await town.go_down()
                began = trio.current_time()
            assert conn.recovery is not None
            assert not conn.recovery.links
            assert len(conn.recovery.sessions) == 1  # the default one
            town.up = True
            await trio.sleep(10)
            async with conn.open_sender("sink") as sender:
                await sender.send("x")
        assert trio.current_time() - began <= 20


async def test_sender_that_is_left_while_it_is_down_waits_for_its_outcomes_no_longer_than_a_close(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    node = Still()
    async with visiting(monkeypatch, node.handle, close_timeout=20) as (town, conn):
        async with conn.open_sender("sink") as sender:
            delivery = await sender.transmit("x")
            await town.go_down()
            town.up = True
        assert await delivery.outcome() == amqp.Accepted()  # it came back in time
        async with conn.open_sender("sink") as sender:
            delivery = await sender.transmit("ignore")
            await town.go_down()
            began = trio.current_time()
        assert trio.current_time() - began == pytest.approx(20, abs=1)
        with pytest.raises(trio.ClosedResourceError):
            await delivery.outcome()


async def test_block_is_cancelled_while_it_is_down(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async with Town(monkeypatch, Still().handle).open() as town:
        began = trio.current_time()
        with trio.move_on_after(2.5) as scope:
            async with (
                amqp.open_connection(URL, reconnect=EVEN) as conn,
                conn.open_sender("sink") as sender,
            ):
                await town.go_down()
                await sender.send("x")
        assert scope.cancelled_caught
        assert trio.current_time() - began <= 3.5
        assert conn.closed


async def test_connection_is_left_while_links_are_about_to_be_mended(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    slow = amqp.Backoff(initial=100, maximum=100, jitter=False)
    async with Town(monkeypatch, Still().handle).open() as town:
        began = trio.current_time()
        async with amqp.open_connection(URL, reconnect=slow) as conn, conn.open_sender("sink") as sender:
            await wait_all_tasks_blocked()
            [link] = list(town.conns[0].engine.names)
            assert isinstance(link.owner, amqp.Receiver)
            await link.owner.aclose(amqp.ErrorInfo(condition="amqp:link:detach-forced"))
            while not sender.is_suspended:
                await trio.lowlevel.checkpoint()
        assert trio.current_time() - began < 10


# -- cancelled, closed, lost, at every step -----------------------------------------------------


async def _opens_and_sends(conn: Connection) -> None:
    async with conn.open_sender("sink") as sender:
        await sender.send("x")


async def _waits(conn: Connection) -> None:
    await conn.wait_closed()


async def _begins(conn: Connection) -> None:
    async with conn.open_session():
        pass


async def _watches(conn: Connection) -> None:
    await anext(conn.changes())
    await anext(conn.changes())


@pytest.mark.parametrize("scenario", [_opens_and_sends, _waits, _begins, _watches])
async def test_call_that_is_cancelled_while_it_is_down_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any, scenario: Any
) -> None:
    step = 0
    done = False
    while not done and step < 60:
        step += 1
        node = Still()
        async with visiting(monkeypatch, node.handle) as (town, conn):
            await town.go_down()
            town.up = True
            with trio.move_on_after(9) as scope:
                instrument = CancelAtStep(step, scope)
                trio.lowlevel.add_instrument(instrument)
                try:
                    await scenario(conn)
                finally:
                    trio.lowlevel.remove_instrument(instrument)
            done = instrument.left > 0
            await _opens_and_sends(conn)
            assert conn.recovery is not None
            assert not conn.recovery.links
            assert len(conn.recovery.sessions) == 1
        assert conn.closed
    assert done


async def test_connection_that_is_closed_at_any_step_of_coming_back_closes_every_stream(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    for delay in [n / 50 for n in range(110)]:
        async with Town(monkeypatch, Still().handle).open() as town:
            async with amqp.open_connection(URL, reconnect=EVEN) as conn:
                sender = await conn.open_sender("sink").__aenter__()
                await town.lose()
                await trio.sleep(delay)
                for _ in range(round(delay * 50) % 17):
                    await trio.lowlevel.checkpoint()
                await conn.aclose()
            assert conn.closed
            with pytest.raises(trio.ClosedResourceError):
                await sender.send("x")
            await wait_all_tasks_blocked()
            for ours, _ in town.streams:
                with pytest.raises(trio.ClosedResourceError):
                    await ours.send_all(b"x")


async def test_coming_back_leaves_nothing_of_what_went(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    node = Still()
    async with (
        visiting(monkeypatch, node.handle) as (town, conn),
        conn.open_sender("sink") as sender,
    ):
        await sender.send(0)

        def tasks() -> int:
            return trio.lowlevel.current_statistics().tasks_living

        before = 0
        for number in range(6):
            await town.lose()
            await sender.send(number)
            async with conn.open_session() as session, session.open_sender("sink"):
                pass
            del session
            await trio.sleep(3)
            if number == 1:
                before = tasks()
        assert tasks() == before
        assert conn.recovery is not None
        assert list(conn.recovery.links) == [sender]
        assert len(conn.recovery.sessions) == 1
        assert not conn.recovery._scopes
        changes = conn.changes()
        assert len(conn.recovery._watchers) == 1
        del changes
        gc.collect()
        assert not conn.recovery._watchers


# -- what happens to it -------------------------------------------------------------------------


async def test_changes_need_a_connection_that_comes_back(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async with Town(monkeypatch, idle).open(), amqp.open_connection(URL) as conn:
        with pytest.raises(amqp.LocalProtocolError, match="reconnect=True"):
            conn.changes()


async def test_changes_are_told_to_each_that_watches(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    told: list[list[str]] = [[], []]

    async def watch(changes: Any, mine: list[str]) -> None:
        mine.extend([change.kind async for change in changes])

    async with Town(monkeypatch, idle).open() as town, trio.open_nursery() as nursery:
        async with amqp.open_connection(URL, reconnect=EVEN) as conn:
            changes = conn.changes()
            nursery.start_soon(watch, changes, told[0])
            nursery.start_soon(watch, changes, told[0])
            nursery.start_soon(watch, conn.changes(), told[1])
            for _ in range(2):
                await town.lose()
                await trio.sleep(5)
        nursery.start_soon(watch, conn.changes(), [])  # over already
    kinds = ["lost", "restored"] * 2 + ["stopped"]
    assert told[1] == kinds
    assert sorted(told[0]) == sorted(kinds)  # each went to one of the two


async def test_peer_with_fewer_channels_gets_the_sessions_that_it_has_room_for(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    node = Still()
    async with visiting(monkeypatch, node.handle, pipelined=False) as (town, conn):
        opened = [conn.open_sender("sink", own_session=True) for _ in range(3)]
        senders = [await one.__aenter__() for one in opened]
        town.options["limits"] = amqp.Limits(channel_max=1)
        await town.lose()
        await senders[0].send("one")
        for sender in senders[1:]:
            with pytest.raises(amqp.LinkDetachedError, match="no channel is free: channel-max allows"):
                await sender.send("two")
        assert not conn.closed
        for one in opened:
            await one.__aexit__(None, None, None)
    assert node.got == ["one"]


# -- before links are attached ------------------------------------------------------------------


async def test_preparation_comes_before_the_links(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    node = Still()
    order: list[str] = []
    failures: list[Exception] = [OSError("the shop is closed")]

    async def prepare() -> None:
        if failures:
            raise failures.pop()
        async with conn.open_sender("sink") as first:
            await first.send("prepared")
        order.append("prepared")

    async with (
        visiting(monkeypatch, node.handle) as (town, conn),
        conn.open_sender("sink") as sender,
    ):
        with conn.restore_with(prepare):
            await town.lose()

            async def another() -> None:
                async with conn.open_sender("sink") as another:
                    await another.send("another")

            async with trio.open_nursery() as nursery:
                nursery.start_soon(another)
                await sender.send("sent")
        await town.lose()
        await sender.send("again")
    assert order == ["prepared"]
    assert node.got[0] == "prepared"
    assert sorted(node.got[1:3]) == ["another", "sent"]
    assert town.times[:3] == [0, 1, 3]  # the first attempt failed


async def test_preparation_is_done_again_when_the_peer_is_lost_meanwhile(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    node = Still()
    began: list[float] = []

    async def prepare() -> None:
        began.append(trio.current_time())
        if len(began) == 1:
            await trio.sleep_forever()

    async with (
        visiting(monkeypatch, node.handle) as (town, conn),
        conn.open_sender("sink") as sender,
    ):
        with conn.restore_with(prepare):
            await town.lose()
            await trio.sleep(2)
            await town.lose()
            await sender.send("x")
    assert len(began) == 2


async def test_preparation_that_fails_for_good_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async def prepare() -> None:
        raise amqp.SecurityError("no more")

    async with Town(monkeypatch, Still().handle).open() as town:
        async with amqp.open_connection(URL, reconnect=EVEN) as conn:
            with conn.restore_with(prepare):
                await town.lose()
                with pytest.raises(amqp.SecurityError, match="no more"):
                    await conn.wait_closed()
        async with amqp.open_connection(URL) as plain:
            with plain.restore_with(prepare):
                pass


async def test_preparation_that_is_on_its_way_does_not_keep_the_connection_open(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: Any
) -> None:
    async with Town(monkeypatch, Still().handle).open() as town:
        async with amqp.open_connection(URL, reconnect=EVEN) as conn:
            with conn.restore_with(trio.sleep_forever):
                await town.lose()
                await trio.sleep(2)
                began = trio.current_time()
                await conn.aclose()
        assert trio.current_time() - began <= 6
