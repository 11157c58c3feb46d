"""Three-digit reply codes: those of AMQ RFC 011 and those of AMQP 0-9-1, and the error conditions they amount to.

A program acts on the first digit: an unknown code that begins with 2 is a success, an unknown code that begins with 4 may
be tried again. So every function here takes any number from 100 to 999, and the two enumerations only name those that
somebody defined. They are two, because 320 and 505 mean different things in them.

Knows no frame and no dialect's engine. Sources: AMQ RFC 011, 3.3 (digits, its codes); AMQP 0-9-1, the
constants of its machine-readable part (its codes, and which of them are soft or hard), 4.8.2 (their form), 2.3.6 (what an
error ends).
"""

from __future__ import annotations

from enum import Enum, IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from .errors import Condition

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CONDITIONS_091",
    "CONDITIONS_RFC011",
    "Category",
    "Completion",
    "ReplyCode091",
    "ReplyCodeRfc011",
    "category_of",
    "closes_connection",
    "completion_of",
    "condition_of",
    "may_retry",
    "reply_text",
    "to_091",
]

TEXT_OCTETS: Final = 255
"""Octets that a reply-text may have: it is a short string (0-9-1, 4.2.5.3)."""


class Completion(Enum):
    """The first digit: whether the request succeeded (RFC 011, 3.3)."""

    AWAITS_CONFIRMATION = 1
    SUCCESSFUL = 2
    NEEDS_INFORMATION = 3
    FAILED_FOR_NOW = 4
    FAILED = 5
    RESERVED = 6
    """6 to 9."""


class Category(Enum):
    """The second digit: what a failure is about (RFC 011, 3.3)."""

    SYNTAX = 0
    INFORMATION = 1
    SESSION = 2
    SECURITY = 3
    IMPLEMENTATION = 4
    RESERVED = 5
    """5 to 9."""


class ReplyCodeRfc011(IntEnum):
    """The codes that RFC 011 defines in 3.3; AMQP/Fast sends them."""

    SUCCESS = 200
    MESSAGE_NOT_FOUND = 310
    MESSAGE_TOO_LARGE = 311
    CLIENT_ALREADY_ACTIVE = 320
    SERVICE_TYPE_NOT_VALID = 401
    VIRTUAL_PATH_NOT_VALID = 402
    ACCESS_REFUSED = 403
    DESTINATION_NOT_FOUND = 404
    FRAMING_ERROR = 501
    SYNTAX_ERROR = 502
    COMMAND_NOT_VALID = 503
    CHANNEL_NOT_READY = 504
    HANDLE_NOT_READY = 505
    INSUFFICIENT_RESOURCES = 506
    NOT_IMPLEMENTED = 540
    INTERNAL_ERROR = 541
    CONTENT_INVALID = 542


class ReplyCode091(IntEnum):
    """The codes of AMQP 0-9-1; the member's name is what its reply-text begins with."""

    REPLY_SUCCESS = 200
    CONTENT_TOO_LARGE = 311
    NO_ROUTE = 312
    """Only in a basic.return."""
    NO_CONSUMERS = 313
    """Only in a basic.return."""
    CONNECTION_FORCED = 320
    INVALID_PATH = 402
    ACCESS_REFUSED = 403
    NOT_FOUND = 404
    RESOURCE_LOCKED = 405
    PRECONDITION_FAILED = 406
    FRAME_ERROR = 501
    SYNTAX_ERROR = 502
    COMMAND_INVALID = 503
    CHANNEL_ERROR = 504
    UNEXPECTED_FRAME = 505
    RESOURCE_ERROR = 506
    NOT_ALLOWED = 530
    NOT_IMPLEMENTED = 540
    INTERNAL_ERROR = 541


_R = ReplyCodeRfc011
_N = ReplyCode091
_C = Condition

