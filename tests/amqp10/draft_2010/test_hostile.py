"""Any octets after any state cause only errors of the library."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.draft_2010.connection import DraftConnection
from trio_amqp10.amqp10.draft_2010.spec import transport as draft
from trio_amqp10.amqp10.wire.frames import encode_frame
from trio_amqp10.core.errors import AmqpError

from .pairs import Script
from .test_vectors import COMPOSITES, framed

FRAMES = [
    bytes.fromhex(row["hex"])
    for row in COMPOSITES
    if framed(bytes.fromhex(row["hex"])) and bytes.fromhex(row["hex"])[5] == 0
]


def script_with_links() -> Any:
    script = Script()
    receiver = script.attach(False, name="in", handle=0)
    receiver.set_credit(10)
    sender = script.attach(
        True, name="out", handle=1, flow_state=draft.FlowState(session_credit=10, link_credit=5)
    )
    for _ in range(3):
        sender.send(b"\x00\x53\x75\xa0\x01x")
    script.said()
    return script


def survive(script: Any, octets: bytes) -> None:
    """Give a connection any octets, and check that it answers in frames of the draft."""
    script.octets(octets)
    script.said()
    connection = script.connection
    while connection.next_event() is not None:
        pass
    connection.receive_eof(1.0)
    assert connection.data_to_send() is None or connection.state.name == "END"


@given(st.lists(st.tuples(st.sampled_from(FRAMES), st.integers(0, 3)), max_size=4))
def test_frames_out_of_place(frames: list[tuple[bytes, int]]) -> None:
    script = script_with_links()
    survive(script, b"".join(frame[:6] + channel.to_bytes(2, "big") + frame[8:] for frame, channel in frames))


@pytest.mark.parametrize("seed", range(60))
def test_broken_octets(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(20):
        script = script_with_links()
        octets = bytearray()
        for _ in range(chance.randrange(1, 4)):
            body = bytearray(chance.choice(FRAMES)[8:])
            for _ in range(chance.randrange(0, 4)):
                place = chance.randrange(len(body))
                match chance.randrange(3):
                    case 0:
                        body[place] = chance.randrange(256)
                    case 1:
                        body[place] ^= 1 << chance.randrange(8)
                    case _:
                        del body[place:]
                        body += b"\x40"
            octets += encode_frame(0, bytes(body))
        survive(script, bytes(octets))


@given(st.binary(max_size=60))
def test_any_octets(octets: bytes) -> None:
    connection = DraftConnection("us")
    connection.open()
    with contextlib.suppress(AmqpError):
        connection.receive_data(octets, 0.0)
    connection.data_to_send()
