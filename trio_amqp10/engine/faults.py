"""Errors: how much one of the peer's ends (1.4), and how we tell it in a frame that it takes (2.8.14).

A wrong field is the fault of what the frame was about. Octets that are no value at all
(``amqp:decode-error``) leave nothing to trust, and end the connection (2.8.14).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.errors import TEXT_LIMIT, Condition, LocalProtocolError, RemoteProtocolError, Scope
from trio_amqp10.spec.transport import Error
from trio_amqp10.wire.decode import decode
from trio_amqp10.wire.encode import encode

if TYPE_CHECKING:
    from .link import Link
    from .session import Session

__all__ = ["error_of", "fit", "scope_of"]

_AROUND: Final = 64
"""More octets than the frame header and the performative around an error ever take."""

_OPEN, _BEGIN, _TRANSFER, _DETACH, _CLOSE = 0x10, 0x11, 0x14, 0x16, 0x18
_NAMES = {
    "amqp:open:list": _OPEN,
    "amqp:begin:list": _BEGIN,
    "amqp:transfer:list": _TRANSFER,
    "amqp:detach:list": _DETACH,
    "amqp:close:list": _CLOSE,
}


def scope_of(
    fault: RemoteProtocolError, session: Session | None, body: bytes
) -> tuple[Scope, Link | None, list[Any] | None]:
    """What ``fault`` in the frame ``body`` ends, which link if it is one, and a transfer's raw fields."""
    if session is None or fault.condition != Condition.INVALID_FIELD.value:
        return "connection", None, None
    value, _ = decode(body, 0)
    code = _NAMES.get(value.descriptor, value.descriptor)
    if code in (_OPEN, _BEGIN, _CLOSE):
        return "connection", None, None
    if code in (_TRANSFER, _DETACH) and value.value:
        link = session.link_at(value.value[0])
        if link is not None:
            return "link", link, value.value if code == _TRANSFER else None
    return "session", None, None


def error_of(fault: RemoteProtocolError, about: str = "") -> Error:
    """What we tell the peer of its fault; the text may quote it, and it can be long.

    ``about`` is put in front, and the name of the rule behind.
    """
    rule = f" [{fault.rule}]" if fault.rule else ""
    return Error(
        condition=fault.condition, description=f"{about}{fault.description}"[: TEXT_LIMIT - len(rule)] + rule
    )


def fit(error: Error | None, frame_size: int) -> Error | None:
    """``error`` with as much of its description as a frame of ``frame_size`` octets has room for.

    Raises:
        LocalProtocolError: it does not fit without a description either.
    """
    if error is None:
        return None
    excess = len(encode(error)) + _AROUND - frame_size
    if excess <= 0:
        return error
    text = (error.description or "").encode()
    if excess > len(text):
        raise LocalProtocolError(
            f"{Condition.FRAME_SIZE_TOO_SMALL}: an error that fits no frame of {frame_size} octets: shorten it"
        )
    short = text[: len(text) - excess].decode(errors="ignore")
    return Error(condition=error.condition, description=short, info=error.info)
