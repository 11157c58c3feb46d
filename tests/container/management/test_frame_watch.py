"""The frames of a connection, while they are asked for: in every protocol, within limits, and without secrets."""

from __future__ import annotations

import base64
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

import trio_amqp10 as amqp
from tests.amqp091.pairs import written as methods_091
from tests.amqp10.peer.authority import believing, serving
from tests.container.clients import CLIENTS, Fields
from tests.contract.protocols import PROTOCOLS
from tests.longest_run import measured_runs
from tests.naive.performatives import frame
from trio_amqp10.amqp091 import spec as spec091
from trio_amqp10.amqp_fast import spec as spec_fast
from trio_amqp10.amqp_fast.wire.frames import frame_of
from trio_amqp10.container import Container
from trio_amqp10.container.management import ManagementError
from trio_amqp10.container.management.frame_watch import (
    _MOST_BEGUN,
    _MOST_CHARACTERS,
    _MOST_WAITING,
    MOST_KEPT,
    FrameWatch,
)
from trio_amqp10.sasl import Identity

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio.testing import MockClock

    from trio_amqp10.container.management import WatchedFrame
    from trio_amqp10.net.frame_logging import Tap
    from trio_amqp10.net.pump import Pump


@asynccontextmanager
async def served(name: str, **options: Any) -> AsyncGenerator[tuple[Container, int]]:
    """A container with the queue ``orders``, and the port at which it serves a protocol."""
    container = Container("box", **options)
    container.add_broker().declare_queue("orders")
    dialects = [] if name == "1.0" else [name]
    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(container.serve, "amqp://127.0.0.1:0", dialects=dialects))
        yield container, listener.port
        nursery.cancel_scope.cancel()


async def numbers(container: Container) -> list[int]:
    return [each.number async for each in container.management.connections()]


async def all_frames(watch: FrameWatch, last: str) -> list[WatchedFrame]:
    """Wait until a frame with a text has come, and return all frames."""
    found: list[WatchedFrame] = []
    with trio.fail_after(30):
        while not any(last in each.text for each in found):
            found += (await watch.frames(found[-1].number if found else 0)).frames
    return found


async def rest_of(watch: FrameWatch, after: int = 0) -> list[WatchedFrame]:
    """Return all frames up to the end of the connection."""
    found: list[WatchedFrame] = []
    with trio.fail_after(30):
        while True:
            more = await watch.frames(after)
            found += more.frames
            if more.over:
                return found
            after = found[-1].number if found else after
            await trio.sleep(0.01)


# -- every protocol -------------------------------------------------------------------------

SETTLES = {
    "1.0": "Disposition",
    "0-9-1": "basic.nack",
    "10.3": "basic.reject",
    "amqp-fast": "handle unget",
    "1.0-draft-2010": "Disposition",
}
"""How a client of each protocol puts a message back."""
CLOSES = {
    "1.0": ("Close()", "Close()"),
    "0-9-1": ("connection.close(", "connection.close-ok("),
    "10.3": ("connection.close(", "connection.close-ok("),
    "amqp-fast": ("connection close(", "connection close("),
    "1.0-draft-2010": ("Close()", "Close()"),
}
"""What each end sends last."""


@pytest.mark.parametrize("name", PROTOCOLS)
async def test_frames_come_with_their_text_and_end_with_the_close(name: str) -> None:
    client = CLIENTS[name]
    async with served(name) as (container, port):
        async with client.receive(port, "orders") as receiving:
            (number,) = await numbers(container)
            watch = await container.management.watch_frames(number, payload=200)
            await client.send(port, "orders", Fields(body=b"tea and milk" * 12_000))
            await receiving.next(keep=False)
            frames = await all_frames(watch, SETTLES[name])
        frames += await rest_of(watch, frames[-1].number)
        assert [each.number for each in frames] == list(range(1, len(frames) + 1))
        assert [each.time for each in frames] == sorted(each.time for each in frames)
        assert not any("octets: " in each.text for each in frames)  # of a frame that cannot be read
        assert not any("tea and milk" in f"{each.text} {each.fields}" for each in frames)
        assert sum(each.payload_octets for each in frames if each.direction == "out") >= 144_000
        assert any(b"tea and milk" in each.payload for each in frames)
        assert max(len(each.payload) for each in frames) == 200
        first, last = CLOSES[name]
        assert first in next(each.text for each in reversed(frames) if each.direction == "in")
        assert last in next(each.text for each in reversed(frames) if each.direction == "out")
        assert not any(each.left_out for each in frames)
        assert container.frame_watches == [watch]
        watch.close()
        assert container.frame_watches == []


