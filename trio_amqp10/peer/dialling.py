"""Dial a connection: redirects, several URLs, and dialling again after a loss.

Knows places, layers, mechanisms and engines; what ``open_connection`` may be told of them stands in ``dial``.
"""

from __future__ import annotations

import contextlib
import copy
import uuid
from collections.abc import Iterable
from math import inf
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from trio_amqp10.engine.layer_stack import Stack
from trio_amqp10.engine.open_options import strictness
from trio_amqp10.errors import Condition, LocalProtocolError, SecurityError
from trio_amqp10.net.redial import Redial
from trio_amqp10.net.transport_layers import has_tls
from trio_amqp10.net.transports import connect, is_private
from trio_amqp10.net.urls import Url, parse_url
from trio_amqp10.net.waiters import EnteredWithAsync, check_trio
from trio_amqp10.sasl import ClientMechanism, SaslClient, check_allowed, default_mechanisms
from trio_amqp10.sasl.layer import sasl_frame_size
from trio_amqp10.spec.transport import Error

from .connection import Connection
from .delivery import OutgoingDelivery, delivery_class
from .errors import (
    ConnectionClosedError,
    ConnectionRedirectError,
    GuaranteeNotSupportedError,
    SessionEndedError,
    is_final_loss,
)
from .recovery import Recovery
from .recovery import log as recovery_log
from .recovery_events import Change, Watchers
from .redirects import DialTarget, hops_of, redirected
from .sole_connection_request import CAPABILITY as SOLE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from trio_amqp10.engine.connection import Connection as EngineConnection
    from trio_amqp10.engine.limits import Limits
    from trio_amqp10.net.transport_layers import Transport

    from .dial_options import DialOptions
    from .errors import LinkRedirectError
    from .recovery_events import Changes

__all__ = ["Dialling"]

_SETTLED: Final = 60.0
"""Seconds after which a redirect does not count as following upon the one before."""


