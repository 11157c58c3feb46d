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
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.reply_codes import ReplyCode091

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


class Lifecycle(Generic[S]):
    """One state, and the table that it follows.

    Args:
        table: from a state and a step to the next state.
        start: the first state.
        end: the state after LOST.
    """

    __slots__ = ("_end", "_table", "state")

    def __init__(self, table: Mapping[S, Mapping[Step, S]], start: S, end: S) -> None:
        self._table = table
        self._end = end
        self.state = start

    def permits(self, step: Step) -> bool:
        """Whether the table lists the step."""
        return step is Step.LOST or step in self._table[self.state]

    def step(self, step: Step) -> None:
        """Take a step of ours.

        Raises:
            LocalProtocolError: the table does not list it.
        """
        if not self.permits(step):
            raise LocalProtocolError(f"{step.name.lower()} in state {self.state.name}")
        self.state = self._end if step is Step.LOST else self._table[self.state][step]

    def receive(self, step: Step) -> None:
        """Take a step of the peer's.

        Raises:
            ReplyError: the table does not list it.
        """
        if not self.permits(step):
            code = REACTIONS.get((self.state, step), ReplyCode091.COMMAND_INVALID)
            raise ReplyError(code, f"{step.name.lower()} in state {self.state.name}")
        self.step(step)
