"""The negotiation of both ends: versions, challenges, tuning, and what may not be said in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.amqp_fast.pairs import (
    Pair,
    names,
    octets_of,
    open_server,
    opening_of_server,
    said,
    tuning_server,
    written,
)
from tests.engine_pairs import events_of, refusal
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.engine import Engine
from trio_amqp10.amqp_fast.engine.events import (
    Challenged,
    ConnectionLost,
    ConnectionOpened,
    Initiated,
    OpenRequested,
    Responded,
)
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.amqp_fast.engine.states import ConnectionState
from trio_amqp10.amqp_fast.wire.faults import ReplyError
from trio_amqp10.amqp_fast.wire.frames import INITIATION
from trio_amqp10.core.endpoint_role import EndpointRole

if TYPE_CHECKING:
    from trio_amqp10.amqp_fast.wire.commands import Command


@pytest.mark.parametrize("chunk", [0, 1, 5])
def test_connection_opens_in_the_order_of_the_document(chunk: int) -> None:
    pair = Pair(chunk)
    pair.run()
    assert pair.client.is_open
    assert pair.server.is_open
    assert [type(each) for each in pair.events["client"]] == [Challenged, ConnectionOpened]
    assert [type(each) for each in pair.events["server"]] == [Initiated, Responded, OpenRequested]
    assert pair.server.opened.client_name == "ada"


def test_challenges_go_on_until_the_server_is_content() -> None:
    server = opening_of_server()
    server.receive_data(written(spec.ConnectionResponse(mechanism="X")), 0.0)
    server.challenge("X", {"CHALLENGE": "more"}, 0.0)
    server.receive_data(written(spec.ConnectionResponse(mechanism="X")), 0.0)
    server.accept_login(0.0)
    assert names(server) == ["connection challenge", "connection tune"]


@pytest.mark.parametrize("version", [1, 2, 255])
def test_server_speaks_version_1_to_clients_of_later_ones(version: int) -> None:
    server = Engine(EndpointRole.SERVER, 0.0)
    server.receive_data(b"\x80", 0.0)
    server.receive_data(bytes((version,)), 0.0)
    server.challenge("NONE", {}, 0.0)
    assert said(server) == [("connection challenge", 1, "NONE", [])]


@pytest.mark.parametrize("octets", [b"\x80\x00", b"AMQP", b"\x81\x01"])
def test_server_ends_another_protocol_after_a_pause_without_a_word(octets: bytes) -> None:
    server = Engine(EndpointRole.SERVER, 0.0, Limits(penalty=3.0))
    assert refusal(server.receive_data, octets, 1.0) is not None
    assert server.state is ConnectionState.REFUSING
    assert not server.wants_data()
    server.receive_data(b"more", 2.0)
    assert server.data_to_send() == b""
    assert server.next_deadline() == 4.0
    server.handle_timer(3.0)
    assert server.data_to_send() == b""
    server.handle_timer(4.0)
    assert server.data_to_send() is None
    assert server.next_deadline() is None


def test_client_refuses_another_version() -> None:
    client = Engine(EndpointRole.CLIENT, 0.0)
    octets_of(client)
    fault = refusal(client.receive_data, written(spec.ConnectionChallenge(version=2)), 0.0)
    assert fault is not None
    assert said(client) == [("connection close", 540, fault.reply_text)]
    assert client.data_to_send() is None


def test_client_may_say_nothing_before_open() -> None:
    server = open_server(Limits(frame_max=5000))
    assert server.frame_max == 5000


def test_client_may_tune_several_times() -> None:
    server = tuning_server()
    tunes = [
        spec.ConnectionTune(options={"FRAME_MAX": 4000}, dictionary={"ET": "Expiration-Time"}),
        spec.ConnectionTune(options={"HEARTBEAT": 9, "CHANNEL_MAX": 3}, dictionary={"ID": "Identifier"}),
        spec.ConnectionOpen(),
    ]
    server.receive_data(written(*tunes), 0.0)
    server.accept_open(0.0)
    assert server.frame_max == 4000
    assert server._negotiation.tuning.aliases == {"ET": "Expiration-Time", "ID": "Identifier"}


def test_client_without_a_confirmation_is_open_at_once() -> None:
    client = Engine(EndpointRole.CLIENT, 0.0, opening=spec.ConnectionOpen())
    client.receive_data(written(spec.ConnectionChallenge()), 0.0)
    client.respond("NONE", {}, 0.0)
    client.receive_data(written(spec.ConnectionTune(options={"FRAME_MAX": 4096})), 0.0)
    assert client.is_open
    assert isinstance(events_of(client)[-1], ConnectionOpened)


def test_client_goes_on_before_the_connection_is_confirmed() -> None:
    client = Engine(EndpointRole.CLIENT, 0.0)
    client.receive_data(written(spec.ConnectionChallenge()), 0.0)
    client.respond("NONE", {}, 0.0)
    client.receive_data(written(spec.ConnectionTune(options={"FRAME_MAX": 4096})), 0.0)
    octets_of(client)
    channel = client.open_channel()
    channel.open_handle(spec.HandleOpen())
    assert names(client) == ["channel open", "handle open"]
    assert not client.is_open


def test_client_refuses_a_reply_for_another_tag() -> None:
    client = Engine(EndpointRole.CLIENT, 0.0)
    client.receive_data(written(spec.ConnectionChallenge()), 0.0)
    client.respond("NONE", {}, 0.0)
    client.receive_data(written(spec.ConnectionTune(options={"FRAME_MAX": 4096})), 0.0)
    assert refusal(client.receive_data, written(spec.ConnectionReply(confirm_tag=2)), 0.0) is not None


def test_login_that_fails_ends_after_a_pause_without_a_word() -> None:
    server = opening_of_server()
    server.receive_data(written(spec.ConnectionResponse()), 0.0)
    server.refuse_login(1.0)
    server.handle_timer(10.0)
    assert server.data_to_send() is None


def test_response_that_is_refused_with_a_text_is_closed_after_a_pause() -> None:
    server = opening_of_server()
    server.receive_data(written(spec.ConnectionResponse(mechanism="X")), 0.0)
    server.refuse_login(1.0, "mechanism: X")
    server.handle_timer(10.0)
    assert said(server) == [("connection close", 502, "SYNTAX_ERROR - mechanism: X")]


def test_close_in_answer_to_open_is_immediate() -> None:
    server = tuning_server()
    server.receive_data(written(spec.ConnectionOpen(virtual_path="x")), 0.0)
    server.close(0.0, 402, "no such path")
    assert said(server) == [("connection close", 402, "no such path")]
    server.receive_data(written(spec.ConnectionClose()), 0.0)
    assert server.data_to_send() is None


@pytest.mark.parametrize("made", [spec.ConnectionResponse, spec.ConnectionTune, spec.ConnectionOpen])
def test_command_of_the_negotiation_closes_the_connection_with_503_when_it_is_open(
    made: type[Command],
) -> None:
    server = open_server()
    assert refusal(server.receive_data, written(made()), 0.0) is not None
    assert said(server)[0][1] == 503


def test_channel_before_open_ends_the_connection_after_a_pause() -> None:
    server = tuning_server()
    assert refusal(server.receive_data, written(spec.ChannelOpen(channel_id=1)), 0.0) is not None
    server.handle_timer(10.0)
    assert said(server)[0][1] == 503


@pytest.mark.parametrize("size", [4096, 4097])
def test_negotiation_has_commands_of_4096_octets_at_most(size: int) -> None:
    server = opening_of_server(Limits(frame_max=9000))
    response = spec.ConnectionResponse(responses={"A": b"x" * (size - 10)})
    octets = written(response)
    assert len(octets) == size + 2
    fault = refusal(server.receive_data, octets, 0.0)
    assert (fault is None) is (size <= 4096)


def test_tune_has_4096_octets_at_most_where_open_may_have_more() -> None:
    server = tuning_server(Limits(frame_max=9000))
    opening = spec.ConnectionOpen(options={"A": b"x" * 5000})
    assert refusal(server.receive_data, written(opening), 0.0) is None
    server = tuning_server(Limits(frame_max=9000))
    fault = refusal(server.receive_data, written(spec.ConnectionTune(options={"A": b"x" * 5000})), 0.0)
    assert fault is not None
    assert fault.code == 501


def test_client_gives_up_a_server_that_does_not_answer() -> None:
    client = Engine(EndpointRole.CLIENT, 5.0, Limits(handshake_timeout=2.0))
    assert client.next_deadline() == 7.0
    client.handle_timer(7.0)
    (lost,) = events_of(client)
    assert lost == ConnectionLost("the peer took too long in state AWAIT_CHALLENGE")


def test_time_for_the_negotiation_may_be_any() -> None:
    assert Engine(EndpointRole.CLIENT, 5.0, Limits(handshake_timeout=None)).next_deadline() is None


def test_client_says_nothing_to_what_speaks_something_else_and_shows_how_it_begins() -> None:
    client = Engine(EndpointRole.CLIENT, 0.0)
    with pytest.raises(
        ReplyError,
        match=r"expected connection challenge, got b'HT', which is HTTP.*a frame must have 2 to 4096 octets, not 18516",
    ):
        client.receive_data(b"HTTP/1.1 400 Bad Request\r\n\r\n", 0.0)
    assert client.data_to_send() is None


def test_initiation_is_read_in_any_pieces() -> None:
    server = Engine(EndpointRole.SERVER, 0.0)
    for octet in INITIATION:
        server.receive_data(bytes((octet,)), 0.0)
    assert server.state is ConnectionState.AWAIT_CHALLENGE