class Dialling(EnteredWithAsync):
    """A connection that is yet to be made: enter it with ``async with``."""

    __slots__ = (
        "_backoff",
        "_connection",
        "_container_id",
        "_first_session",
        "_follow",
        "_homes",
        "_hops",
        "_manager",
        "_moved",
        "_next",
        "_nursery",
        "_onward",
        "_options",
        "_place",
        "_places",
        "_stream",
        "_trusted",
        "_watchers",
    )

    def __init__(
        self,
        where: str | Sequence[str] | trio.abc.Stream,
        options: DialOptions,
    ) -> None:
        self._stream = where if isinstance(where, trio.abc.Stream) else None
        urls: list[Url | None] = (
            [None] if self._stream is not None else [parse_url(url) for url in _texts(where)]
        )
        self._places = [DialTarget(url) for url in urls]
        if not urls:
            raise LocalProtocolError("no URL to dial: give at least one")
        self._options = options
        self._backoff = options.backoff
        self._container_id = str(uuid.uuid4()) if options.container_id is None else options.container_id
        if self._backoff is not None and self._stream is not None:
            raise LocalProtocolError("a stream cannot be dialled again: reconnect needs a URL")
        self._next = 0
        self._follow = hops_of(options.follow_redirects)
        self._homes = tuple(url.host.lower() for url in urls if url is not None)
        self._trusted = (*self._homes, *(host.lower() for host in options.trusted_hosts))
        self._place = self._places[0]
        self._onward: DialTarget | None = None
        self._hops = 0
        self._moved = -inf
        self._watchers = Watchers()
        for url in urls:
            _check_no_address(url)
            options.layers_for(url)
        self._engine(options.hostname)  # what cannot be said is found out before anybody is dialled

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
        """What happens to the connection, from the first dial on, each attempt that fails included.

        For a task of its own: entering waits for as long as ``reconnect`` says.

        Raises:
            LocalProtocolError: it was opened without ``reconnect``.
        """
        if self._backoff is None:
            raise LocalProtocolError("this connection does not come back: open it with reconnect=True")
        return self._watchers.changes(attempts=True)

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
        """All layers, within the time that there is to the peer's open."""
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
        secure = transport.private or is_private(stream) or self._options.allow_plaintext_password
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
            )
        return Stack(engine, trio.current_time(), sasl=sasl, began=began)

    def _host_of(self, place: DialTarget) -> str | None:
        """What ``open`` and ``sasl-init`` are to name."""
        return (
            place.hostname
            or self._options.hostname
            or (place.url.host if place.url is not None else None)
            or None
        )

    async def _reach(self, place: DialTarget) -> tuple[EngineConnection, Stack, trio.abc.Stream]:
        """A transport to ``place``, with an engine that has begun to open."""
        url = place.url
        engine = self._engine(self._host_of(place))
        stream = self._stream
        if stream is None:
            assert url is not None
            stream = await connect(url)
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

    async def __aenter__(self) -> Connection:
        check_trio()
        # The nursery is entered and left by hand: what the user's block raises must not pass
        # through it, or it would come out as a group of one.
        self._manager = trio.open_nursery()
        self._nursery = await self._manager.__aenter__()
        self._connection: Connection | None = None
        try:
            redial = Redial(
                self._backoff, is_final=is_final_loss, log=recovery_log, failed=self._watchers.failed
            )
            await redial.first(self._dial, len(self._places))
            assert self._connection is not None
            if self._backoff is not None:
                recovery = Recovery(
                    self._connection, self._dial_again, redial, self._backoff, self._goes_on, self._watchers
                )
                self._connection.recovery = recovery
                recovery.sessions[self._first_session] = None
                self._nursery.start_soon(recovery.run)
                self._watchers.tell(Change("restored", url=str(self._place)))
        except BaseException as failure:
            self._watchers.tell(Change("stopped", failure if isinstance(failure, Exception) else None))
            await self._leave()
            raise
        return self._connection

    async def _dial(self) -> None:
        """Dial the next of the URLs, or where the peer sent us, and go on to wherever it sends us then."""
        place, self._onward = self._onward, None
        if place is None:
            place = self._places[self._next]
            self._next = (self._next + 1) % len(self._places)
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
                return

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
                    f"{connection.remote.container_id!r} does not see to it that a container has one connection only"
                )
            if first and follows:
                # A redirect comes right behind the open: when the peer answers to what was said after that,
                # there is none.
                self._first_session = connection.session_for(None, own=False)
                with contextlib.suppress(SessionEndedError):
                    await self._first_session.begun()
        except Exception:  # (who is cancelled closes in due form)
            await connection.hang_up()
            raise

    async def _close_without(self, capability: str, connection: Connection, stack: Stack) -> None:
        """Close a connection whose peer does not offer a capability that it needs (2.7.1)."""
        error = Error(
            condition=Condition.NOT_IMPLEMENTED.value, description=f"{capability} is needed and not offered"
        )
        stack.close(error, trio.current_time())
        await connection.pump.finish(self._options.close_timeout)

    async def _dial_again(self) -> str:
        """Once, for a connection that comes back; returns where it leads now."""
        await self._dial()
        return str(self._place)

    # -- redirects --------------------------------------------------------------------------

    def _hop(self, place: DialTarget, error: ConnectionRedirectError | LinkRedirectError) -> DialTarget:
        """Where a redirect leads, if it may be followed.

        Raises:
            ConnectionRedirectError, LinkRedirectError: it is one too many.
            SecurityError: there are credentials, and nobody said that this host may have them.
            LocalProtocolError: it leads nowhere.
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
            return  # it proves to be whom we meant from the start, or there is no connection
        host = str(place.hostname if proves else url.host)
        if host.lower() not in self._trusted:
            raise SecurityError(
                f"the peer redirects to {host!r}, which is not to get the credentials that were given for "
                f"{', '.join(sorted(set(self._homes)))}: allow it with trusted_hosts=[{host!r}]"
            ) from error

    def _goes_on(self, loss: Exception | None) -> bool:
        """Whether the connection was lost by being sent elsewhere, where it is to be dialled next."""
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
        """The same, at the place that ``error`` tells. Raises as ``Connection.open_redirected``."""
        onward = redirected(self._place, error)
        self._check_trust(onward, error)
        there = copy.copy(self)
        there._start_at(onward)  # noqa: SLF001 - our own, only not called self
        return there

    def _start_at(self, place: DialTarget) -> None:
        self._places = [place]
        self._place = place
        self._next = self._hops = 0
        self._onward = None
        self._watchers = Watchers()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._leave()

    async def _leave(self) -> None:
        try:
            if self._connection is not None:
                await self._connection.aclose()
        finally:
            self._nursery.cancel_scope.cancel()
            await self._manager.__aexit__(None, None, None)


def _texts(where: Any) -> list[str]:
    """The URLs that were given, one or several."""
    single = isinstance(where, str) or not isinstance(where, Iterable)
    texts: list[Any] = [where] if single else list(cast("Iterable[Any]", where))
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(
            f"cannot dial {where!r}: give a URL such as 'amqp://localhost:5672', a list of URLs, or a stream of trio"
        )
    return texts


def _check_no_address(url: Url | None) -> None:
    """A connection has no use for the path of a URL: what somebody meant by it would be left out in silence."""
    if url is not None and url.address is not None:
        raise LocalProtocolError(
            f"{url} and the path {url.address!r}: a connection has no path; give the address of a node to open_sender or "
            "open_receiver, and a virtual host of RabbitMQ as hostname='vhost:NAME'"
        )
