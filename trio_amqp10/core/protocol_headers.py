"""The eight octets that announce a layer (2.2, 5.2.1, 5.3.1).

They are ``AMQP``, protocol id, and version. Knows nothing of a layer but its header, and recognises other protocols by their
first octets, for error messages: the header of AMQP 0-9-1 is of its 4.2.2, that of AMQP 0-10 of its 4.3.
"""

from __future__ import annotations

from typing import Final

from .peer_rules import PROTOCOL_HEADER

HEADER_SIZE: Final = 8

AMQP_ID: Final = 0
TLS_ID: Final = 2
SASL_ID: Final = 3

AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"
TLS_HEADER: Final = b"AMQP\x02\x01\x00\x00"
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"

_HEADERS: Final = {AMQP_ID: AMQP_HEADER, TLS_ID: TLS_HEADER, SASL_ID: SASL_HEADER}

_TLS: Final = "TLS: use an amqps:// URL at both ends"
_CHECK_PORT: Final = "not AMQP: check host and port"
_GREETINGS: Final = {
    AMQP_HEADER: "AMQP 1.0: dial it with trio_amqp10.open_connection",
    TLS_HEADER: "AMQP 1.0 that requires TLS: dial it with trio_amqp10.open_connection and an amqp+tls:// URL",
    SASL_HEADER: "AMQP 1.0 that requires SASL: dial it with trio_amqp10.open_connection",
    b"AMQP\x00\x00\x09\x01": "AMQP 0-9-1: dial it with trio_amqp10.amqp091.open_connection",
    b"AMQP\x01\x01\x0a\x03": "AMQ Protocol 10.3: dial it with trio_amqp10.amqp_10_3.open_connection",
    b"AMQP\x01\x01\x00\x0a": "AMQP 0-10, which this library does not speak",
    b"AMQP\x01\x01\x00\x09": "AMQP 0-9: try trio_amqp10.amqp091.open_connection",
    b"AMQP\x01\x01\x08\x00": "AMQP 0-8, which this library does not speak",
    b"AM": "another version of AMQP",
    b"\x15\x03": _TLS,
    b"\x16\x03": _TLS,
    b"HT": f"HTTP, {_CHECK_PORT}",
    b"GE": f"HTTP, {_CHECK_PORT}",
    b"PO": f"HTTP, {_CHECK_PORT}",
    b"PU": f"HTTP, {_CHECK_PORT}",
    b"SS": f"SSH, {_CHECK_PORT}",
}
"""The protocol of each beginning; longer ones come before shorter ones.

Two octets are enough for most, because the error for a frame may show no more: it must not depend on how the octets were split.
"""


def describe_greeting(octets: bytes) -> str:
    """Return the octets as Python writes them, and their protocol if it is known."""
    for beginning, protocol in _GREETINGS.items():
        if octets.startswith(beginning):
            return f"{octets!r}, which is {protocol}"
    return repr(octets)


_SERVED: Final = {
    b"AMQP\x00\x00\x09": "0-9-1",
    b"AMQP\x01\x01\x00\x09": "0-9-1",
    b"AMQP\x01\x01\x0a": "10.3",
}


def served_as(header: bytes) -> str | None:
    """Return the name by which a container serves the protocol of this header.

    None if it serves no such protocol.
    """
    return next((name for beginning, name in _SERVED.items() if header.startswith(beginning)), None)


def header_id(data: bytes) -> int | None:
    """Return the protocol id at the start of ``data``; None if more octets are needed.

    The first octet that is in none of our headers decides, without waiting for eight octets (2.2).

    Raises:
        RemoteProtocolError: ``data`` does not begin with a known header, but e.g. with an HTTP
            request, a TLS hello, or a header of AMQP 0-9-1. ``info["header"]`` has the octets.
    """
    head = data[:HEADER_SIZE]
    for protocol_id, header in _HEADERS.items():
        if head == header:
            return protocol_id
        if header.startswith(head):
            return None
    raise PROTOCOL_HEADER.broken(
        f"expected an AMQP 1.0 protocol header, got {describe_greeting(head)}", info={"header": bytes(head)}
    )
