"""The octets of the body of a message, as a program gives them."""

from __future__ import annotations

from typing import Any

from .arguments import shown
from .errors import LocalProtocolError


def body_octets(body: Any) -> bytes:
    """Return the octets of a body: bytes, or an object with a buffer.

    A bytearray, a memoryview and an array have one. It is copied: later changes of the object do not reach the peer.

    Raises:
        LocalProtocolError: the object has no octets.
    """
    if isinstance(body, bytes):
        return body
    try:
        return bytes(memoryview(body))
    except TypeError:
        way = "body.encode()" if isinstance(body, str) else "json.dumps(body).encode()"
        raise LocalProtocolError(
            f"body={shown(body)}: expected bytes, not {type(body).__name__}; encode it first, as {way}"
        ) from None
