"""The redirect of a queue: the URL of its new place, and the refusal (2.8.18).

Knows URLs and errors; knows no queue.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from trio_amqp10.amqp10.peer.redirects import redirect
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.urls import hide_login

from .errors import ManagementError

_ADDRESS: Final = Symbol("address")


def place_of(address: str, url: str) -> tuple[str, RefusedError]:
    """Return the URL of a place without credentials, and the refusal with it.

    Args:
        address: the address of the queue that has moved there.
        url: the URL of the other place, with a host, a port and an address.

    Raises:
        ManagementError: ``"invalid"``: it is no such URL.
    """
    try:
        error = redirect(url)
    except LocalProtocolError as fault:
        raise ManagementError("invalid", str(fault)) from fault
    info = error.info or {}
    if _ADDRESS not in info:
        raise ManagementError(
            "invalid", f"{hide_login(url)!r} has no address: give one, as in amqp://b.example:5672/{address}"
        )
    there = str(info[_ADDRESS])
    host = quote(info[Symbol("network-host")], safe=":")
    authority = f"[{host}]" if ":" in host else host
    text = f"{address!r} has moved: {error.description}, address {there!r}"
    return (
        f"amqp://{authority}:{info[Symbol('port')]}/{quote(there)}",
        RefusedError(str(error.condition), text, info),
    )
