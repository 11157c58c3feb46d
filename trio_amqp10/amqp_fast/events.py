"""What the peer did, one object at a time: the rare things. Commands of channels go to the queue of their channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .channel import Channel
    from .commands import Command
    from .handle import Handle
    from .message import Message
    from .spec import ConnectionChallenge, ConnectionClose, ConnectionOpen, ConnectionResponse

__all__ = [
    "Arrival",
    "Challenged",
    "ChannelFailed",
    "ChannelOpened",
    "ConnectionClosed",
    "ConnectionLost",
    "ConnectionOpened",
    "Event",
    "HandleFailed",
    "Initiated",
    "OpenRequested",
    "Responded",
]


class Arrival(NamedTuple):
    """A command of a channel, in the order in which it came.

    Attributes:
        command: what the peer sent; of a message its last fragment.
        handle: to which it belongs; None for a command of the channel itself.
        message: what it carries, whole, or one piece of a stream; None if it carries none.
        numbers: messages that it settles at a server, lowest first: of ACK, UNGET, COMMIT and ROLLBACK.
        size: octets that it counts towards ``Limits.buffer``.
    """

    command: Command
    handle: Handle | None = None
    message: Message | None = None
    numbers: tuple[int, ...] = ()
    size: int = 0


@dataclass(slots=True)
class Initiated:
    """A client has begun: answer with ``Engine.challenge``; nothing is read until then."""


@dataclass(slots=True)
class Challenged:
    """A server's challenge: answer with ``Engine.respond``; nothing is read until then."""

    challenge: ConnectionChallenge


@dataclass(slots=True)
class Responded:
    """A client's response: go on with ``challenge``, ``accept_login`` or ``refuse_login``; nothing is read until then."""

    response: ConnectionResponse


@dataclass(slots=True)
class OpenRequested:
    """A client asks for a virtual host: answer with ``Engine.accept_open`` or ``Engine.close``."""

    open: ConnectionOpen


@dataclass(slots=True)
class ConnectionOpened:
    """The server has confirmed the connection."""


@dataclass(slots=True)
class ConnectionClosed:
    """The peer's close, already answered."""

    close: ConnectionClose


@dataclass(slots=True)
class ConnectionLost:
    """The transport ended without a close from both, or a deadline passed."""

    reason: str


@dataclass(slots=True)
class ChannelOpened:
    """A channel that the client opened, already answered."""

    channel: Channel


@dataclass(slots=True)
class ChannelFailed:
    """A channel was closed by us for what the peer did."""

    channel: Channel
    code: int
    text: str


@dataclass(slots=True)
class HandleFailed:
    """A handle was closed by us for what the peer did."""

    handle: Handle
    code: int
    text: str


Event = (
    Initiated
    | Challenged
    | Responded
    | OpenRequested
    | ConnectionOpened
    | ConnectionClosed
    | ConnectionLost
    | ChannelOpened
    | ChannelFailed
    | HandleFailed
)
