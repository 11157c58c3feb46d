"""AMQP URLs: scheme, credentials, host, port, and the address of a node.

Knows no transport.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

PORT: Final = 5672
SECURE_PORT: Final = 5671
"""The port of TLS without a header before it (5.2.1)."""

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
"""The scheme endings, after ``amqp``, that every protocol has.

Only AMQP 1.0 has TLS by header (5.2.1).
"""

_PORT: Final = re.compile(r"0*[0-9]{1,5}", re.ASCII)
_TARGET: Final = re.compile(r"/[!$-;=@-Z_a-z~]*")
"""A path as in an HTTP request (RFC 3986, section 3.3), roughly."""


@dataclass(frozen=True, slots=True)
class Url:
    """A parsed URL.

    Attributes:
        scheme: ``amqp``, ``amqps``, ``amqp+tls``, ``amqpws``, ``amqpwss`` or ``amqp+unix``.
        host: a name, or an address without brackets; empty for a Unix socket.
        port: 0 lets a listener choose.
        path: of a Unix socket, decoded; of a WebSocket not decoded, at least ``/``; otherwise empty.
        username, password: decoded; None if the URL has none.
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
        """Return the URL to dial, without credentials and address."""
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
    """Return the schemes of another protocol, and the ``amqp`` scheme of each.

    For ``amqp091`` the keys are ``amqp091``, ``amqp091s`` and so on.
    """
    return {f"{protocol}{ending}": f"amqp{ending}" for ending in _ENDINGS}


def parse_url(url: str, schemes: Mapping[str, str] | None = None) -> Url:
    """Parse the URL of a connection.

    Its form is ``scheme://[user[:password]@]host[:port][/address]`` or ``amqp+unix:///path[?address=...]``.

    The address is everything after the first ``/`` that follows the authority, percent-decoded
    once: ``amqp://h//queues/orders`` names ``/queues/orders``. The URL of a Unix socket or a WebSocket
    keeps its path for the transport: ``amqpws://h/path?address=orders``. A scheme may be in capitals.

    Args:
        url: the text.
        schemes: further schemes, and the schemes that they are read as (``schemes_of``).

    Raises:
        LocalProtocolError: it has neither form; the message gives the reason, and shows no password.
    """
    scheme, found, rest = url.partition("://")
    scheme = scheme.lower()  # RFC 3986, section 3.1
    schemes = schemes or {}
    known_scheme = schemes.get(scheme, scheme)
    if not found or known_scheme not in _SCHEMES:
        known = ", ".join(f"{name}://" for name in (*_SCHEMES, *schemes))
        raise LocalProtocolError(f"{_shown(url)} is not a URL of AMQP: it must begin with one of {known}")
    scheme = known_scheme
    if scheme == "amqp+unix":
        return _unix(url, rest)
    path = ""
    if scheme in _WEBSOCKET:
        # The path belongs to the HTTP request, so the address of the node is in the query.
        rest, _, query = rest.partition("?")
        authority, _, path = rest.partition("/")
        path = f"/{path}"
        node = _node(url, query)
        if not _TARGET.fullmatch(path):
            raise LocalProtocolError(f"{_shown(url)}: the path must be percent-encoded ASCII, as in /a%20b")
    else:
        authority, _, address = rest.partition("/")
        node = unquote(address) or None
    # The last @ ends the credentials, so that a password may contain one.
    userinfo, at, host = authority.rpartition("@")
    username, colon, password = userinfo.partition(":")
    if "?" in host:
        names = ", ".join(option.partition("=")[0] for option in host.partition("?")[2].split("&"))
        raise LocalProtocolError(
            f"{_shown(url.partition('?')[0])}: the URL of a connection has no options, but this one has ?{names}; pass "
            "options as arguments, as in open_connection(url, idle_timeout=30)"
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
    """Return the URL to dial, with credentials, and the address that it names, if any.

    Raises:
        LocalProtocolError: as in ``parse_url``.
    """
    url = parse_url(text)
    if url.address is None:
        return text, None
    if url.path:  # the path belongs to the transport, and the address is in the query
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
            f"{_shown(url)}: a port is a number from 0 to 65535, as in amqp://localhost:5672; write an IPv6 address "
            "in brackets, and in a user name or password write / as %2F, ? as %3F and @ as %40"
        )
    return unquote(host), int(port)


def _unix(url: str, rest: str) -> Url:
    path, _, query = rest.partition("?")
    path = unquote(path)
    if not path.startswith("/") or "\0" in path:
        raise LocalProtocolError(
            f"{url!r}: the absolute path of the socket is missing, as in amqp+unix:///run/app.sock"
        )
    return Url("amqp+unix", "", 0, path, None, None, _node(url, query))


def _node(url: str, query: str) -> str | None:
    """Return a node's address from the query, if the path is the transport's."""
    address = None
    for item in filter(None, query.split("&")):
        key, _, value = item.partition("=")
        if key != "address":
            # A key with @ may be the rest of a password that contains a question mark.
            shown = "this option" if "@" in key else repr(key)
            raise LocalProtocolError(f"{_shown(url)}: {shown} is unknown; the only option is ?address=")
        address = unquote(value) or None
    return address


def hide_login(url: str) -> str:
    """Return a URL, or a text in its place, without any part that may be a password."""
    scheme, found, _ = url.partition("://")
    _, at, rest = url.rpartition("@")
    return f"{scheme}{found}***@{rest}" if at and found else f"***@{rest}" if at else url


def _shown(url: str) -> str:
    return repr(hide_login(url))
