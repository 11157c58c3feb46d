"""The states of a connection and a channel of 0-9-1, and all steps between them.

Only ``Lifecycle.step`` assigns a state. The permitted steps are data: a table from a state and a step to the
next state. The ends take turns in the handshake (2.2.4), so one table serves both roles: a state is named after
the next method, whose declaration defines the role that sends it.

A step of the peer that is not in the table is answered with the code in ``REACTIONS``, or with 503. A step of
ours that is not in the table is a ``LocalProtocolError``. ``LOST`` is the end of the transport, or of the
channel's connection: permitted in every state, and final.

Both ends may close at the same time: in ``CLOSE_SENT`` the peer's close is answered, and the answer to our
  close is still
expected (2.3.7).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.core.reply_codes import ReplyCode091
from trio_amqp10.core.state_machine import StateMachine

if TYPE_CHECKING:
    from collections.abc import Mapping

S = TypeVar("S", bound=Enum)


class ConnectionState(Enum):
    """The states of a connection, named after the next method until it is open."""

    AWAIT_HEADER = auto()
    AWAIT_START = auto()
    AWAIT_START_OK = auto()
    AWAIT_TUNE = auto()
    """connection.tune, or a challenge before it."""
    AWAIT_SECURE_OK = auto()
    AWAIT_TUNE_OK = auto()
    AWAIT_OPEN = auto()
    AWAIT_OPEN_OK = auto()
    OPEN = auto()
    CLOSE_SENT = auto()
    CLOSED = auto()


class ChannelState(Enum):
    """The states of a channel, which begins and ends CLOSED."""

    CLOSED = auto()
    OPENING = auto()
    OPEN = auto()
    CLOSE_SENT = auto()


class Step(Enum):
    """The steps: a method of the handshake, or an opening or close with its direction."""

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
    """Instead of OPEN_OK, in versions that have it."""
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
"""The reply codes for steps that are not permitted; all others get 503."""


class Lifecycle(StateMachine[S, Step]):
    """The state of a connection or channel, with its table; see ``StateMachine``.

    ``receive`` raises ``ReplyError``.
    """

    __slots__ = ()

    LOST: ClassVar[Enum] = Step.LOST

    def fault(self, step: Step, description: str, /) -> ReplyError:
        return ReplyError(REACTIONS.get((self.state, step), ReplyCode091.COMMAND_INVALID), description)
