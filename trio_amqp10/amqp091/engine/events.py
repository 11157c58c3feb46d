"""Events of the engine: the rare things that a peer does.

Methods and contents of a channel go to the queue of that channel instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from trio_amqp10.amqp091.spec import ChannelClose, ConnectionClose, ConnectionStart, ConnectionStartOk
    from trio_amqp10.amqp091.wire.content import Content
    from trio_amqp10.amqp091.wire.methods import Method

    from .channel import Channel


class Arrival(NamedTuple):
    """A received method of a channel, in the order of arrival.

    Attributes:
        method: the received method.
        content: the content of the method; None for a method without content.
        request: our request that the method answers; None if it answers none.
        tags: the tags that the method settles, lowest first: of deliveries at a server, of publishes at a client.
        number: the number of a publish in confirm mode, from 1; otherwise 0.
        size: its octets, which count for ``Limits.buffer``.
    """

    method: Method
    content: Content | None = None
    request: Method | None = None
    tags: tuple[int, ...] = ()
    number: int = 0
    size: int = 0


class Event:
    """The base class of all events."""

    __slots__ = ()


@dataclass(slots=True)
class Started(Event):
    """A server's connection.start: answer with ``Engine.answer_start``.

    The answer names the mechanism that the client chooses.
    """

    start: ConnectionStart


@dataclass(slots=True)
class StartAnswered(Event):
    """A client's connection.start-ok.

    Answer with ``challenge``, ``accept_login`` or ``refuse_login``; until then, nothing more is read.
    """

    answer: ConnectionStartOk


@dataclass(slots=True)
class Challenged(Event):
    """A server's challenge: answer with ``Engine.answer_challenge``."""

    challenge: bytes


@dataclass(slots=True)
class ChallengeAnswered(Event):
    """A client's response to a challenge; answer as for ``StartAnswered``."""

    response: bytes


@dataclass(slots=True)
class OpenRequested(Event):
    """A client's connection.open, for a virtual host.

    Answer with ``Engine.accept_open``, ``Engine.redirect`` or ``Engine.close``.

    Attributes:
        virtual_host: its name.
        insist: whether the client asks not to be redirected, in versions that can redirect.
    """

    virtual_host: str
    insist: bool = False


@dataclass(slots=True)
class ConnectionOpened(Event):
    """The server's connection.open-ok: channels may be opened.

    Attributes:
        known_hosts: other servers, in versions that name them.
    """

    known_hosts: str = ""


@dataclass(slots=True)
class Redirected(Event):
    """The server's connection.redirect (10.3).

    Attributes:
        host: the host to connect to.
        known_hosts: other hosts, if that fails.
    """

    host: str
    known_hosts: str


@dataclass(slots=True)
class ConnectionClosed(Event):
    """The peer's connection.close, already answered."""

    close: ConnectionClose


@dataclass(slots=True)
class ConnectionLost(Event):
    """The transport ended before both ends had closed, or a deadline passed."""

    reason: str


@dataclass(slots=True)
class Blocked(Event):
    """The server accepts no publishes for now (RabbitMQ's connection.blocked)."""

    reason: str


@dataclass(slots=True)
class Unblocked(Event):
    """The server accepts publishes again."""


@dataclass(slots=True)
class SecretUpdated(Event):
    """A client's new secret: answer with ``Engine.accept_secret`` or ``Engine.close``."""

    secret: bytes
    reason: str


@dataclass(slots=True)
class SecretAccepted(Event):
    """The server accepted our new secret."""


@dataclass(slots=True)
class ChannelOpened(Event):
    """A client opened a channel, already answered; or a server answered channel.open.

    Attributes:
        channel: the channel.
        method: the client's channel.open; None at a client.
    """

    channel: Channel
    method: Any = None


@dataclass(slots=True)
class ChannelClosed(Event):
    """A channel was closed, by the peer (already answered) or here for its error.

    Attributes:
        channel: the channel.
        close: code, text, and the method that failed.
        by_peer: whether the peer closed it.
    """

    channel: Channel
    close: ChannelClose
    by_peer: bool


@dataclass(slots=True)
class ContentAborted(Event):
    """A content ended before it was complete (10.3).

    The peer aborted it, or the channel ended.

    Attributes:
        channel: the channel.
        method: the method of the content.
        part: the received part; None if its header did not come.
        request: our request that the method answered; None if it answered none.
    """

    channel: Channel
    method: Method
    part: Content | None
    request: Method | None = None


@dataclass(slots=True)
class ClusterReceived(Event):
    """A method of the class cluster (10.3)."""

    method: Method
