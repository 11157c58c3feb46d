"""AMQP URLs: scheme, credentials, host, port, and the address of a node.

Knows no transport.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from trio_amqp10.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Url", "parse_url", "schemes_of", "split_url"]

PORT: Final = 5672
SECURE_PORT: Final = 5671
"""Where TLS comes first (5.2.1)."""

_SCHEMES: Final = {
    "amqp": PORT,
    "amqps": SECURE_PORT,
    "amqp+tls": PORT,
    "amqpws": 80,
    "amqpwss": 443,
    "amqp+unix": 0,
}
_WEBSOCKET: Final = {"amqpws", "amqpwss"}
_ENDINGS: Final = ("", "s", "ws", "wss", "+unix")
"""What follows ``amqp`` in the schemes that every protocol has; TLS by header is of AMQP 1.0 alone (5.2.1)."""

_PORT: Final = re.compile(r"0*[0-9]{1,5}", re.ASCII)
_TARGET: Final = re.compile(r"/[!$-;=@-Z_a-z~]*")
"""A path as it stands in an HTTP request (RFC 3986, section 3.3), or nearly so."""


@dataclass(frozen=True, slots=True)
class Url:
    """A parsed URL.

    Attributes:
        scheme: ``amqp``, ``amqps``, ``amqp+tls``, ``amqpws``, ``amqpwss`` or ``amqp+unix``.
        host: a name or an address without brackets; empty for a Unix socket.
        port: 0 has a listener choose.
        path: of a Unix socket, decoded; of a WebSocket as it stands there, at least ``/``; else empty.
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
        """As it can be dialled, without credentials and address."""
        if self.scheme == "amqp+unix":
            return f"{self.scheme}://{quote(self.path)}"
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def authority(self) -> str:
        """Host and port."""
        host = quote(self.host, safe=":")
        host = f"[{host}]" if ":" in host else host
        return f"{host}:{self.port}"


def schemes_of(protocol: str) -> dict[str, str]:
    """The schemes of a protocol other than AMQP 1.0, as ``amqp091s`` for ``amqp091``, and those of the transports that they mean."""
    return {f"{protocol}{ending}": f"amqp{ending}" for ending in _ENDINGS}


def parse_url(url: str, schemes: Mapping[str, str] | None = None) -> Url:
    """Read ``scheme://[user[:password]@]host[:port][/address]`` or ``amqp+unix:///path[?address=...]``.

    The address is everything after the first ``/`` that follows the authority, percent-decoded
    once: ``amqp://h//queues/orders`` names ``/queues/orders``. The URL of a Unix socket or a WebSocket
    keeps its path for the transport: ``amqpws://h/path?address=orders``. A scheme may be in capitals.

    Args:
        url: the text.
        schemes: further schemes, and those that they are read as (``schemes_of``).

    Raises:
        LocalProtocolError: it is none of these; says why, and shows no password.
    """
    scheme, found, rest = url.partition("://")
    scheme = scheme.lower()  # RFC 3986, section 3.1
    schemes = schemes or {}
    known_scheme = schemes.get(scheme, scheme)
    if not found or known_scheme not in _SCHEMES:
        known = ", ".join(f"{name}://" for name in (*_SCHEMES, *schemes))
        raise LocalProtocolError(
            f"{_shown(url)} is not a URL that can be dialled: it has to begin with one of {known}"
        )
    scheme = known_scheme
    if scheme == "amqp+unix":
        return _unix(url, rest)
    path = ""
    if scheme in _WEBSOCKET:
        rest, _, query = rest.partition("?")
        authority, _, path = rest.partition("/")
        path = f"/{path}"
        node = _node(url, query)
        if not _TARGET.fullmatch(path):
            raise LocalProtocolError(f"{_shown(url)}: the path has to be percent-encoded ASCII, as in /a%20b")
    else:
        authority, _, address = rest.partition("/")
        node = unquote(address) or None
    userinfo, at, host = authority.rpartition("@")
    username, colon, password = userinfo.partition(":")
    if "?" in host:
        names = ", ".join(option.partition("=")[0] for option in host.partition("?")[2].split("&"))
        raise LocalProtocolError(
            f"{_shown(url.partition('?')[0])}: the URL of a connection has no options, but this one has ?{names}; options are "
            "arguments, as in open_connection(url, idle_timeout=30)"
        )
    host, port = _host_and_port(url, host)
    return Url(
        scheme=scheme,
        host=host,
        port=_SCHEMES[scheme] if port is None else port,
        path=path,
        username=unquote(username) if at else None,
        password=unquote(password) if at and colon else None,
        address=node,
    )


def split_url(text: str) -> tuple[str, str | None]:
    """What to dial, with credentials, and the address of the node that the URL names, if it names one.

    Raises:
        LocalProtocolError: as ``parse_url``.
    """
    url = parse_url(text)
    if url.address is None:
        return text, None
    if url.path:  # it is the transport's, and the address stands in the query
        return text.partition("?")[0], url.address
    scheme, _, rest = text.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}", url.address


def _host_and_port(url: str, text: str) -> tuple[str, int | None]:
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise LocalProtocolError(
                f"{_shown(url)}: an IPv6 address is written in brackets, as in amqp://[::1]:5672"
            )
        port = rest[1:]
    else:
        host, _, port = text.partition(":")
    if not host:
        raise LocalProtocolError(
            f"{_shown(url)} names no host, as in amqp://localhost:5672 or, with an IPv6 address, amqp://[::1]:5672"
        )
    if not port:
        return unquote(host), None
    if not _PORT.fullmatch(port) or int(port) > 65535:
        raise LocalProtocolError(
            f"{_shown(url)}: a port is a number from 0 to 65535, as in amqp://localhost:5672; an IPv6 address is "
            "written in brackets, and in a user name or password / is written %2F, ? %3F and @ %40"
        )
    return unquote(host), int(port)


def _unix(url: str, rest: str) -> Url:
    path, _, query = rest.partition("?")
    path = unquote(path)
    if not path.startswith("/") or "\0" in path:
        raise LocalProtocolError(f"{url!r}: the path of the socket follows, as in amqp+unix:///run/app.sock")
    return Url("amqp+unix", "", 0, path, None, None, _node(url, query))


def _node(url: str, query: str) -> str | None:
    """The address of a node, where the path is the transport's."""
    address = None
    for item in filter(None, query.split("&")):
        key, _, value = item.partition("=")
        if key != "address":
            shown = "that" if "@" in key else repr(key)  # what is behind a ? in a password is a password
            raise LocalProtocolError(f"{_shown(url)}: {shown} is not known here, only ?address=")
        address = unquote(value) or None
    return address


def _shown(url: str) -> str:
    """A URL for a message: whatever may be a password, misplaced though it be, is left out."""
    scheme, found, _ = url.partition("://")
    _, at, rest = url.rpartition("@")
    return repr(f"{scheme}{found}***@{rest}" if at and found else f"***@{rest}" if at else url)
