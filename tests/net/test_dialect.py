"""Several dialects on one port, selected by the first octets, with equal limits."""

from __future__ import annotations

import logging
import random
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.amqp10.peer.authority import believing, serving
from tests.amqp10.peer.helpers import acceptor, idle, listening, never
from tests.naive.peer import ScriptedPeer
from tests.naive.performatives import header
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.net.dialect import choose
from trio_amqp10.net.errors import ConnectionClosedError
from trio_amqp10.net.tls_stream import start_tls
from trio_amqp10.net.transport_layers import Transport
from trio_amqp10.net.websocket import dial_websocket

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio_amqp10.net.listener import Listener

LINES = b"LINES\0\0\1"


class Lines:
    """A toy dialect of lines after its header; each is echoed, ``open`` opens."""

    name = "lines"

    def __init__(self) -> None:
        self.accepted: list[amqp.AcceptedConnection] = []

    def claims(self, head: bytes) -> bool | None:
        return head == LINES if len(head) == len(LINES) else LINES.startswith(head) and None

    async def serve(self, accepted: amqp.AcceptedConnection) -> None:
        self.accepted.append(accepted)
        stream, data = accepted.transport.stream, accepted.transport.head.removeprefix(LINES)
        while True:
            *lines, data = data.split(b"\n")
            for line in lines:
                if line == b"open":
                    accepted.opened()
                await self.answer(stream, line)
            more = await stream.receive_some(1000)
            if not more:
                return
            data += bytes(more)

    async def answer(self, stream: trio.abc.Stream, line: bytes) -> None:
        await stream.send_all(line + b"\n")


class Claiming:
    """A dialect that claims its prefix, and stores the octets that it was asked about."""

    def __init__(self, prefix: bytes, answer: bool | None = True) -> None:
        self.name = repr(prefix)
        self.prefix = prefix
        self.answer = answer
        self.asked: list[bytes] = []

    def claims(self, head: bytes) -> bool | None:
        self.asked.append(head)
        if not (head.startswith(self.prefix) or self.prefix.startswith(head)):
            return False
        return self.answer if len(head) >= len(self.prefix) else None

    async def serve(self, accepted: amqp.AcceptedConnection) -> None:
        raise AssertionError(self.name)


# -- the choice -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize(
    ("octets", "name", "head"),
    [
        (b"\x80\x01 and more", b"\x80\x01", b"\x80\x01"),
        (b"AMQP\0\0\x09\1 and more", b"AMQP\0\0\x09", b"AMQP\0\0\x09"),
        (b"AMQP\0\1\0\0", b"last", b"AMQP\0\1"),
        (b"GET / HTTP", b"last", b"G"),
        (b"\x80\x02", b"last", b"\x80\x02"),
    ],
)
async def test_choice_is_made_by_the_first_octets_that_decide(
    octets: bytes, name: bytes, head: bytes, size: int
) -> None:
    dialects = [Claiming(b"\x80\x01"), Claiming(b"AMQP\0\0\x09"), Claiming(b"last")]
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:

        async def send() -> None:
            for start in range(0, len(octets), size):
                await theirs.send_all(octets[start : start + size])
                await wait_all_tasks_blocked()

        nursery.start_soon(send)
        dialect, transport = await choose(Transport(stream=ours), dialects, None)
    assert dialect.name == repr(name)
    assert transport.head.startswith(head)
    assert octets.startswith(transport.head)
    assert len(transport.head) < len(head) + size
    assert len(transport.head) <= 8
    rest = len(octets) - len(transport.head)
    assert bytes(await ours.receive_some(100) if rest else b"") == octets[len(transport.head) :]
    assert dialects[-1].asked == []


async def test_choice_reads_nothing_when_there_is_one_dialect_only() -> None:
    ours, _ = memory_stream_pair()
    only = Claiming(b"x")
    assert await choose(Transport(stream=ours, head=b"y"), [only], 0.0) == (
        only,
        Transport(stream=ours, head=b"y"),
    )


async def test_choice_begins_with_what_was_read_already() -> None:
    ours, _ = memory_stream_pair()
    first, last = Claiming(b"ab"), Claiming(b"")
    dialect, transport = await choose(Transport(stream=ours, head=b"abc"), [first, last], 0.0)
    assert dialect is first
    assert transport.head == b"abc"


async def test_choice_prefers_the_first_of_several_that_claim() -> None:
    ours, theirs = memory_stream_pair()
    slow, fast, last = Claiming(b"abcd"), Claiming(b"a"), Claiming(b"")
    await theirs.send_all(b"abcd")
    dialect, _ = await choose(Transport(stream=ours), [slow, fast, last], None)
    assert dialect is slow
    assert fast.asked == []


async def test_choice_takes_no_answer_after_eight_octets_for_no() -> None:
    ours, theirs = memory_stream_pair()
    undecided, last = Claiming(b"a", answer=None), Claiming(b"")
    await theirs.send_all(b"abcdefghijk")
    dialect, transport = await choose(Transport(stream=ours), [undecided, last], None)
    assert dialect is last
    assert transport.head == b"abcdefgh"


