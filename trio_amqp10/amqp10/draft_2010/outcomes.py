"""Translation of errors, outcomes and transfer states (Book IV, 3).

The draft has one state, with an outcome, a count of octets and a transaction in it; the final standard has a type for
each.
"""

from __future__ import annotations

from typing import Any, Final

from trio_amqp10.amqp10.spec import messaging as final
from trio_amqp10.amqp10.spec import transport as final_transport
from trio_amqp10.amqp10.spec.transactions import Declared, TransactionalState
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.core.errors import Condition

from .protocol_rules import DraftCondition, invalid_field
from .spec import messaging as draft
from .spec import transport as draft_transport

_TO_DRAFT: Final[dict[str, str]] = {
    Condition.WINDOW_VIOLATION.value: DraftCondition.UNSETTLED_LIMIT_EXCEEDED.value,
}
_TO_FINAL: Final = {there: here for here, there in _TO_DRAFT.items()}


def draft_error(error: final_transport.Error | None) -> draft_transport.Error | None:
    """Return an error in the draft (8.15)."""
    if error is None:
        return None
    condition = Symbol(_TO_DRAFT.get(error.condition, error.condition))
    return draft_transport.Error(condition=condition, description=error.description, info=error.info)


def final_error(error: draft_transport.Error | None) -> final_transport.Error | None:
    """Return an error in the final standard (2.8.14)."""
    if error is None:
        return None
    condition = Symbol(_TO_FINAL.get(error.condition, error.condition))
    return final_transport.Error(condition=condition, description=error.description, info=error.info)


def draft_outcome(outcome: Any) -> Any:
    """Return an outcome in the draft; an unknown outcome is returned unchanged."""
    match outcome:
        case final.Accepted():
            return draft.Accepted()
        case final.Released():
            return draft.Released()
        case final.Rejected():
            return draft.Rejected(error=draft_error(outcome.error))
        case final.Modified():
            return draft.Modified(
                delivery_failed=outcome.delivery_failed,
                deliver_elsewhere=outcome.undeliverable_here,
                message_attrs=outcome.message_annotations,
            )
        case _:
            return outcome


def bare_outcome(outcome: Any) -> Any:
    """Return an outcome of the draft without attributes and details.

    Of an error, only the condition is kept.
    """
    if isinstance(outcome, draft.Modified):
        return draft.Modified(
            delivery_failed=outcome.delivery_failed, deliver_elsewhere=outcome.deliver_elsewhere
        )
    error = getattr(outcome, "error", None)
    return draft.Rejected(error=error and draft_transport.Error(condition=error.condition))


def final_outcome(outcome: Any) -> Any:
    """Return an outcome in the final standard.

    A ``modified`` loses its attributes for this hop, for which the final standard has no place.
    """
    match outcome:
        case draft.Accepted():
            return final.Accepted()
        case draft.Released():
            return final.Released()
        case draft.Rejected():
            return final.Rejected(error=final_error(outcome.error))
        case draft.Modified():
            return final.Modified(
                delivery_failed=outcome.delivery_failed,
                undeliverable_here=outcome.deliver_elsewhere,
                message_annotations=outcome.message_attrs,
            )
        case _:
            return outcome


def draft_state(state: Any) -> Any:
    """Return a delivery state as a transfer state; an unknown state is unchanged.

    Octets of a section count as octets of the message: both peers of this package count from the beginning of the message.
    The transaction of a ``declared`` is sent with ``accepted`` (D 2081).
    """
    match state:
        case None:
            return None
        case final.Received():
            return draft.TransferState(bytes_transferred=state.section_offset)
        case TransactionalState():
            return draft.TransferState(outcome=draft_outcome(state.outcome), txn_id=state.txn_id)
        case Declared():
            return draft.TransferState(outcome=draft.Accepted(), txn_id=state.txn_id)
        case final.Accepted() | final.Released() | final.Rejected() | final.Modified():
            return draft.TransferState(outcome=draft_outcome(state))
        case _:
            return state


def final_state(state: Any, *, declares: bool = False) -> Any:
    """Return a transfer state as the delivery state of the same meaning.

    Args:
        state: the state in the draft.
        declares: whether it belongs to a message that declares a transaction.

    Raises:
        RemoteProtocolError: ``amqp:invalid-field``: the id of a transaction is not binary.
    """
    if not isinstance(state, draft.TransferState):
        return state
    if state.txn_id is not None:
        if not isinstance(state.txn_id, bytes):
            raise invalid_field(f"txn-id {state.txn_id!r}: expected binary", "2081")
        if declares and isinstance(state.outcome, draft.Accepted):
            return Declared(txn_id=state.txn_id)
        return TransactionalState(txn_id=state.txn_id, outcome=final_outcome(state.outcome))
    if state.outcome is not None:
        return final_outcome(state.outcome)
    if state.bytes_transferred is not None:
        return final.Received(section_number=0, section_offset=state.bytes_transferred)
    return None
