"""AMQP over WebSocket, both ends (AMQP WebSocket Binding 1.0; RFC 6455).

Octets travel in binary messages, whose boundaries have no meaning. Extensions are neither offered nor accepted:
with compression few octets could become many, and their length could reveal secrets. Only the latest ping is
answered, and the reader never waits for a blocked writer to do so. Frames may be as small as six
octets: after 64 of them other tasks run, whether the frames contained AMQP or not.

Needs wsproto (extra ``ws``). Knows nothing of AMQP but the name of the subprotocol.
"""

from __future__ import annotations

import contextlib
from importlib import import_module
from itertools import islice
from operator import index
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.core.errors import Condition, LocalProtocolError, RemoteProtocolError, SecurityError

from .tls_stream import send_last_octets

if TYPE_CHECKING:
    from collections.abc import Collection, Generator

    from wsproto import WSConnection
    from wsproto.events import CloseConnection, Event, Request

ANY_ORIGIN: Final = "*"

_SUBPROTOCOL: Final = "amqp"
_DRAFT_SUBPROTOCOL: Final = "AMQPWSB10"
"""Its name in drafts of the binding; Azure's clients in C request no other."""
_HEAD_LIMIT: Final = 16 * 1024
"""Octets of an HTTP request or response."""
_END_OF_HEAD: Final = b"\r\n\r\n"
_CHUNK: Final = 64 * 1024
"""Octets of a binary message that we send, and of a read from the stream below."""
_SLICE: Final = 64
"""Frames that are read without a pause."""
_CLOSE_PATIENCE: Final = 0.5
_CLOSE_DISCARDS: Final = 256 * 1024
"""Seconds, and octets, in which the peer's close must follow ours."""
_IN_ORDER: Final = {1000, 1001, 1005}
"""Codes of a close without an error (RFC 6455, 7.4.1).

They are: done, going away, no code given.
"""
_NO_TEXT: Final = 1003
_UNAUTHORIZED: Final = {401, 403, 407}


def has_wsproto() -> bool:
    """Whether wsproto is installed."""
    try:
        import_module("wsproto")
    except ModuleNotFoundError:
        return False
    return True


def require_wsproto(what: str) -> None:
    """Raise LocalProtocolError, with advice, if wsproto is not installed.

    Args:
        what: the feature that needs it, for the message.
    """
    if not has_wsproto():
        raise LocalProtocolError(f"{what} needs wsproto: pip install 'trio-amqp10[ws]'")


