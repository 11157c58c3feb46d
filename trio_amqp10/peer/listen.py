"""Wait to be dialled: ``serve``, and the life of an accepted connection."""

from __future__ import annotations

import errno
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

import trio

from trio_amqp10.engine.connection import Connection as EngineConnection
from trio_amqp10.engine.stack import Stack
from trio_amqp10.errors import AmqpError, Condition, LocalProtocolError
from trio_amqp10.sasl import SaslServer, Server
from trio_amqp10.spec.transport import Error

from .connection import Connection
from .delivery import Delivery, OutgoingDelivery
from .dial import effective_limits
from .options import symbols
from .transports import bind, is_private, listener_url
from .urls import parse_url

if TYPE_CHECKING:
    from trio_amqp10.engine.limits import Limits

__all__ = ["Acceptor", "Listener", "serve"]

_log = logging.getLogger("trio_amqp10.listen")

Handler = Callable[[Connection], Awaitable[object]]

_OUT_OF_RESOURCES: Final = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS}


@dataclass(frozen=True, slots=True)
class Listener:
    """Where ``serve`` listens.

    Attributes:
        url: what to dial, with the real port and without a path.
        port: the real port; 0 for a Unix socket.
    """

    url: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptor:
    """How to answer those who dial; makes a connection of a stream.

    Raises:
        LocalProtocolError: an open that says all this is longer than peers take.
    """

    container_id: str
    sasl: Server
    allow_plaintext_password: bool = False
    idle_timeout: float | None = 60.0
    properties: dict[Any, Any] | None = None
    desired_capabilities: tuple[str, ...] = ()
    offered_capabilities: tuple[str, ...] = ()
    limits: Limits
    close_timeout: float = 5.0

    def __post_init__(self) -> None:
        self._engine()  # what cannot be said is found out before anybody dials

    def _engine(self) -> EngineConnection:
        return EngineConnection(
            self.container_id,
            limits=self.limits,
            idle_timeout=self.idle_timeout,
            properties=self.properties,
            desired_capabilities=self.desired_capabilities,
            offered_capabilities=self.offered_capabilities,
            incoming_class=Delivery,
            outgoing_class=OutgoingDelivery,
        )

    def accept(self, stream: trio.abc.Stream, nursery: trio.Nursery) -> Connection:
        """Begin the conversation on ``stream``; returns before the peer has opened."""
        engine = self._engine()
        mechanisms = self.sasl.offer(is_private(stream), self.allow_plaintext_password)
        stack = Stack(
            engine,
            trio.current_time(),
            accept_sasl=(lambda: SaslServer(mechanisms)) if mechanisms else None,
            accept_plain=not self.sasl.requires_sasl,
            accepting=True,
        )
        return Connection(engine, stack, stream, nursery, close_timeout=self.close_timeout)

    async def run(self, stream: trio.abc.Stream, handler: Handler) -> None:
        """One connection, from the first octet to the last. Raises nothing that the peer can cause.

        Cancelled: the connection is closed with ``amqp:connection:forced``.
        """
        async with trio.open_nursery() as nursery:
            connection = self.accept(stream, nursery)
            error: Error | None = Error(
                condition=Condition.CONNECTION_FORCED.value, description="the service ends"
            )
            try:
                error = await self._handle(connection, handler)
            finally:
                await connection.aclose(error)
                nursery.cancel_scope.cancel()

    async def _handle(self, connection: Connection, handler: Handler) -> Error | None:
        try:
            await connection.opened()
        except Exception as failure:
            _log.info("a peer came no further than the handshake: %s", failure)
            return None
        try:
            await handler(connection)
        except Exception as failure:
            if connection.closed and _is_loss(failure):
                _log.debug("%r: %s", connection, failure)
                return None
            _log.exception("the handler of %r failed", connection)
            return Error(condition=Condition.INTERNAL_ERROR.value, description="the service failed")
        return None


def _is_loss(failure: BaseException) -> bool:
    """Whether this is what every use of a lost connection raises, and no fault of the handler's."""
    if isinstance(failure, BaseExceptionGroup):
        rest = cast("BaseExceptionGroup[BaseException]", failure)
        return all(_is_loss(one) for one in rest.exceptions)
    return isinstance(failure, (AmqpError, trio.BrokenResourceError, trio.ClosedResourceError))


