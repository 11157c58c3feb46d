"""The events of a connection, a class for each: opened, attached, ended, etc.

Messages, dispositions and credit are no events: they go to the queue of their link, and the link is listed as
touched (see ``Connection.take_touched``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trio_amqp10.amqp10.spec.transport import Error, Open

    from .link import Link
    from .session import Session


class Event:
    """The base class of all events."""

    __slots__ = ()


@dataclass(slots=True)
class QuestionAsked(Event):
    """A SASL mechanism needs an answer of the application: call ``Stack.answer``."""

    question: Any


@dataclass(slots=True)
class Authenticated(Event):
    """The SASL layer is done.

    On the accepting side ``identity`` is the peer's, and ``hostname`` the host that it asked for.
    """

    identity: Any
    hostname: str | None = None


@dataclass(slots=True)
class ConnectionOpened(Event):
    """The peer sent ``open`` (2.7.1)."""

    open: Open


@dataclass(slots=True)
class ConnectionClosed(Event):
    """The peer sent ``close`` (2.7.9), which was answered already."""

    error: Error | None


@dataclass(slots=True)
class ConnectionLost(Event):
    """The transport ended without a ``close`` of both ends, or a deadline passed."""

    reason: str


@dataclass(slots=True)
class SessionBegun(Event):
    """The peer sent ``begin``: for a new session, or as an answer.

    The session is new if its state is ``BEGIN_RCVD``; otherwise the peer has answered our begin.
    """

    session: Session


@dataclass(slots=True)
class SessionEnded(Event):
    """A session is over.

    Either the peer sent ``end``, which was answered already, or we ended it after a fault of the peer.
    """

    session: Session
    error: Error | None


@dataclass(slots=True)
class LinkAttached(Event):
    """The peer sent ``attach``: for a new link, or as an answer.

    The link is new if its state is ``ATTACH_RCVD``; otherwise the peer has answered our attach.
    """

    link: Link


@dataclass(slots=True)
class LinkDetached(Event):
    """A link is over.

    Either the peer sent ``detach``, which was answered already, or we detached after a fault of the peer.
    """

    link: Link
    closed: bool
    error: Error | None
