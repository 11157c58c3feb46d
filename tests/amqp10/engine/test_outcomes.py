"""Which states are the last word on a delivery (3.4)."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp10.engine.delivery import ACCEPTED, RELEASED, is_terminal
from trio_amqp10.amqp10.spec.messaging import Accepted, Modified, Received, Rejected, Released
from trio_amqp10.amqp10.spec.transactions import Declared, TransactionalState
from trio_amqp10.amqp10.wire.values import Described, Symbol


@pytest.mark.parametrize(
    "state",
    [
        ACCEPTED,
        RELEASED,
        Accepted(),
        Rejected(),
        Released(),
        Modified(),
        Declared(txn_id=b"t"),
        TransactionalState(txn_id=b"t", outcome=Accepted()),
        Described(Symbol("vendor:outcome:list"), []),
    ],
)
def test_state_is_terminal_when_it_is_an_outcome(state: Any) -> None:
    assert is_terminal(state)


@pytest.mark.parametrize(
    "state", [None, Received(section_number=0, section_offset=0), TransactionalState(txn_id=b"t")]
)
def test_state_is_not_terminal_when_an_outcome_may_follow(state: Any) -> None:
    assert not is_terminal(state)
