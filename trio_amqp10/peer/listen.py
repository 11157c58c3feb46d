"""Wait to be dialled: ``serve``, and the life of an accepted connection."""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import trio

from trio_amqp10.engine.layer_stack import Stack
from trio_amqp10.engine.open_options import OpenOptions, strictness
from trio_amqp10.errors import AmqpError, Condition, LocalProtocolError, RemoteProtocolError
from trio_amqp10.net.accept_loop import Reception, accept_loop
from trio_amqp10.net.connection_admission import ConnectionAdmission
from trio_amqp10.net.listener import Listener
from trio_amqp10.net.login_failures import LoginFailures
from trio_amqp10.net.tls import check_server_context
from trio_amqp10.net.transport_layers import AcceptedLayers, check_layers, has_tls, layers_of, no_less_secret
from trio_amqp10.net.transports import bind, listener_url
from trio_amqp10.net.urls import Url, parse_url, schemes_of
from trio_amqp10.net.waiters import check_trio, interrupts_unwrapped
from trio_amqp10.partial_pool import Pool
from trio_amqp10.protocol_headers import header_id
from trio_amqp10.sasl import Server
from trio_amqp10.sasl.layer import sasl_frame_size
from trio_amqp10.sasl.mechanism import ServerContext
from trio_amqp10.spec.transport import Error

from .connection import Connection
from .delivery import OutgoingDelivery, delivery_class
from .option_signatures import lists
from .wires import FINAL, wire_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Collection, Mapping, Sequence
    from typing import Unpack

    from trio_amqp10.engine.connection import Connection as EngineConnection
    from trio_amqp10.engine.limits import Limits
    from trio_amqp10.engine.open_options import OpenKeywords
    from trio_amqp10.net.dialect import AcceptedConnection, Dialect

    from .connection import Vet

__all__ = ["Acceptor", "Amqp10Dialect", "Listener", "serve"]

_log = logging.getLogger("trio_amqp10.listen")

Handler = Callable[[Connection], Awaitable[object]]

_JITTER: Final = 0.5
"""Seconds at most, by which refusals are spread: how long one takes tells a guesser nothing."""


def _nothing() -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptor(OpenOptions):
    """How to answer those who dial; makes a connection of a stream.

    Raises:
        LocalProtocolError: an open that says all this is longer than peers take.
    """

    container_id: str
    sasl: Server
    allow_plaintext_password: bool = False
    vet: Vet | None = None
    close_timeout: float = 5.0
    entrance: AcceptedLayers = field(default_factory=AcceptedLayers)
    failures: LoginFailures = field(default_factory=lambda: LoginFailures(None, trio.current_time))
    pool: Pool | None = None
    wall_clock: Callable[[], float] = time.time
    dialect: str = FINAL

    def __post_init__(self) -> None:
        OpenOptions.__post_init__(self)
        self._engine()  # what cannot be said is found out before anybody dials

    def _engine(self) -> EngineConnection:
        return wire_of(self.dialect).connection(
            self.container_id,
            incoming_class=delivery_class(strictness(self.strict)),
            outgoing_class=OutgoingDelivery,
            **self.keywords(),
        )

    def accept(self, accepted: AcceptedConnection, nursery: trio.Nursery) -> Connection:
        """Begin the conversation; returns before the peer has opened.

        Args:
            accepted: who has come.
            nursery: for the tasks of the connection.
        """
        transport = accepted.transport
        engine = self._engine()
        if accepted.answered:
            engine.note_header_written()
        context = ServerContext(
            channel_bindings=transport.channel_bindings, peer_certificate=transport.peer_certificate
        )
        mechanisms = self.sasl.offer(accepted.private, self.allow_plaintext_password, context)
        size = sasl_frame_size(engine.strict)
        tally = accepted.failures
        make = wire_of(self.dialect).sasl_server
        stack = Stack(
            engine,
            trio.current_time(),
            accept_sasl=(lambda: make(mechanisms, context=context, max_frame_size=size, tally=tally))
            if mechanisms
            else None,
            accept_plain=not self.sasl.requires_sasl,
            accepting=True,
            began=accepted.began,
            jitter=random.random() * _JITTER,
        )
        connection = Connection(engine, stack, transport.stream, nursery, close_timeout=self.close_timeout)
        connection.vet = self.vet
        connection.server_name = transport.server_name
        connection.host = accepted.host
        if accepted.pool is not None:
            accepted.pool.join(engine.context)
        if transport.head:
            connection.pump.feed(stack.receive_slice, transport.head, trio.current_time())
        return connection

    async def run(
        self, stream: trio.abc.Stream, handler: Handler, on_opened: Callable[[], object] = _nothing
    ) -> None:
        """One connection, from the first octet to the last. Raises nothing that the peer can cause.

        ``on_opened`` is called once the peer may come in, before ``handler``.

        Cancelled: the connection is closed with ``amqp:connection:forced``.
        """
        await self.reception(handler).receive(stream, on_opened)

    def reception(
        self, handler: Handler, dialects: Sequence[Dialect] = (), alone: Dialect | None = None
    ) -> Reception:
        """What awaits those who dial: these dialects, and AMQP 1.0; or one dialect alone."""
        return Reception(
            dialects=(*dialects, Amqp10Dialect(self, handler)) if alone is None else (alone,),
            entrance=self.entrance,
            failures=self.failures,
            seconds=self.effective_limits.handshake_timeout,
            sasl=self.sasl,
            allow_plaintext_password=self.allow_plaintext_password,
            pool=self.pool,
        )


