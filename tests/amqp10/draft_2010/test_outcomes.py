"""Errors, outcomes and delivery states survive a translation both ways."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from trio_amqp10.amqp10.draft_2010.outcomes import (
    draft_error,
    draft_outcome,
    draft_state,
    final_error,
    final_outcome,
    final_state,
)
from trio_amqp10.amqp10.draft_2010.spec import messaging as draft
from trio_amqp10.amqp10.draft_2010.termini import Lifetime, draft_terminus, final_terminus
from trio_amqp10.amqp10.spec import messaging as final
from trio_amqp10.amqp10.spec import transport
from trio_amqp10.amqp10.spec.transactions import Declared, TransactionalState
from trio_amqp10.amqp10.wire.values import Described, Symbol
from trio_amqp10.core.errors import RemoteProtocolError

from .strategies import errors, outcomes, over_the_wire, states


@given(errors)
def test_error_comes_back(error: transport.Error) -> None:
    assert final_error(over_the_wire(draft_error(error))) == error


def test_no_error_is_none() -> None:
    assert draft_error(None) is final_error(None) is None


def test_window_violation_has_a_name_of_its_own() -> None:
    error = draft_error(transport.Error(condition=Symbol("amqp:session:window-violation")))
    assert error is not None
    assert error.condition == "amqp:session:unsettled-limit-exceeded"


@given(outcomes)
def test_outcome_comes_back(outcome: Any) -> None:
    assert final_outcome(over_the_wire(draft_outcome(outcome))) == outcome


@given(states)
def test_state_comes_back(state: Any) -> None:
    made = draft_state(state)
    assert (state is None) is (made is None)
    if made is not None:
        assert isinstance(made, draft.TransferState)
        assert final_state(over_the_wire(made)) == state


def test_unknown_states_and_outcomes_stay_as_they_are() -> None:
    strange = Described("x:y", [])
    assert draft_state(strange) is final_state(strange) is strange
    assert draft_outcome(strange) is final_outcome(strange) is strange
    assert draft_terminus(strange) is strange
    assert final_terminus(strange, Lifetime(False, Symbol("session"), 0)) is strange
    assert final_state(draft.TransferState()) is None


def test_declared_transaction_comes_with_accepted() -> None:
    state = over_the_wire(draft_state(Declared(txn_id=b"t")))
    assert state == draft.TransferState(outcome=draft.Accepted(), txn_id=b"t")
    assert final_state(state, declares=True) == Declared(txn_id=b"t")
    assert final_state(state) == TransactionalState(txn_id=b"t", outcome=final.Accepted())
    refused = draft.TransferState(outcome=draft.Rejected(), txn_id=b"t")
    assert final_state(refused, declares=True) == TransactionalState(txn_id=b"t", outcome=final.Rejected())


def test_transaction_is_named_by_octets() -> None:
    with pytest.raises(RemoteProtocolError, match="txn-id 'x'") as caught:
        final_state(draft.TransferState(txn_id="x"))
    assert caught.value.condition == "amqp:invalid-field"