class WebSocketStream(trio.abc.HalfCloseableStream):
    """A stream of octets over an open WebSocket.

    Args:
        stream: the stream below; closed with this one.
        connection: of the handshake, which is complete.
        head: octets that were read after the handshake.
    """

    def __init__(self, stream: trio.abc.Stream, connection: WSConnection, head: bytes = b"") -> None:
        self._stream = stream
        self._connection = connection
        self._lock = trio.StrictFIFOLock()
        self._owed = b""  # a pending control frame
        self._torn = False  # a frame was written in part, so nothing can follow it
        self._sending = False
        self._ended = False
        self._closed = False
        self._over = False  # nothing more will be read
        self._fault: str | None = None
        self._read = b""
        self._events: Generator[Event, None, None] | None = None  # of the last read
        if head:
            self._begin(head)
            self._take()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send ``data``, as any stream. Cancelled: the stream can no longer be used."""
        from wsproto.events import BytesMessage

        with self._one_sender():
            view = memoryview(data)
            for start in range(0, max(1, len(view)), _CHUNK):
                async with self._lock:
                    self._check_open()
                    chunk = bytes(view[start : start + _CHUNK])
                    await self._write(self._connection.send(BytesMessage(data=chunk)) if chunk else b"")

    async def send_eof(self) -> None:
        """Send a close; octets that the peer sent before its own close can still be read.

        A WebSocket ends in both directions at once.

        Cancelled: the stream can no longer be used.
        """
        with self._one_sender():
            if self._ended:
                await trio.lowlevel.checkpoint()
                return
            self._check_open()
            await self._close_here()

    async def wait_send_all_might_not_block(self) -> None:
        """Do the same as any stream. Cancelled: nothing has changed."""
        with self._one_sender():
            async with self._lock:
                self._check_open()
                await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return octets, or ``b""`` after the peer has closed the WebSocket in order.

        Raises:
            trio.BrokenResourceError: it was closed because of an error, or the stream below has failed.

        Cancelled: no octet is lost.
        """
        limit = _CHUNK if max_bytes is None else index(max_bytes)
        if limit < 1:
            raise ValueError(f"max_bytes={max_bytes!r}: expected at least 1, or None")
        if self._read or self._over:
            await trio.lowlevel.checkpoint()
        while not (self._read or self._over):
            await self._take_more(min(limit, _CHUNK))
            if self._events is None:
                await self._pay()
        if self._closed:
            raise trio.ClosedResourceError("this WebSocket was closed here")
        if self._fault is not None and not self._read:
            raise trio.BrokenResourceError(self._fault)
        out, self._read = self._read[:limit], self._read[limit:]
        return out

    async def aclose(self) -> None:
        """Close the WebSocket, wait half a second for the peer's close, close the stream.

        Cancelled: the stream below is closed anyway.
        """
        try:
            if not (self._closed or self._torn or self._lock.locked()):
                with trio.move_on_after(_CLOSE_PATIENCE):
                    await self._say_goodbye()
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
            pass  # the stream has failed already, or another task still reads: no close can be awaited
        finally:
            self._closed = self._over = True
            await self._stream.aclose()

    async def _say_goodbye(self) -> None:
        await self._close_here()
        discarded = 0
        while not self._over and discarded < _CLOSE_DISCARDS:
            discarded += await self._take_more(_CHUNK)
            self._read = b""

    async def _close_here(self) -> None:
        from wsproto.connection import ConnectionState
        from wsproto.events import CloseConnection

        self._ended = True
        async with self._lock:
            if self._connection.state is ConnectionState.OPEN:
                self._owed = self._connection.send(CloseConnection(code=1000))
            await self._write(b"")

    async def _take_more(self, limit: int) -> int:
        """Take events of the last read, or read again; return the octets read for that."""
        if self._events is not None:
            await trio.lowlevel.checkpoint()
            self._take()
            return 0
        data = bytes(await self._stream.receive_some(limit))
        if data:
            self._begin(data)
            self._take()
        else:
            self._over = True
        return len(data)

    def _begin(self, data: bytes) -> None:
        self._connection.receive_data(data)
        self._events = self._connection.events()

    def _take(self) -> None:
        """Process the next few frames of the last read."""
        from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage

        assert self._events is not None
        parts: list[bytes] = []
        events = list(islice(self._events, _SLICE))
        for event in events:
            if isinstance(event, BytesMessage):
                parts.append(bytes(event.data))
            elif isinstance(event, Ping):
                self._answer(event.response())  # only the latest must be answered (RFC 6455, 5.5.3)
            elif isinstance(event, CloseConnection):
                self._on_close(event)
                break
            elif isinstance(event, TextMessage):
                self._fail(_NO_TEXT, "AMQP travels in binary messages, and this is text")
                break
        if self._over or len(events) < _SLICE:
            self._events = None
        self._read += b"".join(parts)

    def _on_close(self, event: CloseConnection) -> None:
        from wsproto.connection import ConnectionState

        # In this state the peer has sent no close: wsproto reports an error of the peer.
        if self._connection.state is ConnectionState.OPEN:
            self._fail(int(event.code), str(event.reason))
            return
        self._over = True
        if event.code not in _IN_ORDER:
            reason = "".join(c if c.isprintable() else "\ufffd" for c in event.reason or "no reason given")
            self._fault = f"the peer closed the WebSocket with code {int(event.code)}: {reason}"
        if self._connection.state is ConnectionState.REMOTE_CLOSING:
            self._answer(event.response())

    def _fail(self, code: int, reason: str) -> None:
        from wsproto.events import CloseConnection

        self._over = True
        self._fault = f"the WebSocket is broken: {reason}"
        self._answer(CloseConnection(code=code, reason=reason))

    def _answer(self, event: Event) -> None:
        from wsproto.utilities import LocalProtocolError as NotNow

        with contextlib.suppress(NotNow):  # our close was sent already, and nothing may follow it
            self._owed = self._connection.send(event)

    async def _pay(self) -> None:
        """Send a pending control frame, unless another task is sending and will do so."""
        if self._owed and not self._torn and not self._lock.locked():
            async with self._lock:
                await self._write(b"")

    async def _write(self, octets: bytes) -> None:
        """Write octets and the pending control frame; the caller holds the lock.

        If a frame is cut short, the stream can no longer be used.
        """
        whole = False
        try:
            while octets or self._owed:
                out, self._owed = octets + self._owed, b""
                octets = b""
                await self._stream.send_all(out)
            whole = True
        finally:
            self._torn = self._torn or not whole

    def _check_open(self) -> None:
        from wsproto.connection import ConnectionState

        if self._closed or self._ended:
            raise trio.ClosedResourceError("this WebSocket was closed here")
        if self._torn or self._connection.state is not ConnectionState.OPEN:
            raise trio.BrokenResourceError(self._fault or "this WebSocket was closed")

    @contextlib.contextmanager
    def _one_sender(self) -> Generator[None, None, None]:
        if self._sending:
            raise trio.BusyResourceError("another task is sending on this WebSocket")
        self._sending = True
        try:
            yield
        finally:
            self._sending = False