async def serve(
    handler: Handler,
    *urls: str,
    container_id: str | None = None,
    sasl: Server | None = None,
    allow_plaintext_password: bool = False,
    idle_timeout: float | None = 60.0,
    max_frame_size: int | None = None,
    channel_max: int | None = None,
    properties: dict[Any, Any] | None = None,
    desired_capabilities: str | Iterable[str] = (),
    offered_capabilities: str | Iterable[str] = (),
    limits: Limits | None = None,
    max_connections: int | None = 10_000,
    max_handshakes: int | None = 1_024,
    close_timeout: float = 5.0,
    task_status: trio.TaskStatus[list[Listener]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Listen on ``urls`` and run ``handler(connection)`` for each peer that opens a connection.

    ``await nursery.start(serve, handler, url)`` returns once it listens, with a ``Listener`` for
    each address. When the handler returns, its connection is closed; when it raises an
    ``Exception``, the connection is closed with ``amqp:internal-error`` and the exception logged.
    Nothing that a peer does ends ``serve``.

    Args:
        handler: an async function of a ``Connection``.
        urls: ``amqp://host[:port]`` (port 0: any that is free) or ``amqp+unix:///path``.
        container_id: who we are (2.4.1); a fresh UUID if None.
        sasl: whom to accept. Without one, or without users in it, everybody: with SASL
            ANONYMOUS, or without a SASL layer.
        allow_plaintext_password: take passwords where somebody could read along.
        max_connections: above this, those who dial wait; None for no limit.
        max_handshakes: the same, for those who have not opened their connection yet.
        others: as for ``open_connection``.

    Raises:
        OSError: it is not possible to listen there.
        LocalProtocolError: a URL is not one, or there is none.

    Cancelled: every connection is closed with ``amqp:connection:forced``.
    """
    if not urls:
        raise LocalProtocolError("serve() needs at least one URL to listen on, e.g. amqp://127.0.0.1:5672")
    acceptor = Acceptor(
        container_id=str(uuid.uuid4()) if container_id is None else container_id,
        sasl=sasl or Server(),
        allow_plaintext_password=allow_plaintext_password,
        idle_timeout=idle_timeout,
        properties=properties,
        desired_capabilities=symbols(desired_capabilities),
        offered_capabilities=symbols(offered_capabilities),
        limits=effective_limits(limits, max_frame_size, channel_max),
        close_timeout=close_timeout,
    )
    parsed = [parse_url(url) for url in urls]
    gates = (_gate(max_connections), _gate(max_handshakes))
    sockets: list[trio.SocketListener] = []
    listening: list[Listener] = []
    try:
        for url in parsed:
            for listener in await bind(url):
                sockets.append(listener)
                reached = listener_url(url, listener)
                listening.append(Listener(reached, parse_url(reached).port))
        async with trio.open_nursery() as nursery:
            for listener in sockets:
                nursery.start_soon(_accept_loop, listener, acceptor, handler, *gates, nursery)
            task_status.started(listening)
    finally:
        for listener in sockets:
            listener.socket.close()


class _Gate:
    """A semaphore without a limit."""

    async def acquire(self) -> None:
        await trio.lowlevel.checkpoint()

    def release(self) -> None:
        pass


def _gate(most: int | None) -> trio.Semaphore | _Gate:
    return _Gate() if most is None else trio.Semaphore(most)


async def _accept_loop(
    listener: trio.SocketListener,
    acceptor: Acceptor,
    handler: Handler,
    connections: trio.Semaphore | _Gate,
    handshakes: trio.Semaphore | _Gate,
    nursery: trio.Nursery,
) -> None:
    while True:
        # Who is too many waits outside. And only who is there takes a place: a listener that waits
        # for somebody must not keep others out of the last one.
        await trio.lowlevel.wait_readable(listener.socket)
        await connections.acquire()
        await handshakes.acquire()
        try:
            stream = await listener.accept()
        except OSError as failure:
            connections.release()
            handshakes.release()
            if failure.errno not in _OUT_OF_RESOURCES:
                raise
            _log.warning("cannot accept for now: %s", failure)
            await trio.sleep(0.1)
            continue
        nursery.start_soon(_run_one, stream, acceptor, handler, connections, handshakes)


async def _run_one(
    stream: trio.abc.Stream,
    acceptor: Acceptor,
    handler: Handler,
    connections: trio.Semaphore | _Gate,
    handshakes: trio.Semaphore | _Gate,
) -> None:
    opened = False

    async def on_opened(connection: Connection) -> None:
        nonlocal opened
        opened = True
        handshakes.release()
        await handler(connection)

    try:
        await acceptor.run(stream, on_opened)
    except Exception:
        _log.exception("a connection failed in a way that it should not")
    finally:
        connections.release()
        if not opened:
            handshakes.release()
