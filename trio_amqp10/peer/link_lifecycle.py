"""Every state of a program's link, and every turn between them.

The engine's end of a link is one attachment (``engine.states``). The link of a program may have several: it is detached and
resumed, or its connection attaches it again. Each ``Link`` has one ``LinkPhase``, and ``Link.turn`` alone changes it, by ``PHASE_CHANGES``.

================  =================================================  =========================================
state             what holds                                         what a call raises
================  =================================================  =========================================
``OPENING``       the attach is written, nobody has the link yet     it waits
``REOPENING``     the same, and the transport was lost: the          it waits
                  connection attaches it again
``OPEN``          both ends are attached                             nothing
``RECOVERING``    lost, or ended by an error that may pass: the      it waits
                  connection attaches it again
``RETURNING``     the attach is written again                        it waits
``CLOSED``        closed or detached here                            ``trio.ClosedResourceError``
``REFUSED``       the peer did not attach, or detached by an error   ``LinkRefusedError``
                  before it was open
``UNANSWERED``    what carried it went before it was open            what ended the session or connection
``DETACHED``      the peer ended it                                  ``LinkDetachedError``
``LOST``          what carried it is gone                            what ended the session or connection
``FAILED``        it could not be attached again                     why not
================  =================================================  =========================================

The loss of what carries a link has no event of its own: the engine's end is ``GONE``, which is noted when the link is looked at
(``Link.life``). So a detach that was read in the same go may come later, and says more.

Knows no link and no connection.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

__all__ = ["AWAITED", "CARRIED", "ENDED", "NEW", "PHASE_CHANGES", "LinkPhase", "PhaseChange"]


class LinkPhase(Enum):
    """The states."""

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
    """What can happen to a link: the program has it, it is attached again, or it ends in one of five ways."""

    OPEN = auto()
    ATTACH = auto()
    SUSPEND = auto()
    DETACH = auto()
    LOSE = auto()
    STOP_RECOVERY = auto()
    CLOSE = auto()


_L, _T = LinkPhase, PhaseChange

PHASE_CHANGES: Final[dict[LinkPhase, dict[PhaseChange, LinkPhase]]] = {
    _L.OPENING: {
        _T.OPEN: _L.OPEN,
        _T.SUSPEND: _L.REOPENING,
        _T.DETACH: _L.REFUSED,
        _T.LOSE: _L.UNANSWERED,
        _T.STOP_RECOVERY: _L.FAILED,
        _T.CLOSE: _L.CLOSED,
    },
    _L.REOPENING: {
        _T.ATTACH: _L.OPENING,
        _T.DETACH: _L.REFUSED,
        _T.LOSE: _L.UNANSWERED,
        _T.STOP_RECOVERY: _L.FAILED,
        _T.CLOSE: _L.CLOSED,
    },
    _L.OPEN: {
        _T.ATTACH: _L.RETURNING,
        _T.SUSPEND: _L.RECOVERING,
        _T.DETACH: _L.DETACHED,
        _T.LOSE: _L.LOST,
        _T.STOP_RECOVERY: _L.FAILED,
        _T.CLOSE: _L.CLOSED,
    },
    _L.RECOVERING: {
        _T.ATTACH: _L.RETURNING,
        _T.DETACH: _L.DETACHED,
        _T.LOSE: _L.LOST,
        _T.STOP_RECOVERY: _L.FAILED,
        _T.CLOSE: _L.CLOSED,
    },
    _L.RETURNING: {
        _T.OPEN: _L.OPEN,
        _T.SUSPEND: _L.RECOVERING,
        _T.DETACH: _L.DETACHED,
        _T.LOSE: _L.LOST,
        _T.STOP_RECOVERY: _L.FAILED,
        _T.CLOSE: _L.CLOSED,
    },
    _L.UNANSWERED: {_T.DETACH: _L.REFUSED, _T.CLOSE: _L.CLOSED},
    _L.LOST: {_T.ATTACH: _L.RETURNING, _T.DETACH: _L.DETACHED, _T.CLOSE: _L.CLOSED},
    _L.CLOSED: {_T.ATTACH: _L.RETURNING},
    _L.REFUSED: {_T.CLOSE: _L.CLOSED},
    _L.DETACHED: {_T.ATTACH: _L.RETURNING, _T.CLOSE: _L.CLOSED},
    _L.FAILED: {_T.ATTACH: _L.RETURNING, _T.CLOSE: _L.CLOSED},
}
"""By state and turn, the next state. A turn that is not listed for a state changes nothing there."""

NEW: Final = frozenset({LinkPhase.OPENING, LinkPhase.REOPENING})
"""Nobody has the link yet: what ends it now is a refusal."""

CARRIED: Final = frozenset({LinkPhase.OPENING, LinkPhase.OPEN, LinkPhase.RETURNING})
"""The engine's end is attached, or about to be."""

AWAITED: Final = frozenset({LinkPhase.REOPENING, LinkPhase.RECOVERING})
"""The connection is to attach it again."""

ENDED: Final = frozenset(PHASE_CHANGES) - CARRIED - AWAITED
"""The link is over, unless the program resumes it."""