@pytest.mark.parametrize("octets", [b"", b"LIN"])
@pytest.mark.parametrize("end", ["silence", "eof"])
async def test_choice_ends_without_the_octets_that_decide(
    octets: bytes, end: str, autojump_clock: MockClock
) -> None:
    ours, theirs = memory_stream_pair()
    await theirs.send_all(octets)
    if end == "eof":
        await theirs.send_eof()
    began = trio.current_time()
    with pytest.raises(ConnectionClosedError, match="before its protocol header"):
        await choose(Transport(stream=ours), [Lines(), Claiming(b"")], 3.0)
    assert trio.current_time() - began == pytest.approx(3.0 if end == "silence" else 0.0)


def test_amqp_1_0_claims_its_three_headers_and_no_other() -> None:
    [dialect] = acceptor().reception(never).dialects
    for name in ("amqp", "tls", "sasl"):
        for size in range(1, 8):
            assert dialect.claims(header(name)[:size]) is None
        assert dialect.claims(header(name)) is True
    for octets in (b"G", b"AMQP\1", b"AMQP\0\0\x09\1", b"AMQP\0\1\0\1"):
        assert dialect.claims(octets) is False


# -- on one port ------------------------------------------------------------------------------


async def over_tcp(listener: Listener) -> trio.abc.Stream:
    return await trio.open_tcp_stream("127.0.0.1", listener.port)


async def over_tls(listener: Listener) -> trio.abc.Stream:
    stream = await over_tcp(listener)
    return await start_tls(stream, believing(), server_hostname="localhost")


async def over_websocket(listener: Listener) -> trio.abc.Stream:
    return await dial_websocket(await over_tcp(listener), "localhost", "/")


async def say(stream: trio.abc.Stream, octets: bytes, answer: bytes, *, size: int = 1000) -> None:
    """Send octets, ``size`` at a time, and receive the answer."""
    for start in range(0, len(octets), size):
        await stream.send_all(octets[start : start + size])
    received = b""
    while len(received) < len(answer):
        data = await stream.receive_some(100)
        assert data, received
        received += bytes(data)
    assert received == answer


@pytest.mark.parametrize("size", [1, 3, 8, 1000])
@pytest.mark.parametrize(
    ("dial", "scheme"),
    [(over_tcp, "amqp"), (over_tls, "amqps"), (over_tls, "amqp+tls"), (over_websocket, "amqpws")],
)
async def test_one_port_serves_two_dialects_on_the_same_layers(
    dial: Callable[[Listener], Awaitable[trio.abc.Stream]], scheme: str, size: int
) -> None:
    lines = Lines()
    async with (
        listening(idle, detect=True, ssl_context=serving(), dialects=[lines]) as [listener],
        await dial(listener) as stream,
    ):
        await say(stream, LINES + b"one\ntwo\n", b"one\ntwo\n", size=size)
        url = f"{scheme}://{listener.url.partition('://')[2]}"
        secure = scheme in ("amqps", "amqp+tls")
        async with amqp.open_connection(url, ssl_context=believing() if secure else None):
            pass
        await say(stream, b"three\n", b"three\n", size=size)
    [accepted] = lines.accepted
    layers = {over_tcp: (), over_tls: ("tls",), over_websocket: ("websocket",)}
    assert accepted.transport.layers == layers[dial]
    assert accepted.host == "127.0.0.1"
    assert accepted.private


async def test_dialect_is_given_the_facts_of_its_connection() -> None:
    lines, users = Lines(), amqp.sasl.Server({"ann": "s3cret"})
    limits = amqp.Limits(handshake_timeout=20.0)
    context = serving()
    async with (
        listening(
            idle,
            "amqps://127.0.0.1:0",
            ssl_context=context,
            dialects=[lines],
            sasl=users,
            limits=limits,
            allow_plaintext_password=True,
            max_failures=2,
        ) as [listener],
        await over_tls(listener) as stream,
    ):
        await say(stream, LINES + b"x\n", b"x\n")
        [accepted] = lines.accepted
        assert accepted.sasl is users
        assert accepted.allow_plaintext_password
        assert accepted.transport.server_name == "localhost"
        assert accepted.transport.channel_bindings.keys() == {"tls-server-end-point"}
        assert accepted.deadline - accepted.began == pytest.approx(20.0)
        assert 0 <= trio.current_time() - accepted.began < 20
        assert "127.0.0.1" in accepted.name
        for _ in range(2):
            assert accepted.failures.permits("ann")
            accepted.failures.failed("ann")
        assert not accepted.failures.permits("ann")
        with pytest.raises(amqp.sasl.AuthenticationError, match="a later attempt may succeed"):
            await amqp.open_connection(
                f"amqps://ann:s3cret@127.0.0.1:{listener.port}", ssl_context=believing()
            ).__aenter__()


