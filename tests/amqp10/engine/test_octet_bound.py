"""What bounds a queue in octets: how much room is told of, in messages and in frames (2.5.6)."""

from __future__ import annotations

import pytest

from tests.naive.script import expected
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.octet_bound import OctetBound

from .helpers import receiving, transfer

FRAME = 512


def test_hold_counts_what_there_is_room_for() -> None:
    hold = OctetBound(10_000, 1000)
    assert (hold.messages(), hold.frames(1024)) == (10, 9)
    hold.came(9500)
    assert hold.mean == 1000 + 8500 / 8
    assert (hold.messages(), hold.frames(1024)) == (0, 0)
    hold.came(5000)  # the one that was in progress
    assert (hold.messages(), hold.frames(1024)) == (0, 0)
    hold.went(9500)
    assert hold.frames(1024) == 4
    hold.went(5000)
    assert hold.held == 0


def test_hold_that_holds_nothing_has_room_for_one_however_small_it_is() -> None:
    hold = OctetBound(10, 1000)
    assert (hold.messages(), hold.frames(1024)) == (1, 1)


@pytest.mark.parametrize("partial", [False, True])
def test_window_is_what_the_queue_has_room_for(partial: bool) -> None:
    link, script = receiving(Limits(max_frame_size=FRAME, partial_octets=10_000), credit=0)
    link.limit(OctetBound(4 * FRAME, FRAME))
    link.set_credit(10)
    script >> expected("flow", handle=0, link_credit=10, incoming_window=4)
    script << transfer(0, payload=bytes(400)) << transfer(1, payload=bytes(400))
    assert link.hold is not None
    assert link.hold.held == 800
    script >> expected("flow", incoming_window=2)  # half of it was used, and is taken
    if partial:
        script << transfer(2, payload=bytes(400), more=True)
        script >> expected("flow", incoming_window=2)
        assert link.hold.held == 800
    link.hold.went(800)
    link.queue.clear()
    link.session.owe_flow()
    script >> expected("flow", incoming_window=4)