@pytest.mark.parametrize("name", PROTOCOLS)
async def test_watch_that_begins_within_a_frame_goes_on_with_a_whole_one(name: str) -> None:
    """The octets of the client are stopped in the middle of a body, and the watch begins there."""
    client = CLIENTS[name]
    async with served(name) as (container, port), trio.open_nursery() as nursery:
        held, go_on, passed = trio.Event(), trio.Event(), 0

        async def forward(ours: trio.SocketStream) -> None:
            nonlocal passed
            theirs = await trio.open_tcp_stream("127.0.0.1", port)
            async with ours, theirs, trio.open_nursery() as both:
                both.start_soon(copy, theirs, ours)
                async for data in ours:
                    rest = data
                    if passed < 60_000 <= passed + len(data) and not held.is_set():
                        await theirs.send_all(data[: 60_000 - passed])
                        held.set()
                        await go_on.wait()
                        rest = data[60_000 - passed :]
                    passed += len(data)
                    await theirs.send_all(rest)
                await theirs.send_eof()

        async def copy(source: trio.SocketStream, target: trio.SocketStream) -> None:
            async for data in source:
                await target.send_all(data)

        (proxy,) = await nursery.start(partial(trio.serve_tcp, forward, 0, host="127.0.0.1"))
        nursery.start_soon(client.send, proxy.socket.getsockname()[1], "orders", Fields(body=b"x" * 300_000))
        await held.wait()
        while not (seen := await numbers(container)):  # noqa: ASYNC110 - octets on a socket
            await trio.sleep(0.01)
        peer = container.connected[0]
        while len(peer.pump.unread_input() or b"") < 1000:  # noqa: ASYNC110 - octets on a socket
            await trio.sleep(0.01)
        watch = await container.management.watch_frames(seen[0], payload=1)
        go_on.set()
        frames = await rest_of(watch)
        nursery.cancel_scope.cancel()
    assert not any("octets: " in each.text for each in frames)
    inward = [each for each in frames if each.direction == "in"]
    assert inward[0].payload_octets > 1000
    assert not any(each.left_out for each in inward)


async def test_connections_of_memory_and_above_tls_and_websockets_are_watched() -> None:
    container = Container()
    container.add_queue("orders")
    async with trio.open_nursery() as nursery:
        tls, web = await nursery.start(
            partial(
                container.serve,
                "amqps://127.0.0.1:0",
                "amqpwss://127.0.0.1:0",
                ssl_context=serving(),
                sasl=amqp.sasl.Server(users={"ada": "swordfish"}),
            )
        )
        login: Any = {"sasl": amqp.sasl.Plain("ada", "swordfish"), "ssl_context": believing()}
        for opening in (
            container.connect(),
            amqp.open_connection(tls.url.replace("127.0.0.1", "localhost"), **login),
            amqp.open_connection(web.url.replace("127.0.0.1", "localhost"), **login),
        ):
            async with opening as connection:
                (number,) = await numbers(container)
                with await container.management.watch_frames(number) as watch:
                    async with connection.open_sender("orders") as sender:
                        await sender.send("tea")
                    frames = await all_frames(watch, "Detach(")
            assert [each.direction for each in frames if "Transfer(" in each.text] == ["in"]
            assert all(each.payload == b"" for each in frames)
            assert watch.closed
        nursery.cancel_scope.cancel()


# -- rights ---------------------------------------------------------------------------------


async def test_manage_is_needed_and_a_refusal_does_not_tell_what_exists() -> None:
    allowed = {("manage", "$management/connection")}
    container = Container(
        authorise=lambda access: access.user is None or (access.action, access.address) in allowed
    )
    async with container.connect():
        (number,) = await numbers(container)
        model = container.management.on_behalf_of(Identity("ada", "PLAIN"))
        watch = await model.watch_frames(number)
        with pytest.raises(ManagementError) as unknown:
            await model.watch_frames(77)
        assert unknown.value.reason == "not-found"
        allowed.clear()
        allowed.update({("monitor", "$management/connection"), ("delete", "$management/connection")})
        reasons = set[str]()
        for each in (number, 77):
            with pytest.raises(ManagementError) as refused:
                await model.watch_frames(each)
            assert refused.value.reason == "forbidden"
            reasons.add(str(refused.value))
        assert len(reasons) == 1
        with pytest.raises(ManagementError, match="may not manage"):
            await watch.frames()  # the permission was withdrawn


