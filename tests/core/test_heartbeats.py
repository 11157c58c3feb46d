"""Heartbeats: when one is due, when a peer is silent for too long, and what happens while nothing is read."""

from __future__ import annotations

import pytest

from trio_amqp10.core.heartbeats import Heartbeats


def begun(every: float, patience: float) -> Heartbeats:
    made = Heartbeats()
    made.begin(every, patience, 100.0)
    return made


def test_nothing_is_due_before_the_beginning_and_without_times() -> None:
    for heartbeats in (Heartbeats(), begun(0, 0)):
        assert heartbeats.deadline() is None
        assert not heartbeats.due(1000.0)
        assert not heartbeats.silent(1000.0, True)


def test_heartbeat_is_due_again_after_each_interval() -> None:
    heartbeats = begun(5, 0)
    assert (heartbeats.deadline(), heartbeats.due(104.0), heartbeats.due(105.0)) == (105.0, False, True)
    assert (heartbeats.deadline(), heartbeats.due(109.0), heartbeats.due(112.0)) == (110.0, False, True)
    assert heartbeats.deadline() == 117.0


def test_peer_is_silent_after_the_patience_from_its_last_octet() -> None:
    heartbeats = begun(0, 10)
    heartbeats.note_input(103.0)
    assert heartbeats.deadline() == 113.0
    assert not heartbeats.silent(112.0, True)
    assert heartbeats.silent(113.0, True)


def test_patience_may_begin_later() -> None:
    heartbeats = begun(0, 0)
    heartbeats.patience = 10
    assert heartbeats.deadline() == 110.0
    assert heartbeats.silent(110.0, True)


@pytest.mark.parametrize("every", [0, 5])
def test_next_check_is_never_over_while_nothing_is_read(every: float) -> None:
    heartbeats = begun(every, 10)
    for now in (100.0, 110.0, 200.0):
        heartbeats.suspend()
        assert not heartbeats.silent(now, False)
        heartbeats.due(now)
        deadline = heartbeats.deadline()
        assert deadline is not None
        assert now < deadline <= now + 10


def test_silence_counts_from_the_first_check_after_reading_goes_on() -> None:
    heartbeats = begun(5, 10)
    heartbeats.suspend()
    assert not heartbeats.silent(150.0, True)
    assert not heartbeats.silent(159.0, True)
    assert heartbeats.silent(160.0, True)
