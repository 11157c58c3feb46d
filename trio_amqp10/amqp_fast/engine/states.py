"""States of connections, channels and handles (RFC 006, 3.2.10, 3.3.9, 3.5.17).

The rules
---------

A ``Lifecycle`` has a ``state``, which only ``Lifecycle.step`` assigns. The legal transitions are data: a table from a state and a
step to the next state. In the negotiation the two ends take turns, so one table serves both: each state is named after the step
that is expected next. ``LOST`` is the end of the transport, or of the connection or channel around a channel or handle: it is
always legal and always final.

``EXPECTED`` is the three lists of the document: for each role, when a command of the peer is expected, and what is closed if it
comes at another time. A command that is never expected closes the connection with 503; so does a step of the negotiation that is
not in the table.

Both ends may close at the same time: each close is then the answer to the other.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeVar

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.wire.faults import Level, ReplyError
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.reply_codes import ReplyCodeRfc011
from trio_amqp10.core.state_machine import StateMachine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp_fast.wire.commands import Record

S = TypeVar("S", bound=Enum)


class ConnectionState(Enum):
    """The state of a connection; during negotiation the step that is expected next."""

    AWAIT_INITIATION = auto()
    AWAIT_CHALLENGE = auto()
    AWAIT_RESPONSE = auto()
    AWAIT_TUNE = auto()
    """The server's tune, or another challenge, is expected."""
    AWAIT_OPEN = auto()
    """The client's open is expected, or its tune before that."""
    OPENING = auto()
    """The client has sent its open, and the server has not decided.

    The client may already send further commands.
    """
    OPEN = auto()
    REFUSING = auto()
    """A server pauses before it ends a connection that was not opened (3.2.12)."""
    CLOSE_SENT = auto()
    CLOSED = auto()


class ChannelState(Enum):
    """The state of a channel, which is created CLOSED and ends CLOSED."""

    CLOSED = auto()
    OPEN = auto()
    CLOSE_SENT = auto()
    CLOSE_RECEIVED = auto()


class HandleState(Enum):
    """The state of a handle, which is created CLOSED and ends CLOSED."""

    CLOSED = auto()
    OPEN = auto()
    CLOSE_SENT = auto()
    CLOSE_RECEIVED = auto()


class Step(Enum):
    """A transition: a command of the negotiation, a decision, an open or a close."""

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

_CLOSES: Final = {_S.SEND_CLOSE: _C.CLOSE_SENT, _S.RECV_CLOSE: _C.CLOSED}
_UNOPENED: Final = {_S.REFUSE: _C.REFUSING, **_CLOSES}

CONNECTION: Final[Mapping[ConnectionState, Mapping[Step, ConnectionState]]] = {
    _C.AWAIT_INITIATION: {_S.INITIATION: _C.AWAIT_CHALLENGE, _S.REFUSE: _C.REFUSING},
    _C.AWAIT_CHALLENGE: {_S.CHALLENGE: _C.AWAIT_RESPONSE, **_UNOPENED},
    _C.AWAIT_RESPONSE: {_S.RESPONSE: _C.AWAIT_TUNE, **_UNOPENED},
    _C.AWAIT_TUNE: {_S.CHALLENGE: _C.AWAIT_RESPONSE, _S.TUNE: _C.AWAIT_OPEN, **_UNOPENED},
    _C.AWAIT_OPEN: {_S.TUNE: _C.AWAIT_OPEN, _S.OPEN: _C.OPENING, **_UNOPENED},
    _C.OPENING: {_S.ACCEPT: _C.OPEN, **_CLOSES},
    _C.OPEN: _CLOSES,
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
        when: when the command is expected.
        reaction: the reaction to the expected command, in a few words.
        level: what is closed if the command comes at another time.
        code: the reply code of that close.
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


_CLIENT: Final[Mapping[type[Record], Expectation]] = {
    spec.ConnectionChallenge: Expectation(When.IN_TURN, "connection response"),
    spec.ConnectionTune: Expectation(When.IN_TURN, "connection tune, connection open"),
    spec.ConnectionPing: Expectation(When.ALWAYS, "connection ping if asked"),
    spec.ConnectionReply: Expectation(When.IN_TURN, "none"),
    spec.ConnectionClose: Expectation(When.ALWAYS, "connection close"),
    spec.ChannelReply: _on_channel("none"),
    spec.ChannelClose: _on_channel("channel close"),
    spec.HandleCreated: _on_handle("the name is kept"),
    spec.HandleNotify: _on_handle("channel ack, now or later"),
    spec.HandleIndex: _on_handle("none"),
    spec.HandlePrepare: _on_handle("handle ready"),
    spec.HandleReady: _on_handle("handle send"),
    spec.HandleReply: _on_handle("none"),
    spec.HandleClose: _on_handle("handle close"),
}

_SERVER: Final[Mapping[type[Record], Expectation]] = {
    spec.ConnectionResponse: Expectation(When.IN_TURN, "connection tune or challenge"),
    spec.ConnectionTune: Expectation(When.IN_TURN, "none"),
    spec.ConnectionPing: Expectation(When.ALWAYS, "connection ping if asked"),
    spec.ConnectionOpen: Expectation(When.IN_TURN, "connection reply if asked"),
    spec.ConnectionClose: Expectation(When.ALWAYS, "connection close"),
    spec.ChannelOpen: Expectation(When.CHANNEL_CLOSED, "channel reply if asked", Level.CHANNEL),
    spec.ChannelAck: _on_channel("channel reply if asked"),
    spec.ChannelCommit: _on_channel("channel reply if asked"),
    spec.ChannelRollback: _on_channel("channel reply if asked"),
    spec.ChannelClose: _on_channel("channel close"),
    spec.HandleOpen: Expectation(When.HANDLE_CLOSED, "handle reply if asked", Level.HANDLE),
    spec.HandleSend: _on_handle("handle reply if asked"),
    spec.HandleConsume: _on_handle("handle reply if asked"),
    spec.HandleCancel: _on_handle("handle reply if asked"),
    spec.HandleFlow: _on_handle("handle reply if asked"),
    spec.HandleUnget: _on_handle("handle reply if asked"),
    spec.HandleQuery: _on_handle("handle index"),
    spec.HandleBrowse: _on_handle("handle notify, not delivered"),
    spec.HandlePrepare: _on_handle("handle ready"),
    spec.HandleReady: _on_handle("handle notify, recovery"),
    spec.HandleClose: _on_handle("handle close"),
}

EXPECTED: Final[Mapping[EndpointRole, Mapping[type[Record], Expectation]]] = {
    role: {plan.made: rules.get(plan.made, _NEVER) for plan in spec.COMMANDS}
    for role, rules in ((EndpointRole.CLIENT, _CLIENT), (EndpointRole.SERVER, _SERVER))
}
"""The expectations, by the role of the end that receives the command."""


class Lifecycle(StateMachine[S, Step]):
    """The state of a connection, channel or handle; see ``StateMachine``.

    ``receive`` raises ``ReplyError`` for an illegal step.
    """

    __slots__ = ()

    LOST: ClassVar[Enum] = Step.LOST

    def fault(self, _step: Step, description: str, /) -> ReplyError:
        return ReplyError(ReplyCodeRfc011.COMMAND_NOT_VALID, description)