async def test_no_payload_is_shown_where_it_may_be_a_token() -> None:
    container = Container(authorise=lambda _: True)
    container.add_queue("orders")
    container.add_cbs(cast("Any", None))
    async with container.connect() as connection:
        (number,) = await numbers(container)
        watch = await container.management.watch_frames(number, payload=200)
        async with connection.open_sender("orders") as sender:
            await sender.send("tea")
        frames = await all_frames(watch, "Detach(")
    assert any(each.payload_octets for each in frames)
    assert not any(each.payload for each in frames)


# -- limits ---------------------------------------------------------------------------------


class Line:
    """A pump whose octets are given by the test."""

    def __init__(self) -> None:
        self.taps: list[Tap] = []
        self.unread: bytes | None = b""
        self.finished = trio.Event()

    def add_tap(self, tap: Tap) -> None:
        self.taps.append(tap)

    def remove_tap(self, tap: Tap) -> None:
        self.taps.remove(tap)

    def unread_input(self) -> bytes | None:
        return self.unread


def on_line(protocol: str = "AMQP 1.0", payload: int = 0) -> tuple[FrameWatch, Line, list[FrameWatch]]:
    """A watch, its line, and the watches that have closed."""

    async def check() -> None: ...

    line, closed = Line(), list[FrameWatch]()
    pump = cast("Pump", line)
    return FrameWatch(pump, protocol, payload, check, trio.current_time, closed.append), line, closed


CLOSE = frame("close")


async def test_watch_ends_when_nobody_asks_for_ten_seconds(autojump_clock: MockClock) -> None:
    watch, line, closed = on_line()
    for _ in range(3):
        await trio.sleep(9.9)
        await watch.frames()
    await trio.sleep(9.9)
    assert line.taps == [watch]
    await trio.sleep(0.2)
    assert line.taps == []
    assert watch.closed
    assert closed == [watch]
    watch.close()
    assert closed == [watch]
    with pytest.raises(ManagementError, match="the watch has ended") as ended:
        await watch.frames()
    assert ended.value.reason == "not-found"


async def test_five_watches_are_too_many() -> None:
    container = Container()
    async with container.connect():
        model = container.management
        watches = [await model.watch_frames(1) for _ in range(4)]
        with pytest.raises(ManagementError, match="the frames of 4 connections are watched already") as many:
            await model.watch_frames(1)
        assert (many.value.reason, many.value.status) == ("too-many", 429)
        watches[2].close()
        watches.append(await model.watch_frames(1))
        with pytest.raises(ManagementError, match="payload=201: expected 0 to 200"):
            await model.watch_frames(1, payload=201)
        for each in watches:
            each.close()


