"""How much a performative that does not decode ends: a link, a session, or the connection (1.4).

A wrong field is the fault of what the frame was about. Octets that are no value at all
(``amqp:decode-error``) leave nothing to trust, and end the connection (2.8.14).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trio_amqp10.errors import Condition, RemoteProtocolError, Scope
from trio_amqp10.wire.decode import decode

if TYPE_CHECKING:
    from .link import Link
    from .session import Session

__all__ = ["scope_of"]

_OPEN, _BEGIN, _TRANSFER, _DETACH, _CLOSE = 0x10, 0x11, 0x14, 0x16, 0x18
_NAMES = {
    "amqp:open:list": _OPEN,
    "amqp:begin:list": _BEGIN,
    "amqp:transfer:list": _TRANSFER,
    "amqp:detach:list": _DETACH,
    "amqp:close:list": _CLOSE,
}


def scope_of(fault: RemoteProtocolError, session: Session | None, body: bytes) -> tuple[Scope, Link | None]:
    """What ``fault`` in the frame ``body`` ends, and which link if it is one."""
    if session is None or fault.condition != Condition.INVALID_FIELD.value:
        return "connection", None
    value, _ = decode(body, 0)
    code = _NAMES.get(value.descriptor, value.descriptor)
    if code in (_OPEN, _BEGIN, _CLOSE):
        return "connection", None
    if code in (_TRANSFER, _DETACH) and value.value:
        link = session.link_at(value.value[0])
        if link is not None:
            return "link", link
    return "session", None
