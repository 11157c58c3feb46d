"""The handshake of both ends: versions, login, limits, and what may not be said in it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.amqp091.pairs import (
    OPENING,
    START_OK,
    TUNE_OK,
    Pair,
    codes,
    open_client,
    open_server,
    said,
    written,
)
from tests.engine_pairs import events_of
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.engine import Engine
from trio_amqp10.amqp091.engine.events import (
    ChallengeAnswered,
    Challenged,
    ConnectionLost,
    ConnectionOpened,
    OpenRequested,
    StartAnswered,
    Started,
)
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.engine.states import ConnectionState
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.frames import PROTOCOL_HEADER, frame
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError


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
    with pytest.raises(ReplyError, match="protocol header"):
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
        assert client.data_to_send() is None


def test_client_says_nothing_to_what_speaks_something_else_and_shows_how_it_begins() -> None:
    client = Engine(EndpointRole.CLIENT, 0.0)
    with pytest.raises(ReplyError, match=r"expected connection.start, got b'HTTP/1.', which is HTTP"):
        client.receive_data(b"HTTP/1.1 400 Bad Request\r\n\r\n", 0.0)
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
    with pytest.raises(ReplyError, match="the minimum of 4096"):
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


def test_handshake_has_its_time() -> None:
    server = Engine(EndpointRole.SERVER, 5.0)
    assert server.next_deadline() == 35.0
    server.handle_timer(34.0)
    assert server.data_to_send() == b""
    server.handle_timer(35.0)
    assert events_of(server) == [ConnectionLost("the peer took too long: await_header")]
    assert Engine(EndpointRole.SERVER, 5.0, Limits(handshake_timeout=None)).next_deadline() is None


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