async def dial_websocket(stream: trio.abc.Stream, host: str, target: str) -> WebSocketStream:
    """Request a WebSocket from the peer.

    Args:
        stream: the stream below.
        host: the authority, as in the URL.
        target: the path.

    Raises:
        SecurityError: the peer requires authentication by HTTP.
        RemoteProtocolError: it refuses, or answers something else.
        trio.BrokenResourceError: the stream ended.

    Cancelled: the stream below can no longer be used.
    """
    from wsproto import ConnectionType, WSConnection
    from wsproto.events import AcceptConnection, RejectConnection, Request
    from wsproto.utilities import RemoteProtocolError as NoWebSocketError

    connection = WSConnection(ConnectionType.CLIENT)
    request = Request(host=host, target=target, subprotocols=[_SUBPROTOCOL])
    await stream.send_all(connection.send(request))
    head, rest = await _receive_head(stream, b"")
    try:
        connection.receive_data(head)
        answer = next(connection.events(), None)
    except (NoWebSocketError, ValueError) as wrong:
        raise _refusal(f"{host}{target} does not answer as a WebSocket server: {wrong}") from wrong
    if isinstance(answer, RejectConnection):
        text = f"{host}{target} refuses the WebSocket: HTTP status {answer.status_code}"
        if answer.status_code in _UNAUTHORIZED:
            raise SecurityError(text)
        raise _refusal(text)
    if not isinstance(answer, AcceptConnection) or answer.subprotocol != _SUBPROTOCOL:
        raise _refusal(f"{host}{target} offers a WebSocket, but not the subprotocol {_SUBPROTOCOL!r}")
    return WebSocketStream(stream, connection, rest)


async def accept_websocket(
    stream: trio.abc.Stream, *, path: str, origins: Collection[str], head: bytes = b""
) -> WebSocketStream:
    """Accept a WebSocket that the peer requests.

    Args:
        stream: the stream below.
        path: the path that the peer must request; ``/`` for any.
        origins: the origins of web pages whose scripts may connect, e.g. ``https://example.org``.
        head: octets that were read from ``stream`` already.

    Raises:
        RemoteProtocolError: the request is invalid. The peer was sent the HTTP status.
        SecurityError: a page of another origin requests it. The peer was sent the HTTP status.
        trio.BrokenResourceError: the stream ended.

    Cancelled: the stream below can no longer be used.
    """
    from wsproto import ConnectionType, WSConnection
    from wsproto.events import AcceptConnection, RejectConnection, Request
    from wsproto.utilities import RemoteProtocolError as NoWebSocketError

    connection = WSConnection(ConnectionType.SERVER)
    status, why, hint = 0, "", RejectConnection()
    request: Any = None
    octets, rest = await _receive_head(stream, head)
    try:
        connection.receive_data(octets)
        request = next(connection.events(), None)
    except (NoWebSocketError, ValueError) as wrong:
        status, why = 400, f"not a request for a WebSocket: {wrong}"
        hint = getattr(wrong, "event_hint", None) or hint
    else:
        assert isinstance(request, Request)
        status, why = _judge(request, path, origins)
        hint = RejectConnection(status_code=status or 400)
        if rest and not status:
            status, why = 400, f"{len(rest)} octets after the request, before it was answered"
    if status:
        await send_last_octets(stream, connection.send(hint))
        if status == 403:
            raise SecurityError(why)
        raise _refusal(why)
    assert isinstance(request, Request)
    subprotocol = _SUBPROTOCOL if _SUBPROTOCOL in request.subprotocols else _DRAFT_SUBPROTOCOL
    await stream.send_all(connection.send(AcceptConnection(subprotocol=subprotocol)))
    return WebSocketStream(stream, connection)


def _judge(request: Request, path: str, origins: Collection[str]) -> tuple[int, str]:
    """Return the HTTP status of a refusal, and the reason; 0 to accept."""
    if path != "/" and request.target.partition("?")[0] != path:
        return 404, f"the peer requests a WebSocket at {request.target[:256]!r}, but it is at {path!r}"
    if not {_SUBPROTOCOL, _DRAFT_SUBPROTOCOL} & {*request.subprotocols}:
        return 400, f"the peer requests a WebSocket without the subprotocol {_SUBPROTOCOL!r}"
    # A browser sends the origin of the page that opens the WebSocket. Any page on the web can open one, even in a
    # browser on this machine, whose users this listener may trust more than others.
    found = [value.decode("latin-1") for name, value in request.extra_headers if name == b"origin"]
    if found and ANY_ORIGIN not in origins and not all(each in origins for each in found):
        return 403, f"a script of a page from {found[0][:256]!r}, which is not among the permitted origins"
    return 0, ""


async def _receive_head(stream: trio.abc.Stream, head: bytes) -> tuple[bytes, bytes]:
    """Return the head of an HTTP message with its empty line, and later octets."""
    while _END_OF_HEAD not in head:
        if len(head) >= _HEAD_LIMIT:
            raise _refusal(f"the HTTP head has more than {_HEAD_LIMIT} octets")
        data = await stream.receive_some(4096)
        if not data:
            raise trio.BrokenResourceError("the peer ended the transport during the WebSocket handshake")
        head += bytes(data)
    octets, end, rest = head.partition(_END_OF_HEAD)
    return octets + end, rest


def _refusal(text: str) -> RemoteProtocolError:
    return RemoteProtocolError(text, Condition.NOT_ALLOWED)