@dataclass(frozen=True, slots=True)
class Amqp10Dialect:
    """AMQP 1.0, or a draft of it, as a dialect; its engine answers headers that nobody takes (2.2)."""

    acceptor: Acceptor
    handler: Handler
    name: str = "AMQP 1.0"

    def claims(self, head: bytes) -> bool | None:
        """As of ``Dialect``."""
        try:
            return None if header_id(head) is None else True
        except RemoteProtocolError:
            return False

    async def serve(self, accepted: AcceptedConnection) -> None:
        """As of ``Dialect``. Cancelled: the connection is closed with ``amqp:connection:forced``."""
        acceptor = self.acceptor
        async with trio.open_nursery() as nursery:
            try:
                connection = acceptor.accept(accepted, nursery)
            except AmqpError as failure:
                _log.info("%s came no further than the handshake: %s", accepted.name, failure)
                await trio.aclose_forcefully(accepted.stream)
                return
            error: Error | None = Error(
                condition=Condition.CONNECTION_FORCED.value, description="the service ends"
            )
            try:
                error = await self._handle(connection, accepted, nursery)
            finally:
                try:
                    await connection.aclose(error)
                finally:
                    if accepted.pool is not None:
                        accepted.pool.leave(connection.engine.context)
                nursery.cancel_scope.cancel()

    async def _handle(
        self, connection: Connection, accepted: AcceptedConnection, nursery: trio.Nursery
    ) -> Error | None:
        try:
            await connection.opened()
        except Exception as failure:
            _log.info("%s came no further than the handshake: %s", accepted.name, failure)
            return None
        if connection.turned_away:
            return None
        expires: float | None = getattr(connection.identity, "expires", None)
        if expires is not None:
            nursery.start_soon(_end_with_token, connection, expires - self.acceptor.wall_clock())
        try:
            accepted.opened()
            await self.handler(connection)
        except Exception as failure:
            if connection.closed and _is_loss(failure):
                _log.debug("%r: %s", connection, failure)
                return None
            _log.exception("the handler of %r failed", connection)
            return Error(condition=Condition.INTERNAL_ERROR.value, description="the service failed")
        return None


async def _end_with_token(connection: Connection, seconds: float) -> None:
    """Close the connection when the token ends by which its peer logged in: SASL comes once, and takes no other."""
    await trio.sleep(max(0.0, seconds))
    error = Error(condition=Condition.UNAUTHORIZED_ACCESS.value, description="the token has expired")
    await connection.aclose(error)


def _is_loss(failure: BaseException) -> bool:
    """Whether this is what every use of a lost connection raises, and no fault of the handler's."""
    if isinstance(failure, BaseExceptionGroup):
        rest = cast("BaseExceptionGroup[BaseException]", failure)
        return all(_is_loss(one) for one in rest.exceptions)
    return isinstance(failure, (AmqpError, trio.BrokenResourceError, trio.ClosedResourceError))


