"""Pauses between attempts, and when a row of attempts is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.backoff import Attempts, Backoff

from .failing_dial import Dial

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_first_dial_gives_up_after_its_time(autojump_clock: MockClock) -> None:
    dial = Dial(99)
    with pytest.raises(OSError, match="nobody"):
        await dial.redial(Backoff(initial=1, factor=1, jitter=False, give_up_after=3)).first(dial, 1)
    assert len(dial.times) == 4


def test_attempts_end_their_row_when_success_has_lasted() -> None:
    attempts = Attempts(Backoff(initial=1, factor=2, maximum=60, jitter=False))
    assert [attempts.next_pause(0), attempts.next_pause(1)] == [1, 2]
    assert not attempts.lasted(100)
    attempts.reached(3)
    assert not attempts.lasted(5)
    assert attempts.lasted(5.1)
    attempts.end()
    assert attempts.next_pause(10) == 1
    assert str(attempts) == "1 attempt"


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_backoff_refuses_a_time_that_is_none(seconds: float) -> None:
    with pytest.raises(LocalProtocolError, match="give_up_after"):
        Backoff(give_up_after=seconds)
