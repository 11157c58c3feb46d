"""Dial a server of 0-9-1: ``open_connection``, with all its options."""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from importlib.metadata import version
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

import trio

from trio_amqp10.amqp091.fields import STRICT, USUAL
from trio_amqp10.amqp091.limits import Limits
from trio_amqp10.amqp091.methods import EndpointRole
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.net.backoff import Backoff
from trio_amqp10.net.redial import Redial
from trio_amqp10.net.tls_options import TlsOptions
from trio_amqp10.net.transports import connect, is_private
from trio_amqp10.peer.recovery_events import Change, Changes, Watchers
from trio_amqp10.sasl import ClientContext, ClientMechanism, check_allowed

from .connection import ClientEngine, Connection
from .errors import connection_lost
from .login import Login, mechanisms_for
from .recovery import Recovery, is_final, log
from .urls import Place, parse_place

if TYPE_CHECKING:
    import os
    import ssl
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from trio_amqp10.net.transport_layers import Transport

__all__ = ["Dialling", "open_connection"]

SaslChoice: TypeAlias = "ClientMechanism | Sequence[ClientMechanism] | None"


def open_connection(
    where: str | Sequence[str] | trio.abc.Stream,
    *,
    vhost: str | None = None,
    login: tuple[str, str] | None = None,
    sasl: SaslChoice = None,
    allow_plaintext_password: bool = False,
    layers: Sequence[str] | None = None,
    ssl_context: ssl.SSLContext | None = None,
    cafile: str | os.PathLike[str] | None = None,
    certfile: str | os.PathLike[str] | None = None,
    keyfile: str | os.PathLike[str] | None = None,
    server_hostname: str | None = None,
    insecure: bool = False,
    heartbeat: int | None = None,
    frame_max: int | None = None,
    channel_max: int | None = None,
    connection_name: str | None = None,
    client_properties: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    strict_tables: bool = False,
    close_timeout: float = 5.0,
    reconnect: bool | Backoff = False,
) -> Dialling:
    """Dial a server of AMQP 0-9-1: ``async with open_connection(url) as connection`` (0-9-1, 2.2.4, 4.2.2).

    Entering waits until the server has opened the virtual host. Leaving closes the connection: what is queued is written
    first, then the server's answer is awaited for at most ``close_timeout`` seconds. What the block raises leaves as itself.

    Args:
        where: a URL, or several, tried in turn, or a stream that is connected already.
            ``amqp091://[user[:password]@]host[:port][/vhost]``; ``amqp091s://`` with TLS; ``amqp091ws://host/path?vhost=...`` and
            ``amqp091wss://`` in a WebSocket; ``amqp091+unix:///path?vhost=...``. ``amqp://`` and so on mean the same here. The path
            is the virtual host, percent-decoded; none is ``/``. Options of the query: ``heartbeat``, ``frame_max``,
            ``channel_max``, ``connection_timeout`` (milliseconds), ``auth_mechanism``, ``cacertfile``, ``certfile``, ``keyfile``,
            ``server_name_indication``. An argument of this function goes before an option of a URL.
        vhost: the virtual host; that of the URL if None.
        login: user and password; those of the URL if None, and ``guest`` with ``guest`` if it has none.
        sasl: a mechanism, or several, best first. If None: SCRAM, EXTERNAL with ``certfile``, PLAIN and AMQPLAIN.
        allow_plaintext_password: send a password where others could read it on the way, or to a server that proved
            nothing (``insecure``).
        layers: what to put between the stream and AMQP, lowest first: ``"tls"``, ``"websocket"``. None: what the URL says.
        ssl_context: for TLS, in place of one made here.
        cafile: authorities to believe, in PEM, in place of those of the system.
        certfile, keyfile: our own certificate, and its key if that is in another file.
        server_hostname: the name that the server's certificate has to have; the URL's host if None.
        insecure: take any certificate.
        heartbeat: seconds of the interval to ask for; the lower of both ends' numbers holds. 0 for none. 60 if None.
        frame_max: octets of a frame, 4096 or more; the lower of both ends' numbers holds. 131,072 if None.
        channel_max: the highest channel number; the lower of both ends' numbers holds. 2047 if None.
        connection_name: a name for the server's lists.
        client_properties: more about us, for the server.
        limits: what the server may cost us.
        strict_tables: write and read field tables by the grammar of 0-9-1, not as RabbitMQ does.
        close_timeout: seconds to wait for the server whenever something is closed.
        reconnect: come back by itself, with channels, declarations and consumers, for ever or as a ``Backoff`` says; the first
            dial too. See ``Connection.changes``.

    Raises (on entering):
        OSError: nobody answers there.
        SecurityError: the login was refused, or the server is not who it should be, or a password would be readable.
        ConnectionClosedError: the server closed (530: no such virtual host, or no access to it), or was lost, or took too long.
        RemoteProtocolError: what answers does not speak AMQP 0-9-1.
        LocalProtocolError: the URL is not one, or options make no sense or are not safe.

    Cancelled: what was dialled is closed.
    """
    limits = limits or Limits()
    given = {"heartbeat": heartbeat, "frame_max": frame_max, "channel_max": channel_max}
    stream = where if isinstance(where, trio.abc.Stream) else None
    urls = () if isinstance(where, trio.abc.Stream) else (where,) if isinstance(where, str) else where
    options = _Options(
        virtual_host=vhost,
        login=login,
        sasl=sasl,
        allow_plaintext_password=allow_plaintext_password,
        tls=TlsOptions(
            layers=layers,
            ssl_context=ssl_context,
            cafile=cafile,
            certfile=certfile,
            keyfile=keyfile,
            server_hostname=server_hostname,
            insecure=insecure,
        ),
        limits=limits,
        given={name: value for name, value in given.items() if value is not None},
        properties=_properties(connection_name, client_properties),
        strict_tables=strict_tables,
        close_timeout=close_timeout,
        backoff=Backoff() if reconnect is True else reconnect or None,
    )
    return Dialling([parse_place(url) for url in urls], stream, options)


