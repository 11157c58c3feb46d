"""AMQP in a WebSocket: the handshake from both sides, messages, control frames, and the end (RFC 6455)."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import (
    MockClock,
    check_two_way_stream,
    lockstep_stream_pair,
    memory_stream_pair,
    wait_all_tasks_blocked,
)
from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    Request,
    TextMessage,
)
from wsproto.extensions import PerMessageDeflate

import trio_amqp10 as amqp
from tests.amqp10.peer.authority import authority, serving
from tests.amqp10.peer.helpers import Node, acceptor, idle, listening, never
from tests.naive.performatives import header
from trio_amqp10.net.websocket import WebSocketStream, accept_websocket, dial_websocket

if TYPE_CHECKING:
    from collections.abc import Callable

CA = str(authority().cafile)


async def dial(where: Any, **options: Any) -> None:
    async with amqp.open_connection(where, **options):
        pass


async def websocket_pair(
    make: Callable[[], tuple[trio.abc.Stream, trio.abc.Stream]] = memory_stream_pair,
) -> tuple[WebSocketStream, WebSocketStream]:
    ours, theirs = make()
    pair: dict[str, WebSocketStream] = {}

    async def accept() -> None:
        pair["server"] = await accept_websocket(theirs, path="/", origins=())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept)
        pair["client"] = await dial_websocket(ours, "h", "/")
    return pair["client"], pair["server"]


class Raw:
    """The other side of a WebSocket, frame by frame."""

    def __init__(self, stream: trio.abc.Stream, connection: WSConnection) -> None:
        self.stream = stream
        self.connection = connection

    @classmethod
    async def dialled(cls, stream: trio.abc.Stream, **options: Any) -> Raw:
        """Of ``accept_websocket``."""
        raw = cls(stream, WSConnection(ConnectionType.CLIENT))
        await raw.send(Request(host="h", target="/", subprotocols=["amqp"], **options))
        assert isinstance(await raw.receive(), AcceptConnection)
        return raw

    async def send(self, *events: Event) -> None:
        await self.stream.send_all(b"".join(self.connection.send(event) for event in events))

    async def receive(self) -> Event | None:
        while True:
            for event in self.connection.events():
                return event
            data = await self.stream.receive_some(100_000)
            if not data:
                return None
            self.connection.receive_data(bytes(data))


async def raw_pair(
    make: Callable[[], tuple[trio.abc.Stream, trio.abc.Stream]] = memory_stream_pair, **options: Any
) -> tuple[WebSocketStream, Raw]:
    ours, theirs = make()
    made: list[WebSocketStream] = []

    async def accept() -> None:
        made.append(await accept_websocket(ours, path="/", origins=()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accept)
        raw = await Raw.dialled(theirs, **options)
    return made[0], raw


# -- a stream like any other ----------------------------------------------------------------


@pytest.mark.parametrize("make", [memory_stream_pair, lockstep_stream_pair], ids=["memory", "lockstep"])
@pytest.mark.parametrize("order", [1, -1], ids=["client first", "server first"])
async def test_websocket_is_a_stream_as_trio_has_them(
    make: Any, order: int, autojump_clock: MockClock
) -> None:
    async def pair() -> tuple[WebSocketStream, WebSocketStream]:
        first, second = (await websocket_pair(make))[::order]
        return first, second

    await check_two_way_stream(pair, None)


@pytest.mark.parametrize("scheme", ["amqpws", "amqpwss"])
async def test_messages_cross_a_websocket(scheme: str) -> None:
    node = Node(bodies=(b"x" * 300_000, "y"))
    options: dict[str, Any] = {"cafile": CA} if scheme == "amqpwss" else {}
    context = serving() if scheme == "amqpwss" else None
    async with (
        listening(node.handle, f"{scheme}://127.0.0.1:0", ssl_context=context) as [listener],
        amqp.open_connection(f"{listener.url}/some/where", **options) as conn,
    ):
        assert listener.url == f"{scheme}://127.0.0.1:{listener.port}"
        async with conn.open_sender("q") as sender:
            for size in (0, 125, 126, 65_536, 3_000_000):
                await sender.send(bytes(size))
        async with conn.open_receiver("source") as receiver:
            for body in node.bodies:
                delivery = await receiver.receive()
                assert delivery.message.body == body
                delivery.accept()
    assert [len(body) for body in node.got] == [0, 125, 126, 65_536, 3_000_000]


async def test_sasl_and_its_roles_are_inside_a_websocket_as_over_tcp() -> None:
    seen: list[amqp.sasl.Identity | None] = []

    async def handle(connection: amqp.Connection) -> None:
        seen.append(connection.identity)
        await idle(connection)

    users = amqp.sasl.Server({"ada": "secret"})
    async with listening(handle, "amqpws://127.0.0.1:0", sasl=users) as [listener]:
        await dial(listener.url, sasl=amqp.sasl.Plain("ada", "secret"))
        with pytest.raises(amqp.SecurityError):
            await dial(listener.url, sasl=amqp.sasl.Plain("ada", "wrong"))
    assert seen == [amqp.sasl.Identity("ada", "PLAIN")]


async def test_messages_of_the_websocket_begin_and_end_anywhere(autojump_clock: MockClock) -> None:
    stream, raw = await raw_pair()
    await raw.send(BytesMessage(b"ab", message_finished=False), BytesMessage(b"", message_finished=False))
    await raw.send(Ping(b"?"), BytesMessage(b"c"), BytesMessage(b""), BytesMessage(b"de"))
    got = b""
    while len(got) < 5:
        got += await stream.receive_some(2)
    assert got == b"abcde"


async def test_large_writes_are_split(autojump_clock: MockClock) -> None:
    stream, raw = await raw_pair()
    await stream.send_all(bytes(200_000))
    sizes: list[int] = []
    while sum(sizes) < 200_000:
        event = await raw.receive()
        assert isinstance(event, BytesMessage)
        sizes.append(len(event.data))
    assert max(sizes) <= 65_536


# -- control frames -------------------------------------------------------------------------


async def test_ping_is_answered_and_of_a_flood_only_the_latest(autojump_clock: MockClock) -> None:
    stream, raw = await raw_pair()
    await raw.send(*(Ping(str(number).encode()) for number in range(1000)), BytesMessage(b"x"))
    assert await stream.receive_some(100_000) == b"x"
    assert await raw.receive() == Pong(b"999")
    await stream.send_all(b"y")
    assert await raw.receive() == BytesMessage(b"y")


async def test_ping_does_not_hold_up_the_reader_behind_a_writer_that_waits(autojump_clock: MockClock) -> None:
    stream, raw = await raw_pair(lockstep_stream_pair)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, b"nobody reads this yet")
        await wait_all_tasks_blocked()

        async def read() -> None:
            assert await stream.receive_some(1000) == b"data"

        nursery.start_soon(read)
        await raw.send(Ping(b"?"), BytesMessage(b"data"))
        await wait_all_tasks_blocked()
        assert await raw.receive() == BytesMessage(b"nobody reads this yet")
        assert await raw.receive() == Pong(b"?")


async def test_text_is_refused(autojump_clock: MockClock) -> None:
    stream, raw = await raw_pair()
    await raw.send(BytesMessage(b"before"), TextMessage("AMQP"))
    assert await stream.receive_some() == b"before"
    with pytest.raises(trio.BrokenResourceError, match="this is text"):
        await stream.receive_some()
    event = await raw.receive()
    assert isinstance(event, CloseConnection)
    assert event.code == 1003
    with pytest.raises(trio.BrokenResourceError, match="this is text"):
        await stream.send_all(b"x")


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (b"\x82\x01x", 1002),  # a client's frame without a mask
        (b"\xc2\x81\0\0\0\0x", 1002),  # compressed, which nobody offered
        (b"\x80\x81\0\0\0\0x", 1002),  # goes on with nothing
        (b"\x8f\x81\0\0\0\0x", 1002),  # no such opcode
        (b"\x89\xfe\0\x80\0\0\0\0", 1002),  # a ping longer than pings are
    ],
)
async def test_frame_that_may_not_be_ends_the_websocket(
    octets: bytes, code: int, autojump_clock: MockClock
) -> None:
    stream, raw = await raw_pair()
    await raw.stream.send_all(octets)
    with pytest.raises(trio.BrokenResourceError, match="the WebSocket is broken"):
        await stream.receive_some()
    event = await raw.receive()
    assert isinstance(event, CloseConnection)
    assert event.code == code


async def test_compression_is_not_taken(autojump_clock: MockClock) -> None:
    _, raw = await raw_pair(extensions=[PerMessageDeflate()])
    connection: Any = raw.connection.connection
    assert not [each for each in connection._proto.extensions if each.enabled()]


# -- the end --------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [1000, 1001])
async def test_close_of_the_peer_is_the_end_and_answered(code: int, autojump_clock: MockClock) -> None:
    stream, raw = await raw_pair()
    await raw.send(BytesMessage(b"last"), CloseConnection(code=code))
    assert await stream.receive_some() == b"last"
    assert await stream.receive_some() == b""
    assert await stream.receive_some() == b""
    event = await raw.receive()
    assert isinstance(event, CloseConnection)
    assert event.code == code
    await stream.aclose()
    assert await raw.receive() is None


async def test_send_eof_says_close_and_goes_on_reading(autojump_clock: MockClock) -> None:
    stream, raw = await raw_pair()
    await raw.send(BytesMessage(b"last"))
    await stream.send_eof()
    await stream.send_eof()
    with pytest.raises(trio.ClosedResourceError):
        await stream.send_all(b"x")
    event = await raw.receive()
    assert isinstance(event, CloseConnection)
    await raw.send(event.response())
    assert await stream.receive_some() == b"last"
    assert await stream.receive_some() == b""


async def test_close_because_of_an_error_is_told(autojump_clock: MockClock) -> None:
    stream, raw = await raw_pair()
    await raw.send(CloseConnection(code=1011, reason="the disk\n is full"))
    with pytest.raises(trio.BrokenResourceError, match="with code 1011: the disk\ufffd is full"):
        await stream.receive_some()


async def test_end_of_the_stream_below_is_the_end(autojump_clock: MockClock) -> None:
    stream, raw = await raw_pair()
    assert isinstance(raw.stream, trio.StapledStream)
    await raw.stream.send_eof()
    assert await stream.receive_some() == b""
    await stream.aclose()


async def test_aclose_waits_for_the_answer_but_not_for_long(autojump_clock: MockClock) -> None:
    stream, raw = await raw_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stream.aclose)
        assert await raw.receive() == CloseConnection(code=1000, reason="")
        began = trio.current_time()
        await raw.stream.send_all(b"\x89\x80\0\0\0\0")  # a ping, and no close
        assert await raw.receive() is None
    assert trio.current_time() - began == pytest.approx(0.5)


async def test_write_that_is_cut_leaves_nothing_to_go_on_with(autojump_clock: MockClock) -> None:
    stream, raw = await websocket_pair(lockstep_stream_pair)
    with trio.move_on_after(1) as scope:
        await stream.send_all(b"x" * 1000)
    assert scope.cancelled_caught
    with pytest.raises(trio.BrokenResourceError):
        await stream.send_all(b"y")
    await stream.aclose()
    await raw.aclose()


async def test_connection_ends_with_a_close_of_its_websocket(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()
    ended: list[Event | None] = []

    async def serve() -> None:
        from tests.naive.peer import ScriptedPeer

        inner = await accept_websocket(theirs, path="/", origins=())
        peer = ScriptedPeer(inner)
        await peer.accept_open()
        await peer.accept_begin()
        await peer.accept_close()
        assert await inner.receive_some() == b""
        assert (
            inner._connection.state is ConnectionState.CLOSED
        )  # by a close, and not by the end of the stream
        ended.append(None)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        await dial(ours, layers=["websocket"])
    assert ended


# -- the handshake of a listener ------------------------------------------------------------

REQUEST = (
    "GET /amqp HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"
)

REFUSED = {
    "post": (REQUEST.replace("GET", "POST"), 400, "must be GET"),
    "no upgrade": (REQUEST.replace("Upgrade: websocket\r\n", ""), 400, "Upgrade"),
    "old version": (REQUEST.replace(": 13", ": 8"), 426, "Version"),
    "no key": (REQUEST.replace("Sec-WebSocket-Key", "X"), 400, "Key"),
    "no host": (REQUEST.replace("Host: h\r\n", ""), 400, "HTTP"),
    "bad host": (REQUEST.replace("Host: h", "Host: xn--\x80"), 400, "not a request for a WebSocket"),
    "other path": (
        REQUEST.replace("/amqp", "/other"),
        404,
        "a WebSocket at '/other', but it is at '/amqp'",
    ),
    "no subprotocol": (REQUEST.replace(": amqp", ": mqtt"), 400, "without the subprotocol 'amqp'"),
    "a page": (REQUEST.replace("Host: h", "Host: h\r\nOrigin: http://evil.example"), 403, "evil.example"),
    "a file": (REQUEST.replace("Host: h", "Host: h\r\nOrigin: null"), 403, "null"),
    "octets behind": (REQUEST + "\x82", 400, "1 octets after the request"),
    "a browser": ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", 400, "not a request for a WebSocket"),
    "no HTTP": ("\x00\x01\r\n\r\n", 400, "not a request for a WebSocket"),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_row_01_request_for_anything_else_is_refused_in_http(
    what: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    octets, status, said = REFUSED[what]
    async with (
        listening(never, "amqpws://127.0.0.1:0/amqp") as [listener],
        await trio.open_tcp_stream("127.0.0.1", listener.port) as stream,
    ):
        await stream.send_all(octets.encode("latin-1"))
        answer = b""
        async for data in stream:
            answer += data
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    [record] = [each for each in caplog.records if each.name == "trio_amqp10.listen"]
    assert "did not complete the handshake" in record.message
    assert said in record.message


async def test_row_18_head_of_a_request_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with (
        listening(never, "amqpws://127.0.0.1:0") as [listener],
        await trio.open_tcp_stream("127.0.0.1", listener.port) as stream,
    ):
        await stream.send_all(b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000)
        with pytest.raises(trio.BrokenResourceError):
            assert await stream.receive_some() == b""
            raise trio.BrokenResourceError
    assert "the HTTP head has more than 16384 octets" in caplog.text


@pytest.mark.parametrize("origins", [["https://a.example", "http://b.example:8080"], "*"])
async def test_page_is_let_in_when_its_origin_is_listed(origins: Any) -> None:
    async with (
        listening(idle, "amqpws://127.0.0.1:0", origins=origins) as [listener],
        await trio.open_tcp_stream("127.0.0.1", listener.port) as stream,
    ):
        await Raw.dialled(stream, extra_headers=[(b"Origin", b"http://b.example:8080")])


@pytest.mark.parametrize("head", [b"", b"GET / HT"])
async def test_row_05_listener_gives_up_a_peer_that_asks_for_nothing(
    head: bytes, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    from trio_amqp10.net.transport_layers import AcceptedLayers

    caplog.set_level("INFO")
    ours, theirs = memory_stream_pair()
    began = trio.current_time()
    entrance = AcceptedLayers(stacks=frozenset({("websocket",)}), seconds=5)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(acceptor(entrance=entrance).run, ours, never)
        await theirs.send_all(head) if head else None
        assert await theirs.receive_some() == b""
    assert trio.current_time() - began == pytest.approx(5)
    assert "took too long, during the WebSocket handshake" in caplog.text


# -- the handshake of a dialler -------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (
            "HTTP/1.1 404 Not Found\r\n\r\n",
            amqp.RemoteProtocolError,
            "refuses the WebSocket: HTTP status 404",
        ),
        ("HTTP/1.1 302 Found\r\nLocation: http://x\r\n\r\n", amqp.RemoteProtocolError, "status 302"),
        ("HTTP/1.1 401 No\r\n\r\n", amqp.SecurityError, "HTTP status 401"),
        ("HTTP/1.1 403 No\r\n\r\n", amqp.SecurityError, "HTTP status 403"),
        (
            "HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\n\r\n",
            amqp.RemoteProtocolError,
            "does not answer as a WebSocket server",
        ),
        ("HTTP/1.1 100 Go on\r\n\r\n", amqp.RemoteProtocolError, "refuses the WebSocket: HTTP status 100"),
        ("AMQP\0\1\0\0\r\n\r\n", amqp.RemoteProtocolError, "does not answer as a WebSocket server"),
        ("", amqp.ConnectionClosedError, "ended the transport during the WebSocket handshake"),
        ("x" * 20_000, amqp.RemoteProtocolError, "more than 16384 octets"),
    ],
)
async def test_dialling_says_what_is_wrong_with_the_answer(
    answer: str, error: Any, said: str, autojump_clock: MockClock
) -> None:
    ours, theirs = memory_stream_pair()
    await theirs.send_all(answer.encode()) if answer else None
    await theirs.send_eof()
    with pytest.raises(error, match=said):
        await dial(ours, layers=["websocket"], server_hostname=None)


async def test_dialling_asks_for_the_path_and_names_the_host() -> None:
    requests: list[bytes] = []

    async def serve(stream: trio.SocketStream) -> None:
        requests.append(bytes(await stream.receive_some()))
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        port = listener.socket.getsockname()[1]
        with pytest.raises(amqp.ConnectionClosedError):
            await dial(f"amqpws://me:s3cret@127.0.0.1:{port}/$a/b")
        nursery.cancel_scope.cancel()
    [request] = requests
    assert request.startswith(b"GET /$a/b HTTP/1.1\r\n")
    assert f"Host: 127.0.0.1:{port}\r\n".encode() in request
    assert b"Sec-WebSocket-Protocol: amqp\r\n" in request
    assert b"s3cret" not in request
    assert b"Extensions" not in request


@pytest.mark.parametrize(
    ("requested", "confirmed"),
    [
        (["amqp"], "amqp"),
        (["AMQPWSB10"], "AMQPWSB10"),
        (["mqtt", "AMQPWSB10", "amqp"], "amqp"),
    ],
)
async def test_server_confirms_the_subprotocol_or_its_name_in_drafts_of_the_binding(
    requested: list[str], confirmed: str, autojump_clock: MockClock
) -> None:
    ours, theirs = memory_stream_pair()
    raw = Raw(ours, WSConnection(ConnectionType.CLIENT))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(accept_websocket, theirs, path="/", origins=()))
        await raw.send(Request(host="h", target="/$servicebus/websocket/", subprotocols=requested))
        answer = await raw.receive()
    assert isinstance(answer, AcceptConnection)
    assert answer.subprotocol == confirmed


@pytest.mark.parametrize("subprotocol", [None, "mqtt"])
async def test_dialling_needs_the_subprotocol(subprotocol: str | None, autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()

    async def serve() -> None:
        connection = WSConnection(ConnectionType.SERVER)
        connection.receive_data(bytes(await theirs.receive_some()))
        [request] = connection.events()
        assert isinstance(request, Request)
        assert request.subprotocols == ["amqp"]
        octets = connection.send(AcceptConnection())
        if subprotocol:
            octets = octets.replace(
                b"\r\n\r\n", f"\r\nSec-WebSocket-Protocol: {subprotocol}\r\n\r\n".encode()
            )
        await theirs.send_all(octets)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        with pytest.raises(amqp.RemoteProtocolError, match="subprotocol"):
            await dial(ours, layers=["websocket"])


async def test_octets_behind_the_answer_are_heard(autojump_clock: MockClock) -> None:
    ours, theirs = memory_stream_pair()

    async def serve() -> None:
        connection = WSConnection(ConnectionType.SERVER)
        connection.receive_data(bytes(await theirs.receive_some()))
        list(connection.events())
        octets = connection.send(AcceptConnection(subprotocol="amqp"))
        await theirs.send_all(octets + connection.send(BytesMessage(header("sasl"))))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        with pytest.raises(amqp.SecurityError, match="accepts no connection without SASL"):
            await dial(ours, layers=["websocket"])


# -- without wsproto ------------------------------------------------------------------------


async def test_websocket_names_its_extra_when_wsproto_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wsproto", None)
    for scheme in ("amqpws", "amqpwss"):
        with pytest.raises(amqp.LocalProtocolError, match=r"pip install 'trio-amqp10\[ws\]'"):
            await dial(f"{scheme}://127.0.0.1")
        with pytest.raises(amqp.LocalProtocolError, match=r"trio-amqp10\[ws\]"):
            await amqp.serve(idle, f"{scheme}://127.0.0.1:0", ssl_context=serving())
    async with listening(idle, detect=True) as [listener]:
        await dial(listener.url)
