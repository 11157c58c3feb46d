"""Redirect errors: where to, and what may be sent there (2.8.16, 2.8.18).

A redirect names two things: the ``hostname`` that ``open``, SASL and TLS are to ask for, and the machine that
answers to it, ``network-host`` and ``port``. Who is redirected takes everything else along, the
scheme above all: nobody is led out of TLS.

Knows no connection; ``dial`` follows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.errors import Condition, LocalProtocolError
from trio_amqp10.net.urls import Url, parse_url
from trio_amqp10.spec.transport import Error
from trio_amqp10.wire.values import Int, Symbol

if TYPE_CHECKING:
    from .errors import ConnectionRedirectError, LinkRedirectError

__all__ = ["DialTarget", "hops_of", "redirect", "redirected"]

FOLLOWED: Final = 5
"""Redirects that are followed in a row where it is not said how many."""


def redirect(url: str, *, hostname: str | None = None) -> Error:
    """The error that sends a peer elsewhere: ``await conn.aclose(redirect("amqp://b.example"))``.

    A URL with an address is for a link, ``await link.refuse(redirect("amqp://b.example/orders"))``, one
    without for the connection.

    Args:
        url: what to dial. Its scheme is not told: peers keep theirs.
        hostname: what to name there in ``open``, SASL and TLS; the URL's host if None.

    Raises:
        LocalProtocolError: the URL is not one, or leads to no host and port.
    """
    to = parse_url(url)
    if not to.host or not to.port:
        raise LocalProtocolError(
            f"{to}: a peer can be sent to a host and a port, as in amqp://b.example:5672"
        )
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
    """Where to dial.

    Attributes:
        url: None for a stream that is connected already.
        hostname: what the redirect that leads here says to ask for; None if nobody was redirected.
    """

    url: Url | None
    hostname: str | None = None

    def __str__(self) -> str:
        return "a stream" if self.url is None else str(self.url)


def redirected(place: DialTarget, error: ConnectionRedirectError | LinkRedirectError) -> DialTarget:
    """Where ``error`` leads from ``place``.

    Raises:
        LocalProtocolError: it names no host; or there is no host and port to put in its place.
    """
    host = error.network_host or error.hostname
    if place.url is None or not place.url.port:
        raise LocalProtocolError(f"a redirect cannot be followed from {place}: it needs a URL with a host")
    if host is None:
        raise LocalProtocolError(f"the peer redirects without an address: {error}")
    port = place.url.port if error.port is None else error.port
    return DialTarget(replace(place.url, host=host, port=port), error.hostname or host)


def hops_of(follow: bool | int) -> int:
    """How many redirects to follow in a row."""
    hops = (FOLLOWED if follow else 0) if isinstance(follow, bool) else follow
    if hops < 0:
        raise LocalProtocolError(f"follow_redirects={follow}: expected a number of redirects, True or False")
    return hops