@lists(OpenOptions)
async def serve(
    handler: Handler,
    *urls: str,
    container_id: str | None = None,
    sasl: Server | None = None,
    allow_plaintext_password: bool = False,
    ssl_context: ssl.SSLContext | None = None,
    layers: Sequence[str] | None = None,
    detect: bool = False,
    origins: Collection[str] = (),
    admit: Callable[[str | None], bool] | None = None,
    vet: Vet | None = None,
    max_connections: int | None = 10_000,
    max_handshakes: int | None = 1_024,
    max_failures: int | None = 10,
    max_partial_octets: int | None = 256 * 1024 * 1024,
    close_timeout: float = 5.0,
    dialects: str | Sequence[str | Dialect] | Mapping[str, Mapping[str, Any]] = (),
    dialect_schemes: Mapping[str, Dialect] | None = None,
    wall_clock: Callable[[], float] = time.time,
    task_status: trio.TaskStatus[list[Listener]] = trio.TASK_STATUS_IGNORED,
    **options: Unpack[OpenKeywords],
) -> None:
    """Listen on ``urls`` and run ``handler(connection)`` for each peer that opens a connection.

    ``await nursery.start(serve, handler, url)`` returns once it listens, with a ``Listener`` for
    each address. When the handler returns, its connection is closed; when it raises an
    ``Exception``, the connection is closed with ``amqp:internal-error`` and the exception logged.
    Nothing that a peer does ends ``serve``; it returns when all listeners are closed, and all connections.

    Args:
        handler: an async function of a ``Connection``.
        urls: as for ``open_connection``; port 0 chooses a free port. If the URL of a WebSocket has a path, requests for
            other paths are refused.
        container_id: our container id (2.4.1); a fresh UUID if None.
        sasl: the mechanisms and users to accept. If None, or without users, every peer may connect, with SASL ANONYMOUS
            or without a SASL layer.
        allow_plaintext_password: accept passwords over connections that are not encrypted.
        ssl_context: our certificate, as ``tls.server_context`` makes it; TLS needs one. Renegotiation is
            switched off in it.
        layers: as for ``open_connection``: for every URL, instead of those of its scheme.
        detect: recognise the transport by the first octets, and accept every one that is at least as secret as that of the
            URL: on ``amqp://`` all, on ``amqps://`` all with TLS.
        origins: the origins whose pages may open a WebSocket, e.g. ``"https://example.org"``; ``"*"`` for any. Programs
            other than browsers send no origin, and are accepted.
        admit: a function of the peer's IP address (None: a Unix socket), called before anything is read; if it returns
            False, the connection is closed.
        vet: a function of the connection, called when the peer has opened it and before we do; it returns None to accept
            the connection, or an error, e.g. ``redirect(url)``, which our close then carries right after our open.
        max_connections: above this number further peers wait; None for no limit. Peers that have not opened their
            connection count too, but are replaced: for each new peer, the oldest of the host that has most of them.
        max_handshakes: how many may be in the handshakes at a time; None for no limit. Further peers wait,
            unless another host has more of these places: then the new peer replaces the oldest of the host that has most. A host is an IPv4 address, the /64 of an IPv6 address, or a user of this machine at a Unix socket.
        max_failures: failed authentications of one user from one host (an IP address, or the same /64 of IPv6) after
            which neither right nor wrong credentials of that user count from there; and ten times as many for all
            users of that host. One is forgiven each ``300 / max_failures`` seconds. Meanwhile the outcome is ``sys-temp``
            (5.3.3.6). Each failure is logged as a warning, with host and user. None for no limit, as behind a
            proxy, where all come from one address.
        max_partial_octets: of messages that began and are not complete, on all connections together, whatever protocol of
            ``dialects`` they speak: above it the largest of the connection that has most goes. Its link is detached with
            ``amqp:resource-limit-exceeded``; in the other protocols its channel or its connection is closed with 506. None for no limit
            but that of each connection (``Limits.partial_octets``, ``Limits.max_partial``).
        dialects: protocols to serve beside AMQP 1.0 on the same URLs, above the same layers. The first octets decide:
            each protocol is asked in turn, and AMQP 1.0 gets the connections that no other recognises. ``sasl``, ``max_handshakes``,
            ``max_failures``, ``limits.header_timeout`` and ``limits.handshake_timeout`` hold for all of them; ``handler``, ``vet`` and all
            that an open says are of AMQP 1.0. Names are for ``Container.serve``, which has the dialects.
        dialect_schemes: protocols that are served alone, on URLs of their own: with ``{"amqp091": dialect}``, ``amqp091://`` is
            a URL to listen on, ``amqp091s://`` the same with TLS, and so on. ``Container.serve`` needs no such table.
        wall_clock: gives the time of day, in seconds since 1970. By it a connection ends with ``amqp:unauthorized-access`` when the
            token does by which its peer logged in (OAUTHBEARER, XOAUTH2), however busy it is; SASL takes no other token later.
        options: the others, as for ``open_connection``.

    Raises:
        OSError: it is not possible to listen there.
        LocalProtocolError: a URL is not one, or there is none; TLS without ``ssl_context``, or one
            that is not safe; ``max_failures`` or ``max_partial_octets`` less than 1; a dialect that is only named.

    Cancelled: every connection is closed with ``amqp:connection:forced``.
    """
    if not urls:
        raise LocalProtocolError("serve() needs at least one URL to listen on, e.g. amqp://127.0.0.1:5672")
    if max_partial_octets is not None and max_partial_octets < 1:
        raise LocalProtocolError(f"max_partial_octets={max_partial_octets}: at least 1, or None for no limit")
    named = [each for each in dialects if isinstance(each, str)]
    if named:
        raise LocalProtocolError(
            f"dialects={named}: only Container.serve knows dialects by name; give objects of Dialect"
        )
    more = [each for each in dialects if not isinstance(each, str)]
    acceptor = Acceptor(
        container_id=str(uuid.uuid4()) if container_id is None else container_id,
        sasl=sasl or Server(),
        allow_plaintext_password=allow_plaintext_password,
        vet=vet,
        close_timeout=close_timeout,
        failures=LoginFailures(max_failures, trio.current_time),
        pool=None if max_partial_octets is None else Pool(max_partial_octets),
        wall_clock=wall_clock,
        **options,
    )
    check_trio()
    places = [_place(url, dialect_schemes or {}) for url in urls]
    limits = acceptor.effective_limits
    entrances = [_entrance(place.url, ssl_context, layers, detect, origins, limits) for place in places]
    doors = ConnectionAdmission(max_connections, max_handshakes)
    sockets: list[tuple[trio.SocketListener, Reception]] = []
    listening: list[Listener] = []
    try:
        for place, entrance in zip(places, entrances, strict=True):
            for listener in await bind(place.url):
                entered = replace(acceptor, entrance=entrance)
                sockets.append((listener, entered.reception(handler, more, place.dialect)))
                reached = listener_url(place.url, listener)
                url = place.scheme + reached.removeprefix(place.url.scheme)
                listening.append(Listener(url, parse_url(reached).port, listener.socket.close))
        with interrupts_unwrapped():
            async with trio.open_nursery() as nursery:
                for listener, reception in sockets:
                    nursery.start_soon(accept_loop, listener, reception, admit, doors, nursery)
                task_status.started(listening)
    finally:
        doors.close()
        for listener, _ in sockets:
            listener.socket.close()


