"""Heartbeats: written when nothing else was, and missed when the peer is silent."""

from __future__ import annotations

from tests.amqp091.pairs import (
    open_server,
)
from tests.engine_pairs import events_of
from trio_amqp10.amqp091.engine.events import (
    ConnectionLost,
)
from trio_amqp10.amqp091.wire.frames import HEARTBEAT_FRAME


def test_heartbeats_are_written_when_nothing_else_was() -> None:
    server = open_server()
    assert server.next_deadline() == 30.0
    server.handle_timer(30.0)
    assert server.data_to_send() == b""
    server.handle_timer(60.0)
    assert server.data_to_send() == HEARTBEAT_FRAME
    server.handle_timer(61.0)
    assert server.data_to_send() == b""


def test_peer_that_is_silent_for_two_heartbeats_is_given_up() -> None:
    server = open_server()
    server.receive_data(HEARTBEAT_FRAME, 10.0)
    server.handle_timer(129.0)
    assert server.is_open
    server.handle_timer(130.0)
    assert events_of(server) == [ConnectionLost("the peer was silent for 120 s, two heartbeats")]


def test_silence_does_not_count_while_nothing_is_read() -> None:
    server = open_server()
    server.braked = True
    server.handle_timer(1000.0)
    assert server.is_open
    assert server.next_deadline() == 1030.0
    server.braked = False
    server.handle_timer(1030.0)
    assert server.is_open
    server.handle_timer(1149.0)
    assert server.is_open
    server.handle_timer(1150.0)
    assert not server.is_open


def test_heartbeat_is_on_channel_0() -> None:
    assert bytes.fromhex("08 0000 00000000 ce") == HEARTBEAT_FRAME
