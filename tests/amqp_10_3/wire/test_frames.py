"""Frames of 10.3: their head, the types that are dropped, and what is refused."""

from __future__ import annotations

import pytest

from tests.amqp_10_3.pairs import (
    codes,
    open_server,
)
from tests.engine_pairs import events_of, refusal
from trio_amqp10.amqp_10_3.wire.frames import FRAMES, TRACE


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (b"\4\0\0\1\0\0\0\0\xce", 540),
        (b"\5\0\0\1\0\0\0\0\xce", 540),
        (b"\6\0\0\1\0\0\0\0\xce", 540),
        (b"\x09\0\0\1\0\0\0\0\xce", 501),
        (b"\1\1\0\1\0\0\0\0\xce", 501),
        (b"\x08\0\0\1\0\0\0\0\xce", 501),
        (b"\x08\0\0\0\0\0\0\1\0\xce", 501),
        (b"\2\0\0\0\0\0\0\0\xce", 504),
        (b"\3\0\0\2\0\0\0\0\xce", 504),
        (b"\3\0\0\1\0\0\0\0\xce", 501),
        (b"\1\0\0\1\0\2\x02\0", 501),
    ],
)
def test_bad_frame_gets_its_code(octets: bytes, code: int) -> None:
    server = open_server()
    fault = refusal(server.receive_data, octets, 0.0)
    assert fault is not None
    assert fault.code == code
    assert codes(server) == [("connection.close", code)]


def test_trace_and_heartbeat_are_dropped_in_all_states() -> None:
    server = open_server()
    octets = FRAMES.frame(TRACE, 1, b"what") + FRAMES.heartbeat
    server.receive_data(octets, 0.0)
    server.close(0.0)
    server.receive_data(octets, 0.0)
    assert codes(server) == [("connection.close", 200)]
    assert not events_of(server)


def test_idle_engine_writes_a_heartbeat_of_its_own_format() -> None:
    server = open_server()
    server.handle_timer(31.0)
    server.data_to_send()
    server.receive_data(FRAMES.heartbeat, 60.0)
    server.handle_timer(62.0)
    assert server.data_to_send() == FRAMES.heartbeat