class _Place(NamedTuple):
    """Where to listen.

    Attributes:
        url: of the transport.
        scheme: of the URL that was asked for.
        dialect: what is served there alone; None for AMQP 1.0, and what is served beside it.
    """

    url: Url
    scheme: str
    dialect: Dialect | None


def _place(text: str, dialects: Mapping[str, Dialect]) -> _Place:
    owners: dict[str, Dialect] = {}
    transports: dict[str, str] = {}
    for protocol, dialect in dialects.items():
        schemes = schemes_of(protocol)
        owners |= dict.fromkeys(schemes, dialect)
        transports |= schemes
    url = parse_url(text, transports)
    scheme = text.partition("://")[0].lower()
    return _Place(url, scheme, owners.get(scheme))


def _entrance(
    url: Url,
    context: ssl.SSLContext | None,
    layers: Sequence[str] | None,
    detect: bool,
    origins: Collection[str],
    limits: Limits,
) -> AcceptedLayers:
    scheme = layers_of(url.scheme)
    stack = check_layers(scheme if layers is None else layers)
    if has_tls(scheme) and not has_tls(stack):
        raise LocalProtocolError(f"layers={stack!r} would take the TLS out of {url}")
    if context is not None:
        check_server_context(context)
    elif has_tls(stack):
        raise LocalProtocolError(
            f"{url} needs a certificate: serve(..., ssl_context=tls.server_context(certfile, keyfile))"
        )
    return AcceptedLayers(
        stacks=no_less_secret(stack, tls=context is not None) if detect else frozenset({stack}),
        context=context,
        path="/" if url.scheme == "amqp+unix" else url.path or "/",
        origins=origins,
        seconds=limits.layer_timeout,
        header_seconds=limits.header_timeout,
    )