_SOFT: Final = frozenset(
    {
        _N.CONTENT_TOO_LARGE,
        _N.NO_ROUTE,
        _N.NO_CONSUMERS,
        _N.ACCESS_REFUSED,
        _N.NOT_FOUND,
        _N.RESOURCE_LOCKED,
        _N.PRECONDITION_FAILED,
    }
)
"""What closes a channel and leaves the connection open (0-9-1, "soft-error")."""

CONDITIONS_RFC011: Final[Mapping[int, Condition | None]] = MappingProxyType(
    {
        _R.SUCCESS: None,
        _R.MESSAGE_NOT_FOUND: _C.NOT_FOUND,
        _R.MESSAGE_TOO_LARGE: _C.MESSAGE_SIZE_EXCEEDED,
        _R.CLIENT_ALREADY_ACTIVE: _C.CONNECTION_FORCED,
        _R.SERVICE_TYPE_NOT_VALID: _C.NOT_IMPLEMENTED,
        _R.VIRTUAL_PATH_NOT_VALID: _C.NOT_FOUND,
        _R.ACCESS_REFUSED: _C.UNAUTHORIZED_ACCESS,
        _R.DESTINATION_NOT_FOUND: _C.NOT_FOUND,
        _R.FRAMING_ERROR: _C.FRAMING_ERROR,
        _R.SYNTAX_ERROR: _C.INVALID_FIELD,
        _R.COMMAND_NOT_VALID: _C.ILLEGAL_STATE,
        _R.CHANNEL_NOT_READY: _C.UNATTACHED_HANDLE,
        _R.HANDLE_NOT_READY: _C.UNATTACHED_HANDLE,
        _R.INSUFFICIENT_RESOURCES: _C.RESOURCE_LIMIT_EXCEEDED,
        _R.NOT_IMPLEMENTED: _C.NOT_IMPLEMENTED,
        _R.INTERNAL_ERROR: _C.INTERNAL_ERROR,
        _R.CONTENT_INVALID: _C.DECODE_ERROR,
    }
)
"""RFC 011's codes as error conditions of AMQP 1.0 (2.8.15 to 2.8.18); None for a success."""

CONDITIONS_091: Final[Mapping[int, Condition | None]] = MappingProxyType(
    {
        _N.REPLY_SUCCESS: None,
        _N.CONTENT_TOO_LARGE: _C.MESSAGE_SIZE_EXCEEDED,
        _N.NO_ROUTE: _C.NOT_FOUND,
        _N.NO_CONSUMERS: _C.NOT_FOUND,
        _N.CONNECTION_FORCED: _C.CONNECTION_FORCED,
        _N.INVALID_PATH: _C.NOT_FOUND,
        _N.ACCESS_REFUSED: _C.UNAUTHORIZED_ACCESS,
        _N.NOT_FOUND: _C.NOT_FOUND,
        _N.RESOURCE_LOCKED: _C.RESOURCE_LOCKED,
        _N.PRECONDITION_FAILED: _C.PRECONDITION_FAILED,
        _N.FRAME_ERROR: _C.FRAMING_ERROR,
        _N.SYNTAX_ERROR: _C.DECODE_ERROR,
        _N.COMMAND_INVALID: _C.ILLEGAL_STATE,
        _N.CHANNEL_ERROR: _C.ILLEGAL_STATE,
        _N.UNEXPECTED_FRAME: _C.ILLEGAL_STATE,
        _N.RESOURCE_ERROR: _C.RESOURCE_LIMIT_EXCEEDED,
        _N.NOT_ALLOWED: _C.NOT_ALLOWED,
        _N.NOT_IMPLEMENTED: _C.NOT_IMPLEMENTED,
        _N.INTERNAL_ERROR: _C.INTERNAL_ERROR,
    }
)
"""0-9-1's codes as error conditions of AMQP 1.0; None for a success."""

