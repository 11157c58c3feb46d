"""The states of connections, sessions and links, and the steps between them.

The rules
---------

Each endpoint is a ``Lifecycle``: it has a ``state``, which only ``Lifecycle.step`` assigns in this package.
Three tables, from a state and a step to the next state, define which steps are possible. A step that a table
does not list is an error of the end that took it: ours (``SEND_...``) raises ``LocalProtocolError`` before
anything was written, the peer's (``RECV_...``) raises ``RemoteProtocolError``.

An endpoint has two halves, our frames and the peer's, and either may come first. So the tables are symmetric,
know no role, and have a path for each kind of crossing:

* Both ends open, begin or attach at once: ``OPEN_SENT``, ``BEGIN_SENT`` and ``ATTACH_SENT`` take the peer's
  frame as the answer, no matter which was written first.
* Both ends close, end or detach at once: ``CLOSE_SENT``, ``END_SENT`` and ``DETACH_SENT`` take the peer's
  frame as the answer, too; neither end answers twice.
* We close an endpoint before the peer has answered it (``OC_PIPE``, ``CLOSE_PIPE``; an ``end`` or ``detach``
  after an unanswered ``begin`` or ``attach``): the late answer has no effect.
* The peer closes an endpoint before *we* have answered it: the endpoint first sends its own open, begin or
  attach, and then its close, end or detach: the standard has no close without an open. In the tables these are two steps of
  this end.

After an error of the peer the endpoint is ``DISCARDING``: the frames that the peer had in flight are dropped
until it confirms (2.4.6, 2.5.5). A link has no such state in the standard; ``DETACH_SENT`` drops frames
likewise (2.6.6), but its transfers still count for the session's window.

``LOST`` is the loss of the transport, or of the enclosing endpoint: always legal, always final.

Sections: 2.4.6 (connection states), 2.5.5 (session states), 2.6.3 to 2.6.6 (links).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import ClassVar, Final

from trio_amqp10.core.errors import LocalProtocolError, Scope
from trio_amqp10.core.peer_rules import CONNECTION_STATE, ENDPOINT_STATE


class ConnectionState(Enum):
    """The states of 2.4.6, with the same names."""

    START = auto()
    HDR_RCVD = auto()
    HDR_SENT = auto()
    HDR_EXCH = auto()
    OPEN_PIPE = auto()
    OC_PIPE = auto()
    OPEN_RCVD = auto()
    OPEN_SENT = auto()
    CLOSE_PIPE = auto()
    OPENED = auto()
    CLOSE_RCVD = auto()
    CLOSE_SENT = auto()
    DISCARDING = auto()
    END = auto()


class SessionState(Enum):
    """The states of 2.5.5, with the same names."""

    UNMAPPED = auto()
    BEGIN_SENT = auto()
    BEGIN_RCVD = auto()
    MAPPED = auto()
    END_SENT = auto()
    END_RCVD = auto()
    DISCARDING = auto()
    ENDED = auto()


class LinkState(Enum):
    """The attaches and detaches so far (2.6.3 to 2.6.6; the standard has no names)."""

    DETACHED = auto()
    ATTACH_SENT = auto()
    ATTACH_RCVD = auto()
    ATTACHED = auto()
    DETACH_SENT = auto()
    DETACH_RCVD = auto()
    GONE = auto()


class Step(Enum):
    """The steps of an endpoint: frames sent, frames received, loss of the transport."""

    SEND_HEADER = auto()
    RECV_HEADER = auto()
    SEND_OPEN = auto()
    RECV_OPEN = auto()
    SEND_CLOSE = auto()
    SEND_ERROR_CLOSE = auto()
    RECV_CLOSE = auto()
    SEND_BEGIN = auto()
    RECV_BEGIN = auto()
    SEND_END = auto()
    SEND_ERROR_END = auto()
    RECV_END = auto()
    SEND_ATTACH = auto()
    RECV_ATTACH = auto()
    SEND_DETACH = auto()
    RECV_DETACH = auto()
    LOST = auto()

    @property
    def is_ours(self) -> bool:
        """Whether this end takes the step."""
        return self.name.startswith("SEND_")

    @property
    def phrase(self) -> str:
        """The step without its direction, for an error message."""
        return self.name.partition("_")[2].lower().replace("_", " ")


_C, _S, _L = ConnectionState, SessionState, LinkState

CONNECTION: Final[dict[Enum, dict[Step, Enum]]] = {
    _C.START: {Step.SEND_HEADER: _C.HDR_SENT, Step.RECV_HEADER: _C.HDR_RCVD},
    _C.HDR_RCVD: {Step.SEND_HEADER: _C.HDR_EXCH},
    _C.HDR_SENT: {Step.RECV_HEADER: _C.HDR_EXCH, Step.SEND_OPEN: _C.OPEN_PIPE},
    _C.HDR_EXCH: {Step.SEND_OPEN: _C.OPEN_SENT, Step.RECV_OPEN: _C.OPEN_RCVD},
    _C.OPEN_PIPE: {
        Step.RECV_HEADER: _C.OPEN_SENT,
        Step.SEND_CLOSE: _C.OC_PIPE,
        Step.SEND_ERROR_CLOSE: _C.DISCARDING,
    },
    _C.OC_PIPE: {Step.RECV_HEADER: _C.CLOSE_PIPE},
    _C.OPEN_RCVD: {Step.SEND_OPEN: _C.OPENED},
    _C.OPEN_SENT: {
        Step.RECV_OPEN: _C.OPENED,
        Step.SEND_CLOSE: _C.CLOSE_PIPE,
        Step.SEND_ERROR_CLOSE: _C.DISCARDING,
    },
    _C.CLOSE_PIPE: {Step.RECV_OPEN: _C.CLOSE_SENT},
    _C.OPENED: {
        Step.SEND_CLOSE: _C.CLOSE_SENT,
        Step.SEND_ERROR_CLOSE: _C.DISCARDING,
        Step.RECV_CLOSE: _C.CLOSE_RCVD,
    },
    _C.CLOSE_RCVD: {Step.SEND_CLOSE: _C.END, Step.SEND_ERROR_CLOSE: _C.END},
    _C.CLOSE_SENT: {Step.RECV_CLOSE: _C.END},
    _C.DISCARDING: {
        Step.RECV_HEADER: _C.DISCARDING,
        Step.RECV_OPEN: _C.DISCARDING,
        Step.RECV_CLOSE: _C.END,
    },
    _C.END: {},
}

SESSION: Final[dict[Enum, dict[Step, Enum]]] = {
    _S.UNMAPPED: {Step.SEND_BEGIN: _S.BEGIN_SENT, Step.RECV_BEGIN: _S.BEGIN_RCVD},
    _S.BEGIN_SENT: {
        Step.RECV_BEGIN: _S.MAPPED,
        Step.SEND_END: _S.END_SENT,
        Step.SEND_ERROR_END: _S.DISCARDING,
    },
    _S.BEGIN_RCVD: {Step.SEND_BEGIN: _S.MAPPED},
    _S.MAPPED: {
        Step.SEND_END: _S.END_SENT,
        Step.SEND_ERROR_END: _S.DISCARDING,
        Step.RECV_END: _S.END_RCVD,
    },
    _S.END_SENT: {Step.RECV_BEGIN: _S.END_SENT, Step.RECV_END: _S.ENDED},
    _S.END_RCVD: {Step.SEND_END: _S.ENDED, Step.SEND_ERROR_END: _S.ENDED},
    _S.DISCARDING: {Step.RECV_BEGIN: _S.DISCARDING, Step.RECV_END: _S.ENDED},
    _S.ENDED: {},
}

LINK: Final[dict[Enum, dict[Step, Enum]]] = {
    _L.DETACHED: {Step.SEND_ATTACH: _L.ATTACH_SENT, Step.RECV_ATTACH: _L.ATTACH_RCVD},
    _L.ATTACH_SENT: {Step.RECV_ATTACH: _L.ATTACHED, Step.SEND_DETACH: _L.DETACH_SENT},
    _L.ATTACH_RCVD: {Step.SEND_ATTACH: _L.ATTACHED},
    _L.ATTACHED: {Step.SEND_DETACH: _L.DETACH_SENT, Step.RECV_DETACH: _L.DETACH_RCVD},
    _L.DETACH_SENT: {Step.RECV_ATTACH: _L.DETACH_SENT, Step.RECV_DETACH: _L.GONE},
    _L.DETACH_RCVD: {Step.SEND_DETACH: _L.GONE},
    _L.GONE: {},
}

_FINAL: Final[dict[str, Enum]] = {"connection": _C.END, "session": _S.ENDED, "link": _L.GONE}


class Lifecycle:
    """An endpoint with a state that only ``step`` changes."""

    __slots__ = ("state",)

    _table: ClassVar[dict[Enum, dict[Step, Enum]]]
    _scope: ClassVar[Scope]

    state: Enum

    def allows(self, step: Step) -> bool:
        """Whether ``step`` is possible in this state."""
        return step in self._table[self.state]

    def step(self, step: Step) -> None:
        """Go to the next state, or raise and stay; see ``require``."""
        if step is Step.LOST:
            self.state = _FINAL[self._scope]
        else:
            self.require(step)
            self.state = self._table[self.state][step]

    def require(self, step: Step) -> None:
        """Raise unless ``step`` is possible in this state.

        Raises:
            LocalProtocolError: a ``SEND_...`` step is not possible.
            RemoteProtocolError: a ``RECV_...`` step is not possible.
        """
        if not self.allows(step):
            if step.is_ours:
                raise LocalProtocolError(f"cannot {step.phrase}: this {self._scope} is {self.state.name}")
            rule = CONNECTION_STATE if self._scope == "connection" else ENDPOINT_STATE
            raise rule.broken(
                f"unexpected {step.phrase}: this {self._scope} is {self.state.name}", scope=self._scope
            )
