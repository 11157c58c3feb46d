"""Limit connections and handshakes, shared fairly between hosts.

A *stranger* is a connection whose peer has not opened it yet. Strangers have places by host: the network of an IP address,
or the user on the other side of a Unix socket. ``max_handshakes`` of them are served at once; the others wait for their
turn, hosts in rotation. A newcomer of a host that has fewer handshakes than another does not wait: the oldest stranger of the
host that has most goes first. When there are ``max_connections``, strangers among them, the oldest stranger of the host that
has most goes for every newcomer; when all of them are open, newcomers wait outside.

Knows streams of strangers only to close them; knows no protocol.
"""

from __future__ import annotations

import contextlib
import logging
import socket
from enum import Enum
from typing import TYPE_CHECKING, Final

import trio

from .largest_owner import OwnerShares

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["AdmittedConnection", "ConnectionAdmission"]

_log: Final = logging.getLogger("trio_amqp10.listen")


class _State(Enum):
    OUTSIDE = "not let in yet"
    WAITING = "waits for its turn"
    STRANGER = "in the handshakes"
    OPEN = "has opened its connection"
    GONE = "has no place any more"


_S = _State


class AdmittedConnection:
    """One accepted connection.

    Args:
        doors: that it comes through.
        host: whose share it is part of; see ``peer_place``.
        stream: to the peer.
        begin: starts to serve it; called once, when it is its turn.

    Attributes:
        scope: cancelled when it has to go before it has opened.
    """

    __slots__ = ("_doors", "begin", "host", "scope", "state", "stream")

    def __init__(
        self,
        doors: ConnectionAdmission,
        host: str,
        stream: trio.SocketStream,
        begin: Callable[[AdmittedConnection], object],
    ) -> None:
        self._doors = doors
        self.host: str = host
        self.stream: Final = stream
        self.begin: Final = begin
        self.scope: Final = trio.CancelScope()
        self.state: _State = _S.OUTSIDE

    def open(self) -> None:
        """The peer has opened its connection: it is no stranger any more."""
        self._doors.move(self, _S.OPEN)

    def leave(self) -> None:
        """The connection is over."""
        self._doors.move(self, _S.GONE)


class ConnectionAdmission:
    """The places of all listeners of one ``serve``.

    Args:
        most: connections at a time, strangers among them; None for any number.
        most_strangers: of these, in the handshakes at a time; None for any number.
    """

    def __init__(self, most: int | None, most_strangers: int | None) -> None:
        self._most = most
        self._most_strangers = most_strangers
        self._open = 0
        self._strangers = OwnerShares[AdmittedConnection]()
        self._served = OwnerShares[AdmittedConnection]()
        self._waiting: dict[str, dict[AdmittedConnection, None]] = {}
        self._lot = trio.lowlevel.ParkingLot()

    async def until_place(self) -> None:
        """Wait while all connections are open that there may be. Cancelled: nothing has happened."""
        await trio.lowlevel.checkpoint()
        while self._most is not None and self._open >= self._most:
            await self._lot.park()

    def enter(self, place: AdmittedConnection) -> None:
        """Let a stranger in: it begins now, or waits for its turn. ``until_place`` has returned."""
        if self._most is not None and self._open + len(self._strangers) >= self._most:
            self.turn_out()
        self._strangers.add(place.host, place)
        if not self._has_room():
            greediest = self._served.greediest()
            if greediest is None or self._served.count(greediest) <= self._served.count(place.host):
                place.state = _S.WAITING
                self._waiting.setdefault(place.host, {})[place] = None
                return
            self._turn_out(self._served.oldest(greediest), begins_next=False)
        self._begin(place)

    def turn_out(self) -> bool:
        """Send away the oldest stranger of the host that has most; False if there is none."""
        greediest = self._strangers.greediest()
        if greediest is None:
            return False
        self._turn_out(self._strangers.oldest(greediest))
        return True

    def move(self, place: AdmittedConnection, state: _State) -> None:
        """A place is open, or over."""
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
        """Nobody is served any more: send away who waits."""
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

    def _turn_out(self, place: AdmittedConnection, *, begins_next: bool = True) -> None:
        _log.debug("a peer at %s gives its place to another: it has not opened its connection", place.host)
        self._strangers.discard(place.host, place)
        if place.state is _S.WAITING:
            waiting = self._waiting[place.host]
            del waiting[place]
            if not waiting:
                del self._waiting[place.host]
            place.stream.socket.close()
        else:
            self._served.discard(place.host, place)
            # What is still to be said to it must not take time.
            with contextlib.suppress(OSError):
                place.stream.socket.shutdown(socket.SHUT_RDWR)
            place.scope.cancel()
        place.state = _S.GONE
        if begins_next:
            self._begin_next()
