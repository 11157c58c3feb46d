"""The usual causes of the errors that a peer reports (2.8.14 to 2.8.18, 4.5.8).

The texts are for people who read a capture. Knows no frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from trio_amqp10.core.errors import Condition

if TYPE_CHECKING:
    from collections.abc import Mapping

_C = Condition


class Cause(NamedTuple):
    """The section that defines a condition, and its usual cause."""

    section: str
    usually: str


CAUSES: Final[Mapping[str, Cause]] = {
    _C.INTERNAL_ERROR: Cause("2.8.15", "The peer failed for a reason of its own: see its log."),
    _C.NOT_FOUND: Cause(
        "2.8.15",
        "There is no node of this address: a spelling mistake, a missing prefix such as /queues/, another virtual host, or a "
        "node that must be created first.",
    ),
    _C.UNAUTHORIZED_ACCESS: Cause(
        "2.8.15",
        "The user is known but lacks the permission for this operation, or has a token that expired.",
    ),
    _C.DECODE_ERROR: Cause(
        "2.8.15",
        "The octets are not a value of the expected type: a faulty encoder, or a payload split at the wrong place.",
    ),
    _C.RESOURCE_LIMIT_EXCEEDED: Cause(
        "2.8.15",
        "A limit of the peer was reached: too many connections, sessions or links, a full queue, or no memory left.",
    ),
    _C.NOT_ALLOWED: Cause(
        "2.8.15",
        "The peer does not permit the request: to receive from an exclusive queue, to use a node in this direction, or to "
        "send to a node that only the server writes.",
    ),
    _C.INVALID_FIELD: Cause(
        "2.8.15",
        "The peer does not accept the value of a field: a wrong type in a map, or an unknown filter.",
    ),
    _C.NOT_IMPLEMENTED: Cause(
        "2.8.15",
        "The peer does not support a part of the standard: transactions, resuming links, dynamic nodes, or a filter.",
    ),
    _C.RESOURCE_LOCKED: Cause(
        "2.8.15",
        "Another link holds the node or the message: an exclusive consumer, or a lock that has not expired.",
    ),
    _C.PRECONDITION_FAILED: Cause(
        "2.8.15",
        "The node exists with other properties than requested, or a condition of the request does not hold.",
    ),
    _C.RESOURCE_DELETED: Cause("2.8.15", "The node was deleted while the link was attached."),
    _C.ILLEGAL_STATE: Cause(
        "2.8.15",
        "The state does not permit the frame: two begins on one channel, or a frame after the close.",
    ),
    _C.FRAME_SIZE_TOO_SMALL: Cause(
        "2.8.15", "A frame that the peer must write does not fit in the negotiated max-frame-size: raise it."
    ),
    _C.CONNECTION_FORCED: Cause(
        "2.8.16",
        "The peer closed the connection on purpose: a shutdown, an operator, an idle time-out, or a certificate or token that "
        "expired. Connect again after a delay.",
    ),
    _C.FRAMING_ERROR: Cause(
        "2.8.16",
        "The octets are not a frame: another protocol or TLS on this port, a frame longer than max-frame-size, or two writers "
        "on one socket.",
    ),
    _C.CONNECTION_REDIRECT: Cause(
        "2.8.16", "Another host serves the connection: its name and port are in the info map of the error."
    ),
    _C.WINDOW_VIOLATION: Cause(
        "2.8.17",
        "There were more transfers than the incoming-window of the session permits: see the window above (2.5.6).",
    ),
    _C.ERRANT_LINK: Cause(
        "2.8.17", "A frame arrived for a link that was detached with an error, but not yet by both ends."
    ),
    _C.HANDLE_IN_USE: Cause("2.8.17", "An attach used the handle of a link that is still attached."),
    _C.UNATTACHED_HANDLE: Cause(
        "2.8.17",
        "A frame used a handle that no link has: it was sent before the attach, or after the detach.",
    ),
    _C.DETACH_FORCED: Cause(
        "2.8.18",
        "The peer detached on purpose: an operator, a node that moved, or a link that was idle for too long. Attach again.",
    ),
    _C.TRANSFER_LIMIT_EXCEEDED: Cause(
        "2.8.18",
        "There were more deliveries than the credit of the link permits: see the credit above (2.6.7).",
    ),
    _C.MESSAGE_SIZE_EXCEEDED: Cause(
        "2.8.18", "A message is larger than the max-message-size of the peer's attach: send smaller messages."
    ),
    _C.LINK_REDIRECT: Cause(
        "2.8.18", "Another host or address serves the link: it is in the info map of the error."
    ),
    _C.STOLEN: Cause(
        "2.8.18", "Another link with the same name was attached: two programs, or two threads, use one name."
    ),
    _C.TRANSACTION_UNKNOWN_ID: Cause(
        "4.5.8",
        "The transaction has ended, or was declared on another connection, or was never declared: see the declare above.",
    ),
    _C.TRANSACTION_ROLLBACK: Cause(
        "4.5.8",
        "The coordinator could not commit and has rolled back: repeat the work of the transaction.",
    ),
    _C.TRANSACTION_TIMEOUT: Cause(
        "4.5.8", "The transaction was open for longer than the coordinator permits."
    ),
}

_UNKNOWN: Final = Cause(
    "2.8.14", "The standard does not define this condition: see the documentation or the log of the peer."
)


def cause_of(condition: str) -> Cause:
    """Return the section and the usual cause of a condition.

    For a condition that the standard does not define, return where to look.
    """
    return CAUSES.get(condition, _UNKNOWN)
