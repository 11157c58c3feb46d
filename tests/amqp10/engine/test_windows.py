"""The six numbers of 2.5.6 against the same arithmetic in numbers that never wrap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.engine.serial_numbers import HALF, MASK
from trio_amqp10.amqp10.engine.session_windows import SessionWindows

FAR = HALF - 1
starts = st.integers(0, MASK) | st.sampled_from([0, MASK - 2, MASK, HALF - 1, HALF])
rooms = st.integers(0, 50) | st.sampled_from([FAR, HALF, MASK])


def windows(start: int = 0, room: int = 10) -> SessionWindows:
    """Of a session that has begun, both ways from ``start``."""
    made = SessionWindows(incoming_max=8, initial_id=start)
    made.begun(start, room, 100)
    return made


@given(
    starts,
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 30), rooms, st.booleans()), max_size=12),
)
def test_remote_window_equals_the_naive_sum_after_each_flow(
    start: int, rounds: list[tuple[int, int, int, bool]]
) -> None:
    ours = windows(start)
    sent = seen = 0  # transfers since the beginning, unbounded
    for n, read, room, unread_begin in rounds:
        for _ in range(n):
            ours.sent()
        sent += n
        seen = min(sent, seen + read)
        base = None if unread_begin else (start + seen) & MASK
        assert ours.flowed(base, room, 7, 9, start)
        acknowledged = 0 if unread_begin else seen
        assert ours.remote_incoming_window == acknowledged + min(room, FAR) - sent
        assert ours.next_outgoing_id == (start + sent) & MASK
        assert (ours.next_incoming_id, ours.remote_outgoing_window) == (7, 9)


@given(starts, st.integers(0, 20), st.integers(1, 1000))
def test_flow_is_refused_and_changes_nothing_when_it_acknowledges_what_was_never_sent(
    start: int, sent: int, ahead: int
) -> None:
    ours = windows(start)
    for _ in range(sent):
        ours.sent()
    before = {name: getattr(ours, name) for name in SessionWindows.__slots__}
    assert not ours.flowed((start + sent + ahead) & MASK, 5, 7, 9, start)
    assert {name: getattr(ours, name) for name in SessionWindows.__slots__} == before


@given(starts)
def test_received_counts_until_the_room_is_used_up(start: int) -> None:
    ours = windows(start)
    for n in range(1, 9):
        assert ours.received() == 8 - n
        assert ours.next_incoming_id == (start + n) & MASK
        assert ours.incoming_window == 8 - n
        assert ours.remote_outgoing_window == 100 - n
    assert ours.received() < 0
    assert ours.next_incoming_id == (start + 8) & MASK
    assert ours.incoming_window == 0


def test_begun_takes_the_peers_numbers_as_they_are() -> None:
    ours = SessionWindows(incoming_max=8)
    assert ours.next_incoming_id is None
    assert ours.remote_incoming_window == 0
    ours.begun(MASK, 3, 4)
    assert (ours.next_incoming_id, ours.remote_incoming_window, ours.remote_outgoing_window) == (MASK, 3, 4)


def test_low_is_half_of_the_room_that_was_announced() -> None:
    ours = windows()
    assert [ours.received() <= ours.low for _ in range(8)] == [False] * 3 + [True] * 5
    ours.refill()
    assert ours.incoming_window == 8


@pytest.mark.parametrize(("room", "announced"), [(None, 8), (100, 8), (8, 8), (6, 6), (0, 3), (2, 3)])
def test_refill_announces_no_more_than_there_is_room_for_and_takes_nothing_back(
    room: int | None, announced: int
) -> None:
    ours = windows()
    for _ in range(5):
        ours.received()
    ours.refill(room)
    assert ours.incoming_window == announced


def test_windows_begin_with_room_of_ours_and_none_of_the_peers() -> None:
    fresh = SessionWindows(11)
    assert (fresh.incoming_window, fresh.low) == (11, 5)
    assert (fresh.remote_incoming_window, fresh.remote_outgoing_window) == (0, 0)


def test_overrun_counts_ids_and_the_peers_window_down_as_any_transfer_does() -> None:
    ours = SessionWindows(2)
    ours.begun(next_outgoing_id=0, incoming_window=9, outgoing_window=7)
    assert ours.overrun()
    assert (ours.next_incoming_id, ours.remote_outgoing_window) == (1, 6)
    assert ours.overrun()
    assert not ours.overrun()
    assert (ours.next_incoming_id, ours.remote_outgoing_window) == (2, 5)


def test_narrow_takes_what_was_announced_before_each_time() -> None:
    ours = SessionWindows(10)
    ours.begun(next_outgoing_id=0, incoming_window=9, outgoing_window=100)
    ours.narrow(7)
    assert (ours.incoming_window, ours.low) == (7, 3)
    ours.narrow(3)
    taken = [ours.received() for _ in range(11)]
    assert taken == [2, 1, 0, *[0] * 7, -1]


def test_narrow_gives_no_room_that_was_not_announced() -> None:
    ours = SessionWindows(10)
    ours.begun(next_outgoing_id=0, incoming_window=9, outgoing_window=100)
    for _ in range(8):
        ours.received()
    ours.narrow(5)
    assert [ours.received() for _ in range(3)] == [1, 0, -1]
