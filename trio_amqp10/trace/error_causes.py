"""What usually leads to an error that a peer reports, and where the standard has it (2.8.14 to 2.8.18, 4.5.8).

For people who look at a capture. Knows no frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from trio_amqp10.errors import Condition

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CAUSES", "Cause", "cause_of"]

_C = Condition


class Cause(NamedTuple):
    """Where a condition is defined, and what usually leads to it."""

    section: str
    usually: str


CAUSES: Final[Mapping[str, Cause]] = {
    _C.INTERNAL_ERROR: Cause("2.8.15", "The peer failed in a way of its own: its log says more."),
    _C.NOT_FOUND: Cause(
        "2.8.15",
        "There is no node of this address: a spelling mistake, a missing prefix such as /queues/, another virtual host, or a "
        "node that somebody has to create first.",
    ),
    _C.UNAUTHORIZED_ACCESS: Cause(
        "2.8.15",
        "The user is known, and has no right to do this here: a missing permission, or a token that expired.",
    ),
    _C.DECODE_ERROR: Cause(
        "2.8.15",
        "Octets that are no value of the type that is due: a broken encoder, or a payload cut at the wrong place.",
    ),
    _C.RESOURCE_LIMIT_EXCEEDED: Cause(
        "2.8.15",
        "A quota of the peer: too many connections, sessions or links, a full queue, or no memory left.",
    ),
    _C.NOT_ALLOWED: Cause(
        "2.8.15",
        "The peer knows what was asked for, and does not permit it: to receive from an exclusive queue, to use a node in this "
        "direction, or to send to what only a server writes.",
    ),
    _C.INVALID_FIELD: Cause(
        "2.8.15",
        "A field has a value that the peer does not take: a wrong type in a map, or a filter it does not know.",
    ),
    _C.NOT_IMPLEMENTED: Cause(
        "2.8.15",
        "The peer lacks a part of the standard: transactions, resuming, dynamic nodes, or some filter.",
    ),
    _C.RESOURCE_LOCKED: Cause(
        "2.8.15",
        "Another link has the node or the message: an exclusive consumer, or a lock that has not expired.",
    ),
    _C.PRECONDITION_FAILED: Cause(
        "2.8.15",
        "The node exists with other properties than were asked for, or a condition of the request does not hold.",
    ),
    _C.RESOURCE_DELETED: Cause("2.8.15", "Somebody deleted the node while the link was attached."),
    _C.ILLEGAL_STATE: Cause(
        "2.8.15",
        "A frame that the state does not permit: two begins on one channel, or a frame after the close.",
    ),
    _C.FRAME_SIZE_TOO_SMALL: Cause(
        "2.8.15", "What the peer has to write does not fit the max-frame-size that was agreed: raise it."
    ),
    _C.CONNECTION_FORCED: Cause(
        "2.8.16",
        "The peer closes the connection on purpose: a shutdown, an operator, an idle time-out, or a certificate or token that "
        "expired. Dial again, with a delay.",
    ),
    _C.FRAMING_ERROR: Cause(
        "2.8.16",
        "Octets that are no frame: another protocol or TLS on this port, a frame longer than max-frame-size, or two writers "
        "on one socket.",
    ),
    _C.CONNECTION_REDIRECT: Cause(
        "2.8.16", "Another host serves this: its name and port are in the info map of the error."
    ),
    _C.WINDOW_VIOLATION: Cause(
        "2.8.17",
        "More transfers than the incoming-window of the session permits: look at the window above (2.5.6).",
    ),
    _C.ERRANT_LINK: Cause(
        "2.8.17", "A frame for a link that was detached with an error, and not yet by both ends."
    ),
    _C.HANDLE_IN_USE: Cause("2.8.17", "An attach with a handle of a link that is still attached."),
    _C.UNATTACHED_HANDLE: Cause(
        "2.8.17", "A frame for a handle that no link has: sent before the attach, or after the detach."
    ),
    _C.DETACH_FORCED: Cause(
        "2.8.18",
        "The peer detaches on purpose: an operator, a node that moved, or a link that was idle for too long. Attach again.",
    ),
    _C.TRANSFER_LIMIT_EXCEEDED: Cause(
        "2.8.18", "More deliveries than the receiver gave credit for: look at the credit above (2.6.7)."
    ),
    _C.MESSAGE_SIZE_EXCEEDED: Cause(
        "2.8.18", "A message larger than the max-message-size of the peer's attach: send less, or in parts."
    ),
    _C.LINK_REDIRECT: Cause(
        "2.8.18", "Another host or address serves this: it is in the info map of the error."
    ),
    _C.STOLEN: Cause(
        "2.8.18", "Another link of the same name was attached: two programs, or two threads, use one name."
    ),
    _C.TRANSACTION_UNKNOWN_ID: Cause(
        "4.5.8",
        "The transaction is over, was declared on another connection, or never was: see the declare before it.",
    ),
    _C.TRANSACTION_ROLLBACK: Cause(
        "4.5.8",
        "The coordinator could not commit, and has rolled back: what was done in it is to be done again.",
    ),
    _C.TRANSACTION_TIMEOUT: Cause(
        "4.5.8", "The transaction was open for longer than the coordinator permits."
    ),
}

_UNKNOWN: Final = Cause(
    "2.8.14", "A condition of the peer's own: its documentation, or its log, says what it means."
)


def cause_of(condition: str) -> Cause:
    """The section that defines a condition, and what usually leads to it; of an unknown one, where to look."""
    return CAUSES.get(condition, _UNKNOWN)
