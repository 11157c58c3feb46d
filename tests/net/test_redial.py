"""Attempts to dial in a row: their pauses, their number, and their log messages."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
import trio

from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.net.backoff import Backoff
from trio_amqp10.net.errors import ConnectionClosedError
from trio_amqp10.net.redial import AttemptsUsedUpError

from .failing_dial import LOG, Dial

if TYPE_CHECKING:
    from trio.testing import MockClock


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
