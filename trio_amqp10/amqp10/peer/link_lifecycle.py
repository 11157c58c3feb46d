"""The phases of a program's link, and the changes between them.

The engine's end of a link is one attachment (``engine.states``). The link of a program may have several
attachments: it is detached and resumed, or its connection attaches it again. Each ``Link`` has one
``LinkPhase``; only ``Link.turn`` changes it, by ``PHASE_CHANGES``.

================  =================================================  =========================================
phase             meaning                                            a call
================  =================================================  =========================================
``OPENING``       the attach is written, the program does not have   waits
                  the link yet
``REOPENING``     as ``OPENING``, but the transport was lost: the    waits
                  connection attaches it again
``OPEN``          both ends are attached                             succeeds
``RECOVERING``    lost, or ended by an error that may pass: the      waits
                  connection attaches it again
``RETURNING``     the attach is written again                        waits
``CLOSED``        closed or detached by this end                     raises ``trio.ClosedResourceError``
``REFUSED``       the peer did not attach, or detached with an       raises ``LinkRefusedError``
                  error before the link was open
``UNANSWERED``    its session or connection ended before it was      raises the error of the session or
                  open                                               connection
``DETACHED``      the peer ended it                                  raises ``LinkDetachedError``
``LOST``          its session or connection ended                    raises the error of the session or
                                                                     connection
``FAILED``        it could not be attached again                     raises the reason
================  =================================================  =========================================

The end of a session or connection has no event for each of its links. The engine's end is then ``GONE``, and
``Link.life`` notes it when the link is used next. So the event of a detach that was read together with the loss
may come after the loss was noted. It gives a better reason: ``LOST`` changes to ``DETACHED``, and
``UNANSWERED`` to ``REFUSED``.

Knows no link and no connection.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final


class LinkPhase(Enum):
    """The phases of a link; the module describes each."""

    OPENING = auto()
    REOPENING = auto()
    OPEN = auto()
    RECOVERING = auto()
    RETURNING = auto()
    CLOSED = auto()
    REFUSED = auto()
    UNANSWERED = auto()
    DETACHED = auto()
    LOST = auto()
    FAILED = auto()


class PhaseChange(Enum):
    """The events of a link that may change its phase.

    The program gets the link (``OPEN``), the attach is written again (``ATTACH``), or the link ends in one of
    five ways.
    """

    OPEN = auto()
    ATTACH = auto()
    SUSPEND = auto()
    DETACH = auto()
    LOSE = auto()
    STOP_RECOVERY = auto()
    CLOSE = auto()


_L, _T = LinkPhase, PhaseChange

_GIVEN_UP: Final = {_T.STOP_RECOVERY: _L.FAILED, _T.CLOSE: _L.CLOSED}
_UNOPENED: Final = {_T.DETACH: _L.REFUSED, _T.LOSE: _L.UNANSWERED, **_GIVEN_UP}
_OPENED: Final = {_T.DETACH: _L.DETACHED, _T.LOSE: _L.LOST, **_GIVEN_UP}

PHASE_CHANGES: Final[dict[LinkPhase, dict[PhaseChange, LinkPhase]]] = {
    _L.OPENING: {_T.OPEN: _L.OPEN, _T.SUSPEND: _L.REOPENING, **_UNOPENED},
    _L.REOPENING: {_T.ATTACH: _L.OPENING, **_UNOPENED},
    _L.OPEN: {_T.ATTACH: _L.RETURNING, _T.SUSPEND: _L.RECOVERING, **_OPENED},
    _L.RECOVERING: {_T.ATTACH: _L.RETURNING, **_OPENED},
    _L.RETURNING: {_T.OPEN: _L.OPEN, _T.SUSPEND: _L.RECOVERING, **_OPENED},
    _L.UNANSWERED: {_T.DETACH: _L.REFUSED, _T.CLOSE: _L.CLOSED},
    _L.LOST: {_T.ATTACH: _L.RETURNING, _T.DETACH: _L.DETACHED, _T.CLOSE: _L.CLOSED},
    _L.CLOSED: {_T.ATTACH: _L.RETURNING},
    _L.REFUSED: {_T.CLOSE: _L.CLOSED},
    _L.DETACHED: {_T.ATTACH: _L.RETURNING, _T.CLOSE: _L.CLOSED},
    _L.FAILED: {_T.ATTACH: _L.RETURNING, _T.CLOSE: _L.CLOSED},
}
"""The next phase by phase and change; a change that is not listed has no effect."""

NEW: Final = frozenset({LinkPhase.OPENING, LinkPhase.REOPENING})
"""Phases before the program has the link: an end of the link is a refusal."""

CARRIED: Final = frozenset({LinkPhase.OPENING, LinkPhase.OPEN, LinkPhase.RETURNING})
"""Phases with an attached end in the engine, or one that is being attached."""

AWAITED: Final = frozenset({LinkPhase.REOPENING, LinkPhase.RECOVERING})
"""Phases of a link that the connection will attach again."""

ENDED: Final = frozenset(PHASE_CHANGES) - CARRIED - AWAITED
"""Phases of a link that is over, unless the program resumes it."""
