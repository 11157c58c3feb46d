"""Events of the engine: the rare actions of the peer.

Commands of channels do not become events; each channel has a queue of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from trio_amqp10.amqp_fast.spec import (
        ConnectionChallenge,
        ConnectionClose,
        ConnectionOpen,
        ConnectionResponse,
    )
    from trio_amqp10.amqp_fast.wire.commands import Command

    from .channel import Channel
    from .handle import Handle
    from .message import Message


class Arrival(NamedTuple):
    """A command for a channel, in the order of arrival.

    Attributes:
        command: the command of the peer; for a message the command of its last fragment.
        handle: the handle that it belongs to; None for a command of the channel itself.
        message: the complete message, or one fragment of a stream; None if the command has no message.
        numbers: for ACK, UNGET, COMMIT and ROLLBACK at a server: the numbers of the settled messages, in ascending order.
        size: octets that the command counts towards ``Limits.buffer``.
    """

    command: Command
    handle: Handle | None = None
    message: Message | None = None
    numbers: tuple[int, ...] = ()
    size: int = 0


class Event:
    """The base class of all events."""

    __slots__ = ()


@dataclass(slots=True)
class Initiated(Event):
    """A client has connected. Nothing is read until ``Engine.challenge`` is called."""


@dataclass(slots=True)
class Challenged(Event):
    """The server's challenge. Nothing is read until ``Engine.respond`` is called."""

    challenge: ConnectionChallenge


@dataclass(slots=True)
class Responded(Event):
    """The client's response.

    Nothing is read until ``Engine.challenge``, ``accept_login`` or ``refuse_login`` is called.
    """

    response: ConnectionResponse


@dataclass(slots=True)
class OpenRequested(Event):
    """The client's open for a virtual host.

    Nothing is read until ``Engine.accept_open`` or ``Engine.close`` is called.
    """

    open: ConnectionOpen


@dataclass(slots=True)
class ConnectionOpened(Event):
    """The confirmation of the connection by the server."""


@dataclass(slots=True)
class ConnectionClosed(Event):
    """The peer's close; the engine has already answered it."""

    close: ConnectionClose


@dataclass(slots=True)
class ConnectionLost(Event):
    """The loss of the connection: no close by both ends, or a timeout.

    Attributes:
        reason: why it was lost.
        refuses_login: whether a server ended the transport in place of its tune, as it does to refuse a login (3.2.12).
    """

    reason: str
    refuses_login: bool = False


@dataclass(slots=True)
class ChannelOpened(Event):
    """A channel that the client opened; the engine has already answered it."""

    channel: Channel


@dataclass(slots=True)
class ChannelFailed(Event):
    """A channel that the engine closed because of an error of the peer."""

    channel: Channel
    code: int
    text: str


@dataclass(slots=True)
class HandleFailed(Event):
    """A handle that the engine closed because of an error of the peer."""

    handle: Handle
    code: int
    text: str
