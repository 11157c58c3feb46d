"""Verdicts: what an outcome of AMQP 1.0 means to the lease on a message (3.4).

Knows outcomes and leases; knows no delivery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.spec.messaging import Accepted, Modified, Rejected

if TYPE_CHECKING:
    from trio_amqp10.container.nodes.node import Lease

__all__ = ["tell"]


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
