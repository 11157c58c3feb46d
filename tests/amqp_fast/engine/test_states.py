"""Steps of a connection are those of its table."""

from __future__ import annotations

import pytest

from trio_amqp10.amqp_fast.engine.states import CONNECTION, ConnectionState, Lifecycle, Step
from trio_amqp10.core.errors import LocalProtocolError


def test_step_that_is_not_in_the_table_is_no_step() -> None:
    life = Lifecycle(CONNECTION, ConnectionState.CLOSED, ConnectionState.CLOSED)
    with pytest.raises(LocalProtocolError, match="open in state CLOSED"):
        life.step(Step.OPEN)
