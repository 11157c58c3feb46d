"""Attempts to dial in a row: how long, how often, and what is logged of them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
import trio

from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.net.backoff import Attempts, Backoff
from trio_amqp10.net.errors import ConnectionClosedError
from trio_amqp10.net.redial import AttemptsUsedUpError, Redial

if TYPE_CHECKING:
    from trio.testing import MockClock

LOG = logging.getLogger("trio_amqp10.test")


class Dial:
    """Fails ``failures`` times, then succeeds; the times of all attempts."""

    def __init__(self, failures: int, failure: Exception | None = None) -> None:
        self.left = failures
        self.failure = failure or OSError("nobody there")
        self.times: list[float] = []
        self.seen: list[Exception] = []
        self.cleaned: list[Exception] = []

    async def __call__(self) -> str:
        await trio.lowlevel.checkpoint()
        self.times.append(trio.current_time())
        if self.left:
            self.left -= 1
            raise self.failure
        return "reached"

    async def clean_up(self, failure: Exception) -> None:
        self.cleaned.append(failure)

    def redial(self, backoff: Backoff | None, final: type[Exception] = LocalProtocolError) -> Redial:
        return Redial(
            backoff,
            is_final=lambda failure: isinstance(failure, final),
            log=LOG,
            failed=self.seen.append,
        )


EVEN = Backoff(initial=1, factor=1, maximum=1, jitter=False)


async def test_first_dial_pauses_after_each_round_of_its_places(autojump_clock: MockClock) -> None:
    dial = Dial(5)
    assert await dial.redial(EVEN).first(dial, 2) == "reached"
    assert [time - dial.times[0] for time in dial.times] == [0, 0, 1, 1, 2, 2]
    assert len(dial.seen) == 5


@pytest.mark.parametrize("failure", [OSError("no"), ConnectionClosedError("no")])
async def test_first_dial_tries_each_place_once_without_a_backoff(failure: Exception) -> None:
    dial = Dial(9, failure)
    with pytest.raises(type(failure)):
        await dial.redial(None).first(dial, 3)
    assert len(dial.times) == 3


async def test_first_dial_raises_at_once_what_is_final() -> None:
    for backoff, failure in ((EVEN, LocalProtocolError("no")), (None, RemoteProtocolError("no"))):
        dial = Dial(9, failure)
        with pytest.raises(type(failure)):
            await dial.redial(backoff).first(dial, 3)
        assert len(dial.times) == 1


async def test_redial_pauses_before_each_attempt_and_cleans_up_after_it(autojump_clock: MockClock) -> None:
    dial = Dial(2, ZeroDivisionError())
    began = trio.current_time()
    assert await dial.redial(EVEN).again(dial, OSError("lost"), dial.clean_up) == "reached"
    assert [time - began for time in dial.times] == [1, 2, 3]
    assert dial.cleaned == dial.seen == [dial.failure] * 2


async def test_redial_raises_what_is_final_after_it_cleaned_up(autojump_clock: MockClock) -> None:
    dial = Dial(9, LocalProtocolError("no"))
    with pytest.raises(LocalProtocolError):
        await dial.redial(EVEN).again(dial, OSError("lost"), dial.clean_up)
    assert (len(dial.cleaned), dial.seen) == (1, [])


async def test_redial_says_what_the_last_attempt_failed_with(autojump_clock: MockClock) -> None:
    dial = Dial(9)
    redial = dial.redial(Backoff(attempts=3))
    with pytest.raises(AttemptsUsedUpError) as caught:
        await redial.again(dial, OSError("lost"), dial.clean_up)
    assert caught.value.__cause__ is dial.failure
    assert str(redial.attempts) == "3 attempts"


async def test_redial_begins_no_attempt_after_it_gave_up(autojump_clock: MockClock) -> None:
    dial = Dial(99)
    began = trio.current_time()
    backoff = Backoff(initial=1, factor=2, maximum=8, jitter=False, give_up_after=20)
    with pytest.raises(AttemptsUsedUpError):
        await dial.redial(backoff).again(dial, OSError("lost"), dial.clean_up)
    assert [time - began for time in dial.times] == [1, 3, 7, 15]  # the next one would be at 23


async def test_first_dial_gives_up_after_its_time(autojump_clock: MockClock) -> None:
    dial = Dial(99)
    with pytest.raises(OSError, match="nobody"):
        await dial.redial(Backoff(initial=1, factor=1, jitter=False, give_up_after=3)).first(dial, 1)
    assert len(dial.times) == 4


async def test_failures_are_warned_of_less_and_less(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, LOG.name)
    dial = Dial(20)
    await dial.redial(EVEN).first(dial, 1)
    warned = [n for n, each in enumerate(caplog.records, 1) if each.levelno == logging.WARNING]
    assert warned == [1, 2, 4, 8, 16]
    assert len(caplog.records) == 20
    assert caplog.messages[0] == "dialling has failed 1 time, and is tried again in 1 s: nobody there"


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
