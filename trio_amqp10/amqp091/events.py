"""What the peer did, one object at a time: the rare things. Methods and contents go to the queue of their channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

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
    "ClusterReceived",
    "ConnectionClosed",
    "ConnectionLost",
    "ConnectionOpened",
    "ContentAborted",
    "Event",
    "OpenRequested",
    "Redirected",
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
    """A client asks for a virtual host: answer with ``Engine.accept_open``, ``Engine.redirect`` or ``Engine.close``.

    Attributes:
        virtual_host: its name.
        insist: whether the client asks not to be redirected, in versions that can redirect.
    """

    virtual_host: str
    insist: bool = False


@dataclass(slots=True)
class ConnectionOpened:
    """The server's connection.open-ok: channels may be opened.

    Attributes:
        known_hosts: other servers, in versions that name them.
    """

    known_hosts: str = ""


@dataclass(slots=True)
class Redirected:
    """The server's connection.redirect: go to this host, or else to one of those that it knows (10.3).

    Attributes:
        host: where to connect.
        known_hosts: where else.
    """

    host: str
    known_hosts: str


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
    """A channel that the client opened, already answered; or ours, now that it is answered.

    Attributes:
        channel: which.
        method: the client's channel.open; None for ours.
    """

    channel: Channel
    method: Any = None


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


@dataclass(slots=True)
class ContentAborted:
    """A content broke off before it was complete: the peer gave it up, or the channel ended (10.3).

    Attributes:
        channel: which.
        method: what carried the content.
        part: what came of it; None if not even its header did.
        request: the request of ours that the method answered; None if it answered none.
    """

    channel: Channel
    method: Method
    part: Content | None
    request: Method | None = None


@dataclass(slots=True)
class ClusterReceived:
    """A method of the class cluster (10.3)."""

    method: Method


Event = (
    Started
    | StartAnswered
    | Challenged
    | ChallengeAnswered
    | OpenRequested
    | ConnectionOpened
    | Redirected
    | ConnectionClosed
    | ConnectionLost
    | Blocked
    | Unblocked
    | SecretUpdated
    | SecretAccepted
    | ChannelOpened
    | ChannelClosed
    | ContentAborted
    | ClusterReceived
)
