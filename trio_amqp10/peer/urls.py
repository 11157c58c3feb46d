"""Where a peer is, in one line: scheme, credentials, host and port, and the address of a node.

Knows no transport.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import unquote

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spec.transport import PORT

__all__ = ["Url", "parse_url"]

_SCHEMES = {"amqp": PORT, "amqp+unix": 0}


@dataclass(frozen=True, slots=True)
class Url:
    """A parsed URL.

    Attributes:
        scheme: ``amqp`` or ``amqp+unix``.
        host: a name or an address without brackets; empty for a Unix socket.
        port: 0 has a listener choose.
        path: the path of a Unix socket.
        username, password: decoded; None where the URL has none.
        address: the node's address, or None.
    """

    scheme: str
    host: str
    port: int
    path: str
    username: str | None
    password: str | None = field(repr=False)
    address: str | None

    def __str__(self) -> str:
        if self.scheme == "amqp+unix":
            return f"{self.scheme}://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def parse_url(url: str) -> Url:
    """Read ``scheme://[user[:password]@]host[:port][/address]`` or ``amqp+unix:///path[?address=...]``.

    The address is everything after the first ``/`` that follows the authority, percent-decoded
    once: ``amqp://h//queues/orders`` names ``/queues/orders``. A Unix URL keeps its path for the
    socket.

    Raises:
        LocalProtocolError: it is none of these.
    """
    scheme, found, rest = url.partition("://")
    if not found or scheme not in _SCHEMES:
        known = ", ".join(f"{name}://" for name in _SCHEMES)
        raise LocalProtocolError(
            f"{url!r} is not a URL that can be dialled: it has to begin with one of {known}"
        )
    if scheme == "amqp+unix":
        return _unix(url, rest)
    authority, slash, address = rest.partition("/")
    userinfo, at, host = authority.rpartition("@")
    username, colon, password = userinfo.partition(":")
    host, port = _host_and_port(url, host)
    return Url(
        scheme=scheme,
        host=host,
        port=_SCHEMES[scheme] if port is None else port,
        path="",
        username=unquote(username) if at else None,
        password=unquote(password) if at and colon else None,
        address=unquote(address) if slash and address else None,
    )


def _host_and_port(url: str, text: str) -> tuple[str, int | None]:
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise LocalProtocolError(
                f"{url!r}: an IPv6 address is written in brackets, as in amqp://[::1]:5672"
            )
        port = rest[1:]
    else:
        host, _, port = text.partition(":")
    if not host:
        raise LocalProtocolError(f"{url!r} names no host, as in amqp://localhost:5672")
    if not port:
        return unquote(host), None
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise LocalProtocolError(f"{url!r}: {port!r} is not a port number from 0 to 65535")
    return unquote(host), int(port)


def _unix(url: str, rest: str) -> Url:
    path, _, query = rest.partition("?")
    if not path.startswith("/"):
        raise LocalProtocolError(f"{url!r}: the path of the socket follows, as in amqp+unix:///run/app.sock")
    address = None
    for item in filter(None, query.split("&")):
        key, _, value = item.partition("=")
        if key != "address":
            raise LocalProtocolError(f"{url!r}: {key!r} is not known here, only ?address=")
        address = unquote(value)
    return Url("amqp+unix", "", 0, unquote(path), None, None, address)
