"""Serve HTTP on a container: listeners, limits, hypercorn for each connection.

Hypercorn speaks HTTP, Starlette finds the routes. The listeners, their limits by host, TLS and the counts of failed logins are
those of the other protocols (``net.accept_loop``).

Knows streams and ASGI; knows no route.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import trio
from hypercorn.config import Config
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.utils import wrap_app  # pyright: ignore[reportUnknownVariableType]

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.accept_loop import ListeningPlace, Reception, listen_at
from trio_amqp10.net.connection_admission import ConnectionAdmission
from trio_amqp10.net.login_failures import LoginFailures
from trio_amqp10.net.tasks_beside import tasks_beside
from trio_amqp10.net.tls import check_server_context
from trio_amqp10.net.transport_layers import AcceptedLayers
from trio_amqp10.net.waiters import check_trio, interrupts_unwrapped

from .access import MOST_HEAD
from .application import Limits, application
from .login import ABORT, CONNECTION, ConnectionLogin
from .page.frames import FrameWatches
from .page.history import History
from .urls import is_loopback, parse_http_url

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from hypercorn.protocol import ProtocolWrapper
    from hypercorn.typing import AppWrapper

    from trio_amqp10.container.container import Container
    from trio_amqp10.net.dialect import AcceptedConnection
    from trio_amqp10.net.listener import Listener
    from trio_amqp10.net.urls import Url
    from trio_amqp10.sasl import Server

_IDLE: Final = 10.0
"""Seconds for the request line and the headers, also of the next request."""
_LOGIN: Final = 30.0
"""Seconds after which a connection without a successful request is closed."""
_SEND: Final = 20.0
"""Seconds for the client to take a piece of an answer."""
_PIECE: Final = 64 * 1024
_LINGER: Final = 0.5
"""Seconds to read what a client still sends, so that it can read the last answer."""
_LINGER_OCTETS: Final = 1024 * 1024


class ClientStream:
    """The stream to a client, as hypercorn expects it; writing has a limit of time.

    Args:
        stream: to the client, above TLS.
        socket: below TLS: it has the addresses of the connection.
        scope: of all tasks of the connection; ends soon after the stream is closed.
    """

    def __init__(
        self, stream: trio.abc.Stream, socket: trio.socket.SocketType, scope: trio.CancelScope
    ) -> None:
        self._stream = stream
        self._scope = scope
        self.socket: Final = socket
        self._is_closing = False

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the next octets; none once ``aclose`` has begun."""
        if self._is_closing:
            return b""  # what the client still sends is read there
        return bytes(await self._stream.receive_some(max_bytes))

    async def send_all(self, data: bytes) -> None:
        """Send all octets, in pieces that the client must take in time.

        Raises:
            trio.BrokenResourceError: the client is too slow, or gone.

        Cancelled: the stream can no longer be used.
        """
        view = memoryview(data)
        for start in range(0, len(view), _PIECE):
            with trio.move_on_after(_SEND) as scope:
                await self._stream.send_all(view[start : start + _PIECE])
            if scope.cancelled_caught:
                raise trio.BrokenResourceError("the client did not take the answer in time")

    async def send_eof(self) -> None:
        """End the sending direction, where the stream can."""
        if isinstance(self._stream, trio.SocketStream):
            await self._stream.send_eof()

    async def aclose(self) -> None:
        """Read what the client still sends, for a moment, and close.

        A socket that is closed with unread octets is reset, and the client could not read the last answer.

        Cancelled: the stream is closed all the same.
        """
        self._is_closing = True
        left = _LINGER_OCTETS
        try:
            with trio.move_on_after(_LINGER):
                while left > 0 and (data := await self._stream.receive_some(_PIECE)):
                    left -= len(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
            pass
        finally:
            self._scope.deadline = trio.current_time() + _LINGER
            await trio.aclose_forcefully(self._stream)


class _Http11(H11Protocol):
    """HTTP/1.1 alone: a request for HTTP/2 or a WebSocket is one as any other."""

    async def _check_protocol(self, event: Any) -> None:
        pass

    async def _create_stream(self, request: Any) -> None:
        headers = [(name, value) for name, value in request.headers if name != b"upgrade"]
        plain = type(request)(
            method=request.method, target=request.target, headers=headers, http_version=request.http_version
        )
        await super()._create_stream(plain)


class _Connection(TCPServer):
    """A connection of hypercorn, whose protocol is always HTTP/1.1."""

    @property
    def protocol(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The protocol."""
        return self._protocol

    @protocol.setter
    def protocol(self, made: ProtocolWrapper) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self._protocol = _Http11(
            made.app,
            made.config,
            made.context,
            made.task_group,
            made.state,
            made.ssl,
            made.client,
            made.server,
            made.send,
        )


class HttpConnections:
    """HTTP, as the only protocol of a listener; a ``Dialect``."""

    name = "HTTP"

    def __init__(self, app: AppWrapper, config: Config) -> None:
        self._app = app
        self._config = config

    def claims(self, head: bytes) -> bool:  # noqa: ARG002 - the only one
        """Return True: the listener serves HTTP alone."""
        return True

    async def serve(self, accepted: AcceptedConnection) -> None:
        """Serve one connection; see ``Dialect.serve``.

        Cancelled: requests under way are cancelled.
        """
        below = accepted.stream
        assert isinstance(below, trio.SocketStream)
        scope = trio.CancelScope()
        stream = ClientStream(accepted.transport.stream, below.socket, scope)
        state: Any = {CONNECTION: ConnectionLogin(accepted), ABORT: scope.cancel}
        context = WorkerContext(None)
        try:
            with scope:
                await _Connection(self._app, self._config, context, state, stream)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        except* (trio.BrokenResourceError, trio.ClosedResourceError) as lost:
            _log.debug("%s was lost: %s", accepted.name, lost)


async def serve_http(
    container: Container,
    *urls: str,
    sasl: Server | None,
    ssl_context: ssl.SSLContext | None,
    allow_plaintext_password: bool,
    max_connections: int,
    max_failures: int | None,
    max_body: int,
    request_timeout: float,
    metrics_queues: Sequence[str],
    task_status: trio.TaskStatus[list[Listener]],
) -> None:
    """Listen, and serve the management of a container.

    ``Container.serve_http`` has the arguments and their defaults.

    Raises:
        OSError: it is not possible to listen there.
        LocalProtocolError: a URL is not one, or it would let anybody in.

    Cancelled: every connection is closed.
    """
    if not urls:
        raise LocalProtocolError("serve_http() needs at least one URL, e.g. http://127.0.0.1:15672")
    users = sasl is not None and sasl.requires_sasl
    places = [_checked(url, users, ssl_context, allow_plaintext_password) for url in urls]
    limits = Limits(max_body=max_body, request_timeout=request_timeout)
    hosts = None if users else frozenset(place.host for place in places)
    history, watches = History(container.management), FrameWatches()
    app = application(
        container, limits, hosts, metrics_queues=metrics_queues, history=history, watches=watches
    )
    serving = HttpConnections(wrap_app(cast("Any", app), max_body, "asgi"), _config())
    check_trio()
    failures = LoginFailures(max_failures, trio.current_time)
    doors = ConnectionAdmission(max_connections, max_connections)

    def reception(secure: bool) -> Reception:
        return Reception(
            dialects=(serving,),
            entrance=AcceptedLayers(
                stacks=frozenset({("tls",) if secure else ()}), context=ssl_context, seconds=_IDLE
            ),
            failures=failures,
            seconds=_LOGIN,
            sasl=sasl,
            allow_plaintext_password=allow_plaintext_password,
        )

    listening = [
        ListeningPlace(place, place.scheme, partial(reception, place.scheme == "https")) for place in places
    ]
    with interrupts_unwrapped():
        async with tasks_beside() as nursery:
            nursery.start_soon(history.run)
            try:
                await listen_at(listening, None, doors, task_status)
            finally:
                watches.close()


def _checked(url: str, users: bool, context: ssl.SSLContext | None, allow_plaintext_password: bool) -> Url:
    """Return the parts of a URL that is safe to listen at."""
    place = parse_http_url(url)
    if place.scheme == "https":
        if context is None:
            raise LocalProtocolError(
                f"{url} needs a certificate: serve_http(..., ssl_context=tls.server_context(certfile, keyfile))"
            )
        check_server_context(context)
    if is_loopback(place.host):
        return place
    if not users:
        raise LocalProtocolError(
            f"{url} is open to other machines, and there are no users: give users, or listen at http://127.0.0.1:{place.port}"
        )
    if place.scheme == "http" and not allow_plaintext_password:
        raise LocalProtocolError(
            f"{url} would carry passwords in the clear: use https://, or set allow_plaintext_password=True"
        )
    return place


def _config() -> Config:
    config = Config()
    config.errorlog = _log
    config.include_server_header = False
    config.h11_max_incomplete_size = MOST_HEAD
    config.keep_alive_timeout = _IDLE  # it takes any number of seconds
    config.max_app_queue_size = 16  # parts of a body that was not read, of 64 KiB at most
    return config


_log: Final = logging.getLogger("trio_amqp10.http")
