"""Dialling, as clients of 0-9-1 and of 10.3 do it: transports, TLS, the choice of mechanisms, the login, and leaving.

What one version has of its own is in ``dial`` and in the client of 10.3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

import trio

from trio_amqp10.amqp091.fields import write_short_string
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.net.redial import Redial
from trio_amqp10.net.transports import connect, is_private
from trio_amqp10.net.waiters import check_trio
from trio_amqp10.peer.recovery_events import Change, Changes, Watchers
from trio_amqp10.sasl import ClientContext, ClientMechanism, check_allowed

from .connection_base import ConnectionBase
from .errors import connection_lost
from .login import Login, mechanisms_for
from .recovery import Recovery

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from trio_amqp10.amqp091.limits import Limits
    from trio_amqp10.net.backoff import Backoff
    from trio_amqp10.net.tls_options import TlsOptions
    from trio_amqp10.net.transport_layers import Transport

    from .connection_base import ClientEngine
    from .urls import Place

__all__ = ["DiallingBase", "Options", "SaslChoice"]

C = TypeVar("C", bound=ConnectionBase[Any])

SaslChoice: TypeAlias = "ClientMechanism | Sequence[ClientMechanism] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a program has said of a connection that is to be dialled; see ``open_connection``."""

    virtual_host: str | None
    login: tuple[str, str] | None
    sasl: SaslChoice
    allow_plaintext_password: bool
    tls: TlsOptions
    limits: Limits
    given: dict[str, int]
    properties: dict[str, Any]
    close_timeout: float
    backoff: Backoff | None = None

    def limits_at(self, place: Place | None) -> Limits:
        """The limits, with the options of a URL, and the arguments of the call before these. Raises LocalProtocolError."""
        numbers = {} if place is None else dict(place.numbers)
        timeout = numbers.pop("connection_timeout", None)
        try:
            limits = replace(self.limits, **{**numbers, **self.given})  # type: ignore[arg-type]
        except ValueError as error:
            raise LocalProtocolError(str(error)) from None
        return limits if timeout is None else replace(limits, handshake_timeout=timeout / 1000)

    def virtual_host_at(self, place: Place | None) -> str:
        """The virtual host of the call, otherwise that of a URL."""
        return self.virtual_host or ("/" if place is None else place.virtual_host)

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


def _check_virtual_host(name: str) -> None:
    try:
        write_short_string(bytearray(), name)
    except LocalProtocolError as fault:
        raise LocalProtocolError(f"the virtual host cannot be written: {fault}") from None


class DiallingBase(Generic[C]):
    """A connection that is yet to be made: enter it with ``async with``.

    Args:
        places: where to dial, tried in turn.
        stream: in place of these.
        options: what the program has said.
    """

    def __init__(self, places: Sequence[Place], stream: trio.abc.Stream | None, options: Options) -> None:
        if not places and stream is None:
            raise LocalProtocolError("no URL to dial: give at least one")
        if options.backoff is not None and stream is not None:
            raise LocalProtocolError("a stream cannot be dialled again: reconnect needs a URL")
        self._places: Sequence[Place | None] = places or (None,)
        self._stream = stream
        self.options = options
        self._next = 0
        self.watchers: Final = Watchers()
        for place in self._places:  # what cannot be is found out before anything is dialled
            options.limits_at(place)
            options.tls_at(place).layers_for(None if place is None else place.url)
            _check_virtual_host(options.virtual_host_at(place))

    def make_connection(self, close_timeout: float) -> C:
        """A connection that has no transport yet."""
        raise NotImplementedError

    def make_engine(self, now: float, limits: Limits, virtual_host: str) -> ClientEngine:
        """The engine of one transport."""
        raise NotImplementedError

    def established(self, connection: C, redial: Redial, url: str) -> None:
        """The first dial has succeeded: from now on it comes back, if it is to."""
        if self.options.backoff is not None:
            recovery = Recovery(connection, self.dial, redial, self.watchers)
            connection.recovery = recovery
            self.nursery.start_soon(recovery.run)
            self.watchers.tell(Change("restored", url=url))

    def changes(self) -> Changes:
        """What happens to the connection, from the first dial on, each attempt that fails included.

        For a task of its own: entering waits for as long as ``reconnect`` says. Ends at once without ``reconnect``.
        """
        if self.options.backoff is None:
            return Changes(ended=True)
        return self.watchers.changes(attempts=True)

    # -- one transport ----------------------------------------------------------------------

    async def _reach(self, place: Place | None, limits: Limits) -> tuple[trio.abc.Stream, Transport]:
        url = None if place is None else place.url
        tls = self.options.tls_at(place)
        seconds = inf if limits.handshake_timeout is None else limits.handshake_timeout
        with trio.move_on_after(seconds):
            if self._stream is not None:
                stream = self._stream
            else:
                assert url is not None
                stream = await connect(url)
            return stream, await tls.put_on(stream, url)
        raise connection_lost(f"no answer within {seconds:g} s")

    def _mechanisms(
        self, place: Place | None, stream: trio.abc.Stream, transport: Transport
    ) -> Sequence[ClientMechanism]:
        options = self.options
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

    async def dial(self) -> str:
        """Dial the next of the places; where it leads. Raises what kept it from that."""
        place = self._places[self._next]
        self._next = (self._next + 1) % len(self._places)
        options = self.options
        limits = options.limits_at(place)
        stream, transport = await self._reach(place, limits)
        try:
            mechanisms = self._mechanisms(place, stream, transport)
        except BaseException:
            await trio.aclose_forcefully(transport.stream)
            raise
        engine = self.make_engine(trio.current_time(), limits, options.virtual_host_at(place))
        context = ClientContext(
            hostname=None if place is None else place.url.host or None,
            channel_bindings=transport.channel_bindings,
        )
        connection = self._connection
        connection.begin(engine, transport.stream, self.nursery)
        connection.wake_writer()
        try:
            await Login(connection, mechanisms, context, options.properties).run()
        except BaseException:
            await connection.pump.part(partial(engine.close, trio.current_time()))
            raise
        return "a stream" if place is None else str(place)

    # -- the connection ---------------------------------------------------------------------

    async def __aenter__(self) -> C:
        check_trio()
        # The nursery is entered and left by hand: what the user's block raises must not pass
        # through it, or it would come out as a group of one.
        self._manager = trio.open_nursery()
        self.nursery: trio.Nursery = await self._manager.__aenter__()
        self._connection = self.make_connection(self.options.close_timeout)
        self._dialled = False
        connection, backoff, watchers = self._connection, self.options.backoff, self.watchers
        try:
            redial = Redial(backoff, is_final=Recovery.is_final, log=Recovery.log, failed=watchers.failed)
            url = await redial.first(self.dial, len(self._places))
            self._dialled = True
            self.established(connection, redial, url)
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
            self.nursery.cancel_scope.cancel()
            await self._manager.__aexit__(None, None, None)
