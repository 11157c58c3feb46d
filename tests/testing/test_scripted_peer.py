"""The scripted peer: both roles, against our own connections, and every way to be told of a difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from tests.naive.performatives import empty_frame, frame, header, raw_frame
from trio_amqp10.amqp10.spec.messaging import Rejected
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.testing import (
    Begin,
    Close,
    Disposition,
    End,
    Flow,
    Open,
    Role,
    ScriptedPeer,
    Transfer,
    memory_stream_pair,
    open_container,
    scripted_stream,
)

if TYPE_CHECKING:
    from trio.testing import MockClock


async def peers(*octets: bytes) -> ScriptedPeer:
    """A scripted peer to whom these octets were written, and then nothing."""
    ours, theirs = memory_stream_pair()
    if octets:
        await ours.send_all(b"".join(octets))
    peer = ScriptedPeer(theirs)
    peer.other = ours  # type: ignore[attr-defined]  # or it would be closed
    return peer


async def failure(peer: ScriptedPeer, *args: Any, **fields: Any) -> str:
    with pytest.raises(AssertionError) as raised:
        await peer.expect(*args, **fields)
    return str(raised.value)


# -- against our own connections ------------------------------------------------------------------


async def test_scripted_peer_is_dialled_and_takes_a_message() -> None:
    async def script(peer: ScriptedPeer) -> None:
        opened = await peer.accept_open(container_id="box")
        assert opened.container_id == "tester"
        await peer.accept_begin()
        attach = await peer.accept_attach(credit=1)
        assert attach.target.address == "orders"
        transfer = await peer.expect(Transfer, handle=0, payload=amqp.Message("tea").to_payload())
        no = Rejected(error=Error(condition="amqp:not-allowed", description="no tea"))
        await peer.send(
            Disposition(role=Role.RECEIVER, first=transfer.delivery_id or 0, settled=True, state=no)
        )
        await peer.grant(1)
        await peer.expect(Transfer, delivery_id=1)
        await peer.send(Disposition(role=Role.RECEIVER, first=1, settled=True, state=amqp.Accepted()))
        await peer.accept_close()
        await peer.expect_eof()

    async with (
        scripted_stream(script) as stream,
        amqp.open_connection(stream, container_id="tester") as connection,
        connection.open_sender("orders") as sender,
    ):
        assert connection.remote.container_id == "box"
        with pytest.raises(amqp.DeliveryRejectedError, match="no tea"):
            await sender.send("tea")
        await sender.send("coffee")


async def test_scripted_peer_sends_messages_to_a_receiver() -> None:
    async def script(peer: ScriptedPeer) -> None:
        await peer.accept_open()
        await peer.accept_begin()
        await peer.accept_attach()
        await peer.expect(Flow, link_credit=2)
        for number, tag in enumerate((b"one", b"two")):
            await peer.send(
                Transfer(handle=0, delivery_id=number, delivery_tag=tag), payload=f"message {number}"
            )
        await peer.skip_to(Disposition, first=0, last=1, state=amqp.Accepted())
        await peer.accept_close()

    async with (
        scripted_stream(script) as stream,
        amqp.open_connection(stream) as connection,
        connection.open_receiver("orders", credit=2) as receiver,
    ):
        deliveries = [await receiver.receive() for _ in range(2)]
        assert [each.message.body for each in deliveries] == ["message 0", "message 1"]
        for delivery in deliveries:
            delivery.accept()


async def test_scripted_peer_dials_a_container_and_sends_and_receives() -> None:
    async with open_container(["orders"], name="box") as container, trio.open_nursery() as nursery:
        [listener] = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        async with await ScriptedPeer.dial(listener.url) as peer:
            assert (await peer.open()).container_id == "box"
            await peer.begin(channel=3)
            attached = await peer.attach("orders", Role.SENDER, channel=3)
            assert attached.target.address == "orders"
            await peer.expect(Flow, handle=attached.handle, link_credit=lambda credit: credit > 0)
            await peer.send(
                Transfer(handle=0, delivery_id=0, delivery_tag=b"t"), channel=3, payload=amqp.Message("tea")
            )
            await peer.skip_to(Disposition, state=amqp.Accepted(), settled=True)
            receiving = await peer.attach("orders", Role.RECEIVER, handle=1, channel=3)
            await peer.grant(1, handle=1, channel=3, drain=True)
            await peer.skip_to(Transfer, handle=receiving.handle)
            assert peer.last is not None
            assert amqp.Message.from_payload(peer.last.payload).body == "tea"
            await peer.close()
            await peer.expect_eof()
        nursery.cancel_scope.cancel()


# -- what is expected, and what came --------------------------------------------------------------


async def test_expect_gives_the_performative_and_keeps_the_frame() -> None:
    peer = await peers(header(), frame("transfer", channel=2, payload=b"abc", handle=1))
    await peer.expect_header()
    transfer = await peer.expect(Transfer, channel=2, payload=b"abc", handle=1, delivery_id=None)
    assert transfer == Transfer(handle=1)
    assert peer.last is not None
    assert (peer.last.channel, peer.last.payload) == (2, b"abc")
    assert peer.transcript == ["<- header AMQP 0 1.0.0 (AMQP)", "<- [2] Transfer(handle=1) + 3 octets"]


async def test_expect_shows_another_frame_and_a_broken_one() -> None:
    assert "expected Begin, got [0] End()" in await failure(await peers(frame("end")), Begin)
    assert "got 9 octets: expected a performative, got 0x40" in await failure(
        await peers(raw_frame(b"\x40")), Begin
    )
    assert "got 8 octets: frame size 7 is" in await failure(await peers(b"\0\0\0\7\2\0\0\0"), Begin)


async def test_expect_takes_octets_however_they_come(autojump_clock: MockClock) -> None:
    peer = await peers(b"HTTP/1.1 ")
    other = peer.other  # type: ignore[attr-defined]
    await other.send_all(b"404 and more")
    assert await peer.expect(b"HTTP/1.1 404") == b"HTTP/1.1 404"
    text = await failure(peer, b" and less")
    assert text.splitlines()[:3] == [
        "expected 9 octets:",
        "    - 000000  20 61 6e 64 20 6c 65 73 73                        and less",
        "    + 000000  20 61 6e 64 20 6d 6f 72 65                        and more",
    ]
    text = await failure(peer, b" and more than that")
    assert "only 9 octets arrived in 5 s" in text


async def test_waiting_fails_in_time_with_what_there_is(autojump_clock: MockClock) -> None:
    peer = await peers(b"\0\0")
    before = trio.current_time()
    text = await failure(peer, Open)
    assert trio.current_time() - before == pytest.approx(5)
    assert text.splitlines() == [
        "expected Open, but nothing arrived for 5 s",
        "unread:",
        "    2 octets: the stream ends within it",
        "000000  00 00                                            ..",
        "after:",
        "    (nothing)",
    ]


async def test_waiting_fails_at_the_end_of_the_stream() -> None:
    peer = await peers()
    await peer.other.aclose()  # type: ignore[attr-defined]
    assert "expected Open, but the stream has ended" in await failure(peer, Open)
    assert "expected 1 octets" in await failure(peer, b"x")
    with pytest.raises(AssertionError, match="the peer has closed the stream"):
        await peer.send(End())


async def test_waiting_fails_where_the_stream_breaks() -> None:
    class Broken(trio.abc.Stream):
        async def receive_some(self, max_bytes: int | None = None) -> bytes:
            raise trio.BrokenResourceError("reset")

        async def send_all(self, data: object) -> None: ...
        async def wait_send_all_might_not_block(self) -> None: ...
        async def aclose(self) -> None: ...

    peer = ScriptedPeer(Broken())
    assert "the stream broke: reset" in await failure(peer, Open)
    await peer.expect_eof()


async def test_empty_frames_are_passed_over_unless_expected(autojump_clock: MockClock) -> None:
    peer = await peers(empty_frame(), empty_frame(), frame("end"))
    await peer.expect_empty()
    await peer.expect(End)
    with pytest.raises(AssertionError, match=r"expected an empty frame, got \[0\] End"):
        await (await peers(frame("end"))).expect_empty()
    await (await peers(empty_frame())).expect_nothing(100)
    other = ScriptedPeer(peer.other)  # type: ignore[attr-defined]
    await peer.send_empty()
    await other.expect_empty()


async def test_expect_nothing_shows_what_came(autojump_clock: MockClock) -> None:
    peer = await peers(empty_frame(), frame("end"))
    with pytest.raises(AssertionError, match="expected nothing\nunread:\n    \\[0\\] End"):
        await peer.expect_nothing(1)
    ended = await peers()
    await ended.other.aclose()  # type: ignore[attr-defined]
    with pytest.raises(AssertionError, match="expected nothing\nthe stream has ended"):
        await ended.expect_nothing(1)


async def test_expect_eof_wants_the_end_and_nothing_before(autojump_clock: MockClock) -> None:
    peer = await peers(empty_frame())
    with pytest.raises(AssertionError, match="expected the end of the stream"):
        await peer.expect_eof()
    await peer.other.aclose()  # type: ignore[attr-defined]
    await peer.expect_eof()
    assert peer.transcript[-1] == "<- the end of the stream"
    with pytest.raises(AssertionError, match="End"):
        await (await peers(frame("end"))).expect_eof()


async def test_next_and_skip_to_take_what_comes() -> None:
    peer = await peers(header(), frame("end"), frame("close", error=("error", {"condition": "a:b"})))
    assert (await peer.next()).is_header
    close = await peer.skip_to(Close, error=lambda error: error is not None)
    assert close.error is not None
    peer = await peers(frame("end"), frame("close"))
    with pytest.raises(AssertionError, match="error: expected"):
        await peer.skip_to(Close, error=lambda error: error is not None)
