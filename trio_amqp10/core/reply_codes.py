"""Reply codes of AMQ RFC 011 and AMQP 0-9-1, and their error conditions.

The codes have three digits. A program acts on the first: an unknown code that begins with 2 is a success, and a request with an
unknown code that begins with 4 may be tried again. So every function here accepts any number from 100 to 999, and the enumerations
only name the defined codes. There are two of them, because 320 and 505 have different meanings.

Knows no frame and no dialect's engine. Sources: AMQ RFC 011, 3.3 (digits, its codes); AMQP 0-9-1, the
constants of its machine-readable part (its codes, and which of them are soft or hard), 4.8.2 (their form), 2.3.6 (the
scope of an error).
"""

from __future__ import annotations

from enum import Enum, IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from .errors import Condition

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXT_OCTETS: Final = 255
"""Octets of a reply-text at most: it is a short string (0-9-1, 4.2.5.3)."""


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
    """The second digit: the subject of a failure (RFC 011, 3.3)."""

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
    """The codes of AMQP 0-9-1; the reply-text begins with the member's name."""

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
"""Codes that close a channel and not the connection (0-9-1, "soft-error")."""

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
"""The error condition of AMQP 1.0 (2.8.15 to 2.8.18) for each code of RFC 011.

None for a success.
"""

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
"""The error condition of AMQP 1.0 for each code of 0-9-1; None for a success."""

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
"""Codes that begin with 3 although the request may succeed later.

RFC 011, 3.3 permits it for 311; 320 ends when the other client leaves.
"""


def _digits(code: int) -> tuple[int, int]:
    if not 100 <= code <= 999:
        raise ValueError(f"a reply code has three digits, from 100 to 999: {code}")
    return code // 100, code // 10 % 10


def completion_of(code: int) -> Completion:
    """Return the meaning of the first digit (RFC 011, 3.3).

    Raises:
        ValueError: the code is not in 100 to 999.
    """
    return Completion(min(_digits(code)[0], Completion.RESERVED.value))


def category_of(code: int) -> Category:
    """Return the meaning of the second digit (RFC 011, 3.3).

    Raises:
        ValueError: the code is not in 100 to 999.
    """
    return Category(min(_digits(code)[1], Category.RESERVED.value))


def may_retry(code: int) -> bool:
    """Whether the same request may succeed later without any change (RFC 011, 3.3).

    Raises:
        ValueError: the code is not in 100 to 999.
    """
    return completion_of(code) is Completion.FAILED_FOR_NOW or code in _RETRIED_LATER


def closes_connection(code: int) -> bool:
    """Whether an error of 0-9-1 ends the connection, and not only its channel (2.3.6).

    The standard calls these hard and soft errors. A code that 0-9-1 does not define ends the connection, because its meaning is
    unknown.
    """
    return code not in _SOFT


def condition_of(code: int) -> Condition | None:
    """Return the error condition of AMQP 1.0 for a code of 0-9-1; None for a success.

    The first digit of an unknown code decides: 1 and 2 are no errors, all others an internal error of the peer.
    So are numbers outside 100 to 999, which a peer can send although they have no meaning.
    """
    if code in CONDITIONS_091:
        return CONDITIONS_091[code]
    return None if 100 <= code < 300 else Condition.INTERNAL_ERROR


def to_091(code: int) -> ReplyCode091:
    """Return the code of 0-9-1 for a code of RFC 011.

    The first digit of an unknown code decides between success and internal error.
    """
    known = _TO_091.get(code)
    if known is not None:
        return known
    return ReplyCode091.REPLY_SUCCESS if 100 <= code < 300 else ReplyCode091.INTERNAL_ERROR


_CUT: Final = "..."


def reply_text(code: ReplyCode091 | ReplyCodeRfc011, explanation: str = "") -> str:
    """Return the reply-text of a code: its name, then the explanation.

    It is cut at 255 octets, between two characters, and then ends with three dots.
    """
    text = f"{code.name} - {explanation}" if explanation else code.name
    octets = text.encode("utf-8", "backslashreplace").replace(b"\0", b" ")
    if len(octets) > TEXT_OCTETS:
        return octets[: TEXT_OCTETS - len(_CUT)].decode("utf-8", "ignore") + _CUT
    return octets.decode("utf-8", "ignore")
