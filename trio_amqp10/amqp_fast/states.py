"""Every state of a connection, a channel and a handle, and when each command is expected (RFC 006, 3.2.10, 3.3.9, 3.5.17).

The rules
---------

A ``Lifecycle`` has a ``state``, and nothing but ``Lifecycle.step`` assigns one. What may happen is data: a table from a
state and a step to the next state. Negotiation takes turns, so one table serves both ends: a state is named after what is
due next. ``LOST`` is the end of the transport, or of what is around a channel or a handle: legal always, final always.

``EXPECTED`` is the document's three lists: for each role, when a command of the peer is expected, and what is closed
otherwise. A command that is never expected closes the connection with 503; so does a step of the negotiation that the
table does not have.

Both ends may close at once: each close is then the answer to the other.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeVar

from trio_amqp10.endpoint_role import EndpointRole
from trio_amqp10.reply_codes import ReplyCodeRfc011
from trio_amqp10.state_machine import StateMachine

from . import spec
from .faults import Level, ReplyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .commands import Command

S = TypeVar("S", bound=Enum)

__all__ = [
    "CHANNEL",
    "CONNECTION",
    "EXPECTED",
    "HANDLE",
    "ChannelState",
    "ConnectionState",
    "Expectation",
    "HandleState",
    "Lifecycle",
    "Step",
    "When",
]


class ConnectionState(Enum):
    """What is due next, until the connection is open."""

    AWAIT_INITIATION = auto()
    AWAIT_CHALLENGE = auto()
    AWAIT_RESPONSE = auto()
    AWAIT_TUNE = auto()
    """The server's tune, or another challenge."""
    AWAIT_OPEN = auto()
    """The client's open, or a tune before it."""
    OPENING = auto()
    """The client has said open, and the server has not decided. The client may go on already."""
    OPEN = auto()
    REFUSING = auto()
    """A server pauses before it ends a connection that did not come to be (3.2.12)."""
    CLOSE_SENT = auto()
    CLOSED = auto()


class ChannelState(Enum):
    """A channel is made CLOSED and ends CLOSED."""

    CLOSED = auto()
    OPEN = auto()
    CLOSE_SENT = auto()
    CLOSE_RECEIVED = auto()


class HandleState(Enum):
    """A handle is made CLOSED and ends CLOSED."""

    CLOSED = auto()
    OPEN = auto()
    CLOSE_SENT = auto()
    CLOSE_RECEIVED = auto()


class Step(Enum):
    """What can happen: a command of the negotiation, a decision, or an opening or closing with its direction."""

    INITIATION = auto()
    CHALLENGE = auto()
    RESPONSE = auto()
    TUNE = auto()
    OPEN = auto()
    ACCEPT = auto()
    REFUSE = auto()
    SEND_CLOSE = auto()
    RECV_CLOSE = auto()
    LOST = auto()


_C = ConnectionState
_N = ChannelState
_H = HandleState
_S = Step

