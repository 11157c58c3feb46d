"""Idle time-outs both ways, by a clock that is moved by hand (2.4.5)."""

from __future__ import annotations

import math

import pytest

from trio_amqp10.amqp10.engine.idle_timeout import IdleTimeout


@pytest.mark.parametrize(
    ("threshold", "milliseconds"),
    [(None, None), (60.0, 30_000), (0.001, 1), (1e7, 0xFFFFFFFF), (math.inf, 0xFFFFFFFF)],
)
def test_idle_announces_half_of_its_threshold_as_a_uint(
    threshold: float | None, milliseconds: int | None
) -> None:
    assert IdleTimeout(threshold).announced == milliseconds


@pytest.mark.parametrize("milliseconds", [None, 0])
def test_idle_has_no_deadline_when_neither_end_minds_silence(milliseconds: int | None) -> None:
    idle = IdleTimeout(None)
    idle.last_received = 5.0
    idle.peer_wants(milliseconds, 5.0)
    assert idle.deadline() is None
    assert idle.silent_for(1e9) is None
    assert idle.heartbeat_due(1e9, wrote=False) is None


def test_idle_counts_silence_from_the_last_octets() -> None:
    idle = IdleTimeout(10.0)
    assert idle.deadline() is None
    assert idle.silent_for(100.0) is None  # nothing was received yet: the handshake has deadlines of its own
    idle.last_received = 100.0
    assert idle.deadline() == 110.0
    assert idle.silent_for(109.9) is None
    assert idle.silent_for(110.0) == 10.0


def test_idle_calls_for_a_heartbeat_when_nothing_was_written_in_a_quarter() -> None:
    idle = IdleTimeout(None)
    idle.peer_wants(8_000, 100.0)
    assert idle.deadline() == 102.0
    assert idle.heartbeat_due(101.9, wrote=False) is None
    assert idle.heartbeat_due(102.0, wrote=True) is False
    assert idle.deadline() == 104.0
    assert idle.heartbeat_due(104.0, wrote=False) is True
    assert idle.deadline() == 106.0


def test_idle_finds_silence_of_its_own_when_a_look_comes_much_too_late() -> None:
    idle = IdleTimeout(None)
    assert idle.exceeded(1e9, wrote=False) is None
    idle.peer_wants(8_000, 100.0)
    assert idle.exceeded(115.9, wrote=False) is None
    assert idle.exceeded(116.0, wrote=False) == 16.0
    assert idle.exceeded(116.0, wrote=True) is None
    assert idle.heartbeat_due(116.0, wrote=True) is False
    assert idle.exceeded(131.9, wrote=False) is None


def test_idle_looks_at_the_earlier_of_its_two_deadlines() -> None:
    idle = IdleTimeout(1.0)
    idle.last_received = 100.0
    idle.peer_wants(8_000, 100.0)
    assert idle.deadline() == 101.0
    idle.last_received = 102.0
    assert idle.deadline() == 102.0
