"""Bad input over a real socket: the condition of the standard, a closed connection, and nobody else disturbed.

One test for each row of the reaction table that a listener meets.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair

import trio_amqp10 as amqp
from tests.naive.peer import ScriptedPeer
from tests.naive.performatives import empty_frame, frame, header, raw_frame
from trio_amqp10.amqp10.engine.limits import Limits

from .helpers import Node, acceptor, listening, never

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

USERS = amqp.sasl.Server(users={"ann": "s3cret"})
QUICK = amqp.Limits(header_timeout=1.0, handshake_timeout=2.0, write_stall=1.0)
"""Soon for a test, and far from what somebody needs who is quick himself on a machine that is busy."""


@asynccontextmanager
async def stranger(
    limits: amqp.Limits | None = None, sasl: amqp.sasl.Server | None = None
) -> AsyncGenerator[ScriptedPeer]:
    """A peer on a socket of its own, to a service that somebody else uses, before and after."""
    node = Node()
    url_sasl = None if sasl is None else amqp.sasl.Plain("ann", "s3cret")
    async with (
        listening(node.handle, limits=limits, sasl=sasl) as [listener],
        amqp.open_connection(listener.url, sasl=url_sasl) as good,
        good.open_sender("q") as sender,
    ):
        await sender.send("before")
        async with await trio.open_tcp_stream("127.0.0.1", listener.port) as stream:
            with trio.fail_after(60):
                yield ScriptedPeer(stream)
        await sender.send("after")
    assert node.got == ["before", "after"]


async def closes(peer: ScriptedPeer, condition: str) -> None:
    """It says close with this condition, waits for ours, and goes."""
    got = await peer.skip_to("close")
    assert got["error"][1]["condition"] == condition
    await peer.send(frame("close"))
    await peer.expect_eof()


FIRST_OCTETS = [
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # a TLS hello
    b"AMQP\x00\x00\x09\x01",
    b"AMQP\x01\x01\x00\x0a",
    b"AMQP\x00\x01\x00\x01",
    b"AMQP\x00\x02\x00\x00",
    b"AMQP\x07\x01\x00\x00",
    b"AMQP\x02\x01\x00\x00",
    b"AMQX",
    b"B",
    bytes(4096),
]


@pytest.mark.parametrize("octets", FIRST_OCTETS, ids=repr)
@pytest.mark.parametrize("users", [False, True])
async def test_row_01_wrong_first_octets_get_a_header_that_would_do(octets: bytes, users: bool) -> None:
    async with stranger(sasl=USERS if users else None) as peer:
        await peer.send(octets)
        await peer.expect_header("sasl" if users else "amqp")
        await peer.expect_eof()


async def test_row_01_stranger_is_read_to_its_end_after_the_header_that_would_do() -> None:
    async with stranger() as peer:
        await peer.send(b"GET / HTTP/1.1\r\n")
        await peer.expect_header()
        await peer.expect_eof()
        for _ in range(20):  # a closed socket would answer the first of these with a reset
            await peer.stream.send_all(bytes(65_536))
        assert isinstance(peer.stream, trio.SocketStream)
        await peer.stream.send_eof()


async def test_row_01_stranger_that_never_ends_is_read_for_so_long_and_no_longer(
    autojump_clock: MockClock,
) -> None:
    ours, theirs = lockstep_stream_pair()
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor().run, theirs, never)
        peer = ScriptedPeer(ours)
        await peer.send(b"GET / HTTP/1.1\r\n")
        await peer.expect_header()
        await peer.expect_eof()
        with pytest.raises(trio.BrokenResourceError):
            while True:
                await peer.stream.send_all(b"more")
                await trio.sleep(0.1)
    assert 0.9 <= trio.current_time() - began < 2


async def test_row_02_no_sasl_layer_where_there_are_users_gets_the_header_of_one() -> None:
    async with stranger(sasl=USERS) as peer:
        await peer.send(header(), frame("open", container_id="x"))
        await peer.expect_header("sasl")
        await peer.expect_eof()


async def test_row_05_silence_is_ended() -> None:
    async with stranger(QUICK) as peer:
        await peer.expect_eof()


async def test_row_05_slow_drip_is_ended() -> None:
    async with stranger(QUICK) as peer:
        began = trio.current_time()
        with pytest.raises(trio.BrokenResourceError):
            for octet in header() * 100:
                await peer.stream.send_all(bytes([octet]))
                await trio.sleep(0.04)
        assert trio.current_time() - began < 10


async def test_row_05_header_without_an_open_is_ended() -> None:
    async with stranger(QUICK) as peer:
        await peer.send(header())
        await peer.expect_header()
        await peer.expect_eof()


async def test_row_10_frames_of_the_wrong_layer_end_the_connection() -> None:
    async with stranger(sasl=USERS) as peer:
        await peer.send(header("sasl"))
        await peer.expect_header("sasl")
        await peer.expect("sasl-mechanisms")
        await peer.send(frame("open", container_id="x"))
        await peer.expect_eof()


@pytest.mark.parametrize(
    "octets",
    [
        b"\0\0\0\0",
        b"\0\0\0\x07\x02\0\0\0",
        b"\0\0\0\x08\x01\0\0\0",
        b"\0\0\0\x08\x00\0\0\0",
        b"\0\0\0\x08\x03\0\0\0",
        b"\0\0\0\x0c\x02\x07\0\0abcd",
        frame("sasl-outcome", code=0),
    ],
    ids=repr,
)
async def test_row_19_broken_frame_header_is_a_framing_error(octets: bytes) -> None:
    async with stranger() as peer:
        await peer.dial_open()
        await peer.send(octets)
        await closes(peer, "amqp:connection:framing-error")


@pytest.mark.parametrize("size", [Limits().max_frame_size + 1, 1 << 20, 0xFFFFFFFF])
async def test_row_20_frame_larger_than_agreed_is_refused_by_its_first_four_octets(size: int) -> None:
    async with stranger() as peer:
        await peer.dial_open()
        await peer.send(size.to_bytes(4, "big"))
        await closes(peer, "amqp:connection:framing-error")


async def test_row_20_frame_larger_than_agreed_is_refused_before_the_open_too() -> None:
    async with stranger() as peer:
        await peer.send(header(), (100_000).to_bytes(4, "big"))
        await peer.expect_header()
        await closes(peer, "amqp:connection:framing-error")


@pytest.mark.parametrize(
    ("octets", "condition"),
    [
        (frame("begin", next_outgoing_id=0, incoming_window=1, outgoing_window=1), "framing-error"),
        (frame("open", container_id="x", channel=3), "framing-error"),
        (empty_frame(), "framing-error"),
    ],
)
async def test_row_21_anything_before_the_open_is_a_framing_error(octets: bytes, condition: str) -> None:
    async with stranger() as peer:
        await peer.send(header(), octets)
        await peer.expect_header()
        await closes(peer, f"amqp:connection:{condition}")


async def test_row_21_second_open_is_an_illegal_state() -> None:
    async with stranger() as peer:
        await peer.dial_open()
        await peer.send(frame("open", container_id="again"))
        await closes(peer, "amqp:illegal-state")


async def test_row_23_frame_on_a_channel_that_is_not_mapped_is_not_allowed() -> None:
    async with stranger() as peer:
        await peer.dial_open()
        await peer.send(frame("end", channel=9))
        await closes(peer, "amqp:not-allowed")


@pytest.mark.parametrize(
    "body",
    [
        b"\x00\x53\x11\xc0\x09\x04\x40\x43",  # truncated
        b"\x00\x53\x11\xc0\x02\x04\x40",
        b"\x00\x53\x10\xc0\x04\x01\xa1\x01\xff",  # not UTF-8
        b"\x00\x53\x17\xd0\xff\xff\xff\xff\xff\xff\xff\xff",  # a size beyond all
        b"\x00" * 2000,  # as deep as it is long
    ],
    ids=repr,
)
async def test_row_24_octets_that_are_no_value_are_a_decode_error(body: bytes) -> None:
    async with stranger() as peer:
        await peer.dial_open()
        await peer.stream.send_all(raw_frame(body))
        await closes(peer, "amqp:decode-error")


async def test_row_34_flood_of_empty_frames_is_too_much() -> None:
    async with stranger() as peer:
        await peer.dial_open()
        await peer.send(empty_frame() * 1000)
        await closes(peer, "amqp:resource-limit-exceeded")


async def test_row_36_silence_after_the_open_is_too_much() -> None:
    node = Node()
    async with listening(node.handle, idle_timeout=0.2) as [listener]:
        peer = ScriptedPeer(await trio.open_tcp_stream("127.0.0.1", listener.port))
        await peer.dial_open()
        await closes(peer, "amqp:resource-limit-exceeded")
        await peer.aclose()


@pytest.mark.parametrize(
    "octets",
    [
        frame("flow", next_incoming_id=0, incoming_window=1, next_outgoing_id=0, outgoing_window=1, handle=7),
        frame("transfer", handle=7, delivery_id=0, delivery_tag=b"t"),
        frame("detach", handle=7),
    ],
)
async def test_row_42_frame_for_an_unknown_handle_ends_its_session(octets: bytes) -> None:
    async with stranger() as peer:
        await peer.dial_open()
        await peer.dial_begin()
        await peer.send(octets)
        await peer.expect("end", error=("error", {"condition": "amqp:session:unattached-handle"}))
        await peer.send(frame("end"))
        await peer.dial_begin()
        await peer.send(frame("close"))
        await peer.expect("close", error=None)
        await peer.expect_eof()


async def test_row_63_peer_that_does_not_read_is_given_up() -> None:
    lost = trio.Event()

    async def handle(conn: amqp.Connection) -> None:
        try:
            async for link in conn.incoming_links():
                assert isinstance(link, amqp.IncomingSender)
                async with link.accept() as sender:
                    while True:
                        await sender.transmit(b"x" * 60_000)
        except amqp.ConnectionClosedError:
            lost.set()
            raise

    async with listening(handle, limits=QUICK) as [listener]:
        stream = await trio.open_tcp_stream("127.0.0.1", listener.port)
        peer = ScriptedPeer(stream)
        await peer.dial_open()
        windows: dict[str, Any] = {"next_outgoing_id": 0, "incoming_window": 100_000, "outgoing_window": 1}
        await peer.dial_begin(**windows)
        await peer.send(
            frame("attach", name="n", handle=0, role=True, source=("source", {}), target=("target", {})),
            frame("flow", **windows, next_incoming_id=0, handle=0, delivery_count=0, link_credit=100_000),
        )
        with trio.fail_after(60):
            await lost.wait()
        await stream.aclose()


async def test_row_66_text_of_the_peer_is_bounded_and_escaped(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    async with stranger() as peer:
        await peer.dial_open(container_id="\x1b[2J" + "x" * 300)
        text = "\x1b[31m%s%n{0}" + "y" * 4000
        await peer.send(frame("close", error=("error", {"condition": "x:y", "description": text})))
        await peer.expect("close")
        await peer.expect_eof()
    assert "\x1b" not in caplog.text
    assert "y" * 1100 not in caplog.text


async def test_hundred_hostile_peers_leave_the_service_as_it_was() -> None:
    async with stranger(QUICK) as peer:
        assert isinstance(peer.stream, trio.SocketStream)
        port: int = peer.stream.socket.getpeername()[1]
        starts = [
            b"",
            b"junk",
            header(),
            header() + b"\0",
            header() + frame("open", container_id="x"),
            header("sasl"),
            header() + frame("open", container_id="x") + b"\xff" * 1000,
            header() + frame("open", container_id="x") + frame("begin", channel=1),
        ]

        async def one(octets: bytes, rude: bool) -> None:
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            with trio.move_on_after(0.3 if rude else 20):
                try:
                    await stream.send_all(octets)
                    while await stream.receive_some():
                        pass
                except trio.BrokenResourceError:
                    pass
            await trio.aclose_forcefully(stream)

        async with trio.open_nursery() as nursery:
            for number in range(96):
                octets = starts[number % len(starts)]
                nursery.start_soon(one, octets, octets.startswith(header() + frame("open", container_id="x")))
