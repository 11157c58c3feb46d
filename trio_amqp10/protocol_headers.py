"""The eight octets that announce a layer: ``AMQP``, protocol id, and version (2.2, 5.2.1, 5.3.1).

Knows nothing of what a layer does once it was agreed.
"""

from __future__ import annotations

from typing import Final

from .protocol_rules import PROTOCOL_HEADER

__all__ = [
    "AMQP_HEADER",
    "AMQP_ID",
    "HEADER_SIZE",
    "SASL_HEADER",
    "SASL_ID",
    "TLS_HEADER",
    "TLS_ID",
    "header_id",
]

HEADER_SIZE: Final = 8

AMQP_ID: Final = 0
TLS_ID: Final = 2
SASL_ID: Final = 3

AMQP_HEADER: Final = b"AMQP\x00\x01\x00\x00"
TLS_HEADER: Final = b"AMQP\x02\x01\x00\x00"
SASL_HEADER: Final = b"AMQP\x03\x01\x00\x00"

_HEADERS: Final = {AMQP_ID: AMQP_HEADER, TLS_ID: TLS_HEADER, SASL_ID: SASL_HEADER}


def header_id(data: bytes) -> int | None:
    """The protocol id that the first octets of ``data`` announce, or None while more are needed.

    The first octet that no header of ours can have decides: we do not wait for eight (2.2).

    Raises:
        RemoteProtocolError: these octets do not begin a header that we know, e.g. an HTTP
            request, a TLS hello, or AMQP 0-9-1.
    """
    head = data[:HEADER_SIZE]
    for protocol_id, header in _HEADERS.items():
        if head == header:
            return protocol_id
        if header.startswith(head):
            return None
    raise PROTOCOL_HEADER.broken(f"expected an AMQP 1.0 protocol header, got {head!r}")
