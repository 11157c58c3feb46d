"""Redirect errors: make one, and find the place it leads to (2.8.16, 2.8.18).

A redirect has two parts: the ``hostname`` to name in ``open``, SASL and TLS, and the machine to dial,
``network-host`` and ``port``. Everything else stays as it was, the scheme above all: a redirect from a TLS
connection to a plain one is not possible.

Knows no connection; ``dialling`` follows redirects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.amqp10.wire.values import Int, Symbol
from trio_amqp10.core.errors import Condition, LocalProtocolError
from trio_amqp10.net.urls import Url, parse_url

if TYPE_CHECKING:
    from .errors import ConnectionRedirectError, LinkRedirectError

FOLLOWED: Final = 5
"""The number of redirects in a row to follow if the caller gives no number."""


def redirect(url: str, *, hostname: str | None = None) -> Error:
    """Return an error that redirects a peer to ``url`` (2.8.16, 2.8.18).

    For a connection: ``await conn.aclose(redirect("amqp://b.example"))``. A URL with an address is for a
    link: ``await link.refuse(redirect("amqp://b.example/orders"))``.

    Args:
        url: the URL to dial. Its scheme is not sent: peers keep theirs.
        hostname: the host to name there in ``open``, SASL and TLS; the URL's host if None.

    Raises:
        LocalProtocolError: the URL is wrong, or has no host and port.
    """
    to = parse_url(url)
    if not to.host or not to.port:
        raise LocalProtocolError(f"{to}: a redirect needs a host and a port, as in amqp://b.example:5672")
    info: dict[Any, Any] = {
        Symbol("hostname"): hostname or to.host,
        Symbol("network-host"): to.host,
        Symbol("port"): Int(to.port),
    }
    condition = Condition.CONNECTION_REDIRECT
    if to.address is not None:
        condition = Condition.LINK_REDIRECT
        info[Symbol("address")] = to.address
    return Error(condition=condition.value, description=f"go to {to.authority}", info=info)


@dataclass(frozen=True, slots=True)
class DialTarget:
    """A place to dial.

    Attributes:
        url: None for a stream that is connected already.
        hostname: the host that the redirect to this place names; None without a redirect.
    """

    url: Url | None
    hostname: str | None = None

    def __str__(self) -> str:
        return "a stream" if self.url is None else str(self.url)


def redirected(place: DialTarget, error: ConnectionRedirectError | LinkRedirectError) -> DialTarget:
    """Return the place that ``error`` leads to from ``place``.

    Raises:
        LocalProtocolError: the error names no host; or ``place`` has no host and port that could be replaced.
    """
    host = error.network_host or error.hostname
    if place.url is None or not place.url.port:
        raise LocalProtocolError(f"a redirect cannot be followed from {place}: it needs a URL with a host")
    if host is None:
        raise LocalProtocolError(f"the peer redirects without the name of a host: {error}")
    port = place.url.port if error.port is None else error.port
    return DialTarget(replace(place.url, host=host, port=port), error.hostname or host)


def hops_of(follow: bool | int) -> int:
    """Return the number of redirects to follow in a row."""
    hops = (FOLLOWED if follow else 0) if isinstance(follow, bool) else follow
    if hops < 0:
        raise LocalProtocolError(f"follow_redirects={follow}: expected a number of redirects, True or False")
    return hops
