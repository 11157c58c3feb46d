"""Pings: answered when asked, sent at the interval of the peer, and missed when the peer is silent."""

from __future__ import annotations

from tests.amqp_fast.pairs import (
    connected,
    names,
    octets_of,
    open_server,
    said,
    tuning_server,
    written,
)
from tests.engine_pairs import events_of
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.events import (
    ConnectionLost,
)
from trio_amqp10.amqp_fast.engine.limits import Limits


def test_ping_is_answered_when_asked_and_the_answer_is_not() -> None:
    server = open_server()
    server.receive_data(written(spec.ConnectionPing(respond=True), spec.ConnectionPing()), 0.0)
    assert said(server) == [("connection ping", False)]
    server.ping()
    assert said(server) == [("connection ping", True)]


def test_ping_goes_out_at_the_interval_that_the_peer_asked_for() -> None:
    server = tuning_server()
    server.receive_data(written(spec.ConnectionTune(options={"HEARTBEAT": 5}), spec.ConnectionOpen()), 0.0)
    server.accept_open(10.0)
    octets_of(server)
    assert server.next_deadline() == 15.0
    server.handle_timer(14.0)
    assert names(server) == []
    server.handle_timer(15.0)
    assert said(server) == [("connection ping", False)]
    assert server.next_deadline() == 20.0


def test_peer_is_given_up_after_two_intervals_only_once_it_has_pinged() -> None:
    server = open_server(Limits(heartbeat=5))
    assert server.next_deadline() is None
    server.handle_timer(100.0)
    server.receive_data(written(spec.ConnectionPing()), 100.0)
    assert server.next_deadline() == 110.0
    server.receive_data(written(spec.ConnectionPing()), 108.0)
    server.handle_timer(117.0)
    assert events_of(server) == []
    server.handle_timer(118.0)
    assert isinstance(events_of(server)[-1], ConnectionLost)
    server.handle_timer(119.0)


def test_silence_does_not_count_while_nothing_is_read() -> None:
    server = open_server(Limits(heartbeat=5))
    server.receive_data(written(spec.ConnectionPing()), 0.0)
    server.braked = True
    server.handle_timer(50.0)
    assert events_of(server) == []
    # Not a time that is over, at which the timer would come again and again.
    assert server.next_deadline() == 60.0
    server.braked = False
    server.handle_timer(60.0)
    assert events_of(server) == []
    server.handle_timer(70.0)
    assert isinstance(events_of(server)[-1], ConnectionLost)


def test_each_end_asks_for_pings_unless_it_is_told_not_to() -> None:
    pair = connected()
    assert pair.server.next_deadline() == pair.client.next_deadline() == 60.0
    pair.server.handle_timer(60.0)
    pair.client.receive_data(octets_of(pair.server), 60.0)
    pair.client.handle_timer(180.0)  # the server is silent since then
    assert isinstance(events_of(pair.client)[-1], ConnectionLost)
    none = Limits(heartbeat=0)
    pair = connected(client=none, server=none)
    assert pair.server.next_deadline() is pair.client.next_deadline() is None
