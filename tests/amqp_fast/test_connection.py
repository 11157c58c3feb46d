"""The connection: negotiation, tuning, pings, close, and what is refused when (RFC 006, 3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.engine_pairs import events_of, refusal
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine import Engine
from trio_amqp10.amqp_fast.events import (
    Challenged,
    ChannelOpened,
    ConnectionClosed,
    ConnectionLost,
    ConnectionOpened,
    Initiated,
    OpenRequested,
    Responded,
)
from trio_amqp10.amqp_fast.faults import ReplyError
from trio_amqp10.amqp_fast.frames import INITIATION
from trio_amqp10.amqp_fast.limits import Limits
from trio_amqp10.amqp_fast.states import CONNECTION, EXPECTED, ConnectionState, Lifecycle, Step, When
from trio_amqp10.endpoint_role import EndpointRole
from trio_amqp10.errors import LocalProtocolError

from .pairs import (
    Pair,
    connected,
    names,
    octets_of,
    open_client,
    open_server,
    opening_of_server,
    said,
    sending,
    server_with,
    tuning_server,
    written,
)

if TYPE_CHECKING:
    from trio_amqp10.amqp_fast.commands import Command

NEVER = [
    (role, made)
    for role, rules in EXPECTED.items()
    for made, rule in rules.items()
    if rule.when is When.NEVER
]


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


def test_tune_lowers_what_the_client_writes_and_reads() -> None:
    pair = connected(client=Limits(frame_max=2048, heartbeat=7), server=Limits(frame_max=9000, heartbeat=5))
    assert pair.client.frame_max == pair.server.frame_max == 2048
    assert pair.server.next_deadline() == 7.0
    assert pair.client.next_deadline() == 5.0


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


@pytest.mark.parametrize(
    "options",
    [
        {"FRAME_MAX": 1023},
        {"FRAME_MAX": 65_536},
        {"FRAME_MAX": "big"},
        {"CHANNEL_MAX": 1025},
        {"CHANNEL_MAX": 0},
        {"HANDLE_MAX": 5000},
        {"HEARTBEAT": -1},
    ],
)
def test_server_refuses_a_tune_that_raises_a_value_and_names_it(options: dict[str, Any]) -> None:
    server = tuning_server(Limits(penalty=1.0))
    fault = refusal(server.receive_data, written(spec.ConnectionTune(options=options)), 0.0)
    assert fault is not None
    assert fault.code == 502
    server.handle_timer(1.0)
    assert said(server) == [("connection close", 502, fault.reply_text)]
    assert next(iter(options)) in fault.reply_text
    assert server.data_to_send() is None


def test_server_without_a_limit_takes_any_value() -> None:
    server = tuning_server(Limits(txn_limit=0))
    assert refusal(server.receive_data, written(spec.ConnectionTune(options={"TXN_LIMIT": 5})), 0.0) is None


def test_server_refuses_a_dictionary_that_names_no_field() -> None:
    fault = refusal(tuning_server().receive_data, written(spec.ConnectionTune(dictionary={"A": 1})), 0.0)
    assert fault is not None
    assert fault.code == 502


@pytest.mark.parametrize("tune", [{}, {"FRAME_MAX": 1024}])
def test_client_takes_the_least_frame_when_none_is_named(tune: dict[str, Any]) -> None:
    assert open_client(tune=tune).frame_max == 1024


def test_client_refuses_a_frame_max_below_the_least() -> None:
    client = Engine(EndpointRole.CLIENT, 0.0)
    client.receive_data(written(spec.ConnectionChallenge()), 0.0)
    client.respond("NONE", {}, 0.0)
    octets_of(client)
    assert refusal(client.receive_data, written(spec.ConnectionTune(options={"FRAME_MAX": 512})), 0.0)
    assert names(client) == ["connection close"]


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


def test_server_reads_nothing_while_a_decision_is_due() -> None:
    server = opening_of_server()
    rest = written(spec.ConnectionResponse(), spec.ConnectionOpen(), spec.ChannelOpen(channel_id=1))
    server.receive_data(rest, 0.0)
    assert not server.wants_data()
    assert not server.has_input()
    server.accept_login(0.0)
    server.accept_open(0.0)
    assert server.wants_data()
    assert isinstance(events_of(server)[-1], ChannelOpened)


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


@pytest.mark.parametrize(("role", "made"), NEVER, ids=[f"{r.value}-{m.plan.name}" for r, m in NEVER])
def test_command_that_is_never_expected_closes_the_connection_with_503(
    role: EndpointRole, made: type[Command]
) -> None:
    engine = server_with()[0] if role is EndpointRole.SERVER else open_client()
    fault = refusal(engine.receive_data, written(made()), 0.0)
    assert fault is not None
    assert (fault.code, fault.scope) == (503, "connection")
    assert said(engine) == [("connection close", 503, fault.reply_text)]


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


# -- frames ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "octets",
    [
        b"\x00\x02\x0e\x00\x00",  # no end octet
        b"\xff\xff\x7f\xff\xff\xff",  # a frame that is too large
        written(spec.HandleSend(handle_id=1, fragment_size=65_536)),
    ],
)
def test_framing_error_closes_the_connection_and_nothing_more_is_read(octets: bytes) -> None:
    server, _ = server_with()
    fault = refusal(server.receive_data, octets + written(spec.ConnectionPing(respond=True)), 0.0)
    assert fault is not None
    assert fault.code == 501
    assert said(server) == [("connection close", 501, fault.reply_text)]
    assert server.data_to_send() is None


def test_slice_takes_64_commands() -> None:
    server = open_server()
    octets = written(*[spec.ConnectionPing(respond=True)] * 65)
    server.receive_slice(octets, 0.0)
    assert server.has_input()
    assert len(names(server)) == 64
    server.receive_slice(b"", 0.0)
    assert not server.has_input()


def test_server_is_not_read_while_braked_or_full() -> None:
    server, channel = server_with(limits=Limits(buffer=1000))
    server.braked = True
    assert not server.wants_data()
    server.braked = False
    assert server.wants_data()
    server.receive_data(sending() * 4, 0.0)
    assert not server.wants_data()
    while channel.next_arrival() is not None:
        pass
    assert server.held == 0
    assert server.wants_data()


# -- pings ----------------------------------------------------------------------------------


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
    server.braked = False
    assert server.next_deadline() == 0.0
    server.handle_timer(60.0)
    assert events_of(server) == []
    server.handle_timer(70.0)
    assert isinstance(events_of(server)[-1], ConnectionLost)


def test_client_gives_up_a_server_that_does_not_answer() -> None:
    client = Engine(EndpointRole.CLIENT, 5.0, Limits(handshake_timeout=2.0))
    assert client.next_deadline() == 7.0
    client.handle_timer(7.0)
    (lost,) = events_of(client)
    assert lost == ConnectionLost("the peer took too long: await_challenge")


def test_time_for_the_negotiation_may_be_any() -> None:
    assert Engine(EndpointRole.CLIENT, 5.0, Limits(handshake_timeout=None)).next_deadline() is None


# -- close ----------------------------------------------------------------------------------


def test_close_of_the_peer_is_answered_and_nothing_follows() -> None:
    pair = connected()
    pair.channels()
    pair.client.close(0.0, 200, "bye")
    pair.run()
    assert pair.events["server"][-1] == ConnectionClosed(spec.ConnectionClose(reply_text="bye"))
    assert pair.client.state is pair.server.state is ConnectionState.CLOSED
    assert pair.client.data_to_send() is None
    assert pair.server.wants_data()


def test_command_after_our_close_is_answered_with_another_close() -> None:
    server = open_server()
    server.close(0.0, 541, "broken")
    server.close(0.0)
    server.receive_data(written(*[spec.ConnectionPing()] * 2, spec.ChannelOpen(channel_id=1)), 0.0)
    assert said(server) == [("connection close", 541, "broken")] * 4
    server.receive_data(written(spec.ConnectionClose()), 0.0)
    assert server.data_to_send() is None
    server.close(0.0)


def test_close_that_is_not_answered_ends_in_time() -> None:
    server = open_server(Limits(close_timeout=2.0))
    server.close(1.0)
    server.handle_timer(3.0)
    assert events_of(server) == [ConnectionLost("the peer took too long: its close")]


def test_close_goes_out_behind_what_was_written_and_an_error_before_it() -> None:
    client = open_client()
    client.open_channel()
    client.close(0.0)
    assert names(client) == ["channel open", "connection close"]
    client = open_client()
    client.open_channel()
    client.close(0.0, 541, "broken")
    assert names(client) == ["connection close"]
    assert client.queued == 0


def test_error_after_our_close_ends_the_transport() -> None:
    server = open_server()
    server.close(0.0)
    octets_of(server)
    assert refusal(server.receive_data, b"\x00\x02\x63\xce", 0.0) is not None
    assert server.data_to_send() is None


def test_close_before_there_is_one_ends_the_transport() -> None:
    server = Engine(EndpointRole.SERVER, 0.0)
    server.close(0.0)
    assert server.data_to_send() is None


def test_end_of_the_transport_is_a_loss_unless_both_closed() -> None:
    server = open_server()
    server.receive_eof(0.0)
    assert events_of(server) == [ConnectionLost("the peer ended the transport without a close")]
    server.transport_lost()
    server.close(0.0)
    assert events_of(server) == []
    client = open_client()
    client.open_channel()
    client.transport_lost()
    assert client.data_to_send() is None
    assert isinstance(events_of(client)[-1], ConnectionLost)


# -- what is not ours to do -----------------------------------------------------------------


def test_engine_does_only_what_is_its_turn() -> None:
    server, client = open_server(), open_client()
    for call in (
        lambda: client.challenge("X", {}, 0.0),
        lambda: client.accept_login(0.0),
        lambda: client.accept_open(0.0),
        lambda: client.refuse_login(0.0),
        lambda: client.respond("X", {}, 0.0),
        lambda: server.respond("X", {}, 0.0),
        lambda: server.accept_open(0.0),
        lambda: server.open_channel(),
        lambda: tuning_server().ping(),
    ):
        with pytest.raises(LocalProtocolError):
            call()
    assert names(server) == names(client) == []


@pytest.mark.parametrize(
    "limits",
    [{"frame_max": 1023}, {"channel_max": -1}, {"handle_max": 70_000}, {"heartbeat": -1}, {"txn_limit": -1}],
)
def test_limits_are_refused_when_out_of_range(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(limits))):
        Limits(**limits)  # type: ignore[arg-type]


def test_initiation_is_read_in_any_pieces() -> None:
    server = Engine(EndpointRole.SERVER, 0.0)
    for octet in INITIATION:
        server.receive_data(bytes((octet,)), 0.0)
    assert server.state is ConnectionState.AWAIT_CHALLENGE


def test_reply_error_is_raised_and_not_only_written() -> None:
    with pytest.raises(ReplyError):
        open_server().receive_data(written(spec.ConnectionChallenge()), 0.0)


def test_step_that_is_not_in_the_table_is_no_step() -> None:
    life = Lifecycle(CONNECTION, ConnectionState.CLOSED, ConnectionState.CLOSED)
    with pytest.raises(LocalProtocolError, match="open in state CLOSED"):
        life.step(Step.OPEN)


def test_all_that_comes_in_one_read_is_taken() -> None:
    server = open_server()
    server.receive_data(written(*[spec.ConnectionPing(respond=True)] * 65), 0.0)
    assert len(names(server)) == 65
