"""The tables of steps: what is not in them is refused with its code, and every state leads to the end."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10.amqp091.engine.states import (
    CHANNEL,
    CONNECTION,
    ChannelState,
    ConnectionState,
    Lifecycle,
    Step,
)
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

BOTH: list[tuple[Mapping[Any, Mapping[Step, Any]], Any]] = [
    (CONNECTION, ConnectionState.CLOSED),
    (CHANNEL, ChannelState.CLOSED),
]
AGAIN = {
    (ConnectionState.OPEN, Step.START_OK),
    (ConnectionState.OPEN, Step.TUNE_OK),
    (ConnectionState.OPEN, Step.OPEN),
    (ChannelState.OPEN, Step.OPEN),
}
"""What was said before."""
CASES = [(table, end, state, step) for table, end in BOTH for state, step in product(table, Step)]


@pytest.mark.parametrize(("table", "end", "state", "step"), CASES)
def test_step_is_taken_as_the_table_says_or_refused_with_its_code(
    table: Mapping[Any, Mapping[Step, Any]], end: Any, state: Any, step: Step
) -> None:
    ours, theirs = (Lifecycle(table, state, end) for _ in range(2))
    permitted = step is Step.LOST or step in table[state]
    assert ours.permits(step) == permitted
    if permitted:
        ours.step(step)
        theirs.receive(step)
        assert ours.state == theirs.state == (end if step is Step.LOST else table[state][step])
        return
    with pytest.raises(LocalProtocolError, match=state.name):
        ours.step(step)
    with pytest.raises(ReplyError) as caught:
        theirs.receive(step)
    assert caught.value.code == (504 if (state, step) in AGAIN else 503)
    assert ours.state is theirs.state is state


@pytest.mark.parametrize(("table", "end"), BOTH, ids=["connection", "channel"])
def test_every_state_can_be_closed(table: Mapping[Any, Mapping[Step, Any]], end: Any) -> None:
    closable = {end}
    for _ in table:
        closable |= {state for state, steps in table.items() if closable & set(steps.values())}
    assert closable == set(table)
