"""Listen for peers: ``serve``, and the life of an accepted connection."""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import trio

from trio_amqp10.amqp10.engine.layer_stack import Stack
from trio_amqp10.amqp10.engine.open_options import OpenOptions, strictness
from trio_amqp10.amqp10.engine.sasl_layer import sasl_frame_size
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.core.async_functions import require_async
from trio_amqp10.core.errors import AmqpError, Condition, LocalProtocolError, RemoteProtocolError
from trio_amqp10.core.partial_pool import Pool
from trio_amqp10.core.protocol_headers import header_id, served_as
from trio_amqp10.net.accept_loop import ListeningPlace, Reception, listen_at
from trio_amqp10.net.connection_admission import ConnectionAdmission
from trio_amqp10.net.listener import Listener
from trio_amqp10.net.login_failures import LoginFailures
from trio_amqp10.net.option_signatures import lists
from trio_amqp10.net.tls import check_server_context
from trio_amqp10.net.transport_layers import AcceptedLayers, check_layers, has_tls, layers_of, no_less_secret
from trio_amqp10.net.urls import Url, parse_url, schemes_of
from trio_amqp10.net.waiters import check_trio
from trio_amqp10.sasl import Server
from trio_amqp10.sasl.mechanism import ServerContext

from .connection import Connection
from .delivery import OutgoingDelivery, delivery_class
from .wires import FINAL, wire_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Collection, Mapping, Sequence
    from typing import Unpack

    from trio_amqp10.amqp10.engine.connection import Connection as EngineConnection
    from trio_amqp10.amqp10.engine.limits import Limits
    from trio_amqp10.amqp10.engine.open_options import OpenKeywords
    from trio_amqp10.net.dialect import AcceptedConnection, Dialect

    from .connection import Vet

__all__ = ["Acceptor", "Amqp10Dialect", "Listener", "serve"]

_log = logging.getLogger("trio_amqp10.listen")

Handler = Callable[[Connection], Awaitable[object]]

_JITTER: Final = 0.5
"""Seconds of random delay at most, so that the time of a refusal reveals nothing."""


