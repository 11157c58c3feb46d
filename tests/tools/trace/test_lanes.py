"""Lanes and deliveries of a conversation: their order, and the bound of their steps."""

from __future__ import annotations

from trio_amqp10.tools.trace.frame_log import Record, entries_of
from trio_amqp10.tools.trace.lanes import MOST_STEPS, Lanes
from trio_amqp10.tools.trace.session_tracking import ConversationTracker

from .test_session_tracking import LINK, OPEN_LINK, RECEIVER, Talk, disposition, transfer


def test_steps_of_a_delivery_are_bounded() -> None:
    again = [disposition("<", RECEIVER, 0)] * (MOST_STEPS + 5)
    talk = Talk(*OPEN_LINK, transfer(0), *again)
    assert len(talk.deliveries[0].steps) == MOST_STEPS


def test_lanes_stand_from_left_to_right_as_they_belong_together() -> None:
    lanes = Lanes()
    trackers = [ConversationTracker(number, lanes) for number in (1, 2)]
    for number in (0, 1):
        for row, entry in enumerate(entries_of([Record(1, *said) for said in LINK])):
            trackers[number].place(row, entry.way, entry.piece)
    trackers[0].place(9, ">", entries_of([Record(1, *transfer(0))])[0].piece)
    order = [lanes.lanes[index] for index in lanes.left_to_right()]
    assert [(lane.conversation, lane.kind) for lane in order] == [
        (1, "connection"),
        (1, "session"),
        (1, "link"),
        (2, "connection"),
        (2, "session"),
        (2, "link"),
    ]
