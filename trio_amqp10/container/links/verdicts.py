"""Verdicts: what an outcome of AMQP 1.0 means to the lease on a message (3.4).

Knows outcomes and leases; knows no delivery.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from trio_amqp10.errors import AmqpError
from trio_amqp10.spec.messaging import Accepted, Modified, Rejected

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.container.nodes.node import Lease

__all__ = ["accept_sent", "permits", "return_unsent", "tell"]

_log = logging.getLogger("trio_amqp10.container")


def permits(source: Any, outcome: Any) -> bool:
    """Whether a source has this outcome; one without a list, or with an empty one, has all (3.5.3)."""
    names: Any = getattr(source, "outcomes", None)
    return not names or f"amqp:{type(outcome).__name__.lower()}:list" in names


def return_unsent(lease: Lease) -> None:
    """Give a message back that was not sent. What its node raises is logged: others may wait to be given back too."""
    _answer(lease.released)


def accept_sent(lease: Lease) -> None:
    """A message was sent settled, so that it is gone. What its node raises is logged: the link is not at fault."""
    _answer(lease.accepted)


def _answer(call: Callable[[], object]) -> None:
    try:
        call()
    except AmqpError as refusal:
        _log.debug("%r: %s", call, refusal)
    except Exception:
        _log.exception("%r failed", call)


def tell(lease: Lease, outcome: Any) -> None:
    """Call the one method of the lease that says this; what is none of the four gives the message back."""
    if isinstance(outcome, Accepted):
        lease.accepted()
    elif isinstance(outcome, Rejected):
        error = outcome.error
        if error is None:
            lease.rejected(None, None)
        else:
            lease.rejected(str(error.condition), error.description, error.info)
    elif isinstance(outcome, Modified):
        lease.modified(
            failed=bool(outcome.delivery_failed),
            undeliverable_here=bool(outcome.undeliverable_here),
            annotations=outcome.message_annotations,
        )
    else:
        lease.released()
