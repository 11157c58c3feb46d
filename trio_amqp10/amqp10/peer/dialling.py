"""Dial a connection: redirects, several URLs, and dialling again after a loss.

Joins places, layers, SASL mechanisms and engines. The options of ``open_connection`` are described in
``dial``.
"""

from __future__ import annotations

import contextlib
import copy
import uuid
from collections.abc import Iterable
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import trio

from trio_amqp10.amqp10.engine.layer_stack import Stack
from trio_amqp10.amqp10.engine.open_options import strictness
from trio_amqp10.amqp10.engine.sasl_layer import sasl_frame_size
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.core.errors import Condition, LocalProtocolError, SecurityError
from trio_amqp10.net.dialling_base import DiallingBase
from trio_amqp10.net.recovery_events import Watchers
from trio_amqp10.net.transport_layers import has_tls
from trio_amqp10.net.urls import Url, parse_url
from trio_amqp10.sasl import ClientMechanism, SaslClient, check_allowed, default_mechanisms

from .connection import Connection
from .delivery import OutgoingDelivery, delivery_class
from .errors import (
    ConnectionClosedError,
    ConnectionRedirectError,
    GuaranteeNotSupportedError,
    SessionEndedError,
)
from .recovery import Recovery
from .redirects import DialTarget, hops_of, redirected
from .sole_connection_request import CAPABILITY as SOLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trio_amqp10.amqp10.engine.connection import Connection as EngineConnection
    from trio_amqp10.amqp10.engine.limits import Limits
    from trio_amqp10.net.recovery_base import RecoveryBase
    from trio_amqp10.net.recovery_events import Changes
    from trio_amqp10.net.redial import Redial
    from trio_amqp10.net.transport_layers import Transport

    from .dial_options import DialOptions
    from .errors import LinkRedirectError

_SETTLED: Final = 60.0
"""Seconds after which a redirect no longer counts as one of a row of redirects."""


