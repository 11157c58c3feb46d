"""Limits on connections and handshakes, shared fairly between hosts.

A *stranger* is a connection that its peer has not opened yet. A *host* is the network of an IP address, or the user on the
other side of a Unix socket. ``max_handshakes`` strangers are served at once; the others wait for their turn, and hosts
take turns. If a new connection comes from a host that has fewer handshakes than another, it does not wait: the oldest
stranger of the host with the most handshakes is disconnected instead. When there are ``max_connections`` connections,
strangers included, each new connection replaces the oldest stranger of the host with the most strangers; when all of
them are open, new connections are not accepted until one ends.

Closes the streams of strangers but does not read or write them, and knows no protocol.
"""

from __future__ import annotations

import contextlib
import logging
import socket
from enum import Enum
from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.core.arguments import check_count

from .largest_owner import OwnerShares

if TYPE_CHECKING:
    from collections.abc import Callable

_log: Final = logging.getLogger("trio_amqp10.listen")


class _State(Enum):
    OUTSIDE = "not let in yet"
    WAITING = "waiting for its turn"
    STRANGER = "in the handshakes"
    OPEN = "has opened its connection"
    GONE = "has left"


_S = _State


class AdmittedConnection:
    """One accepted connection, and its place among the limits.

    Args:
        admission: the limits that count it.
        host: the host whose share it uses; see ``peer_place``.
        stream: to the peer.
        begin: starts to serve it; called once, when it is its turn.

    Attributes:
        scope: cancelled to disconnect the peer before it has opened the connection.
    """

    __slots__ = ("_admission", "begin", "host", "scope", "state", "stream")

    def __init__(
        self,
        admission: ConnectionAdmission,
        host: str,
        stream: trio.SocketStream,
        begin: Callable[[AdmittedConnection], object],
    ) -> None:
        self._admission = admission
        self.host: str = host
        self.stream: Final = stream
        self.begin: Final = begin
        self.scope: Final = trio.CancelScope()
        self.state: _State = _S.OUTSIDE

    def open(self) -> None:
        """Note that the peer has opened its connection and is no stranger any more."""
        self._admission.move(self, _S.OPEN)

    def leave(self) -> None:
        """Note that the connection has ended."""
        self._admission.move(self, _S.GONE)


class ConnectionAdmission:
    """The limits shared by all listeners of one ``serve``.

    Args:
        most: connections at a time, strangers included; None for any number.
        most_strangers: strangers that are served at a time; None for any number.

    Raises:
        LocalProtocolError: one of them is below 1, so no connection would ever be served.
    """

    def __init__(self, most: int | None, most_strangers: int | None) -> None:
        for name, value in (("max_connections", most), ("max_handshakes", most_strangers)):
            if value is not None:
                check_count(name, value)
        self._most = most
        self._most_strangers = most_strangers
        self._open = 0
        self._strangers = OwnerShares[AdmittedConnection]()
        self._served = OwnerShares[AdmittedConnection]()
        self._waiting: dict[str, dict[AdmittedConnection, None]] = {}
        self._lot = trio.lowlevel.ParkingLot()

    async def wait_for_place(self) -> None:
        """Wait while the greatest allowed number of connections is open.

        Cancelled: nothing has changed.
        """
        await trio.lowlevel.checkpoint()
        while self._most is not None and self._open >= self._most:
            await self._lot.park()

    def enter(self, place: AdmittedConnection) -> None:
        """Admit a stranger: serve it now, or let it wait for its turn.

        The caller has awaited ``wait_for_place``.
        """
        # All connections are in use: the new one replaces a stranger.
        if self._most is not None and self._open + len(self._strangers) >= self._most:
            self.evict_stranger()
        self._strangers.add(place.host, place)
        if not self._has_room():
            greediest = self._served.greediest()
            # No other host has more handshakes than this one, so its share is used: the stranger must wait.
            if greediest is None or self._served.count(greediest) <= self._served.count(place.host):
                place.state = _S.WAITING
                self._waiting.setdefault(place.host, {})[place] = None
                return
            # Another host has more handshakes: its oldest one ends, and this stranger gets the place, so no
            # waiting stranger may take it.
            self._evict(self._served.oldest(greediest), begins_next=False)
        self._begin(place)

    def evict_stranger(self) -> bool:
        """Disconnect the oldest stranger of the host that has most.

        Return False if there is no stranger.
        """
        greediest = self._strangers.greediest()
        if greediest is None:
            return False
        self._evict(self._strangers.oldest(greediest))
        return True

    def move(self, place: AdmittedConnection, state: _State) -> None:
        """Note that a connection was opened or has ended, and serve the next stranger."""
        if place.state is _S.STRANGER:
            self._strangers.discard(place.host, place)
            self._served.discard(place.host, place)
            self._open += state is _S.OPEN
        elif place.state is _S.OPEN and state is _S.GONE:
            self._open -= 1
        else:
            return
        place.state = state
        self._begin_next()
        self._lot.unpark_all()

    def close(self) -> None:
        """Disconnect the strangers that wait for their turn."""
        for waiting in self._waiting.values():
            for place in waiting:
                place.stream.socket.close()
        self._waiting.clear()

    def _has_room(self) -> bool:
        return self._most_strangers is None or len(self._served) < self._most_strangers

    def _begin(self, place: AdmittedConnection) -> None:
        place.state = _S.STRANGER
        self._served.add(place.host, place)
        place.begin(place)

    def _begin_next(self) -> None:
        while self._waiting and self._has_room():
            host = next(iter(self._waiting))
            waiting = self._waiting.pop(host)
            place = next(iter(waiting))
            del waiting[place]
            if waiting:
                self._waiting[host] = waiting
            self._begin(place)

    def _evict(self, place: AdmittedConnection, *, begins_next: bool = True) -> None:
        _log.debug("a peer at %s had not opened its connection, and gives its place to another", place.host)
        self._strangers.discard(place.host, place)
        if place.state is _S.WAITING:
            waiting = self._waiting[place.host]
            del waiting[place]
            if not waiting:
                del self._waiting[place.host]
            place.stream.socket.close()
        else:
            self._served.discard(place.host, place)
            # After this no task waits for the peer to read: writes to it fail at once.
            with contextlib.suppress(OSError):
                place.stream.socket.shutdown(socket.SHUT_RDWR)
            place.scope.cancel()
        place.state = _S.GONE
        if begins_next:
            self._begin_next()
