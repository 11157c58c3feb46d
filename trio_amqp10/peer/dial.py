"""Dial a peer: ``open_connection``, and what lies between its stream and AMQP."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import trio

from trio_amqp10.engine.connection import Connection as EngineConnection
from trio_amqp10.engine.limits import Limits
from trio_amqp10.engine.stack import Stack
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.sasl import ClientMechanism, SaslClient, check_allowed, default_mechanisms

from .connection import Connection
from .delivery import Delivery, OutgoingDelivery
from .errors import ConnectionClosedError
from .layers import Transport, check_layers, dial_layers, has_tls, layers_of
from .options import symbols
from .tls import check_client_context, client_context
from .transports import connect, is_private
from .urls import Url, parse_url

if TYPE_CHECKING:
    import os
    import ssl
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from .layers import Layers

__all__ = ["DialTls", "Dialling", "open_connection"]

SaslChoice: TypeAlias = "ClientMechanism | Sequence[ClientMechanism] | Literal[False] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class DialTls:
    """What ``open_connection`` was told of layers and TLS.

    Raises:
        LocalProtocolError: it makes no sense together, or would not be safe.
    """

    layers: Sequence[str] | None = None
    context: ssl.SSLContext | None = None
    cafile: str | os.PathLike[str] | None = None
    certfile: str | os.PathLike[str] | None = None
    keyfile: str | os.PathLike[str] | None = None
    server_hostname: str | None = None
    insecure: bool = False

    def __post_init__(self) -> None:
        files = {"cafile": self.cafile, "certfile": self.certfile, "keyfile": self.keyfile}
        given = [name for name, value in files.items() if value is not None]
        if self.context is not None:
            if given:
                raise LocalProtocolError(f"either ssl_context or {given[0]}: a context has its own")
            check_client_context(self.context, insecure=self.insecure)
        if self.keyfile is not None and self.certfile is None:
            raise LocalProtocolError("keyfile needs certfile: a key alone proves nothing")
        if self.insecure and self.cafile is not None:
            raise LocalProtocolError("insecure=True would not look at cafile: leave out one of them")

    @property
    def asked_for(self) -> bool:
        """Whether anything here says that there is to be TLS."""
        return self.insecure or any(
            value is not None for value in (self.context, self.cafile, self.certfile, self.server_hostname)
        )

    def layers_for(self, url: Url | None) -> Layers:
        """What to put on a stream.

        Raises:
            LocalProtocolError: TLS was asked for, and there would be none.
        """
        scheme = () if url is None else layers_of(url.scheme)
        layers = check_layers(scheme if self.layers is None else self.layers)
        if has_tls(scheme) and not has_tls(layers):
            raise LocalProtocolError(f"layers={layers!r} would take the TLS out of {url}")
        if self.asked_for and not has_tls(layers):
            where = "a stream without layers" if url is None else url
            raise LocalProtocolError(
                f"{where} has no TLS, and ssl_context, cafile, certfile, server_hostname and insecure are "
                "about nothing else: dial amqps://, or name the layers, as in layers=['tls']"
            )
        if has_tls(layers) and not self.insecure and not (self.server_hostname or (url and url.host)):
            raise LocalProtocolError("say whom the peer's certificate has to name: server_hostname='...'")
        return layers

    def make_context(self) -> ssl.SSLContext:
        """The context to dial with. Raises OSError where a file is not what it should be."""
        if self.context is not None:
            return self.context
        return client_context(
            self.cafile, certfile=self.certfile, keyfile=self.keyfile, insecure=self.insecure
        )


class Dialling:
    """A connection that is yet to be made: enter it with ``async with``."""

    def __init__(
        self,
        where: str | trio.abc.Stream,
        engine: EngineConnection,
        hostname: str | None,
        sasl: SaslChoice,
        allow_plaintext_password: bool,
        close_timeout: float,
        tls: DialTls,
    ) -> None:
        self._url: Url | None = parse_url(where) if isinstance(where, str) else None
        self._tls = tls
        self._layers = tls.layers_for(self._url)
        self._stream: trio.abc.Stream | None = None if isinstance(where, str) else where
        self._engine = engine
        self._hostname = hostname
        self._sasl = sasl
        self._allow_plaintext_password = allow_plaintext_password
        self._close_timeout = close_timeout

    def _mechanisms(self, secure: bool) -> Sequence[ClientMechanism]:
        chosen = self._sasl
        if isinstance(chosen, ClientMechanism):
            return (chosen,)
        if isinstance(chosen, bool):
            return ()
        if chosen is not None:
            return tuple(chosen)
        if self._url is None:
            return ()
        return default_mechanisms(
            self._url.username,
            self._url.password,
            secure=secure,
            has_certificate=self._tls.certfile is not None,
        )

    async def _climb(self, stream: trio.abc.Stream) -> Transport:
        """Put the layers on a stream; all of them within the time that there is to the peer's open."""
        if not self._layers:
            return Transport(stream=stream)
        url, tls, limits = self._url, self._tls, self._engine.limits
        host = (url.host if url is not None and url.host else tls.server_hostname) or "localhost"
        with trio.move_on_after(inf if limits.handshake_timeout is None else limits.handshake_timeout):
            return await dial_layers(
                stream,
                self._layers,
                context=tls.make_context() if has_tls(self._layers) else None,
                server_hostname=tls.server_hostname or host,
                host=host if url is None or not url.port else url.authority,
                path="/" if url is None or url.scheme == "amqp+unix" else url.path,
                seconds=limits.layer_timeout,
            )
        raise ConnectionClosedError("the peer took too long, during the handshakes")

    def _stack(self, stream: trio.abc.Stream, transport: Transport, began: float) -> Stack:
        secure = transport.private or is_private(stream) or self._allow_plaintext_password
        mechanisms = check_allowed(self._mechanisms(secure), secure=secure)
        bindings = transport.channel_bindings
        sasl = (
            SaslClient(mechanisms, hostname=self._hostname, channel_bindings=bindings) if mechanisms else None
        )
        return Stack(self._engine, trio.current_time(), sasl=sasl, began=began)

    async def __aenter__(self) -> Connection:
        stream = self._stream
        if stream is None:
            assert self._url is not None
            stream = await connect(self._url)
        began = trio.current_time()
        try:
            transport = await self._climb(stream)
            stack = self._stack(stream, transport, began)
            self._engine.open()
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        # The nursery is entered and left by hand: what the user's block raises must not pass
        # through it, or it would come out as a group of one.
        self._manager = trio.open_nursery()
        nursery = await self._manager.__aenter__()
        self._connection = Connection(
            self._engine, stack, transport.stream, nursery, close_timeout=self._close_timeout
        )
        try:
            self._connection.session_for(None, own=False)
            await self._connection.opened()
        except BaseException:
            await self._leave(nursery)
            raise
        self._nursery = nursery
        return self._connection

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._leave(self._nursery)

    async def _leave(self, nursery: trio.Nursery) -> None:
        try:
            await self._connection.aclose()
        finally:
            nursery.cancel_scope.cancel()
            await self._manager.__aexit__(None, None, None)


