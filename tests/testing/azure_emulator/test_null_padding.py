"""Frames with all fields, for clients that look for each in its place."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp10.spec import PERFORMATIVES
from trio_amqp10.amqp10.spec.messaging import Accepted, Rejected, Source, Target
from trio_amqp10.amqp10.spec.transport import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Role,
    Transfer,
)
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.frames import encode_frame
from trio_amqp10.testing.azure_emulator.null_padding import MARGIN, fill

from .helpers import bus_of, open_client, put

ERROR = Error(condition="amqp:not-found", description="why")

FRAMES: list[tuple[Any, int]] = [
    (Open(container_id="c"), 10),
    (Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1), 8),
    (
        Attach(
            name="l",
            handle=0,
            role=Role.SENDER,
            source=Source(address="a"),
            target=Target(address="b"),
            initial_delivery_count=0,
        ),
        14,
    ),
    (Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1), 11),
    (Transfer(handle=0, delivery_id=0, delivery_tag=b"t"), 11),
    (Disposition(role=Role.RECEIVER, first=0, settled=True, state=Accepted()), 6),
    (Disposition(role=Role.RECEIVER, first=0, settled=True, state=Rejected(error=ERROR)), 6),
    (Detach(handle=0, closed=True, error=ERROR), 3),
    (End(), 1),
    (Close(), 1),
    (Close(error=ERROR), 1),
]


@pytest.mark.parametrize(("performative", "count"), FRAMES, ids=lambda each: type(each).__name__)
def test_frame_has_all_fields_and_says_the_same(performative: Any, count: int) -> None:
    payload = b"payload" if isinstance(performative, Transfer) else b""
    frame = encode_frame(5, encode(performative) + payload)
    filled = fill(frame)
    assert int.from_bytes(filled[:4], "big") == len(filled) <= len(frame) + MARGIN
    assert filled[4:8] == frame[4:8]
    value, end = decode(filled, 8)
    assert len(value.value) == count
    assert filled[end:] == payload
    again, _ = PERFORMATIVES.decode(filled, 8)
    assert again == performative


def test_error_within_a_frame_has_all_fields_too() -> None:
    value, _ = decode(fill(encode_frame(0, encode(Close(error=ERROR)))), 8)
    assert value.value[0].value == ["amqp:not-found", "why", None]
    value, _ = decode(fill(encode_frame(0, encode(FRAMES[2][0]))), 8)
    assert [len(each.value) for each in value.value[5:7]] == [11, 7]


def test_protocol_header_and_empty_frame_stay_as_they_are() -> None:
    header, empty = b"AMQP\x00\x01\x00\x00", encode_frame(0, b"")
    end = encode_frame(1, encode(End()))
    assert fill(header + empty + end + empty) == header + empty + fill(end) + empty
    assert fill(b"") == b""


async def test_message_that_needs_several_frames_comes_whole() -> None:
    bus = bus_of(q=None)
    async with open_client(bus) as conn:
        body = bytes(range(256)) * 1000
        await put(conn, "q", body, body)
        async with conn.open_receiver("q") as receiver:
            assert [(await receiver.receive()).message.body for _ in range(2)] == [body, body]
