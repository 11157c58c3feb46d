"""Dial a peer: ``open_connection``."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import trio

from trio_amqp10.engine.connection import Connection as EngineConnection
from trio_amqp10.engine.limits import Limits
from trio_amqp10.engine.stack import Stack
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.sasl import ClientMechanism, SaslClient, check_allowed, default_mechanisms

from .connection import Connection
from .delivery import Delivery, OutgoingDelivery
from .options import symbols
from .transports import connect, is_private
from .urls import Url, parse_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

__all__ = ["Dialling", "open_connection"]

SaslChoice: TypeAlias = "ClientMechanism | Sequence[ClientMechanism] | Literal[False] | None"


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
    ) -> None:
        self._url: Url | None = parse_url(where) if isinstance(where, str) else None
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
        return default_mechanisms(self._url.username, self._url.password, secure=secure)

    async def __aenter__(self) -> Connection:
        stream = self._stream
        if stream is None:
            assert self._url is not None
            stream = await connect(self._url)
        try:
            secure = is_private(stream) or self._allow_plaintext_password
            mechanisms = check_allowed(self._mechanisms(secure), secure=secure)
            sasl = SaslClient(mechanisms, hostname=self._hostname) if mechanisms else None
            stack = Stack(self._engine, trio.current_time(), sasl=sasl)
            self._engine.open()
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        # The nursery is entered and left by hand: what the user's block raises must not pass
        # through it, or it would come out as a group of one.
        self._manager = trio.open_nursery()
        nursery = await self._manager.__aenter__()
        self._connection = Connection(self._engine, stack, stream, nursery, close_timeout=self._close_timeout)
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
        where: ``amqp://[user:password@]host[:port]`` or ``amqp+unix:///path``, or a stream that is
            connected already.
        container_id: who we are (2.4.1); a fresh UUID if None.
        hostname: the host that ``open`` and ``sasl-init`` name; the URL's if None.
        sasl: a mechanism, or several, best first; False for no SASL layer. If None: where the URL has
            a user, SCRAM, and PLAIN where nobody can read along; else ANONYMOUS; for a stream no SASL layer.
        allow_plaintext_password: send a password where somebody could read along.
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
        SecurityError: it could not be agreed who is who.
        ConnectionClosedError: the peer closed, or the transport died.
        RemoteProtocolError: what answers does not speak AMQP 1.0.
        LocalProtocolError: the URL is not one.

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
    return Dialling(where, engine, hostname, sasl, allow_plaintext_password, close_timeout)


def effective_limits(limits: Limits | None, max_frame_size: int | None, channel_max: int | None) -> Limits:
    """``limits`` with the two that have keywords of their own."""
    from dataclasses import replace

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