class Dialling(DiallingBase[Connection, DialTarget]):
    """A connection that has not been dialled yet: enter it with ``async with``."""

    __slots__ = (
        "_container_id",
        "_first_session",
        "_follow",
        "_homes",
        "_hops",
        "_moved",
        "_onward",
        "_options",
        "_place",
        "_trusted",
    )

    recovery_class: ClassVar[type[RecoveryBase[Any]]] = Recovery

    def __init__(
        self,
        where: str | Sequence[str] | trio.abc.Stream | Callable[[], trio.abc.Stream],
        options: DialOptions,
    ) -> None:
        stream = where if isinstance(where, trio.abc.Stream) or callable(where) else None
        urls: list[Url | None] = [None] if stream is not None else [parse_url(url) for url in _texts(where)]
        super().__init__([DialTarget(url) for url in urls], stream, options.backoff)
        self._options = options
        self._container_id = str(uuid.uuid4()) if options.container_id is None else options.container_id
        self._follow = hops_of(options.follow_redirects)
        self._homes = tuple(url.host.lower() for url in urls if url is not None)
        self._trusted = (*self._homes, *(host.lower() for host in options.trusted_hosts))
        self._place = self._places[0]
        self._onward: DialTarget | None = None
        self._hops = 0
        self._moved = -inf
        for url in urls:
            _check_no_address(url)
            options.layers_for(url)
        self._engine(options.hostname)  # options that fit no open frame must raise here, before dialling

    def _engine(self, hostname: str | None) -> EngineConnection:
        return self._options.wire.connection(
            self._container_id,
            hostname=hostname,
            pipelined=self._options.pipelined,
            incoming_class=delivery_class(strictness(self._options.strict)),
            outgoing_class=OutgoingDelivery,
            **self._options.for_engine(),
        )

    def changes(self) -> Changes:
        """Iterate over the changes of the connection, from the first attempt on.

        Each failed attempt to dial is reported. Iterate in a task of its own, because entering the connection
        waits for as long as ``reconnect`` allows.

        Raises:
            LocalProtocolError: ``reconnect`` was not given.
        """
        if self._backoff is None:
            raise LocalProtocolError(
                "this connection is not restored after a loss: open it with reconnect=True"
            )
        return super().changes()

    # -- one transport ----------------------------------------------------------------------

    def _mechanisms(self, url: Url | None, secure: bool) -> Sequence[ClientMechanism]:
        chosen = self._options.sasl
        if isinstance(chosen, ClientMechanism):
            return (chosen,)
        if isinstance(chosen, bool):
            return ()
        if chosen is not None:
            return tuple(chosen)
        if url is None:
            return ()
        return default_mechanisms(
            url.username,
            url.password,
            secure=secure,
            has_certificate=self._options.certfile is not None,
        )

    async def _put_layers_on(self, stream: trio.abc.Stream, place: DialTarget, limits: Limits) -> Transport:
        """Put all layers on the stream, within the time limit for the peer's open."""
        with trio.move_on_after(inf if limits.handshake_timeout is None else limits.handshake_timeout):
            return await self._options.put_on(
                stream, place.url, peer=place.hostname, seconds=limits.layer_timeout
            )
        raise ConnectionClosedError("the peer took too long, during the handshakes")

    def _stack(
        self,
        place: DialTarget,
        engine: EngineConnection,
        stream: trio.abc.Stream,
        transport: Transport,
        began: float,
    ) -> Stack:
        secure = self._is_private(stream, transport) or self._options.allow_plaintext_password
        mechanisms = check_allowed(self._mechanisms(place.url, secure), secure=secure)
        hostname = self._host_of(place)
        bindings = transport.channel_bindings
        sasl: SaslClient | None = None
        if mechanisms:
            sasl = self._options.wire.sasl_client(
                mechanisms,
                hostname=hostname,
                channel_bindings=bindings,
                max_frame_size=sasl_frame_size(engine.strict),
                tolerances=engine.context.tolerances,
            )
        return Stack(engine, trio.current_time(), sasl=sasl, began=began)

    def _host_of(self, place: DialTarget) -> str | None:
        """Return the hostname for ``open`` and ``sasl-init``."""
        return (
            place.hostname
            or self._options.hostname
            or (place.url.host if place.url is not None else None)
            or None
        )

    async def _reach(self, place: DialTarget) -> tuple[EngineConnection, Stack, trio.abc.Stream]:
        """Return a transport to ``place``, with an engine that has begun to open."""
        engine = self._engine(self._host_of(place))
        stream = await self._stream_to(place.url)
        began = trio.current_time()
        try:
            transport = await self._put_layers_on(stream, place, engine.limits)
            stack = self._stack(place, engine, stream, transport, began)
            engine.open()
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return engine, stack, transport.stream

    # -- the connection ---------------------------------------------------------------------

    def _make_recovery(self, connection: Connection, redial: Redial) -> Recovery:
        assert self._backoff is not None
        recovery = Recovery(
            connection, self._dial_named, redial, self._watchers, backoff=self._backoff, goes_on=self._goes_on
        )
        recovery.sessions[self._first_session] = None
        return recovery

    async def _dial(self) -> str:
        """Dial the next URL, or the place of a redirect, and follow further redirects.

        Return the place of the connection, as text.
        """
        place, self._onward = self._onward, None
        if place is None:
            place = self._next_place()
            self._hops = 0
        while True:
            try:
                await self._dial_at(place)
            except ConnectionRedirectError as error:
                if not self._follow:
                    raise
                place = self._hop(place, error)
            else:
                self._place = place
                return str(place)

    async def _dial_at(self, place: DialTarget) -> None:
        engine, stack, stream = await self._reach(place)
        connection = self._connection
        if connection is None:
            self._connection = connection = Connection(
                engine, stack, stream, self._nursery, close_timeout=self._options.close_timeout
            )
            connection.dialling = self
        else:
            connection.bind(engine, stack, stream)
        first, follows = connection.recovery is None, self._follow > 0
        try:
            if first:
                connection.forget_sessions()
                if not follows:
                    self._first_session = connection.session_for(None, own=False)
            await connection.opened()
            if SOLE in engine.local.desired_capabilities and connection.sole_connection is None:
                await self._close_without(SOLE, connection, stack)
                raise GuaranteeNotSupportedError(
                    f"{connection.remote.container_id!r} does not limit a container to one connection only: dial "
                    "without sole_connection, or make sure in another way that there is no other connection"
                )
            if first and follows:
                # A redirect is a close right after the peer's open (2.4.3). So begin a session and wait for the answer:
                # when it has come, the peer does not redirect.
                self._first_session = connection.session_for(None, own=False)
                with contextlib.suppress(SessionEndedError):
                    await self._first_session.begun()
        except Exception:
            # A cancellation is not caught here: leaving the block of the connection closes it.
            await connection.hang_up()
            raise

    async def _close_without(self, capability: str, connection: Connection, stack: Stack) -> None:
        """Close a connection whose peer does not offer a necessary capability (2.7.1)."""
        error = Error(
            condition=Condition.NOT_IMPLEMENTED.value, description=f"{capability} is needed and not offered"
        )
        stack.close(error, trio.current_time())
        await connection.pump.finish(self._options.close_timeout)

    # -- redirects --------------------------------------------------------------------------

    def _hop(self, place: DialTarget, error: ConnectionRedirectError | LinkRedirectError) -> DialTarget:
        """Return the place that a redirect leads to, if it may be followed.

        Raises:
            ConnectionRedirectError, LinkRedirectError: it is one redirect too many.
            SecurityError: there are credentials, and the host is not one of ``trusted_hosts``.
            LocalProtocolError: the redirect names no place that can be dialled.
        """
        if self._hops >= self._follow:
            raise error
        self._hops += 1
        onward = redirected(place, error)
        self._check_trust(onward, error)
        return onward

    def _check_trust(self, place: DialTarget, error: Exception) -> None:
        url, tls = place.url, self._options
        assert url is not None
        names = {mechanism.name for mechanism in self._mechanisms(url, secure=True)}
        if names <= {"ANONYMOUS"} and tls.certfile is None:
            return
        proves = has_tls(tls.layers_for(url)) and not tls.insecure
        if proves and tls.server_hostname is not None:
            return  # TLS verifies that the new peer has the name that the program has given
        host = str(place.hostname if proves else url.host)
        if host.lower() not in self._trusted:
            raise SecurityError(
                f"the peer redirects to {host!r}, which must not get the credentials that were given for "
                f"{', '.join(sorted(set(self._homes)))}: allow it with trusted_hosts=[{host!r}]"
            ) from error

    def _goes_on(self, loss: Exception | None) -> bool:
        """Whether the loss is a redirect that can be followed; note the next place then."""
        if not isinstance(loss, ConnectionRedirectError) or not self._follow:
            return False
        if trio.current_time() - self._moved > _SETTLED:
            self._hops = 0
        try:
            self._onward = self._hop(self._place, loss)
        except ConnectionRedirectError:
            return False
        self._moved = trio.current_time()
        return True

    def redirected(self, error: ConnectionRedirectError | LinkRedirectError) -> Dialling:
        """Return the same dialling for the place that ``error`` names.

        Raises as ``Connection.open_redirected``.
        """
        onward = redirected(self._place, error)
        self._check_trust(onward, error)
        there = copy.copy(self)
        there._start_at(onward)  # noqa: SLF001 - a copy of this object
        return there

    def _start_at(self, place: DialTarget) -> None:
        self._places = [place]
        self._place = place
        self._next = self._hops = 0
        self._onward = None
        self._watchers = Watchers()


def _texts(where: Any) -> list[str]:
    """Return the given URLs, one or several, as a list."""
    single = isinstance(where, str) or not isinstance(where, Iterable)
    texts: list[Any] = [where] if single else list(cast("Iterable[Any]", where))
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(
            f"cannot dial {where!r}: give a URL such as 'amqp://localhost:5672', a list of URLs, or a stream of trio"
        )
    return texts


def _check_no_address(url: Url | None) -> None:
    """Refuse a URL with a path: a connection has no path, and it would be ignored."""
    if url is not None and url.address is not None:
        raise LocalProtocolError(
            f"{url} and the path {url.address!r}: a connection has no path; give the address of a node to open_sender or "
            "open_receiver, and a virtual host of RabbitMQ as hostname='vhost:NAME'"
        )