_TO_091: Final[Mapping[int, ReplyCode091]] = MappingProxyType(
    {
        _R.SUCCESS: _N.REPLY_SUCCESS,
        _R.MESSAGE_NOT_FOUND: _N.NOT_FOUND,
        _R.MESSAGE_TOO_LARGE: _N.CONTENT_TOO_LARGE,
        _R.CLIENT_ALREADY_ACTIVE: _N.NOT_ALLOWED,
        _R.SERVICE_TYPE_NOT_VALID: _N.NOT_IMPLEMENTED,
        _R.VIRTUAL_PATH_NOT_VALID: _N.INVALID_PATH,
        _R.ACCESS_REFUSED: _N.ACCESS_REFUSED,
        _R.DESTINATION_NOT_FOUND: _N.NOT_FOUND,
        _R.FRAMING_ERROR: _N.FRAME_ERROR,
        _R.SYNTAX_ERROR: _N.SYNTAX_ERROR,
        _R.COMMAND_NOT_VALID: _N.COMMAND_INVALID,
        _R.CHANNEL_NOT_READY: _N.CHANNEL_ERROR,
        _R.HANDLE_NOT_READY: _N.COMMAND_INVALID,
        _R.INSUFFICIENT_RESOURCES: _N.RESOURCE_ERROR,
        _R.NOT_IMPLEMENTED: _N.NOT_IMPLEMENTED,
        _R.INTERNAL_ERROR: _N.INTERNAL_ERROR,
        _R.CONTENT_INVALID: _N.FRAME_ERROR,
    }
)

_RETRIED_LATER: Final = frozenset({_R.MESSAGE_TOO_LARGE, _R.CLIENT_ALREADY_ACTIVE})
"""Codes that begin with 3 and may succeed later: 3.3 says so of 311; 320 ends when the other client goes."""


def _digits(code: int) -> tuple[int, int]:
    if not 100 <= code <= 999:
        raise ValueError(f"a reply code has three digits, from 100 to 999: {code}")
    return code // 100, code // 10 % 10


def completion_of(code: int) -> Completion:
    """What the first digit says (RFC 011, 3.3).

    Raises:
        ValueError: the code is not in 100 to 999.
    """
    return Completion(min(_digits(code)[0], Completion.RESERVED.value))


def category_of(code: int) -> Category:
    """What the second digit says (RFC 011, 3.3).

    Raises:
        ValueError: the code is not in 100 to 999.
    """
    return Category(min(_digits(code)[1], Category.RESERVED.value))


def may_retry(code: int) -> bool:
    """Whether the same request may succeed later, without anybody's intervention (RFC 011, 3.3).

    Raises:
        ValueError: the code is not in 100 to 999.
    """
    return completion_of(code) is Completion.FAILED_FOR_NOW or code in _RETRIED_LATER


def closes_connection(code: int) -> bool:
    """Whether an error of 0-9-1 ends the connection (a hard error), rather than its channel (a soft one; 2.3.6).

    A code that 0-9-1 does not define ends the connection: a peer that sends it is not understood.
    """
    return code not in _SOFT


def condition_of(code: int) -> Condition | None:
    """The error condition of AMQP 1.0 that a code of 0-9-1 amounts to; None for a success.

    An unknown code is judged by its first digit: 1 and 2 are no errors, all else is an internal error of the peer's.
    The same holds for numbers outside 100 to 999, which a peer can send but nobody can judge.
    """
    if code in CONDITIONS_091:
        return CONDITIONS_091[code]
    return None if 100 <= code < 300 else Condition.INTERNAL_ERROR


def to_091(code: int) -> ReplyCode091:
    """The code of 0-9-1 for one of RFC 011's; an unknown one becomes a success or an internal error by its first digit."""
    known = _TO_091.get(code)
    if known is not None:
        return known
    return ReplyCode091.REPLY_SUCCESS if 100 <= code < 300 else ReplyCode091.INTERNAL_ERROR


def reply_text(code: ReplyCode091 | ReplyCodeRfc011, explanation: str = "") -> str:
    """The text that goes with a code: its name, then the explanation, cut at 255 octets between two characters."""
    text = f"{code.name} - {explanation}" if explanation else code.name
    octets = text.encode("utf-8", "backslashreplace")[:TEXT_OCTETS].replace(b"\0", b" ")
    return octets.decode("utf-8", "ignore")
