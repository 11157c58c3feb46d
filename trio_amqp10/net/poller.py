"""Two tasks that read and write the plain sockets of all connections.

A task for each connection costs memory while it waits, and several passes of trio's loop for each message that is sent alone. So in
each ``trio.run`` one task reads: it waits, through trio, for an epoll that has all idle sockets, and calls the owner of each
socket that is readable. Another task writes: it calls the owners that have octets to send, in the pass of the loop after the one
in which they asked for it, so all octets of one pass leave in one write. Octets that the reading itself has caused, such as a
server's answers, are written by the reader, after it has read all sockets.

Both are system tasks, which outlive every nursery. The reader is shielded while it watches any socket, so a connection that
closes late, at the end of a ``trio.run``, is still read; a writer that was cancelled is replaced when there is something to write. Owners are
called in the ``contextvars`` of the task that made their ``PolledSocket``.

The descriptor is asked of the socket at each use, because the system gives the number of a closed socket to the next one. Only
Linux has epoll. Elsewhere, and for TLS, WebSockets and streams that are no socket, there is no ``PolledSocket``.

Knows sockets and trio's loop; does not know what is read or written.
"""

from __future__ import annotations

import logging
import os
import select
from contextlib import suppress
from contextvars import copy_context
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import trio

from .waiters import Waiter

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger("trio_amqp10.pump")

_select: Final[Any] = select
"""The module, of which type checkers know ``epoll`` on Linux only."""

_MOST: Final = 64
"""The most sockets that are read in one pass."""

_SECONDS: Final = 0.001
"""Seconds of reading in one pass, after which other tasks run."""


class PolledSocket:
    """A socket that is read and written without a task of its own.

    Args:
        stream: the stream of the socket. Call ``unwatch`` before it is closed.
        on_readable: called in each pass in which octets, or the end of the stream, can be read, while the socket is watched.
        on_writing: called once for all calls of ``write_soon`` in one pass.

    Both functions must neither raise nor wait; an exception is logged.
    """

    __slots__ = ("_context", "_is_due", "_number", "_poller", "_stream", "on_readable", "on_writing")

    def __init__(
        self, stream: trio.SocketStream, on_readable: Callable[[], object], on_writing: Callable[[], object]
    ) -> None:
        self.on_readable: Callable[[], object] = on_readable
        self.on_writing: Callable[[], object] = on_writing
        self._stream = stream
        self._number = -1
        self._is_due = False
        self._context = copy_context()
        self._poller = _current_poller()

    def watch(self) -> bool:
        """Call ``on_readable`` from now on.

        Return False if that is not possible: the socket is closed, or the system has no descriptors or watches left.
        """
        self._number = self._stream.socket.fileno()
        if self._number < 0:
            return False
        try:
            self._poller.add(self._number, self)
        except OSError:
            return False
        return True

    def unwatch(self) -> None:
        """Do not call ``on_readable`` any more."""
        self._poller.remove(self._number, self)

    def write_soon(self) -> None:
        """Call ``on_writing`` in the next pass of trio's loop.

        During a call of an ``on_readable``: at the end of this pass's reading, if there is time.
        """
        if not self._is_due:
            self._is_due = True
            self._poller.write_soon(self)

    def read(self) -> None:
        """Call ``on_readable``, for the poller."""
        self._call(self.on_readable)

    def write(self) -> None:
        """Call ``on_writing`` now.

        The poller calls it; so may an owner that has not called ``write_soon``.
        """
        self._is_due = False
        self._call(self.on_writing)

    def _call(self, function: Callable[[], object]) -> None:
        try:
            self._context.run(function)
        except Exception:
            _log.exception("a connection could not be read or written")
            self.unwatch()

    def receive(self, size: int) -> bytes | None:
        """Return at most ``size`` octets; None if there are none yet.

        ``b""`` is the end of the stream.

        Raises:
            trio.BrokenResourceError: the stream has failed, or is closed.
        """
        try:
            return os.read(self._stream.socket.fileno(), size)
        except BlockingIOError:
            return None
        except OSError as failure:
            raise trio.BrokenResourceError(f"socket connection broken: {failure}") from failure

    def send(self, data: bytes) -> int:
        """Write as many octets as the system takes now, and return their number.

        0 if the stream has failed, too: its own ``send_all`` raises the reason.
        """
        try:
            return os.write(self._stream.socket.fileno(), data)
        except OSError:
            return 0