def open_connection(
    where: str | trio.abc.Stream,
    *,
    container_id: str | None = None,
    hostname: str | None = None,
    sasl: SaslChoice = None,
    allow_plaintext_password: bool = False,
    layers: Sequence[str] | None = None,
    ssl_context: ssl.SSLContext | None = None,
    cafile: str | os.PathLike[str] | None = None,
    certfile: str | os.PathLike[str] | None = None,
    keyfile: str | os.PathLike[str] | None = None,
    server_hostname: str | None = None,
    insecure: bool = False,
    idle_timeout: float | None = 60.0,
    max_frame_size: int | None = None,
    channel_max: int | None = None,
    properties: dict[Any, Any] | None = None,
    desired_capabilities: str | Iterable[str] = (),
    offered_capabilities: str | Iterable[str] = (),
    limits: Limits | None = None,
    pipelined: bool = True,
    close_timeout: float = 5.0,
) -> Dialling:
    """Dial a peer: ``async with open_connection(url) as conn``.

    Entering waits until the peer has opened the connection too. Leaving closes it: what is queued
    is written first, then the peer's close is awaited for at most ``close_timeout`` seconds. What
    the block raises leaves as itself.

    Args:
        where: a URL, or a stream that is connected already. ``amqp://[user:password@]host[:port]``;
            ``amqps://`` with TLS first; ``amqp+tls://`` with TLS by protocol id 2; ``amqpws://host/path``
            and ``amqpwss://`` in a WebSocket; ``amqp+unix:///path``.
        container_id: who we are (2.4.1); a fresh UUID if None.
        hostname: the host that ``open`` and ``sasl-init`` name; the URL's if None.
        sasl: a mechanism, or several, best first; False for no SASL layer. If None: where the URL has
            a user, SCRAM, EXTERNAL with ``certfile``, and PLAIN where nobody can read along; else EXTERNAL or
            ANONYMOUS; for a stream no SASL layer.
        allow_plaintext_password: send a password where somebody could read along, or to a peer that
            proved nothing (``insecure``).
        layers: what to put between the stream and AMQP, lowest first: ``"tls"``, ``"websocket"``,
            ``"in-band-tls"``. None: what the URL's scheme says; nothing on a stream.
        ssl_context: for TLS, in place of one that ``tls.client_context`` makes.
        cafile: authorities to believe, in PEM, in place of those of the system.
        certfile, keyfile: our own certificate, and its key if that is in another file.
        server_hostname: whom the peer's certificate has to name, and SNI tells; the URL's host if None.
        insecure: take a certificate from anybody.
        idle_timeout: seconds of silence after which the peer counts as gone (2.4.5); None: never.
        max_frame_size, channel_max: as in ``limits``, which they override.
        properties: about us, for the peer; str keys travel as symbols.
        desired_capabilities, offered_capabilities: extensions to ask for and to offer.
        limits: what the peer may cost us.
        pipelined: write open, begin and so on without waiting for the peer's; False for peers
            that cannot take it.
        close_timeout: seconds to wait for the peer whenever something is closed.

    Raises (on entering):
        OSError: nobody answers there.
        SecurityError: it was not agreed who is who, or a side would have had to go on with less security.
        ConnectionClosedError: the peer closed, or the transport died.
        RemoteProtocolError: what answers does not speak AMQP 1.0.
        LocalProtocolError: the URL is not one, or options for TLS make no sense with it or are not safe.

    Cancelled: what was dialled is closed; the close frame gets at most a second.
    """
    if isinstance(where, str):
        hostname = hostname or parse_url(where).host or None
    engine = EngineConnection(
        str(uuid.uuid4()) if container_id is None else container_id,
        hostname=hostname,
        limits=effective_limits(limits, max_frame_size, channel_max),
        idle_timeout=idle_timeout,
        properties=properties,
        offered_capabilities=symbols(offered_capabilities),
        desired_capabilities=symbols(desired_capabilities),
        pipelined=pipelined,
        incoming_class=Delivery,
        outgoing_class=OutgoingDelivery,
    )
    tls = DialTls(
        layers=layers,
        context=ssl_context,
        cafile=cafile,
        certfile=certfile,
        keyfile=keyfile,
        server_hostname=server_hostname,
        insecure=insecure,
    )
    return Dialling(where, engine, hostname, sasl, allow_plaintext_password, close_timeout, tls)


def effective_limits(limits: Limits | None, max_frame_size: int | None, channel_max: int | None) -> Limits:
    """``limits`` with the two that have keywords of their own."""
    limits = limits or Limits()
    if max_frame_size is not None:
        limits = replace(limits, max_frame_size=max_frame_size)
    if channel_max is not None:
        limits = replace(limits, channel_max=channel_max)
    if limits.max_frame_size < 512:
        raise LocalProtocolError(
            f"max_frame_size={limits.max_frame_size}: at least 512 octets are due (2.7.1)"
        )
    return limits