def _nothing() -> None:
    """Do nothing: the caller needs no call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptor(OpenOptions):
    """The options of accepted connections; makes a connection of each stream.

    Raises:
        LocalProtocolError: an open with these options is too long for a frame.
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
        self._engine()  # options that fit no open frame must raise here, before a peer dials

    def _engine(self) -> EngineConnection:
        return wire_of(self.dialect).connection(
            self.container_id,
            incoming_class=delivery_class(strictness(self.strict)),
            outgoing_class=OutgoingDelivery,
            **self.keywords(),
        )

    def accept(self, accepted: AcceptedConnection, nursery: trio.Nursery) -> Connection:
        """Start a connection; return before the peer has opened it.

        Args:
            accepted: the stream, with the transport that its layers have made.
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
        tally, tolerances = accepted.failures, engine.context.tolerances
        make = wire_of(self.dialect).sasl_server
        stack = Stack(
            engine,
            trio.current_time(),
            accept_sasl=partial(
                make, mechanisms, context=context, max_frame_size=size, tally=tally, tolerances=tolerances
            )
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
        """Serve one stream until it ends. Raise nothing that the peer can cause.

        ``on_opened`` is called when the peer has opened and is accepted, before ``handler``.

        Cancelled: the connection is closed with ``amqp:connection:forced``.
        """
        await self.reception(handler).receive(stream, on_opened, trio.CancelScope())

    def reception(
        self, handler: Handler, dialects: Sequence[Dialect] = (), alone: Dialect | None = None
    ) -> Reception:
        """Return the reception of a listener: ``dialects`` and AMQP 1.0, or ``alone``."""
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
    """AMQP 1.0, or a draft of it, as a dialect.

    Its engine also answers protocol headers that no dialect claims (2.2).
    """

    acceptor: Acceptor
    handler: Handler
    name: str = "AMQP 1.0"
    _unserved: set[str] = field(default_factory=set[str])
    """Protocols that a peer spoke and that are not served, by name; each was logged."""

    def claims(self, head: bytes) -> bool | None:
        """Whether ``head`` is a protocol header; see ``Dialect.claims``."""
        try:
            return None if header_id(head) is None else True
        except RemoteProtocolError:
            return False

    async def serve(self, accepted: AcceptedConnection) -> None:
        """Serve one connection; see ``Dialect.serve``.

        Cancelled: the connection is closed with ``amqp:connection:forced``.
        """
        acceptor = self.acceptor
        async with trio.open_nursery() as nursery:
            try:
                connection = acceptor.accept(accepted, nursery)
            except AmqpError as failure:
                _log.info("%s did not complete the handshake: %s", accepted.name, failure)
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
            _log.info("%s did not complete the handshake: %s", accepted.name, failure)
            self._name_option(accepted.name, failure)
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

    def _name_option(self, peer: str, failure: Exception) -> None:
        """Log once for each protocol that is not served how to serve it."""
        info = failure.info if isinstance(failure, RemoteProtocolError) else None
        name = served_as(info.get("header", b"")) if info else None
        if name is not None and name not in self._unserved:
            self._unserved.add(name)
            _log.warning(
                "%s speaks AMQP %s, which is not served here: name it in Container.serve(dialects=...), "
                "or as --dialect %s of amqp10 serve",
                peer,
                name,
                name,
            )


async def _end_with_token(connection: Connection, seconds: float) -> None:
    """Close the connection when the token expires by which its peer has authenticated.

    SASL authenticates once, so the peer cannot give a newer token.
    """
    await trio.sleep(max(0.0, seconds))
    error = Error(condition=Condition.UNAUTHORIZED_ACCESS.value, description="the token has expired")
    await connection.aclose(error)


def _is_loss(failure: BaseException) -> bool:
    """Whether ``failure`` is only the result of a lost connection.

    Every use of a lost connection raises such an exception, so it is no fault of the handler.
    """
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
    """Listen on ``urls``, and run ``handler(connection)`` for each connection.

    ``await nursery.start(serve, handler, url)`` returns once it listens, with a ``Listener`` for
    each address. When the handler returns, its connection is closed; when it raises an
    ``Exception``, the connection is closed with ``amqp:internal-error`` and the exception logged.
    Nothing that a peer does ends ``serve``; it returns when all listeners and all connections are closed.

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
        max_connections: connections at the same time; None for no limit. Further peers wait. Connections that the peer has
            not opened yet count too, but a new peer replaces one of them: the oldest one of the host with the most of
            them.
        max_handshakes: handshakes at the same time; None for no limit. Further peers wait, unless another host has more
            handshakes under way: then the new peer replaces the oldest one of the host with the most. A host is an IPv4 address, the /64 of an IPv6 address, or a user of this machine at a Unix socket.
        max_failures: after this many failed authentications of one user from one host (an IP address, or the same /64 of
            IPv6), that user is refused from that host, even with the right credentials; after ten times as many of all
            users, the whole host is. One failure is forgotten every ``300 / max_failures`` seconds. The outcome of a
            refusal is ``sys-temp`` (5.3.3.6). Each failure is logged as a warning, with host and user. None for no limit, as behind a
            proxy, where all come from one address.
        max_partial_octets: octets of incomplete messages, on all connections together, of all protocols of ``dialects``.
            Above it, the largest incomplete message of the connection that has most is dropped: its link is detached with
            ``amqp:resource-limit-exceeded``; in the other protocols its channel or connection is closed with 506. None
            for no limit but that of each connection (``Limits.partial_octets``, ``Limits.max_partial``).
        dialects: protocols to serve beside AMQP 1.0 on the same URLs, above the same layers. The first octets decide:
            each protocol is asked in turn, and AMQP 1.0 gets the connections that no other recognises. ``sasl``,
            ``max_handshakes``, ``max_failures``, ``limits.header_timeout`` and ``limits.handshake_timeout`` apply to all
            of them; ``handler``, ``vet`` and the fields of an open apply to AMQP 1.0 only. Names of dialects are for
            ``Container.serve``, which has the dialects.
        dialect_schemes: protocols that are served alone, on URLs of their own: with ``{"amqp091": dialect}``,
            ``amqp091://`` is a URL to listen on, ``amqp091s://`` the same with TLS, and so on. ``Container.serve`` needs
            no such table.
        wall_clock: returns the seconds since 1970. A connection is closed with ``amqp:unauthorized-access`` when the token
            expires by which its peer has authenticated (OAUTHBEARER, XOAUTH2), however busy it is; SASL accepts no
            newer token on the connection.
        options: all others are as for ``open_connection``.

    Raises:
        OSError: it is not possible to listen there.
        LocalProtocolError: a URL is not one, or there is none; TLS without ``ssl_context``, or one
            that is not safe; ``max_failures`` or ``max_partial_octets`` less than 1; a dialect given by its name.

    Cancelled: every connection is closed with ``amqp:connection:forced``.
    """
    require_async(handler, "serve()")
    if not urls:
        raise LocalProtocolError("serve() needs at least one URL to listen on, e.g. amqp://127.0.0.1:5672")
    if max_partial_octets is not None and max_partial_octets < 1:
        raise LocalProtocolError(
            f"max_partial_octets={max_partial_octets}: expected at least 1, or None for no limit"
        )
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
    listening = [
        ListeningPlace(
            place.url,
            place.scheme,
            partial(replace(acceptor, entrance=entrance).reception, handler, more, place.dialect),
        )
        for place, entrance in zip(places, entrances, strict=True)
    ]
    await listen_at(listening, admit, doors, task_status)


class _Place(NamedTuple):
    """A URL to listen on.

    Attributes:
        url: the URL of the transport.
        scheme: the scheme of the URL that the caller has given.
        dialect: the only dialect that is served there; None for AMQP 1.0 and all others.
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
