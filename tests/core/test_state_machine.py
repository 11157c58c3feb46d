"""A machine goes where its table allows it, and stays where it is otherwise."""

from __future__ import annotations

from enum import Enum, auto

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.core.state_machine import StateMachine


class Door(Enum):
    """The states of a door."""

    SHUT = auto()
    OPEN = auto()
    GONE = auto()


class Push(Enum):
    """Its steps."""

    OPEN = auto()
    SHUT = auto()
    BURN = auto()


TABLE: dict[Door, dict[Push, Door]] = {
    Door.SHUT: {Push.OPEN: Door.OPEN},
    Door.OPEN: {Push.SHUT: Door.SHUT},
    Door.GONE: {},
}


class Machine(StateMachine[Door, Push]):
    LOST = Push.BURN

    def fault(self, step: Push, description: str, /) -> RemoteProtocolError:
        return RemoteProtocolError(f"{step.name}: {description}")


def machine() -> Machine:
    return Machine(TABLE, Door.SHUT, Door.GONE)


@given(st.lists(st.sampled_from(Push)))
def test_machine_takes_the_steps_of_its_table_and_no_others(steps: list[Push]) -> None:
    door = machine()
    state = Door.SHUT
    for step in steps:
        allowed = step is Push.BURN or step in TABLE[state]
        assert door.permits(step) == allowed
        if allowed:
            door.step(step)
            state = Door.GONE if step is Push.BURN else TABLE[state][step]
        else:
            with pytest.raises(LocalProtocolError):
                door.step(step)
        assert door.state is state
        assert door.over == (state is Door.GONE)


def test_step_of_the_peer_that_the_table_lacks_is_the_error_of_the_protocol() -> None:
    door = machine()
    with pytest.raises(RemoteProtocolError, match="SHUT: shut in state SHUT"):
        door.receive(Push.SHUT)
    assert door.state is Door.SHUT
    door.receive(Push.OPEN)
    assert door.state is Door.OPEN
