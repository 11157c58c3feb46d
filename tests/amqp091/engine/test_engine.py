"""The engine: closing, brakes, and what a bad frame gets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.amqp091.pairs import (
    CLIENT_PROPERTIES,
    OPENING,
    START_OK,
    TUNE_OK,
    Pair,
    codes,
    connected,
    open_client,
    open_server,
    said,
    written,
)
from tests.engine_pairs import arrivals_of, events_of
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.engine import Engine
from trio_amqp10.amqp091.engine.events import (
    Blocked,
    ChannelClosed,
    ConnectionClosed,
    ConnectionLost,
    SecretAccepted,
    SecretUpdated,
    Unblocked,
)
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.engine.states import ChannelState, ConnectionState
from trio_amqp10.amqp091.wire.content import BasicProperties, Content
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.frames import HEADER, HEARTBEAT_FRAME, METHOD, PROTOCOL_HEADER, frame
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError


def test_server_reads_nothing_while_a_decision_is_due() -> None:
    server = Engine(EndpointRole.SERVER, 0.0)
    server.receive_slice(OPENING, 0.0)
    assert server.state is ConnectionState.AWAIT_TUNE
    assert not server.wants_data()
    assert not server.has_input()
    server.accept_login("ada", 0.0)
    assert server.state is ConnectionState.AWAIT_OPEN_OK
    server.accept_open(0.0)
    assert server.is_open
    assert server.wants_data()


def test_commands_of_the_other_role_or_another_state_change_nothing() -> None:
    client, channel = open_client()
    server = open_server()
    for call in (
        lambda: client.accept_login("ada", 0.0),
        lambda: server.accept_login("ada", 0.0),
        lambda: server.answer_start(START_OK, 0.0),
        lambda: client.answer_challenge(b"", 0.0),
        lambda: client.block("no"),
        lambda: server.update_secret(b""),
        lambda: server.accept_secret(),
        lambda: client.accept_secret(),
        lambda: server.open_channel(),
        lambda: client.open_channel(1),
        lambda: client.open_channel(2048),
        lambda: client.close(0.0, 200, "x" * 256),
        lambda: client.close(0.0, 70_000),
        lambda: channel.open(),
    ):
        with pytest.raises(LocalProtocolError):
            call()
    assert client.data_to_send() == server.data_to_send() == b""
    assert client.is_open
    assert server.is_open


@pytest.mark.parametrize(
    ("octets", "code", "ids"),
    [
        (written(spec.ConnectionSecureOk()), 503, (10, 21)),
        (written(spec.ConnectionCloseOk()), 503, (10, 51)),
        (written(spec.ConnectionBlocked()), 503, (10, 60)),
        (written(spec.ChannelOpen()), 504, (20, 10)),
        (frame(HEADER, 0, bytes(14)), 505, (0, 0)),
        (frame(HEADER, 5, bytes(14)), 505, (0, 0)),
        (frame(8, 1, b""), 505, (0, 0)),
        (written(spec.ChannelOpen(), 2048), 504, (20, 10)),
        (written(spec.QueueDeclare(), 5), 504, (50, 10)),
        (frame(1, 5, b"\0\x14\0\x0a"), 501, (20, 10)),
        (frame(1, 5, b"\0"), 501, (0, 0)),
    ],
)
def test_what_a_client_may_not_say_gets_its_code(octets: bytes, code: int, ids: tuple[int, int]) -> None:
    server = open_server()
    with pytest.raises(ReplyError) as caught:
        server.receive_data(octets, 0.0)
    assert caught.value.code == code
    assert codes(server) == [("connection.close", code, ids)]


def test_after_a_bad_frame_nothing_more_is_read() -> None:
    server = open_server()
    with pytest.raises(ReplyError):
        server.receive_data(frame(9, 0, b"") + written(spec.ConnectionCloseOk()), 0.0)
    assert server.state is ConnectionState.CLOSED
    assert codes(server) == [("connection.close", 501, (0, 0))]
    assert server.data_to_send() is None
    server.receive_data(b"more", 0.0)
    assert not server.has_input()
    assert server.next_deadline() is None


def test_server_takes_eight_octets_above_frame_max_and_a_client_none() -> None:
    server = open_server(Limits(frame_max=131_072))
    server.receive_data(frame(3, 1, bytes(131_072))[:20], 0.0)
    with pytest.raises(ReplyError):
        open_server().receive_data(frame(3, 1, bytes(131_073))[:7], 0.0)
    with pytest.raises(ReplyError):
        open_client()[0].receive_data(frame(3, 1, bytes(131_065))[:7], 0.0)


def test_slice_takes_64_frames_or_64_kib() -> None:
    server = open_server()
    server.receive_slice(HEARTBEAT_FRAME * 100, 0.0)
    assert server.has_input()
    server.receive_slice(b"", 0.0)
    assert not server.has_input()
    server.receive_slice(written(spec.QueueDeclare(queue="q", arguments={"k": "x" * 60_000}), 1) * 3, 0.0)
    assert server.has_input()
    server.receive_data(HEARTBEAT_FRAME * 200, 0.0)
    assert not server.has_input()


def test_input_that_follows_an_error_is_dropped_until_the_close_is_answered() -> None:
    server = open_server()
    rest = (
        written(spec.QueueDeclare(), 1)
        + frame(3, 1, b"x")
        + written(spec.ConnectionOpen())
        + written(spec.ConnectionClose())
    )
    with pytest.raises(ReplyError):
        server.receive_data(written(spec.QueueDeclare(), 9) + rest, 5.0)
    assert server.has_input()
    assert server.next_deadline() == 10.0
    server.receive_data(b"", 5.0)
    assert [name for _, name, _ in said(server)] == ["connection.close", "connection.close-ok"]
    server.receive_data(written(spec.ConnectionCloseOk()), 5.0)
    assert server.data_to_send() is None
    assert events_of(server) == []


def test_close_that_nobody_answers_ends_in_time() -> None:
    server = open_server()
    server.close(1.0)
    server.data_to_send()
    server.handle_timer(6.0)
    assert events_of(server) == [ConnectionLost("the peer took too long: its close-ok")]
    assert server.data_to_send() is None
    server.handle_timer(7.0)


def test_bad_frame_after_our_close_ends_without_a_word() -> None:
    server = open_server()
    server.close(1.0)
    server.data_to_send()
    with pytest.raises(ReplyError):
        server.receive_data(frame(9, 0, b""), 1.0)
    assert server.data_to_send() is None


def test_close_of_the_peer_is_answered_and_closes_the_channels() -> None:
    pair = connected()
    ours, theirs = pair.channels()
    pair.client.close(0.0, 200, "bye")
    pair.run()
    assert pair.events["server"][-1] == ConnectionClosed(spec.ConnectionClose(reply_text="bye"))
    assert ours.state is theirs.state is ChannelState.CLOSED
    assert pair.client.data_to_send() is pair.server.data_to_send() is None
    assert pair.client.take_touched() == [ours]
    pair.client.close(0.0)
    pair.server.transport_lost()
    assert events_of(pair.server) == []


def test_server_that_answered_a_close_reads_to_the_end_and_drops_what_comes() -> None:
    server = open_server()
    server.braked = True
    assert not server.wants_data()
    assert not server.awaits_eof()
    server.receive_data(written(spec.ConnectionClose()), 0.0)
    assert server.wants_data()
    assert server.awaits_eof()
    events_of(server)
    server.receive_data(written(spec.QueueDeclare(), 1), 0.0)
    server.receive_eof(0.0)
    assert (server.has_input(), events_of(server)) == (False, [])


def test_both_closing_at_once_close_both() -> None:
    pair = connected()
    pair.client.close(0.0)
    pair.server.close(0.0)
    pair.run()
    assert pair.client.data_to_send() is pair.server.data_to_send() is None


def test_close_during_the_handshake_is_silent() -> None:
    client = Engine(EndpointRole.CLIENT, 0.0)
    client.close(0.0)
    assert client.data_to_send() == PROTOCOL_HEADER
    assert client.data_to_send() is None


def test_transport_that_ends_is_reported_once() -> None:
    server = open_server()
    server.receive_eof(0.0)
    assert events_of(server) == [ConnectionLost("the peer ended the transport without a close")]
    client, channel = open_client()
    channel.send(spec.QueueDeclare())
    client.transport_lost()
    assert client.data_to_send() is None
    assert events_of(client) == [ConnectionLost("the transport was lost")]
    client.receive_eof(0.0)
    assert events_of(client) == []


def test_server_wants_no_data_while_arrivals_fill_its_buffer() -> None:
    pair = Pair(server=Limits(buffer=1000))
    pair.run()
    ours, theirs = pair.channels()
    ours.send(spec.BasicPublish(), Content(BasicProperties(), bytes(1001)))
    pair.run()
    assert not pair.server.wants_data()
    arrivals_of(theirs)
    assert pair.server.wants_data()
    ours.send(spec.BasicPublish(), Content(BasicProperties(), bytes(1001)))
    ours.close()
    pair.run()
    assert pair.server.wants_data()
    assert len(arrivals_of(theirs)) == 1
    assert pair.server.held == 0


def test_blocked_is_reported_to_clients_that_understand() -> None:
    pair = connected()
    assert pair.server.block("low on memory")
    assert pair.server.unblock()
    pair.run()
    assert pair.events["client"][-2:] == [Blocked("low on memory"), Unblocked()]
    server = Engine(EndpointRole.SERVER, 0.0)
    server.receive_data(
        PROTOCOL_HEADER + written(spec.ConnectionStartOk(client_properties={"capabilities": 1})), 0.0
    )
    server.accept_login(None, 0.0)
    server.receive_data(written(TUNE_OK) + written(spec.ConnectionOpen()), 0.0)
    server.accept_open(0.0)
    server.data_to_send()
    assert not server.block("low on memory")
    assert server.data_to_send() == b""


def test_secret_is_updated_and_accepted() -> None:
    pair = connected()
    pair.client.update_secret(b"new", "expiry")
    pair.run()
    assert pair.events["server"][-1] == SecretUpdated(b"new", "expiry")
    pair.server.accept_secret()
    pair.run()
    assert pair.events["client"][-1] == SecretAccepted()
    with pytest.raises(ReplyError, match="answers no request"):
        pair.client.receive_data(written(spec.ConnectionUpdateSecretOk()), 0.0)


def test_server_error_closes_the_clients_connection_with_its_code() -> None:
    client, channel = open_client()
    with pytest.raises(ReplyError, match="only a client can send"):
        client.receive_data(written(spec.QueueDeclare(), 1), 0.0)
    assert codes(client) == [("connection.close", 503, (50, 10))]
    assert channel.state is ChannelState.CLOSED
    with pytest.raises(ReplyError):
        open_client()[0].receive_data(written(spec.ChannelOpen(), 2), 0.0)


def test_channel_that_its_own_fault_closes_is_reported() -> None:
    server = open_server()
    server.receive_data(written(spec.TxCommit(), 1), 0.0)
    (event,) = events_of(server)
    assert isinstance(event, ChannelClosed)
    assert not event.by_peer
    assert event.close.reply_text == "PRECONDITION_FAILED - channel is not transactional"
    assert codes(server) == [("channel.close", 406, (90, 20))]


def test_engine_keeps_what_the_peer_says_of_itself() -> None:
    pair = connected()
    assert pair.server.peer_properties == CLIENT_PROPERTIES
    assert pair.client.peer_properties == {}


@pytest.mark.parametrize("chunk", [0, 1])
def test_server_sends_a_header_larger_than_a_frame_and_a_client_reads_it(chunk: int) -> None:
    pair = Pair(chunk, Limits(frame_max=4096, max_message_size=20_000))
    pair.run()
    ours, theirs = pair.channels()
    ours.send(spec.BasicConsume(consumer_tag="t"))
    pair.run()
    arrivals_of(theirs)
    theirs.send(spec.BasicConsumeOk(consumer_tag="t"))
    pair.run()
    arrivals_of(ours)
    large = Content(BasicProperties(headers={"h": "x" * 9000}), b"body")
    theirs.deliver("t", "", "q", large)
    ours.send(spec.BasicGet(queue="q"))
    pair.run()
    theirs.send(spec.BasicGetOk(delivery_tag=2, routing_key="q"), large)
    pair.run()
    arrived = arrivals_of(ours)
    assert [each.content.properties for each in arrived if each.content] == [large.properties] * 2
    with pytest.raises(LocalProtocolError, match="9025 octets exceed the largest frame payload of 4088"):
        ours.publish("", "q", large)
    theirs.deliver("t", "", "q", Content(BasicProperties(headers={"h": "x" * 20_000}), b""))
    with pytest.raises(ReplyError, match="exceeds the largest frame payload of 4088"):
        pair.run()


def test_client_reads_no_other_frame_that_is_larger_than_agreed() -> None:
    client, _ = open_client(Limits(frame_max=4096))
    with pytest.raises(ReplyError, match="exceeds the largest frame payload of 4088"):
        client.receive_data(frame(METHOD, 1, bytes(5000)), 0.0)


@pytest.mark.parametrize("method", [spec.ConnectionOpen(), spec.ConnectionClose(), TUNE_OK])
def test_method_of_the_connection_on_a_channel_is_refused_with_503(method: Any) -> None:
    for number in (1, 5):
        server = open_server(channels=1)
        with pytest.raises(ReplyError) as caught:
            server.receive_data(written(method, number), 0.0)
        assert caught.value.code == 503
        assert "on channel" in caught.value.reply_text


def test_unread_octets_begin_with_a_frame() -> None:
    server = open_server()
    octets = written(spec.BasicQos(), 1)
    assert server.unread_input() == b""
    server.receive_slice(octets * 65 + octets[:9], 0.0)  # 64 are a slice
    assert server.has_input()
    assert server.unread_input() == octets + octets[:9]
    server.receive_slice(b"", 0.0)
    assert server.unread_input() == octets[:9]
