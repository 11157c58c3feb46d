"""Frames of the draft are read in any parts, and in slices."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

import pytest

from trio_amqp10.amqp10.draft_2010.connection import DraftConnection
from trio_amqp10.amqp10.draft_2010.registries import write
from trio_amqp10.amqp10.draft_2010.spec import transport as draft
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.wire.frames import encode_frame

from .pairs import Script, linked, talk


@pytest.mark.parametrize("chunk", [1, 2, 3, 7])
def test_octets_may_come_in_any_chunks(chunk: int) -> None:
    one, two = DraftConnection("one"), DraftConnection("two")
    one.open()
    two.open()
    talk(one, two, chunk=chunk)
    sender, receiver = linked(one, two)
    sender.send(Message("hi").to_payload())
    talk(one, two, chunk=chunk)
    assert Message.from_payload(receiver.queue.popleft().payload).body == "hi"


def test_slices_leave_the_rest_for_later() -> None:
    script = Script()
    connection = script.connection
    flow = encode_frame(0, write(draft.Disposition(role=True)))
    connection.receive_slice(flow * 50, 0.0)
    assert connection.has_input()
    rounds = 0
    while connection.has_input():
        connection.receive_slice(b"", 0.0)
        rounds += 1
    assert rounds > 3
    assert connection.frame_reader.frames == 52
