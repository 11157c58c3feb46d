"""Events of the peer, one object each: opened, attached, ended and the like.

Messages, dispositions and credit are not here: they go to the link's own queue, and the link
to the list of touched objects (see ``Connection.take_touched``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trio_amqp10.spec.transport import Error, Open

    from .link import Link
    from .session import Session

__all__ = [
    "Authenticated",
    "ConnectionClosed",
    "ConnectionLost",
    "ConnectionOpened",
    "Event",
    "LinkAttached",
    "LinkDetached",
    "QuestionAsked",
    "SessionBegun",
    "SessionEnded",
]


@dataclass(slots=True)
class QuestionAsked:
    """A SASL mechanism needs the application: answer with ``Stack.answer``."""

    question: Any


@dataclass(slots=True)
class Authenticated:
    """The SASL layer is done; on the accepting side ``identity`` is the peer's, and ``hostname`` whom it asked for."""

    identity: Any
    hostname: str | None = None


@dataclass(slots=True)
class ConnectionOpened:
    """The peer's ``open`` (2.7.1)."""

    open: Open


@dataclass(slots=True)
class ConnectionClosed:
    """The peer's ``close`` (2.7.9), already answered."""

    error: Error | None


@dataclass(slots=True)
class ConnectionLost:
    """The transport ended without a ``close`` from both, or a deadline passed."""

    reason: str


@dataclass(slots=True)
class SessionBegun:
    """The peer's ``begin``: a new session where ``session.answered`` is false, else the answer."""

    session: Session


@dataclass(slots=True)
class SessionEnded:
    """A session is over: the peer's ``end``, already answered, or ours after a fault of the peer's."""

    session: Session
    error: Error | None


@dataclass(slots=True)
class LinkAttached:
    """The peer's ``attach``: a new link where ``link.answered`` is false, else the answer."""

    link: Link


@dataclass(slots=True)
class LinkDetached:
    """A link is over: the peer's ``detach``, already answered, or ours after a fault of the peer's."""

    link: Link
    closed: bool
    error: Error | None


Event = (
    QuestionAsked
    | Authenticated
    | ConnectionOpened
    | ConnectionClosed
    | ConnectionLost
    | SessionBegun
    | SessionEnded
    | LinkAttached
    | LinkDetached
)