CONNECTION: Final[Mapping[ConnectionState, Mapping[Step, ConnectionState]]] = {
    _C.AWAIT_INITIATION: {_S.INITIATION: _C.AWAIT_CHALLENGE, _S.REFUSE: _C.REFUSING},
    _C.AWAIT_CHALLENGE: {
        _S.CHALLENGE: _C.AWAIT_RESPONSE,
        _S.REFUSE: _C.REFUSING,
        _S.SEND_CLOSE: _C.CLOSE_SENT,
        _S.RECV_CLOSE: _C.CLOSED,
    },
    _C.AWAIT_RESPONSE: {
        _S.RESPONSE: _C.AWAIT_TUNE,
        _S.REFUSE: _C.REFUSING,
        _S.SEND_CLOSE: _C.CLOSE_SENT,
        _S.RECV_CLOSE: _C.CLOSED,
    },
    _C.AWAIT_TUNE: {
        _S.CHALLENGE: _C.AWAIT_RESPONSE,
        _S.TUNE: _C.AWAIT_OPEN,
        _S.REFUSE: _C.REFUSING,
        _S.SEND_CLOSE: _C.CLOSE_SENT,
        _S.RECV_CLOSE: _C.CLOSED,
    },
    _C.AWAIT_OPEN: {
        _S.TUNE: _C.AWAIT_OPEN,
        _S.OPEN: _C.OPENING,
        _S.REFUSE: _C.REFUSING,
        _S.SEND_CLOSE: _C.CLOSE_SENT,
        _S.RECV_CLOSE: _C.CLOSED,
    },
    _C.OPENING: {_S.ACCEPT: _C.OPEN, _S.SEND_CLOSE: _C.CLOSE_SENT, _S.RECV_CLOSE: _C.CLOSED},
    _C.OPEN: {_S.SEND_CLOSE: _C.CLOSE_SENT, _S.RECV_CLOSE: _C.CLOSED},
    _C.REFUSING: {},
    _C.CLOSE_SENT: {_S.RECV_CLOSE: _C.CLOSED},
    _C.CLOSED: {},
}

CHANNEL: Final[Mapping[ChannelState, Mapping[Step, ChannelState]]] = {
    _N.CLOSED: {_S.OPEN: _N.OPEN},
    _N.OPEN: {_S.SEND_CLOSE: _N.CLOSE_SENT, _S.RECV_CLOSE: _N.CLOSE_RECEIVED},
    _N.CLOSE_SENT: {_S.RECV_CLOSE: _N.CLOSED},
    _N.CLOSE_RECEIVED: {_S.SEND_CLOSE: _N.CLOSED},
}

HANDLE: Final[Mapping[HandleState, Mapping[Step, HandleState]]] = {
    _H.CLOSED: {_S.OPEN: _H.OPEN},
    _H.OPEN: {_S.SEND_CLOSE: _H.CLOSE_SENT, _S.RECV_CLOSE: _H.CLOSE_RECEIVED},
    _H.CLOSE_SENT: {_S.RECV_CLOSE: _H.CLOSED},
    _H.CLOSE_RECEIVED: {_S.SEND_CLOSE: _H.CLOSED},
}


class When(Enum):
    """When a command of the peer is expected."""

    NEVER = "never"
    IN_TURN = "in its turn of the negotiation"
    ALWAYS = "at any time"
    CHANNEL_CLOSED = "on a closed channel"
    CHANNEL_OPEN = "on an open channel"
    HANDLE_CLOSED = "on a closed destination"
    HANDLE_OPEN = "on an open destination"


class Expectation(NamedTuple):
    """One entry of the document's lists.

    Attributes:
        when: it is expected.
        reaction: what follows then, in a few words.
        level: what is closed otherwise.
        code: with which reply code.
    """

    when: When
    reaction: str
    level: Level = Level.CONNECTION
    code: ReplyCodeRfc011 = ReplyCodeRfc011.COMMAND_NOT_VALID


_NEVER: Final = Expectation(When.NEVER, "connection close")


def _on_channel(reaction: str) -> Expectation:
    return Expectation(When.CHANNEL_OPEN, reaction, code=ReplyCodeRfc011.CHANNEL_NOT_READY)


def _on_handle(reaction: str) -> Expectation:
    return Expectation(When.HANDLE_OPEN, reaction, code=ReplyCodeRfc011.HANDLE_NOT_READY)