@pytest.mark.parametrize("users", [None, {"ann": "s3cret"}])
async def test_header_that_no_dialect_claims_is_answered_by_that_of_amqp_1_0(users: Any) -> None:
    sasl = amqp.sasl.Server(users) if users else None
    dice = random.Random(4)
    async with listening(never, dialects=[Lines(), Claiming(b"AMQP\0\0\x09")], sasl=sasl) as [listener]:
        for octets in (b"LINES\0\0\2", b"AMQP\1\1\0\x0a", b"HELO there\r\n", b"\xff", dice.randbytes(100)):
            async with await trio.open_tcp_stream("127.0.0.1", listener.port) as stream:
                peer = ScriptedPeer(stream)
                await peer.send(octets)
                await peer.expect_header("sasl" if users else "amqp")
                await peer.expect_eof()


async def test_container_serves_other_dialects_beside_its_own() -> None:
    container = amqp.Container("c")
    container.add_queue("q")
    async with trio.open_nursery() as nursery:
        serve = partial(container.serve, "amqp://127.0.0.1:0", dialects=[Lines()])
        [listener] = await nursery.start(serve)
        async with await over_tcp(listener) as stream:
            await say(stream, LINES + b"x\n", b"x\n")
        async with amqp.open_connection(listener.url) as conn, conn.open_sender("q") as sender:
            await sender.send("x")
        nursery.cancel_scope.cancel()


# -- what stands for handshakes ---------------------------------------------------------------


@pytest.mark.parametrize("octets", [b"", b"LIN"])
async def test_peer_that_stays_silent_in_its_header_is_sent_away(
    octets: bytes, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trio_amqp10.listen")
    ours, theirs = memory_stream_pair()
    limits = amqp.Limits(header_timeout=4.0, handshake_timeout=7.0)
    accepting = acceptor(limits=limits)
    reception = accepting.reception(never, [Lines()])
    async with trio.open_nursery() as nursery:
        began = trio.current_time()
        nursery.start_soon(reception.receive, ours, never, trio.CancelScope())
        await theirs.send_all(octets)
        assert await theirs.receive_some(100) == b""
        # Without a header_timeout the handshake as a whole has an end.
        assert trio.current_time() - began <= 7.0
    assert "did not complete the handshake" in caplog.text


@pytest.mark.parametrize("opens", [False, True])
async def test_dialect_has_to_open_within_the_time_for_handshakes(
    opens: bool, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trio_amqp10.listen")
    ours, theirs = memory_stream_pair()
    opened: list[bool] = []
    accepting = acceptor(limits=amqp.Limits(handshake_timeout=7.0))
    reception = accepting.reception(never, [Lines()])
    async with trio.open_nursery() as nursery:
        began = trio.current_time()
        nursery.start_soon(reception.receive, ours, lambda: opened.append(True), trio.CancelScope())
        await say(theirs, LINES + (b"open\n" if opens else b"shut\n"), b"open\n" if opens else b"shut\n")
        if opens:
            await trio.sleep(100)
            await say(theirs, b"x\n", b"x\n")
            await theirs.aclose()
        else:
            assert await theirs.receive_some(100) == b""
            assert 7.0 <= trio.current_time() - began <= 12.0 + 1e-6
    assert opened == [True] * opens
    assert ("did not open its lines connection in time" in caplog.text) is not opens


async def test_handshakes_of_every_dialect_have_places_by_host() -> None:
    async with listening(idle, dialects=[Lines()], max_handshakes=1) as [listener]:
        first, second = await over_tcp(listener), await over_tcp(listener)
        async with first, second:
            await say(first, LINES + b"one\n", b"one\n")
            await second.send_all(LINES + b"two\n")
            with trio.move_on_after(0.2):
                raise AssertionError(await second.receive_some(100))
            await say(first, b"open\n", b"open\n")
            await say(second, b"", b"two\n")


class Failing(Lines):
    """Fails at the line ``fail``, and breaks the rules at ``break``."""

    async def answer(self, stream: trio.abc.Stream, line: bytes) -> None:
        if line == b"fail":
            raise ZeroDivisionError("lines")
        if line == b"break":
            raise RemoteProtocolError("no such line")
        await super().answer(stream, line)


@pytest.mark.parametrize(
    ("line", "level"),
    [
        pytest.param(b"fail", logging.ERROR, id="fault", marks=pytest.mark.logs_errors),
        pytest.param(b"break", logging.INFO, id="peer's fault"),
    ],
)
async def test_dialect_that_raises_ends_its_connection_and_no_other(
    line: bytes, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "trio_amqp10.listen")
    async with listening(idle, dialects=[Failing()]) as [listener]:
        first, second = await over_tcp(listener), await over_tcp(listener)
        async with first, second:
            await say(first, LINES + b"one\n", b"one\n")
            await say(second, LINES + b"two\n", b"two\n")
            await first.send_all(line + b"\n")
            assert await first.receive_some(100) == b""
            await say(second, b"three\n", b"three\n")
    assert [record.levelno for record in caplog.records if record.name == "trio_amqp10.listen"] == [level]


async def test_dialect_is_cancelled_with_its_listener() -> None:
    async with listening(idle, dialects=[Lines()]) as [listener]:
        stream = await over_tcp(listener)
        await say(stream, LINES + b"one\n", b"one\n")
    async with stream:
        assert await stream.receive_some(100) == b""