async def test_octets_beyond_the_limit_are_left_out_and_the_next_frame_is_whole() -> None:
    watch, line, _ = on_line()
    many = frame("flow", incoming_window=1, next_outgoing_id=1, outgoing_window=1) * 4000
    for _ in range(50):
        watch.read(many)
    assert _MOST_WAITING <= watch._waiting_octets < _MOST_WAITING + len(many)
    first = await watch.frames()
    assert len(first.frames) == 500
    while watch._waiting_octets:
        await watch.frames()
    line.unread = CLOSE[:5]  # the engine has the beginning of a frame
    watch.read(CLOSE[5:] + CLOSE)
    last = (await watch.frames(first.frames[-1].number, count=10_000)).frames[-2:]
    kept = -(-_MOST_WAITING // len(many))
    assert [(each.text, each.left_out) for each in last] == [
        ("[0] Close()", (50 - kept) * len(many)),
        ("[0] Close()", 0),
    ]


async def test_output_beyond_the_limit_is_left_out() -> None:
    watch, _, _ = on_line()
    big = frame("transfer", handle=0, payload=bytes(60_000))
    for _ in range(12):
        watch.written(big)
    frames = await all_frames(watch, "Transfer")
    assert len(frames) == 9
    watch.written(CLOSE)
    (last,) = (await watch.frames(frames[-1].number)).frames
    assert (last.text, last.left_out) == ("[0] Close()", 3 * len(big))


async def test_nothing_is_shown_of_a_peer_before_the_engine_is_at_a_frame() -> None:
    watch, line, _ = on_line()
    line.unread = None
    watch.read(b"12345")
    line.unread = b""
    watch.read(b"678")  # the engine is asked once for each call, because that takes time
    assert not (await watch.frames()).frames
    watch.read(CLOSE)
    (shown,) = (await watch.frames()).frames
    assert (shown.text, shown.left_out) == ("[0] Close()", 8)


async def test_frame_that_is_too_large_is_left_out() -> None:
    watch, line, _ = on_line()
    large = frame("transfer", handle=0, payload=bytes(_MOST_BEGUN + 1_000_000))
    for at in range(0, len(large), 250_000):
        line.unread = large[:at]
        watch.read(large[at : at + 250_000])
        assert not (await watch.frames()).frames
    line.unread = b""
    watch.read(CLOSE)
    (shown,) = (await watch.frames()).frames
    assert shown.text == "[0] Close()"
    assert shown.left_out > _MOST_BEGUN


async def test_frames_and_characters_that_are_kept_are_bounded() -> None:
    watch, _, _ = on_line()
    for _ in range(5):
        watch.written(CLOSE * 500)
        last = await watch.frames()
    assert len(watch._kept) == MOST_KEPT
    assert last.frames[0].number == 2500 - MOST_KEPT + 1
    wordy = frame("open", container_id="c" * 50_000, properties={f"k{n}": "v" * 90 for n in range(100)})
    for _ in range(900):
        watch.written(wordy)
        await watch.frames(count=0)
    kept = watch._kept
    assert len(kept) < 900
    assert sum(len(each.text) for each in kept) < _MOST_CHARACTERS
    assert kept[-1].text.endswith("characters more")
    assert len(kept[-1].text) < 1100
    assert len(kept[-1].fields["container_id"]) < 400


@pytest.mark.parametrize("way", ["read", "written"])
async def test_flood_never_holds_the_loop_for_long(way: str) -> None:
    watch, _, _ = on_line(payload=200)
    many = frame("transfer", handle=0, delivery_id=1, delivery_tag=b"1", payload=bytes(50)) * 2500
    with measured_runs() as runs:
        await trio.lowlevel.checkpoint()
        runs.reset()
        for _ in range(40):  # 100,000 messages
            getattr(watch, way)(many)
            await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()
        assert runs.longest < 0.002
        assert runs.spent < 0.02
        runs.reset()
        found = await watch.frames(count=10_000)
        await trio.lowlevel.checkpoint()  # a run is measured when it ends
        assert 500 <= len(found.frames) < 600
        assert runs.longest < 0.004  # it stops after the step that exceeds half a millisecond
    watch.close()


async def test_two_calls_at_once_get_the_same_frames() -> None:
    watch, _, _ = on_line()
    watch.written(CLOSE * 400)
    found: list[Any] = []

    async def ask() -> None:
        found.append((await watch.frames()).frames)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        nursery.start_soon(ask)
    assert [len(each) for each in found] == [400, 400]
    assert found[0] == found[1]


async def test_connection_that_nobody_watches_has_no_tap() -> None:
    container = Container()
    async with container.connect():
        (peer,) = container.connected
        pump = cast("Any", peer.pump)
        assert pump._taps == ()
        with await container.management.watch_frames(1) as watch:
            assert pump._taps == (watch,)
        assert pump._taps == ()


# -- secrets --------------------------------------------------------------------------------

PASSWORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=8, max_size=40)


def logins(secret: bytes) -> dict[str, list[bytes]]:
    """The frames of each protocol with a secret of its login."""
    return {
        "AMQP 1.0": [
            frame("sasl-init", mechanism="PLAIN", initial_response=b"\0ada\0" + secret),
            frame("sasl-challenge", challenge=secret),
            frame("sasl-response", response=secret),
            frame("sasl-outcome", code=0, additional_data=secret),
        ],
        "AMQP 0-9-1": [
            methods_091(
                spec091.ConnectionStartOk(
                    client_properties={}, mechanism="PLAIN", response=b"\0ada\0" + secret, locale="en_US"
                )
            ),
            methods_091(spec091.ConnectionSecure(challenge=secret)),
            methods_091(spec091.ConnectionSecureOk(response=secret)),
            methods_091(spec091.ConnectionUpdateSecret(new_secret=secret, reason="")),
        ],
        "AMQP/Fast": [
            frame_of(
                spec_fast.ConnectionResponse(
                    mechanism="PLAIN", responses={"LOGIN": "ada", "PASSWORD": secret.decode()}
                )
            )
        ],
    }


@given(PASSWORDS)
def test_no_password_is_in_any_text(password: str) -> None:
    async def run() -> None:
        for protocol, octets in logins(password.encode()).items():
            watch, _, _ = on_line(protocol, payload=200)
            for octets_of_frame in octets:
                watch.read(octets_of_frame)
                watch.written(octets_of_frame)
            frames = (await watch.frames()).frames
            assert len(frames) == 2 * len(octets)
            for each in frames:
                shown = f"{each.text} {each.fields}"
                for form in (password, repr(password)[1:-1], password.encode().hex()):
                    assert form not in shown
                assert base64.b64encode(password.encode()).decode() not in shown
                assert password.encode() not in each.payload
            watch.close()

    trio.run(run)
