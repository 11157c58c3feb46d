"""The connection of both ends at work: faults, brakes, closes, and the end of the transport."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.amqp_fast.pairs import (
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
from tests.engine_pairs import events_of, refusal
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.engine import Engine
from trio_amqp10.amqp_fast.engine.events import (
    ChannelOpened,
    ConnectionClosed,
    ConnectionLost,
)
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.amqp_fast.engine.states import EXPECTED, ConnectionState, When
from trio_amqp10.amqp_fast.wire.faults import ReplyError
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from trio_amqp10.amqp_fast.wire.commands import Command

NEVER = [
    (role, made)
    for role, rules in EXPECTED.items()
    for made, rule in rules.items()
    if rule.when is When.NEVER
]


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


@pytest.mark.parametrize(("role", "made"), NEVER, ids=[f"{r.value}-{m.plan.name}" for r, m in NEVER])
def test_command_that_is_never_expected_closes_the_connection_with_503(
    role: EndpointRole, made: type[Command]
) -> None:
    engine = server_with()[0] if role is EndpointRole.SERVER else open_client()
    fault = refusal(engine.receive_data, written(made()), 0.0)
    assert fault is not None
    assert (fault.code, fault.scope) == (503, "connection")
    assert said(engine) == [("connection close", 503, fault.reply_text)]


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
    assert events_of(server) == [ConnectionLost("the peer took too long to close")]


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


def test_reply_error_is_raised_and_not_only_written() -> None:
    with pytest.raises(ReplyError):
        open_server().receive_data(written(spec.ConnectionChallenge()), 0.0)


def test_all_that_comes_in_one_read_is_taken() -> None:
    server = open_server()
    server.receive_data(written(*[spec.ConnectionPing(respond=True)] * 65), 0.0)
    assert len(names(server)) == 65


def test_unread_octets_begin_with_a_command_also_before_its_fragment() -> None:
    server, _ = server_with()
    octets = sending()
    for end in range(1, len(octets)):
        server.receive_slice(octets[end - 1 : end], 0.0)
        assert server.unread_input() == octets[:end]
    server.receive_slice(octets[-1:] + octets[:2], 0.0)
    assert server.unread_input() == octets[:2]