_CLIENT: Final[Mapping[type[Command], Expectation]] = {
    spec.ConnectionChallenge: Expectation(When.IN_TURN, "connection response"),
    spec.ConnectionResponse: _NEVER,
    spec.ConnectionTune: Expectation(When.IN_TURN, "connection tune, connection open"),
    spec.ConnectionOpen: _NEVER,
    spec.ConnectionPing: Expectation(When.ALWAYS, "connection ping if asked"),
    spec.ConnectionReply: Expectation(When.IN_TURN, "none"),
    spec.ConnectionClose: Expectation(When.ALWAYS, "connection close"),
    spec.ChannelOpen: _NEVER,
    spec.ChannelAck: _NEVER,
    spec.ChannelCommit: _NEVER,
    spec.ChannelRollback: _NEVER,
    spec.ChannelReply: _on_channel("none"),
    spec.ChannelClose: _on_channel("channel close"),
    spec.HandleOpen: _NEVER,
    spec.HandleSend: _NEVER,
    spec.HandleConsume: _NEVER,
    spec.HandleCancel: _NEVER,
    spec.HandleFlow: _NEVER,
    spec.HandleUnget: _NEVER,
    spec.HandleQuery: _NEVER,
    spec.HandleBrowse: _NEVER,
    spec.HandleCreated: _on_handle("the name is kept"),
    spec.HandleNotify: _on_handle("channel ack, now or later"),
    spec.HandleIndex: _on_handle("none"),
    spec.HandlePrepare: _on_handle("handle ready"),
    spec.HandleReady: _on_handle("handle send"),
    spec.HandleReply: _on_handle("none"),
    spec.HandleClose: _on_handle("handle close"),
}

_SERVER: Final[Mapping[type[Command], Expectation]] = {
    spec.ConnectionChallenge: _NEVER,
    spec.ConnectionResponse: Expectation(When.IN_TURN, "connection tune or challenge"),
    spec.ConnectionTune: Expectation(When.IN_TURN, "none"),
    spec.ConnectionPing: Expectation(When.ALWAYS, "connection ping if asked"),
    spec.ConnectionOpen: Expectation(When.IN_TURN, "connection reply if asked"),
    spec.ConnectionReply: _NEVER,
    spec.ConnectionClose: Expectation(When.ALWAYS, "connection close"),
    spec.ChannelOpen: Expectation(When.CHANNEL_CLOSED, "channel reply if asked", Level.CHANNEL),
    spec.ChannelAck: _on_channel("channel reply if asked"),
    spec.ChannelCommit: _on_channel("channel reply if asked"),
    spec.ChannelRollback: _on_channel("channel reply if asked"),
    spec.ChannelReply: _NEVER,
    spec.ChannelClose: _on_channel("channel close"),
    spec.HandleOpen: Expectation(When.HANDLE_CLOSED, "handle reply if asked", Level.HANDLE),
    spec.HandleSend: _on_handle("handle reply if asked"),
    spec.HandleConsume: _on_handle("handle reply if asked"),
    spec.HandleCancel: _on_handle("handle reply if asked"),
    spec.HandleFlow: _on_handle("handle reply if asked"),
    spec.HandleUnget: _on_handle("handle reply if asked"),
    spec.HandleQuery: _on_handle("handle index"),
    spec.HandleBrowse: _on_handle("handle notify, not delivered"),
    spec.HandleCreated: _NEVER,
    spec.HandleNotify: _NEVER,
    spec.HandleIndex: _NEVER,
    spec.HandleReply: _NEVER,
    spec.HandlePrepare: _on_handle("handle ready"),
    spec.HandleReady: _on_handle("handle notify, recovery"),
    spec.HandleClose: _on_handle("handle close"),
}

EXPECTED: Final[Mapping[EndpointRole, Mapping[type[Command], Expectation]]] = {
    EndpointRole.CLIENT: _CLIENT,
    EndpointRole.SERVER: _SERVER,
}
"""By the role of the end that receives the command."""


class Lifecycle(StateMachine[S, Step]):
    """The state of one of these, and its table; see ``StateMachine``. ``receive`` raises ``ReplyError``."""

    __slots__ = ()

    LOST: ClassVar[Enum] = Step.LOST

    def fault(self, _step: Step, description: str, /) -> ReplyError:
        return ReplyError(ReplyCodeRfc011.COMMAND_NOT_VALID, description)
