"""URLs to serve HTTP at: ``http://HOST[:PORT]`` and ``https://HOST[:PORT]``.

Knows the form of a URL; opens no socket.
"""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import urlsplit

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.urls import Url

_PORTS: Final = {"http": 15672, "https": 15671}
"""The schemes, and their ports by default: those of RabbitMQ."""


def parse_http_url(url: str) -> Url:
    """Return the parts of a URL to listen at.

    Raises:
        LocalProtocolError: it is no such URL.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as wrong:
        raise LocalProtocolError(f"{url!r} is no URL: {wrong}") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise LocalProtocolError(
            f"{url!r}: expected a URL to serve HTTP at, as in http://127.0.0.1:15672 or https://0.0.0.0:15671"
        )
    if parts.username is not None or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise LocalProtocolError(
            f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}: a URL to serve HTTP at has a host and a port only; leave out the rest"
        )
    return Url(
        parts.scheme,
        parts.hostname,
        _PORTS[parts.scheme] if port is None else port,
        path="",
        username=None,
        password=None,
        address=None,
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host of this name."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
