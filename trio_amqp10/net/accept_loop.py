"""The accept loop of a listener: limits for each host, layers, choice of dialect.

Every dialect shares the limits of ``ConnectionAdmission``, the layers, the protocol header and the time allowed for all of
these. Each dialect is an object of ``Dialect``; this module knows no particular one.
"""

from __future__ import annotations

import errno
import logging
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from trio_amqp10.core.errors import AmqpError

from .connection_admission import AdmittedConnection
from .dialect import AcceptedConnection, choose
from .errors import ConnectionClosedError
from .listener import Listener
from .login_failures import HostLoginFailures, LoginFailures
from .transport_layers import AcceptedLayers, Transport
from .transports import (
    bind,
    is_private,
    keep_alive,
    listener_port,
    listener_url,
    peer_host,
    peer_name,
    peer_place,
)
from .waiters import interrupts_unwrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from trio_amqp10.core.partial_pool import Pool

    from .connection_admission import ConnectionAdmission
    from .dialect import Dialect
    from .urls import Url

_log: Final = logging.getLogger("trio_amqp10.listen")

_OUT_OF_RESOURCES: Final = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS}

_GRACE: Final = 5.0
"""Seconds that a dialect may still write after its peer took too long to open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reception:
    """The settings with which a listener serves the peers of one URL.

    Attributes:
        dialects: see ``choose``.
        entrance: the layers that peers may use.
        failures: counts failed logins by user and host.
        seconds: from the accepted stream to the opened connection; None for any time.
        sasl, allow_plaintext_password, pool: as in ``AcceptedConnection``.
    """

    dialects: Sequence[Dialect]
    entrance: AcceptedLayers = field(default_factory=AcceptedLayers)
    failures: LoginFailures = field(default_factory=lambda: LoginFailures(None, trio.current_time))
    seconds: float | None = None
    sasl: Any = field(default=None, repr=False)
    allow_plaintext_password: bool = False
    pool: Pool | None = None

    async def receive(
        self, stream: trio.abc.Stream, on_opened: Callable[[], object], scope: trio.CancelScope
    ) -> None:
        """Serve one connection from the first octet to the last.

        Raise nothing that a peer can cause.

        Args:
            stream: as it was accepted. It is closed here, unless the dialect ended without an error: then the dialect has
                closed it.
            on_opened: called once, when the dialect has opened the connection.
            scope: entered here; until the connection is open, it has a deadline. If it is cancelled, the peer is disconnected.

        Cancelled: the dialect is cancelled too, and the stream is closed.
        """
        name, host = peer_name(stream), peer_host(stream)
        began = trio.current_time()
        deadline = inf if self.seconds is None else began + self.seconds
        protocol = None
        try:
            with scope:
                dialect, transport = await self._choose(stream, deadline)
                protocol = dialect.name
                accepted = AcceptedConnection(
                    stream=stream,
                    transport=transport,
                    name=name,
                    host=host,
                    private=transport.private or is_private(stream),
                    began=began,
                    deadline=deadline,
                    opened=_Opened(scope, on_opened),
                    failures=HostLoginFailures(self.failures, host),
                    sasl=self.sasl,
                    allow_plaintext_password=self.allow_plaintext_password,
                    pool=self.pool,
                )
                scope.deadline = deadline + _GRACE
                await dialect.serve(accepted)
        except AmqpError as failure:
            _log.info("%s did not complete the handshake: %s", name, failure)
            await trio.aclose_forcefully(stream)
            return
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        if scope.cancelled_caught:
            if trio.current_time() >= scope.deadline:
                _log.info("%s did not open its %s connection in time and was disconnected", name, protocol)
            await trio.aclose_forcefully(stream)

    async def _choose(self, stream: trio.abc.Stream, deadline: float) -> tuple[Dialect, Transport]:
        with trio.move_on_at(deadline):
            transport = await self.entrance.admit(stream)
            return await choose(transport, self.dialects, self.entrance.header_seconds)
        raise ConnectionClosedError("the peer took too long, during the handshakes")


class _Opened:
    """The call by which a dialect reports that it has opened a connection.

    It takes the deadline off the scope. A fifth of the size of a ``partial``, for as long as the connection lives.
    """

    __slots__ = ("_on_opened", "_scope")

    def __init__(self, scope: trio.CancelScope, on_opened: Callable[[], object]) -> None:
        self._scope = scope
        self._on_opened = on_opened

    def __call__(self) -> None:
        self._scope.deadline = inf
        self._on_opened()


class ListeningPlace(NamedTuple):
    """A URL to listen on, and how its peers are received.

    Attributes:
        url: the URL of the transport.
        scheme: the scheme of the URL that the program has given.
        reception: returns the reception of one listener.
    """

    url: Url
    scheme: str
    reception: Callable[[], Reception]


async def listen_at(
    places: Iterable[ListeningPlace],
    admit: Callable[[str | None], bool] | None,
    admission: ConnectionAdmission,
    task_status: trio.TaskStatus[list[Listener]],
) -> None:
    """Listen on all URLs, and accept connections until all listeners are closed.

    Args:
        places: the URLs.
        admit, admission: as for ``_accept_loop``.
        task_status: gets a ``Listener`` for each address.

    Raises:
        OSError: it is not possible to listen there, or a listener has failed for good.

    Cancelled: every accepted stream and every listener is closed.
    """
    sockets: list[tuple[trio.SocketListener, Reception]] = []
    listening: list[Listener] = []
    try:
        for place in places:
            for listener in await bind(place.url):
                sockets.append((listener, place.reception()))
                url = place.scheme + listener_url(place.url, listener).removeprefix(place.url.scheme)
                listening.append(Listener(url, listener_port(place.url, listener), listener.socket.close))
        with interrupts_unwrapped():
            async with trio.open_nursery() as nursery:
                for listener, reception in sockets:
                    nursery.start_soon(_accept_loop, listener, reception, admit, admission, nursery)
                task_status.started(listening)
    finally:
        admission.close()
        for listener, _ in sockets:
            listener.socket.close()


async def _accept_loop(
    listener: trio.SocketListener,
    reception: Reception,
    admit: Callable[[str | None], bool] | None,
    admission: ConnectionAdmission,
    nursery: trio.Nursery,
) -> None:
    """Accept connections, within the limits, until the listener is closed.

    Args:
        listener: accepts the streams.
        reception: serves each connection.
        admit: called with each peer's IP address, or None; if it returns False, the connection is closed.
        admission: the limits, which listeners may share.
        nursery: runs one task for each connection.

    Raises:
        OSError: the listener has failed for good.

    Cancelled: every accepted stream is closed.
    """

    def begin(place: AdmittedConnection) -> None:
        nursery.start_soon(_run_one, place, reception)

    while listener.socket.fileno() != -1:  # Listener.close() sets it to -1
        await admission.wait_for_place()
        try:
            stream = await listener.accept()
            keep_alive(stream)
        except trio.ClosedResourceError:
            return
        except OSError as failure:
            if failure.errno not in _OUT_OF_RESOURCES:
                raise
            _log.warning("cannot accept for now: %s", failure)
            # The file descriptor of a disconnected stranger is freed as soon as its task runs.
            await trio.sleep(0.01 if admission.evict_stranger() else 0.1)
            continue
        if not _is_admitted(admit, stream):
            await trio.aclose_forcefully(stream)
            continue
        try:
            await admission.wait_for_place()  # meanwhile another listener may have used the last place
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        admission.enter(AdmittedConnection(admission, peer_place(stream), stream, begin))


def _is_admitted(admit: Callable[[str | None], bool] | None, stream: trio.SocketStream) -> bool:
    try:
        return admit is None or admit(peer_host(stream))
    except Exception:
        _log.exception("admit() failed, so the connection is refused")
        return False


async def _run_one(place: AdmittedConnection, reception: Reception) -> None:
    try:
        await reception.receive(place.stream, place.open, place.scope)
    except Exception:
        _log.exception("unexpected error while serving a connection")
    finally:
        await trio.aclose_forcefully(place.stream)
        place.leave()
