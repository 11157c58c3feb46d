"""What the peer did, one object at a time: the rare things. Methods and contents go to the queue of their channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .channel import Channel
    from .content import Content
    from .methods import Method
    from .spec import ChannelClose, ConnectionClose, ConnectionStart, ConnectionStartOk

__all__ = [
    "Arrival",
    "Blocked",
    "ChallengeAnswered",
    "Challenged",
    "ChannelClosed",
    "ChannelOpened",
    "ConnectionClosed",
    "ConnectionLost",
    "ConnectionOpened",
    "Event",
    "OpenRequested",
    "SecretAccepted",
    "SecretUpdated",
    "StartAnswered",
    "Started",
    "Unblocked",
]


class Arrival(NamedTuple):
    """A method of a channel, in the order in which it came.

    Attributes:
        method: what the peer sent.
        content: what the method carries; None for a method without content.
        request: the request of ours that it answers; None if it answers none.
        tags: the delivery tags that it settles, lowest first: deliveries at a server, publishes at a client.
        number: of a publish in confirm mode, from 1; 0 otherwise.
        size: octets that it counts towards ``Limits.buffer``.
    """

    method: Method
    content: Content | None = None
    request: Method | None = None
    tags: tuple[int, ...] = ()
    number: int = 0
    size: int = 0


@dataclass(slots=True)
class Started:
    """A server's connection.start: choose a mechanism, and answer with ``Engine.answer_start``."""

    start: ConnectionStart


@dataclass(slots=True)
class StartAnswered:
    """A client's choice: answer with ``challenge``, ``accept_login`` or ``refuse_login``; no octet is read until then."""

    answer: ConnectionStartOk


@dataclass(slots=True)
class Challenged:
    """A server's challenge: answer with ``Engine.answer_challenge``."""

    challenge: bytes


@dataclass(slots=True)
class ChallengeAnswered:
    """A client's response to a challenge; goes on as ``StartAnswered``."""

    response: bytes


@dataclass(slots=True)
class OpenRequested:
    """A client asks for a virtual host: answer with ``Engine.accept_open`` or ``Engine.close``."""

    virtual_host: str


@dataclass(slots=True)
class ConnectionOpened:
    """The server's connection.open-ok: channels may be opened."""


@dataclass(slots=True)
class ConnectionClosed:
    """The peer's connection.close, already answered."""

    close: ConnectionClose


@dataclass(slots=True)
class ConnectionLost:
    """The transport ended without a close from both, or a deadline passed."""

    reason: str


@dataclass(slots=True)
class Blocked:
    """The server takes no publishes for now (RabbitMQ's connection.blocked)."""

    reason: str


@dataclass(slots=True)
class Unblocked:
    """The server takes publishes again."""


@dataclass(slots=True)
class SecretUpdated:
    """A client's new secret: answer with ``Engine.accept_secret`` or ``Engine.close``."""

    secret: bytes
    reason: str


@dataclass(slots=True)
class SecretAccepted:
    """The server took our new secret."""


@dataclass(slots=True)
class ChannelOpened:
    """A channel that the client opened, already answered; or ours, now that it is answered."""

    channel: Channel


@dataclass(slots=True)
class ChannelClosed:
    """A channel is closed: by the peer (already answered), or by us for what the peer did.

    Attributes:
        channel: which.
        close: code, text, and the method that failed.
        by_peer: whether the peer closed it.
    """

    channel: Channel
    close: ChannelClose
    by_peer: bool


Event = (
    Started
    | StartAnswered
    | Challenged
    | ChallengeAnswered
    | OpenRequested
    | ConnectionOpened
    | ConnectionClosed
    | ConnectionLost
    | Blocked
    | Unblocked
    | SecretUpdated
    | SecretAccepted
    | ChannelOpened
    | ChannelClosed
)
