"""A connection as a program sees it: opening, leaving, links of the peer's, questions of SASL's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair, memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.served import accepted
from tests.naive.peer import WINDOWS, ScriptedPeer
from tests.naive.performatives import frame, header
from trio_amqp10.amqp10.spec.transport import Open

from .helpers import Node, acceptor, dialled, idle, served, stream_pair

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio_amqp10.amqp10.peer.connection import Connection


async def test_remote_is_what_the_peer_said_of_itself() -> None:
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)
    async with trio.open_nursery() as nursery:

        async def answer() -> None:
            await peer.accept_open(
                container_id="them",
                hostname="host",
                max_frame_size=4096,
                channel_max=7,
                idle_time_out=120_000,
                offered_capabilities=["a", "b"],
                desired_capabilities="c",
                properties={"product": "toy"},
            )
            await peer.accept_begin()
            await peer.accept_close()

        nursery.start_soon(answer)
        async with amqp.open_connection(ours) as conn:
            assert conn.remote == amqp.Remote(
                container_id="them",
                hostname="host",
                max_frame_size=4096,
                channel_max=7,
                idle_timeout=120.0,
                properties={"product": "toy"},
                offered_capabilities=("a", "b"),
                desired_capabilities=("c",),
            )
            assert repr(conn) == "<Connection to 'them' OPENED>"


async def test_open_says_who_we_are() -> None:
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)
    async with trio.open_nursery() as nursery:

        async def answer() -> None:
            opened = await peer.accept_open()
            assert opened["container_id"] == "us"
            assert opened["hostname"] == "vhost:one"
            assert opened["max_frame_size"] == 1024
            assert opened["channel_max"] == 3
            assert opened["idle_time_out"] == 10_000
            assert opened["properties"] == {"product": "ours"}
            assert opened["desired_capabilities"] == ["x", "ANONYMOUS-RELAY"]
            assert opened["offered_capabilities"] == ["y", "z"]
            await peer.accept_begin()
            await peer.accept_close()

        nursery.start_soon(answer)
        async with amqp.open_connection(
            ours,
            container_id="us",
            hostname="vhost:one",
            max_frame_size=1024,
            channel_max=3,
            idle_timeout=20,
            properties={"product": "ours"},
            desired_capabilities="x",
            offered_capabilities=["y", "z"],
        ):
            pass


async def test_remote_raises_before_the_peer_has_opened() -> None:
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        connection = acceptor().accept(accepted(ours), nursery)
        assert repr(connection) == "<Connection to '?' START>"
        with pytest.raises(amqp.LocalProtocolError, match="has not opened"):
            _ = connection.remote
        await connection.aclose()
        await theirs.aclose()


async def test_idle_time_out_of_zero_is_none(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)
    async with trio.open_nursery() as nursery:

        async def answer() -> None:
            await peer.accept_open(idle_time_out=0)
            await peer.accept_begin()

        nursery.start_soon(answer)
        async with amqp.open_connection(ours, idle_timeout=None) as conn:
            assert conn.remote.idle_timeout is None
            await trio.sleep(1000)
            assert not conn.closed


# -- leaving --------------------------------------------------------------------------------


class Bare(Exception):  # noqa: N818 - the test's own
    pass


@pytest.mark.parametrize("kind", ["memory", "lockstep", "tcp", "unix"])
@pytest.mark.parametrize("where", ["connection", "session", "sender", "receiver", "accepted", "own session"])
async def test_exception_of_a_body_leaves_as_itself(where: str, kind: str) -> None:
    node = Node(bodies=("x",))

    async def raising(conn: Connection) -> None:
        if where == "connection":
            raise Bare
        if where == "session":
            async with conn.open_session():
                raise Bare
        if where == "sender":
            async with conn.open_sender("q"):
                raise Bare
        if where == "own session":
            async with conn.open_sender("q", own_session=True):
                raise Bare
        async with conn.open_receiver("q") as receiver:
            async for _ in receiver:
                raise Bare

    ours, theirs = await stream_pair(kind)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor().run, theirs, node.handle)
        with pytest.raises(Bare):
            async with amqp.open_connection(ours) as conn:
                await raising(conn)


async def test_exception_of_a_body_leaves_as_itself_when_the_link_is_accepted() -> None:
    caught: list[BaseException] = []

    async def handle(conn: Connection) -> None:
        async for link in conn.incoming_links():
            try:
                async with link.accept():
                    raise Bare
            except Bare as bare:
                caught.append(bare)
            return

    async with served(handle) as conn:
        with pytest.raises(amqp.LinkDetachedError):
            async with conn.open_sender("q") as sender:
                await sender.send("x")
    assert len(caught) == 1


async def test_leaving_writes_what_is_queued_first() -> None:
    node = Node()
    async with served(node.handle) as conn:
        async with conn.open_sender("q", guarantee="at-most-once") as sender:
            for number in range(50):
                sender.send_nowait(number)
        assert sender.closed
    assert node.got == list(range(50))


async def test_leaving_a_link_writes_a_large_message_to_its_end() -> None:
    node = Node()
    body = b"x" * 3_000_000
    async with served(node.handle, streams=lockstep_stream_pair()) as conn:
        async with conn.open_sender("q", guarantee="at-most-once") as sender:
            await sender.transmit(body)
        assert sender.closed
    assert node.got == [body]


@pytest.mark.parametrize(("options", "seconds"), [({}, 5.0), ({"close_timeout": 0.5}, 0.5)])
async def test_leaving_waits_for_the_close_of_the_peer_so_long_and_no_longer(
    options: dict[str, Any], seconds: float, autojump_clock: MockClock
) -> None:
    async with dialled(**options) as (conn, peer):
        began = trio.current_time()
        await conn.aclose()
        assert trio.current_time() - began == pytest.approx(seconds)
        await peer.expect("close", error=None)
        await peer.expect_eof()


async def test_leaving_goes_at_once_when_the_peer_closes_too(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.accept_close)
            nursery.start_soon(conn.aclose)
            nursery.start_soon(conn.aclose)
        await peer.expect_eof()
        assert trio.current_time() == began
        await conn.aclose()


@pytest.mark.parametrize("thing", ["sender", "receiver", "session"])
async def test_leaving_a_link_or_session_waits_so_long_and_no_longer(
    thing: str, autojump_clock: MockClock
) -> None:
    async with dialled() as (conn, peer):
        opening: Any = {
            "sender": conn.open_sender("q"),
            "receiver": conn.open_receiver("q"),
            "session": conn.open_session(),
        }[thing]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.accept_begin if thing == "session" else peer.accept_attach)
            opened = await opening.__aenter__()
        began = trio.current_time()
        await opening.__aexit__(None, None, None)
        assert trio.current_time() - began == pytest.approx(5.0)
        await peer.skip_to("end" if thing == "session" else "detach")
        began = trio.current_time()
        await opened.aclose()
        assert trio.current_time() == began


async def test_leaving_when_cancelled_writes_the_close_and_does_not_wait(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                peer.accept_attach,
            )
            sender = await conn.open_sender("q").__aenter__()
        began = trio.current_time()
        with trio.CancelScope() as scope:
            scope.cancel()
            await conn.aclose()
        assert scope.cancelled_caught
        assert trio.current_time() == began
        assert conn.pump.finished.is_set()
        await peer.expect("close")
        await peer.expect_eof()
        assert sender.closed


async def test_leaving_when_cancelled_tries_to_write_for_a_second_and_no_longer(
    autojump_clock: MockClock,
) -> None:
    ours, theirs = lockstep_stream_pair()
    async with dialled(streams=(ours, theirs)) as (conn, _):
        began = trio.current_time()
        with trio.CancelScope() as scope:
            scope.cancel()
            await conn.aclose()
        assert trio.current_time() - began == pytest.approx(1.0)
        assert conn.pump.finished.is_set()


async def test_leaving_when_cancelled_while_it_waits_goes_at_once(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        began = trio.current_time()
        with trio.move_on_after(2):
            await conn.aclose()
        assert trio.current_time() - began == pytest.approx(2)
        assert conn.pump.finished.is_set()
        await peer.expect("close")
        await peer.expect_eof()


async def test_leaving_by_cancellation_closes_links_and_connection_cleanly() -> None:
    node = Node()
    with trio.move_on_after(5):
        async with served(node.handle) as conn:
            with trio.CancelScope() as scope:
                async with conn.open_sender("q", guarantee="at-most-once") as sender:
                    await sender.transmit("last words")
                    scope.cancel()
                    await trio.sleep_forever()
            assert scope.cancelled_caught
            assert not conn.closed
    assert node.got == ["last words"]


async def test_close_carries_the_error_that_it_is_given(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        error = amqp.ErrorInfo(condition="amqp:internal-error", description="out of paper")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(conn.aclose, error)
            await peer.expect(
                "close",
                error=("error", {"condition": "amqp:internal-error", "description": "out of paper"}),
            )
            await peer.send(frame("close"))


async def test_close_during_the_handshake_leaves_nothing(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    with trio.move_on_after(2) as scope:
        async with amqp.open_connection(ours):
            raise AssertionError("not reached")
    assert scope.cancelled_caught
    peer = ScriptedPeer(theirs)
    await peer.expect_header()
    await peer.expect("open")
    await peer.expect("begin")
    await peer.expect("close")
    await peer.expect_eof()


# -- failures -------------------------------------------------------------------------------


async def test_background_failure_is_a_new_exception_for_each_who_asks(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        await peer.send(b"\0\0\0\4")
        await wait_all_tasks_blocked()
        raised: list[Exception] = []
        for _ in range(2):
            try:
                conn.check_alive()
            except amqp.RemoteProtocolError as failure:
                raised.append(failure)
        assert len(raised) == 2
        assert raised[0] is not raised[1]
        assert str(raised[0]) == str(raised[1])
        assert {getattr(one, "condition", None) for one in raised} == {"amqp:connection:framing-error"}
        await peer.expect("close", error=("error", {"condition": "amqp:connection:framing-error"}))


async def test_peer_that_opens_and_closes_in_one_go_is_told_on_entering(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)
    await peer.send(
        header(),
        frame("open", container_id="them"),
        frame("close", error=("error", {"condition": "amqp:not-found", "description": "no vhost"})),
    )
    with pytest.raises(amqp.ConnectionClosedError, match="amqp:not-found: no vhost") as caught:
        async with amqp.open_connection(ours):
            raise AssertionError("not reached")
    assert caught.value.condition == "amqp:not-found"
    assert caught.value.error is not None


async def test_text_of_the_peer_is_bounded_and_has_no_control_characters(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        text = "\x1b[31m{0}%s\n" + "y" * 5000
        await peer.send(frame("close", error=("error", {"condition": "x:y", "description": text})))
        with pytest.raises(amqp.ConnectionClosedError) as caught:
            await conn.wait_closed()
        assert "\x1b" not in str(caught.value)
        assert "\n" not in str(caught.value)
        assert "{0}%s" in str(caught.value)
        assert len(str(caught.value)) < 1200


@pytest.mark.logs_errors
async def test_connection_that_a_bug_of_ours_ends_raises_what_it_was(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with dialled() as (conn, peer):

        def raising(_: object) -> None:
            raise KeyError("bug")

        conn.pump._on_event = raising
        await peer.send(frame("end"))
        with pytest.raises(amqp.ConnectionClosedError, match="bug") as caught:
            await conn.wait_closed()
        assert isinstance(caught.value.__cause__, KeyError)
    assert "the engine failed" in caplog.text


# -- links of the peer's --------------------------------------------------------------------


def their_attach(handle: int, *, sender: bool = True, name: str | None = None, channel: int = 0) -> bytes:
    return frame(
        "attach",
        channel=channel,
        name=name or f"theirs-{handle}",
        handle=handle,
        role=not sender,
        source=("source", {"address": "from"}),
        target=("target", {"address": "to"}),
        initial_delivery_count=0 if sender else None,
    )


async def test_links_nobody_iterates_over_are_refused_after_a_second(autojump_clock: MockClock) -> None:
    async with dialled() as (_, peer):
        await peer.send(their_attach(0), their_attach(1, sender=False))
        await peer.expect_nothing(0.99)
        await peer.expect("attach", name="theirs-0", role=True, target=None)
        await peer.expect("detach", closed=True, error=("error", {"condition": "amqp:not-allowed"}))
        await peer.expect("attach", name="theirs-1", role=False, source=None)
        await peer.expect("detach", closed=True, error=("error", {"condition": "amqp:not-allowed"}))
        await peer.send(their_attach(2))
        await peer.expect("attach", name="theirs-2")
        await peer.expect("detach")


async def test_links_that_cannot_even_be_refused_end_their_session(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)
    went_on = False

    async def answer() -> None:
        await peer.accept_open(max_frame_size=512)
        await peer.accept_begin(handle_max=0)
        await peer.send(their_attach(0), their_attach(1, name="n" * 2000))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        async with amqp.open_connection(ours) as conn:
            await trio.sleep(10)
            assert not conn.closed
            went_on = True
        await peer.skip_to("end")
    assert went_on


async def test_links_that_come_before_the_iteration_are_not_lost(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        await peer.send(their_attach(0))
        await trio.sleep(0.9)
        links = conn.incoming_links()
        link = await links.__anext__()
        assert isinstance(link, amqp.IncomingReceiver)
        assert link.address == "to"
        assert link.name == "theirs-0"
        await peer.send(their_attach(1, sender=False))
        await trio.sleep(20)
        link = await links.__anext__()
        assert isinstance(link, amqp.IncomingSender)
        assert link.address == "from"


async def test_links_that_the_peer_takes_back_are_not_handed_out(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        links = conn.incoming_links()
        for handle in range(100):
            await peer.send(their_attach(handle), frame("detach", handle=handle, closed=True))
        await peer.send(their_attach(100))
        await wait_all_tasks_blocked()
        assert len(conn._incoming) == 1
        assert (await links.__anext__()).name == "theirs-100"


async def test_cancelled_iteration_over_incoming_links_loses_none(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        links = conn.incoming_links()
        assert links.__aiter__() is links
        with trio.move_on_after(1):
            await links.__anext__()
        await peer.send(their_attach(0))
        await wait_all_tasks_blocked()
        with trio.CancelScope() as scope:
            scope.cancel()
            await links.__anext__()
        assert (await links.__anext__()).name == "theirs-0"


async def test_closing_does_not_wait_for_those_who_wait_to_be_refused(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)

    async def answer() -> None:
        await peer.accept_open()
        await peer.accept_begin()
        await peer.send(their_attach(0))
        await peer.accept_close()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        began = trio.current_time()
        async with amqp.open_connection(ours):
            await wait_all_tasks_blocked()
        assert trio.current_time() == began


async def test_session_of_the_peer_is_begun_and_ended_with_it(autojump_clock: MockClock) -> None:
    async with dialled() as (conn, peer):
        await peer.dial_begin(channel=5, **WINDOWS)
        await peer.send(their_attach(0, channel=5))
        link = await conn.incoming_links().__anext__()
        assert isinstance(link, amqp.IncomingReceiver)
        async with link.accept() as receiver:
            attached = await peer.expect("attach", name="theirs-0")
            await peer.expect("flow", link_credit=100)
            await peer.send(frame("end", channel=5))
            await peer.expect("end", channel=attached.channel)
            with pytest.raises(amqp.LinkDetachedError):
                await receiver.receive()


async def test_links_from_either_side_are_opened_at_the_same_time() -> None:
    names: list[str] = []

    def serving(other: str) -> Callable[[Connection], Awaitable[None]]:
        async def serve(conn: Connection) -> None:
            async for link in conn.incoming_links():
                assert isinstance(link, amqp.IncomingReceiver)
                async with link.accept() as receiver:
                    names.append(f"{other} {(await receiver.receive()).message.body}")
                return

        return serve

    async def both(conn: Connection, mine: str) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serving(mine), conn)
            with pytest.raises(amqp.LinkDetachedError):
                async with conn.open_sender("q", name="one name for both") as sender:
                    await sender.send(f"from {mine}")

    async def handle(conn: Connection) -> None:
        await both(conn, "service")
        await conn.wait_closed()

    async with served(handle) as conn:
        await both(conn, "client")
    assert sorted(names) == ["client from service", "service from client"]


# -- silence --------------------------------------------------------------------------------


async def test_idle_connections_keep_each_other_alive(autojump_clock: MockClock) -> None:
    async with served(idle, idle_timeout=4, accept={"idle_timeout": 10}) as conn:
        await trio.sleep(300)
        assert not conn.closed


async def test_row_36_silent_peer_is_given_up(autojump_clock: MockClock) -> None:
    async with dialled(idle_timeout=60) as (conn, peer):
        began = trio.current_time()
        with pytest.raises(
            amqp.ConnectionClosedError, match="was lost: no frame from the peer for 60 s"
        ) as caught:
            await conn.wait_closed()
        assert isinstance(caught.value, trio.BrokenResourceError)
        assert caught.value.error is None
        assert isinstance(caught.value.__cause__, amqp.RemoteProtocolError)
        await peer.expect("close", error=("error", {"condition": "amqp:resource-limit-exceeded"}))
        assert trio.current_time() - began <= 66


def test_properties_of_a_peer_keep_keys_that_no_dict_can_hold() -> None:
    pairs: Any = amqp.PairMap([(amqp.Symbol("k"), 1), ("k", 2)])
    remote = amqp.Remote.of(Open(container_id="x", properties=pairs))
    assert remote.properties == pairs
    assert remote.properties is not pairs
