"""When rows are worth a batch."""

from __future__ import annotations

import pytest

from trio_amqp10.spark.batch_linger import BatchLinger


def test_rows_wait_for_nothing_when_there_are_enough() -> None:
    patience = BatchLinger(few=900.0, backlog=2.0)
    assert not patience.is_over(0, 0, 1.0, pressed=False)
    assert patience.is_over(1, 0, 1.0, pressed=False)
    assert patience.is_over(20, 20, 1.0, pressed=False)


@pytest.mark.parametrize(
    ("rows", "pressed", "wait"), [(19, False, 900.0), (19, True, 900.0), (20, True, 2.0)]
)
def test_rows_wait_from_the_first_look_at_them(rows: int, pressed: bool, wait: float) -> None:
    patience = BatchLinger(few=900.0, backlog=2.0)
    for began in (5.0, 5000.0):  # and the next ones as long again
        assert not patience.is_over(0, 20, began - 1, pressed=pressed)
        assert not patience.is_over(rows, 20, began, pressed=pressed)
        assert not patience.is_over(rows, 20, began + wait - 0.01, pressed=pressed)
        assert patience.is_over(rows, 20, began + wait, pressed=pressed)


def test_rows_wait_no_longer_when_messages_come_more_slowly() -> None:
    patience = BatchLinger(few=900.0, backlog=2.0)
    assert not patience.is_over(50, 0, 1.0, pressed=True)
    assert patience.is_over(60, 0, 1.1, pressed=False)


def test_no_row_waits_when_nobody_wants_it_to() -> None:
    assert BatchLinger(few=900.0, backlog=0.0).is_over(50, 0, 1.0, pressed=True)
