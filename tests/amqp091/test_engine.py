"""The engine: handshake, limits, heartbeats, closing, and what a bad frame gets."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine_pairs import arrivals_of, events_of
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.content import BasicProperties, Content
from trio_amqp10.amqp091.engine import Engine
from trio_amqp10.amqp091.events import (
    Blocked,
    ChallengeAnswered,
    Challenged,
    ChannelClosed,
    ConnectionClosed,
    ConnectionLost,
    ConnectionOpened,
    OpenRequested,
    SecretAccepted,
    SecretUpdated,
    StartAnswered,
    Started,
    Unblocked,
)
from trio_amqp10.amqp091.faults import ReplyError
from trio_amqp10.amqp091.frames import HEADER, HEARTBEAT_FRAME, METHOD, PROTOCOL_HEADER, frame
from trio_amqp10.amqp091.limits import Limits
from trio_amqp10.amqp091.states import ChannelState, ConnectionState
from trio_amqp10.endpoint_role import EndpointRole
from trio_amqp10.errors import LocalProtocolError

from .pairs import CLIENT_PROPERTIES, OPENING, Pair, codes, connected, open_client, open_server, said, written


def server_until(*methods: Any, limits: Limits | None = None) -> Engine:
    """A server that got the protocol header and these methods, and accepted the login where one was due."""
    server = Engine(EndpointRole.SERVER, 0.0, limits)
    server.receive_data(PROTOCOL_HEADER, 0.0)
    for method in methods:
        server.receive_data(written(method), 0.0)
        if server.state is ConnectionState.AWAIT_TUNE:
            server.accept_login("ada", 0.0)
    server.data_to_send()
    events_of(server)
    return server


START_OK = spec.ConnectionStartOk(client_properties=CLIENT_PROPERTIES)
TUNE_OK = spec.ConnectionTuneOk(channel_max=7, frame_max=4096, heartbeat=3)


@pytest.mark.parametrize("chunk", [0, 1, 7])
def test_handshake_opens_both_ends_however_the_octets_come(chunk: int) -> None:
    pair = Pair(chunk, Limits(channel_max=10, heartbeat=20), Limits(frame_max=5000, heartbeat=30))
    pair.run()
    assert [type(each) for each in pair.events["client"]] == [Started, ConnectionOpened]
    assert [type(each) for each in pair.events["server"]] == [StartAnswered, OpenRequested]
    for engine in (pair.client, pair.server):
        assert engine.is_open
        assert (engine.channel_max, engine.frame_max, engine.heartbeat) == (10, 5000, 20)
    assert pair.server.user == "ada"
    assert pair.server.capabilities["connection.blocked"] is True
    assert pair.client.capabilities == {}


def test_challenges_go_both_ways_until_the_login_is_accepted() -> None:
    client, server = Engine(EndpointRole.CLIENT, 0.0), Engine(EndpointRole.SERVER, 0.0)

    def carry() -> None:
        server.receive_data(client.data_to_send() or b"", 0.0)
        client.receive_data(server.data_to_send() or b"", 0.0)

    carry()
    client.answer_start(spec.ConnectionStartOk(mechanism="SCRAM"), 0.0)
    carry()
    for token in (b"one", b"two"):
        server.challenge(token, 0.0)
        carry()
        client.answer_challenge(token.upper(), 0.0)
        carry()
    assert [event.challenge for event in events_of(client) if isinstance(event, Challenged)] == [
        b"one",
        b"two",
    ]
    assert [event.response for event in events_of(server) if isinstance(event, ChallengeAnswered)] == [
        b"ONE",
        b"TWO",
    ]
    server.accept_login(None, 0.0)
    carry()
    assert client.state is ConnectionState.AWAIT_OPEN_OK


def test_client_of_0_9_is_a_client_of_0_9_1() -> None:
    server = Engine(EndpointRole.SERVER, 0.0)
    server.receive_data(b"AMQP\1\1\0\x09", 0.0)
    assert [name for _, name, _ in said(server)] == ["connection.start"]


@pytest.mark.parametrize("header", [b"AMQP\0\1\0\0", b"GET / HT", b"AMQP\0\0\x09\2"])
def test_other_header_gets_ours_and_the_end(header: bytes) -> None:
    server = Engine(EndpointRole.SERVER, 0.0)
    server.receive_data(header[:5], 0.0)
    with pytest.raises(ReplyError, match="another version"):
        server.receive_data(header[5:], 0.0)
    assert server.data_to_send() == PROTOCOL_HEADER
    assert server.data_to_send() is None
    server.receive_data(OPENING, 0.0)
    assert not server.has_input()


def test_server_that_answers_with_a_header_or_another_version_ends_the_client() -> None:
    for answer in (b"AMQP\0\0\x09\2", written(spec.ConnectionStart(version_minor=8))):
        client = Engine(EndpointRole.CLIENT, 0.0)
        client.receive_data(answer[:4], 0.0)
        with pytest.raises(ReplyError, match="version"):
            client.receive_data(answer[4:], 0.0)
        assert client.data_to_send() == PROTOCOL_HEADER
        assert client.data_to_send() is None


def test_refused_login_is_a_close_with_403_for_clients_that_understand_it() -> None:
    server = Engine(EndpointRole.SERVER, 0.0)
    server.receive_data(PROTOCOL_HEADER + written(START_OK), 0.0)
    server.data_to_send()
    server.refuse_login("Login was refused")
    assert [
        (name, row["reply_code"], row["reply_text"], row["class_id"]) for _, name, row in said(server)
    ] == [("connection.close", 403, b"ACCESS_REFUSED - Login was refused", 0)]
    assert server.data_to_send() is None
    server = Engine(EndpointRole.SERVER, 0.0)
    server.receive_data(PROTOCOL_HEADER + written(spec.ConnectionStartOk()), 0.0)
    server.data_to_send()
    server.refuse_login("Login was refused")
    assert server.data_to_send() is None
    with pytest.raises(LocalProtocolError, match="no login"):
        server.refuse_login("again")


@pytest.mark.parametrize(
    "answer",
    [
        spec.ConnectionTuneOk(channel_max=0, frame_max=4096),
        spec.ConnectionTuneOk(channel_max=2048, frame_max=4096),
        spec.ConnectionTuneOk(channel_max=1, frame_max=0),
        spec.ConnectionTuneOk(channel_max=1, frame_max=4095),
        spec.ConnectionTuneOk(channel_max=1, frame_max=131_073),
    ],
)
def test_limits_that_were_not_proposed_are_refused_with_530(answer: spec.ConnectionTuneOk) -> None:
    server = server_until(START_OK)
    with pytest.raises(ReplyError, match="negotiated"):
        server.receive_data(written(answer), 0.0)
    assert codes(server) == [("connection.close", 530, (10, 31))]
    server.receive_data(written(spec.ConnectionCloseOk()), 0.0)
    assert server.data_to_send() is None


def test_client_asks_for_the_lower_limits_and_takes_its_own_where_there_are_none() -> None:
    client, _ = open_client(Limits(channel_max=9, frame_max=5000, heartbeat=0))
    assert (client.channel_max, client.frame_max, client.heartbeat) == (9, 5000, 0)
    assert client.next_deadline() is None
    client = Engine(EndpointRole.CLIENT, 0.0)
    client.receive_data(written(spec.ConnectionStart()), 0.0)
    client.answer_start(spec.ConnectionStartOk(), 0.0)
    with pytest.raises(ReplyError, match="4096 is the least"):
        client.receive_data(written(spec.ConnectionTune(frame_max=4095)), 0.0)
    assert client.state is ConnectionState.CLOSED


def test_unknown_virtual_host_is_refused_with_530() -> None:
    server = server_until(START_OK, TUNE_OK, spec.ConnectionOpen(virtual_host="x"))
    assert not server.wants_data()
    server.close(0.0, 530, "NOT_ALLOWED - vhost x not found", 10, 40)
    assert codes(server) == [("connection.close", 530, (10, 40))]
    server.close(0.0)
    assert server.data_to_send() == b""


@pytest.mark.parametrize(
    ("before", "octets"),
    [
        ((), written(TUNE_OK)),
        ((START_OK,), written(spec.ConnectionOpen())),
        ((START_OK, TUNE_OK), written(spec.ChannelOpen(), 1)),
        ((START_OK, TUNE_OK), written(spec.ConnectionUpdateSecret())),
        ((START_OK,), frame(9, 0, b"")),
    ],
)
def test_error_before_the_connection_is_open_ends_it_in_silence(
    before: tuple[Any, ...], octets: bytes
) -> None:
    server = server_until(*before)
    with pytest.raises(ReplyError):
        server.receive_data(octets, 0.0)
    assert server.data_to_send() is None


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


def test_start_that_no_frame_takes_is_a_local_error() -> None:
    client = Engine(EndpointRole.CLIENT, 0.0)
    client.receive_data(written(spec.ConnectionStart()), 0.0)
    with pytest.raises(LocalProtocolError, match="4088"):
        client.answer_start(spec.ConnectionStartOk(response=bytes(4096)), 0.0)


@pytest.mark.parametrize("method", [START_OK, TUNE_OK, spec.ConnectionOpen()])
def test_handshake_again_is_refused_with_504(method: Any) -> None:
    server = open_server()
    with pytest.raises(ReplyError):
        server.receive_data(written(method), 0.0)
    assert codes(server) == [("connection.close", 504, (method.plan.class_id, method.plan.method_id))]


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


def test_handshake_has_its_time() -> None:
    server = Engine(EndpointRole.SERVER, 5.0)
    assert server.next_deadline() == 35.0
    server.handle_timer(34.0)
    assert server.data_to_send() == b""
    server.handle_timer(35.0)
    assert events_of(server) == [ConnectionLost("the peer took too long: await_header")]
    assert Engine(EndpointRole.SERVER, 5.0, Limits(handshake_timeout=None)).next_deadline() is None


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


@pytest.mark.parametrize(
    "wrong", [{"channel_max": 0}, {"channel_max": 65_536}, {"frame_max": 4095}, {"heartbeat": -1}], ids=str
)
def test_limit_out_of_its_range_is_a_value_error(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Limits(**wrong)  # type: ignore[arg-type]


def test_server_error_closes_the_clients_connection_with_its_code() -> None:
    client, channel = open_client()
    with pytest.raises(ReplyError, match="no client"):
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
    with pytest.raises(LocalProtocolError, match="9025 octets, where a frame takes 4088"):
        ours.publish("", "q", large)
    theirs.deliver("t", "", "q", Content(BasicProperties(headers={"h": "x" * 20_000}), b""))
    with pytest.raises(ReplyError, match="where a frame takes 4088"):
        pair.run()


def test_client_reads_no_other_frame_that_is_larger_than_agreed() -> None:
    client, _ = open_client(Limits(frame_max=4096))
    with pytest.raises(ReplyError, match="where a frame takes 4088"):
        client.receive_data(frame(METHOD, 1, bytes(5000)), 0.0)


def test_server_proposes_its_limits() -> None:
    server = Engine(EndpointRole.SERVER, 0.0, Limits(channel_max=7, frame_max=5000, heartbeat=9))
    server.receive_data(PROTOCOL_HEADER + written(START_OK), 0.0)
    server.data_to_send()
    server.accept_login("ada", 0.0)
    assert server.data_to_send() == written(spec.ConnectionTune(channel_max=7, frame_max=5000, heartbeat=9))


@pytest.mark.parametrize("theirs", [True, False])
def test_client_takes_the_lower_of_both_limits(theirs: bool) -> None:
    low, high = (
        {"channel_max": 5, "frame_max": 4500, "heartbeat": 7},
        {"channel_max": 9, "frame_max": 9000, "heartbeat": 70},
    )
    client = Engine(EndpointRole.CLIENT, 0.0, Limits(**(high if theirs else low)))
    client.receive_data(written(spec.ConnectionStart()), 0.0)
    client.answer_start(spec.ConnectionStartOk(), 0.0)
    client.data_to_send()
    client.receive_data(written(spec.ConnectionTune(**(low if theirs else high))), 0.0)
    said = client.data_to_send()
    assert said is not None
    assert said.startswith(written(spec.ConnectionTuneOk(**low)))
    assert (client.channel_max, client.frame_max, client.heartbeat) == (5, 4500, 7)


def test_heartbeat_is_on_channel_0() -> None:
    assert bytes.fromhex("08 0000 00000000 ce") == HEARTBEAT_FRAME


@pytest.mark.parametrize("method", [spec.ConnectionOpen(), spec.ConnectionClose(), TUNE_OK])
def test_method_of_the_connection_on_a_channel_is_refused_with_503(method: Any) -> None:
    for number in (1, 5):
        server = open_server(channels=1)
        with pytest.raises(ReplyError) as caught:
            server.receive_data(written(method, number), 0.0)
        assert caught.value.code == 503
        assert "on channel" in caught.value.reply_text