def _properties(name: str | None, more: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        "product": "trio-amqp10",
        "version": version("trio-amqp10"),
        "platform": f"{platform.python_implementation()} {platform.python_version()}",
        **({} if name is None else {"connection_name": name}),
        **(more or {}),
        "capabilities": {
            "publisher_confirms": True,
            "exchange_exchange_bindings": True,
            "basic.nack": True,
            "consumer_cancel_notify": True,
            "connection.blocked": True,
            "authentication_failure_close": True,
        },
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    virtual_host: str | None
    login: tuple[str, str] | None
    sasl: SaslChoice
    allow_plaintext_password: bool
    tls: TlsOptions
    limits: Limits
    given: dict[str, int]
    properties: dict[str, Any]
    strict_tables: bool
    close_timeout: float
    backoff: Backoff | None

    def limits_at(self, place: Place | None) -> Limits:
        """The limits, with the options of a URL, and the arguments of the call before these. Raises LocalProtocolError."""
        numbers = {} if place is None else dict(place.numbers)
        timeout = numbers.pop("connection_timeout", None)
        try:
            limits = replace(self.limits, **{**numbers, **self.given})  # type: ignore[arg-type]
        except ValueError as error:
            raise LocalProtocolError(str(error)) from None
        return limits if timeout is None else replace(limits, handshake_timeout=timeout / 1000)

    def tls_at(self, place: Place | None) -> TlsOptions:
        """What is known of TLS, with the options of a URL where the call has none."""
        words = {} if place is None else place.words
        tls = self.tls
        if not words or tls.ssl_context is not None:
            return tls
        return replace(
            tls,
            cafile=tls.cafile or words.get("cacertfile"),
            certfile=tls.certfile or words.get("certfile"),
            keyfile=tls.keyfile or words.get("keyfile"),
            server_hostname=tls.server_hostname or words.get("server_name_indication"),
        )


class Dialling:
    """A connection that is yet to be made: enter it with ``async with``."""

    def __init__(self, places: Sequence[Place], stream: trio.abc.Stream | None, options: _Options) -> None:
        if not places and stream is None:
            raise LocalProtocolError("no URL to dial: give at least one")
        if options.backoff is not None and stream is not None:
            raise LocalProtocolError("a stream cannot be dialled again: reconnect needs a URL")
        self._places: Sequence[Place | None] = places or (None,)
        self._stream = stream
        self._options = options
        self._next = 0
        self._watchers = Watchers()
        for place in self._places:  # what cannot be is found out before anything is dialled
            options.limits_at(place)
            options.tls_at(place).layers_for(None if place is None else place.url)

    def changes(self) -> Changes:
        """What happens to the connection, from the first dial on, each attempt that fails included.

        For a task of its own: entering waits for as long as ``reconnect`` says. Ends at once without ``reconnect``.
        """
        if self._options.backoff is None:
            return Changes(ended=True)
        return self._watchers.changes(attempts=True)

    # -- one transport ----------------------------------------------------------------------

    async def _reach(self, place: Place | None, limits: Limits) -> tuple[trio.abc.Stream, Transport]:
        url = None if place is None else place.url
        tls = self._options.tls_at(place)
        seconds = inf if limits.handshake_timeout is None else limits.handshake_timeout
        with trio.move_on_after(seconds):
            if self._stream is not None:
                stream = self._stream
            else:
                assert url is not None
                stream = await connect(url)
            return stream, await tls.put_on(stream, url)
        raise connection_lost(f"nobody answered within {seconds:g} s")

    def _mechanisms(
        self, place: Place | None, stream: trio.abc.Stream, transport: Transport
    ) -> Sequence[ClientMechanism]:
        options = self._options
        secure = transport.private or is_private(stream) or options.allow_plaintext_password
        chosen = options.sasl
        if isinstance(chosen, ClientMechanism):
            found: Sequence[ClientMechanism] = (chosen,)
        elif chosen is not None:
            found = tuple(chosen)
        else:
            user, password = options.login or (
                (None, None) if place is None else (place.url.username, place.url.password)
            )
            certificate = options.tls_at(place).certfile is not None
            found = mechanisms_for(user, password, secure=secure, has_certificate=certificate)
            if place is not None and place.mechanisms:
                found = [each for each in found if each.name in place.mechanisms]
                if not found:
                    raise LocalProtocolError(
                        f"auth_mechanism={', '.join(place.mechanisms)}: none of them can be used with what is given here"
                    )
        return check_allowed(found, secure=secure)

    async def _dial(self) -> str:
        """Dial the next of the places; where it leads. Raises what kept it from that."""
        place = self._places[self._next]
        self._next = (self._next + 1) % len(self._places)
        options = self._options
        limits = options.limits_at(place)
        stream, transport = await self._reach(place, limits)
        try:
            mechanisms = self._mechanisms(place, stream, transport)
        except BaseException:
            await trio.aclose_forcefully(transport.stream)
            raise
        engine = ClientEngine(
            EndpointRole.CLIENT,
            trio.current_time(),
            limits,
            virtual_host=options.virtual_host or ("/" if place is None else place.virtual_host),
            letters=STRICT if options.strict_tables else USUAL,
        )
        context = ClientContext(
            hostname=None if place is None else place.url.host or None,
            channel_bindings=transport.channel_bindings,
        )
        connection = self._connection
        connection.begin(engine, transport.stream, self._nursery)
        connection.ring()
        try:
            await Login(connection, mechanisms, context, options.properties).run()
        except BaseException:
            await connection.hang_up()
            raise
        return "a stream" if place is None else str(place)

    # -- the connection ---------------------------------------------------------------------

    async def __aenter__(self) -> Connection:
        # The nursery is entered and left by hand: what the user's block raises must not pass
        # through it, or it would come out as a group of one.
        self._manager = trio.open_nursery()
        self._nursery = await self._manager.__aenter__()
        self._connection = Connection(self._options.close_timeout)
        self._dialled = False
        connection, backoff, watchers = self._connection, self._options.backoff, self._watchers
        try:
            redial = Redial(backoff, is_final=is_final, log=log, failed=watchers.failed)
            url = await redial.first(self._dial, len(self._places))
            self._dialled = True
            if backoff is not None:
                connection.recovery = Recovery(connection, self._dial, redial, watchers)
                self._nursery.start_soon(connection.recovery.run)
                watchers.tell(Change("restored", url=url))
            connection.on_ready()
        except BaseException as failure:
            watchers.tell(Change("stopped", failure if isinstance(failure, Exception) else None))
            await self._leave()
            raise
        return connection

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._leave()

    async def _leave(self) -> None:
        try:
            if self._dialled:
                await self._connection.aclose()
        finally:
            self._nursery.cancel_scope.cancel()
            await self._manager.__aexit__(None, None, None)
