"""Every state of a connection and a channel of 0-9-1, and every step between them.

The rules
---------

A ``Lifecycle`` has a ``state``, and nothing but ``Lifecycle.step`` assigns one. What may happen is data: a table from a
state and a step to the next state. The handshake takes turns strictly (2.2.4), so one table serves both ends: a state is
named after what is due next, and which end has to send that is in the method's declaration.

A step of the peer's that the table does not list is answered with the code in ``REACTIONS``, or with 503. A step of ours
that it does not list is a ``LocalProtocolError``. ``LOST`` is the end of the transport, or of the connection around a
channel: legal always, final always.

Both ends may close at once: in ``CLOSE_SENT`` the peer's close is answered, and the answer to ours is still due (2.3.7).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from trio_amqp10.reply_codes import ReplyCode091
from trio_amqp10.state_machine import StateMachine

from .faults import ReplyError

if TYPE_CHECKING:
    from collections.abc import Mapping

S = TypeVar("S", bound=Enum)

__all__ = ["CHANNEL", "CONNECTION", "REACTIONS", "ChannelState", "ConnectionState", "Lifecycle", "Step"]


class ConnectionState(Enum):
    """What is due next, until the connection is open."""

    AWAIT_HEADER = auto()
    AWAIT_START = auto()
    AWAIT_START_OK = auto()
    AWAIT_TUNE = auto()
    """A tune, or a challenge before it."""
    AWAIT_SECURE_OK = auto()
    AWAIT_TUNE_OK = auto()
    AWAIT_OPEN = auto()
    AWAIT_OPEN_OK = auto()
    OPEN = auto()
    CLOSE_SENT = auto()
    CLOSED = auto()


class ChannelState(Enum):
    """A channel is made CLOSED and ends CLOSED."""

    CLOSED = auto()
    OPENING = auto()
    OPEN = auto()
    CLOSE_SENT = auto()


class Step(Enum):
    """What can happen: a method of the handshake, or an opening or closing with its direction."""

    HEADER = auto()
    START = auto()
    START_OK = auto()
    SECURE = auto()
    SECURE_OK = auto()
    TUNE = auto()
    TUNE_OK = auto()
    OPEN = auto()
    OPEN_OK = auto()
    REDIRECT = auto()
    """In place of OPEN_OK, in versions that have it."""
    SEND_CLOSE = auto()
    RECV_CLOSE = auto()
    RECV_CLOSE_OK = auto()
    LOST = auto()


_C = ConnectionState
_N = ChannelState
_S = Step

CONNECTION: Final[Mapping[ConnectionState, Mapping[Step, ConnectionState]]] = {
    _C.AWAIT_HEADER: {_S.HEADER: _C.AWAIT_START},
    _C.AWAIT_START: {_S.START: _C.AWAIT_START_OK},
    _C.AWAIT_START_OK: {_S.START_OK: _C.AWAIT_TUNE},
    _C.AWAIT_TUNE: {_S.SECURE: _C.AWAIT_SECURE_OK, _S.TUNE: _C.AWAIT_TUNE_OK, _S.RECV_CLOSE: _C.CLOSED},
    _C.AWAIT_SECURE_OK: {_S.SECURE_OK: _C.AWAIT_TUNE},
    _C.AWAIT_TUNE_OK: {_S.TUNE_OK: _C.AWAIT_OPEN, _S.SEND_CLOSE: _C.CLOSE_SENT, _S.RECV_CLOSE: _C.CLOSED},
    _C.AWAIT_OPEN: {_S.OPEN: _C.AWAIT_OPEN_OK, _S.SEND_CLOSE: _C.CLOSE_SENT, _S.RECV_CLOSE: _C.CLOSED},
    _C.AWAIT_OPEN_OK: {_S.OPEN_OK: _C.OPEN, _S.SEND_CLOSE: _C.CLOSE_SENT, _S.RECV_CLOSE: _C.CLOSED},
    _C.OPEN: {_S.SEND_CLOSE: _C.CLOSE_SENT, _S.RECV_CLOSE: _C.CLOSED},
    _C.CLOSE_SENT: {_S.RECV_CLOSE: _C.CLOSE_SENT, _S.RECV_CLOSE_OK: _C.CLOSED},
    _C.CLOSED: {},
}

CHANNEL: Final[Mapping[ChannelState, Mapping[Step, ChannelState]]] = {
    _N.CLOSED: {_S.OPEN: _N.OPENING},
    _N.OPENING: {_S.OPEN_OK: _N.OPEN, _S.SEND_CLOSE: _N.CLOSE_SENT, _S.RECV_CLOSE: _N.CLOSED},
    _N.OPEN: {_S.SEND_CLOSE: _N.CLOSE_SENT, _S.RECV_CLOSE: _N.CLOSED},
    _N.CLOSE_SENT: {_S.RECV_CLOSE: _N.CLOSE_SENT, _S.RECV_CLOSE_OK: _N.CLOSED},
}

REACTIONS: Final[Mapping[tuple[Enum, Step], ReplyCode091]] = {
    (_C.OPEN, _S.START_OK): ReplyCode091.CHANNEL_ERROR,
    (_C.OPEN, _S.TUNE_OK): ReplyCode091.CHANNEL_ERROR,
    (_C.OPEN, _S.OPEN): ReplyCode091.CHANNEL_ERROR,
    (_N.OPEN, _S.OPEN): ReplyCode091.CHANNEL_ERROR,
}
"""What the peer gets for a step that is not listed; 503 (command-invalid) for all others."""


class Lifecycle(StateMachine[S, Step]):
    """The state of one of these, and its table; see ``StateMachine``. ``receive`` raises ``ReplyError``."""

    __slots__ = ()

    LOST: ClassVar[Enum] = Step.LOST

    def fault(self, step: Step, description: str, /) -> ReplyError:
        return ReplyError(REACTIONS.get((self.state, step), ReplyCode091.COMMAND_INVALID), description)
