"""Delivery states: which of them are outcomes (3.4)."""

from __future__ import annotations

from typing import Final

from trio_amqp10.amqp10.spec.messaging import Accepted, Modified, Received, Rejected, Released

OUTCOMES: Final = (Accepted, Rejected, Released, Modified)


def is_terminal(state: object) -> bool:
    """Whether no further state may follow (3.4): not for None and ``received``.

    A transactional state is terminal if it has an outcome (4.4.2).
    """
    if state is None or isinstance(state, Received):
        return False
    return getattr(state, "outcome", state) is not None


def is_refusal(state: object) -> bool:
    """Whether the state means that the message was not processed (3.4.3 to 3.4.5)."""
    return isinstance(getattr(state, "outcome", state), (Rejected, Released, Modified))
