"""The accept loop of a listener: limits by host, layers, choice of the dialect.

The places of ``ConnectionAdmission``, the layers, the header and the time that all these may take hold for every dialect. Knows none
of them: each is an object of ``Dialect``.
"""

from __future__ import annotations

import errno
import logging
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.errors import AmqpError

from .connection_admission import AdmittedConnection
from .dialect import AcceptedConnection, choose
from .errors import ConnectionClosedError
from .login_failures import HostLoginFailures, LoginFailures
from .transport_layers import AcceptedLayers, Transport
from .transports import is_private, keep_alive, peer_host, peer_name, peer_place

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trio_amqp10.partial_pool import Pool

    from .connection_admission import ConnectionAdmission
    from .dialect import Dialect

__all__ = ["Reception", "accept_loop"]

_log: Final = logging.getLogger("trio_amqp10.listen")

_OUT_OF_RESOURCES: Final = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS}

_GRACE: Final = 5.0
"""Seconds for the last words of a dialect whose peer has not opened its connection in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reception:
    """What awaits those who dial one URL.

    Attributes:
        dialects: see ``choose``.
        entrance: the layers that are taken.
        failures: who failed to authenticate, and where.
        seconds: from the accepted stream to a peer that is let in; None for any time.
        sasl, allow_plaintext_password, pool: as of ``AcceptedConnection``.
    """

    dialects: Sequence[Dialect]
    entrance: AcceptedLayers = field(default_factory=AcceptedLayers)
    failures: LoginFailures = field(default_factory=lambda: LoginFailures(None, trio.current_time))
    seconds: float | None = None
    sasl: Any = field(default=None, repr=False)
    allow_plaintext_password: bool = False
    pool: Pool | None = None

    async def receive(self, stream: trio.abc.Stream, on_opened: Callable[[], object]) -> None:
        """One connection, from the first octet to the last. Raises nothing that a peer can cause.

        Args:
            stream: as it was accepted. Closed, unless the dialect has ended by itself: then it has closed it.
            on_opened: called once the peer is let in.

        Cancelled: the dialect is, and the stream is closed.
        """
        name, host = peer_name(stream), peer_host(stream)
        began = trio.current_time()
        deadline = inf if self.seconds is None else began + self.seconds

        def opened() -> None:
            scope.deadline = inf
            on_opened()

        try:
            dialect, transport = await self._choose(stream, deadline)
            accepted = AcceptedConnection(
                stream=stream,
                transport=transport,
                name=name,
                host=host,
                private=transport.private or is_private(stream),
                began=began,
                deadline=deadline,
                opened=opened,
                failures=HostLoginFailures(self.failures, host),
                sasl=self.sasl,
                allow_plaintext_password=self.allow_plaintext_password,
                pool=self.pool,
            )
            with trio.CancelScope(deadline=deadline + _GRACE) as scope:
                await dialect.serve(accepted)
        except AmqpError as failure:
            _log.info("%s came no further than the handshake: %s", name, failure)
            await trio.aclose_forcefully(stream)
            return
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        if scope.cancelled_caught:
            _log.info("%s took too long for %s, and was sent away", name, dialect.name)
            await trio.aclose_forcefully(stream)

    async def _choose(self, stream: trio.abc.Stream, deadline: float) -> tuple[Dialect, Transport]:
        with trio.move_on_at(deadline):
            transport = await self.entrance.admit(stream)
            return await choose(transport, self.dialects, self.entrance.header_seconds)
        raise ConnectionClosedError("the peer took too long, during the handshakes")


async def accept_loop(
    listener: trio.SocketListener,
    reception: Reception,
    admit: Callable[[str | None], bool] | None,
    doors: ConnectionAdmission,
    nursery: trio.Nursery,
) -> None:
    """Accept those who dial, as far as there are places, until the listener is closed.

    Args:
        listener: where they dial.
        reception: serves each of them.
        admit: called with each peer's IP address, or None; False sends the peer away.
        doors: the places, which listeners may share.
        nursery: for the connections.

    Raises:
        OSError: the listener is of no use any more.

    Cancelled: no stream that was accepted stays behind.
    """

    def begin(place: AdmittedConnection) -> None:
        nursery.start_soon(_run_one, place, reception)

    while listener.socket.fileno() != -1:  # it is after Listener.close()
        await doors.until_place()
        try:
            stream = await listener.accept()
            keep_alive(stream)
        except trio.ClosedResourceError:
            return
        except OSError as failure:
            if failure.errno not in _OUT_OF_RESOURCES:
                raise
            _log.warning("cannot accept for now: %s", failure)
            # What a stranger has is given back as soon as its task runs.
            await trio.sleep(0.01 if doors.turn_out() else 0.1)
            continue
        if not _is_admitted(admit, stream):
            await trio.aclose_forcefully(stream)
            continue
        try:
            await doors.until_place()  # another listener may have let in the last one meanwhile
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        doors.enter(AdmittedConnection(doors, peer_place(stream), stream, begin))


def _is_admitted(admit: Callable[[str | None], bool] | None, stream: trio.SocketStream) -> bool:
    try:
        return admit is None or admit(peer_host(stream))
    except Exception:
        _log.exception("admit() failed: nobody gets in")
        return False


async def _run_one(place: AdmittedConnection, reception: Reception) -> None:
    try:
        with place.scope:
            await reception.receive(place.stream, place.open)
    except Exception:
        _log.exception("a connection failed in a way that it should not")
    finally:
        await trio.aclose_forcefully(place.stream)
        place.leave()
