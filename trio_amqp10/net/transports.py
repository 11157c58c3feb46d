"""Streams to and from a peer, and whether a third party could read them.

Knows sockets; knows nothing of AMQP.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import socket
import stat
import struct
from typing import TYPE_CHECKING, Final, cast

import trio

from trio_amqp10.core.errors import LocalProtocolError

from .login_failures import place_of

if TYPE_CHECKING:
    from .urls import Url

_BACKLOG: Final = 128
_HINTS: Final = {
    errno.EADDRINUSE: " (another program listens there, or this one does: port 0 selects a free port)",
    errno.EADDRNOTAVAIL: " (no interface of this machine has that address)",
    errno.EACCES: " (ports below 1024, and directories of other users, need special permission)",
}
"""Advice, by the error number of a listener."""

_DIAL_HINTS: Final = {errno.ECONNREFUSED: " (no program listens there)"}
"""Explanations, by the error number of a connection."""

_UNIX: Final[int | None] = getattr(socket, "AF_UNIX", None)
"""The family of Unix sockets; None if Python has none, as on Windows."""

_CREDENTIALS: Final = struct.Struct("3i")
"""Process id, user id and group id of the other side of a Unix socket."""


async def connect(url: Url) -> trio.abc.Stream:
    """Dial a URL.

    Raises:
        OSError: no address of the host can be reached; names the host and the reason.

    Cancelled: nothing stays open.
    """
    try:
        if url.scheme == "amqp+unix":
            _unix_family(url.path)
            return await trio.open_unix_socket(url.path)
        stream = await trio.open_tcp_stream(url.host, url.port)
    except OSError as failure:
        raise _named(failure, url) from failure.__cause__
    keep_alive(stream)
    return stream


def _named(failure: OSError, url: Url, hint: str = "") -> OSError:
    """Return an error of the same class that names the URL."""
    if isinstance(failure, socket.gaierror):
        return socket.gaierror(failure.errno, f"host {url.host!r}: {failure.strerror}")
    if failure.errno is None:
        return _unreachable(failure, url)
    named = OSError(failure.errno, f"{failure.strerror}{hint}", str(url))
    return named if type(named) is type(failure) else failure


def _unreachable(failure: OSError, url: Url) -> OSError:
    """Return trio's error after all addresses of a host failed, with the reasons.

    If all addresses failed for the same reason, its class is that of the reason.
    """
    group = failure.__cause__
    leaves = cast("ExceptionGroup[Exception]", group).exceptions if isinstance(group, ExceptionGroup) else ()
    codes = sorted({leaf.errno for leaf in leaves if isinstance(leaf, OSError) and leaf.errno is not None})
    if not codes:
        return failure
    reasons = ", ".join(f"{os.strerror(code)}{_DIAL_HINTS.get(code, '')}" for code in codes)
    text = f"cannot connect to {url.host}:{url.port}: {reasons}"
    return OSError(codes[0], text) if len(codes) == 1 else OSError(text)


def keep_alive(stream: trio.abc.Stream) -> None:
    """Enable TCP keep-alive, if the stream uses TCP.

    It detects a dead peer if no idle time-out was agreed (2.4.5).
    """
    if isinstance(stream, trio.SocketStream) and stream.socket.family != _UNIX:
        with contextlib.suppress(OSError):  # the peer is gone already: reading will report that
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


async def bind(url: Url) -> list[trio.SocketListener]:
    """Listen on a URL, with one listener for each address of the host.

    Raises:
        OSError: an address cannot be used; names the URL.
    """
    try:
        if url.scheme == "amqp+unix":
            return [_bind_unix(url.path)]
        return await trio.open_tcp_listeners(url.port, host=url.host)
    except OSError as failure:
        raise _named(failure, url, _HINTS.get(failure.errno or 0, "")) from failure.__cause__


def _unix_family(path: str) -> int:
    """Return the family of Unix sockets; raise LocalProtocolError if there is none."""
    if _UNIX is None:
        raise LocalProtocolError(
            f"amqp+unix://{path}: Python has no Unix sockets on this system; amqp://127.0.0.1 is as private"
        )
    return _UNIX


def _bind_unix(path: str) -> trio.SocketListener:
    family = _unix_family(path)
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise LocalProtocolError(f"{path!r} exists and is not a socket: choose another path")
        with socket.socket(family) as probe:
            probe.setblocking(False)
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)  # left behind by a listener that died
            except BlockingIOError:
                pass  # a busy program listens there: bind() will fail
    raw = socket.socket(family)
    try:
        raw.bind(path)
        raw.listen(_BACKLOG)
    except BaseException:
        raw.close()
        raise
    return trio.SocketListener(trio.socket.from_stdlib_socket(raw))


def listener_url(url: Url, listener: trio.SocketListener) -> str:
    """Return the URL that reaches ``listener``, with its real port."""
    if url.scheme == "amqp+unix":
        return str(url)
    host, port = listener.socket.getsockname()[:2]
    host = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{host}:{port}"


def listener_port(url: Url, listener: trio.SocketListener) -> int:
    """Return the real port of ``listener``; for a Unix socket that of its URL."""
    return url.port if url.scheme == "amqp+unix" else int(listener.socket.getsockname()[1])


def peer_host(stream: trio.abc.Stream) -> str | None:
    """Return the peer's IP address; None if it has none, or is gone."""
    if not isinstance(stream, trio.SocketStream) or stream.socket.family == _UNIX:
        return None
    try:
        return str(stream.socket.getpeername()[0])
    except OSError:
        return None


def peer_place(stream: trio.SocketStream) -> str:
    """Return the owner of the peer's share of a listener.

    It is the network of its address, or its user on this machine for a Unix socket.
    """
    host = peer_host(stream)
    if host is not None or stream.socket.family != _UNIX or not hasattr(socket, "SO_PEERCRED"):
        return place_of(host)
    try:
        octets = stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError:
        return place_of(None)
    _, user, _ = _CREDENTIALS.unpack(octets)
    return f"this machine, user {user}"


def peer_name(stream: trio.abc.Stream) -> str:
    """Return a description of the peer for the log, from its address alone."""
    return f"a peer at {peer_host(stream) or 'this machine'}"


def is_private(stream: trio.abc.Stream) -> bool:
    """Whether no third party can read along: loopback, a Unix socket, or memory.

    The peer's own address decides, never ours.
    """
    if not isinstance(stream, trio.SocketStream):
        return True
    if stream.socket.family == _UNIX:
        return True
    try:
        host = stream.socket.getpeername()[0]
        address = ipaddress.ip_address(host.partition("%")[0])
    except (OSError, ValueError):
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