def polled_socket(
    stream: trio.abc.Stream, on_readable: Callable[[], object], on_writing: Callable[[], object]
) -> PolledSocket | None:
    """Return a ``PolledSocket`` for a plain socket on Linux; otherwise None."""
    if isinstance(stream, trio.SocketStream) and hasattr(select, "epoll"):
        return PolledSocket(stream, on_readable, on_writing)
    return None


class _Poller:
    """The two tasks of one ``trio.run``."""

    def __init__(self) -> None:
        self._epoll: Any = None
        self._scope = trio.CancelScope()
        self._watched: dict[int, PolledSocket] = {}
        self._to_write: list[PolledSocket] = []
        self._bell = Waiter()
        self._caused: list[PolledSocket] | None = None  # while it reads: what to write because of that
        self._writes = False

    def add(self, number: int, socket: PolledSocket) -> None:
        """Watch a socket."""
        if self._epoll is None:
            self._epoll = _select.epoll()
            self._scope = trio.CancelScope()
            trio.lowlevel.spawn_system_task(self._read, self._epoll, name="trio_amqp10 reader of sockets")
        self._epoll.register(number, _select.EPOLLIN)
        self._watched[number] = socket
        self._scope.shield = True

    def remove(self, number: int, socket: PolledSocket) -> None:
        """Do not watch a socket any more; its descriptor may be that of another one now."""
        if self._watched.get(number) is socket:
            del self._watched[number]
            assert self._epoll is not None
            with suppress(OSError):
                self._epoll.unregister(number)
            self._scope.shield = bool(self._watched)

    async def _read(self, epoll: Any) -> None:
        try:
            with self._scope:
                while True:
                    await trio.lowlevel.wait_readable(epoll.fileno())
                    self._read_once(epoll)
        finally:
            self._epoll = None
            self._caused = None
            epoll.close()

    def _read_once(self, epoll: Any) -> None:
        """Read the readable sockets, then write what that has caused, if there is time."""
        until = perf_counter() + _SECONDS
        caused = self._caused = []
        for number, _ in epoll.poll(0, _MOST):
            socket = self._watched.get(number)
            if socket is not None:
                socket.read()
                if perf_counter() > until:
                    break  # the others stay readable
        self._caused = None
        write = PolledSocket.write if perf_counter() <= until else self.write_soon
        for socket in caused:
            write(socket)

    def write_soon(self, socket: PolledSocket) -> None:
        """Write a socket after the reading, or in the next pass of trio's loop."""
        if self._caused is not None:
            self._caused.append(socket)
            return
        self._to_write.append(socket)
        if self._writes:
            self._bell.wake()
        else:
            self._writes = True
            trio.lowlevel.spawn_system_task(self._write, name="trio_amqp10 writer of sockets")

    async def _write(self) -> None:
        try:
            while True:
                sockets, self._to_write = self._to_write, []
                for socket in sockets:
                    socket.write()
                if self._to_write:
                    await trio.lowlevel.cancel_shielded_checkpoint()
                else:
                    await self._bell.wait()
        finally:
            self._writes = False


_OF_THIS_RUN: Final[trio.lowlevel.RunVar[_Poller]] = trio.lowlevel.RunVar("trio_amqp10.poller")


def _current_poller() -> _Poller:
    try:
        return _OF_THIS_RUN.get()
    except LookupError:
        made = _Poller()
        _OF_THIS_RUN.set(made)
        return made
