"""Channels: what opens and closes them, confirmations, and their numbers (RFC 006, 3.3)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.amqp_fast.pairs import (
    HELLO,
    QUEUE,
    client_with,
    connected,
    failure,
    names,
    open_client,
    open_server,
    said,
    sending,
    server_with,
    written,
)
from tests.engine_pairs import arrivals_of, events_of, refusal
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.events import ChannelOpened
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.amqp_fast.engine.states import ChannelState, HandleState
from trio_amqp10.core.errors import LocalProtocolError

# -- channels -------------------------------------------------------------------------------


def test_channel_open_is_confirmed_when_asked() -> None:
    server = open_server()
    server.receive_data(
        written(spec.ChannelOpen(channel_id=1), spec.ChannelOpen(channel_id=2, confirm_tag=7)), 0.0
    )
    assert [type(each) for each in events_of(server)] == [ChannelOpened] * 2
    assert said(server) == [("channel reply", 2, 7, 200, "SUCCESS")]


@pytest.mark.parametrize(
    ("command", "code"),
    [(spec.ChannelOpen(channel_id=1), 503), (spec.ChannelOpen(channel_id=2, out_of_band="shm"), 540)],
)
def test_channel_open_is_answered_with_close_when_it_cannot_be(command: spec.ChannelOpen, code: int) -> None:
    server, _ = server_with()
    server.receive_data(written(command), 0.0)
    assert failure(server) == ("channel", code)


def test_channel_0_closes_the_connection() -> None:
    server = open_server()
    fault = refusal(server.receive_data, written(spec.ChannelOpen()), 0.0)
    assert fault is not None
    assert (fault.code, fault.scope) == (502, "connection")


def test_channels_and_handles_have_a_number_at_most() -> None:
    server, _ = server_with(limits=Limits(channel_max=1, handle_max=1))
    server.receive_data(written(spec.HandleOpen(channel_id=1, handle_id=2)), 0.0)
    assert failure(server) == ("handle", 506)
    server.receive_data(written(spec.ChannelOpen(channel_id=2)), 0.0)
    assert failure(server) == ("channel", 506)


def test_channels_and_handles_may_have_any_number() -> None:
    server, _ = server_with(limits=Limits(channel_max=0, handle_max=0))
    server.receive_data(
        written(spec.HandleOpen(channel_id=1, handle_id=2), spec.ChannelOpen(channel_id=2)), 0.0
    )
    assert len(events_of(server)) == 1


@pytest.mark.parametrize(
    "command",
    [
        spec.ChannelAck(channel_id=9),
        spec.ChannelCommit(channel_id=9),
        spec.ChannelRollback(channel_id=9),
        spec.HandleOpen(channel_id=9),
    ],
)
def test_command_on_a_closed_channel_closes_the_connection_with_504(command: Any) -> None:
    server, _ = server_with()
    fault = refusal(server.receive_data, written(command), 0.0)
    assert fault is not None
    assert (fault.code, fault.scope) == (504, "connection")


def test_close_of_a_closed_channel_or_handle_is_dropped() -> None:
    server, _ = server_with()
    server.receive_data(written(spec.ChannelClose(channel_id=9), spec.HandleClose(handle_id=9)), 0.0)
    assert names(server) == []


def test_close_of_a_channel_arrives_behind_all_else_and_is_answered_by_the_application() -> None:
    server, channel = server_with()
    server.receive_data(sending() + written(spec.ChannelClose(channel_id=1)), 0.0)
    assert [type(each.command) for each in arrivals_of(channel)] == [spec.HandleSend, spec.ChannelClose]
    assert channel.state is ChannelState.CLOSE_RECEIVED
    fault = refusal(server.receive_data, written(spec.ChannelAck(channel_id=1)), 0.0)
    assert fault is not None
    assert fault.code == 504


def test_channel_is_free_again_when_both_have_closed_it() -> None:
    server, channel = server_with()
    server.receive_data(written(spec.ChannelClose(channel_id=1)), 0.0)
    channel.close(200, "bye")
    assert said(server) == [("channel close", 1, 200, "bye")]
    assert channel.state is ChannelState.CLOSED
    server.receive_data(
        written(spec.ChannelOpen(channel_id=1), spec.HandleOpen(channel_id=1, handle_id=1)), 0.0
    )
    assert isinstance(events_of(server)[0], ChannelOpened)


def test_commands_after_our_close_of_a_channel_are_answered_with_another() -> None:
    server, channel = server_with()
    channel.close(541, "broken")
    commands = [
        spec.ChannelAck(channel_id=1),
        spec.ChannelOpen(channel_id=1),
        spec.HandleOpen(channel_id=1, handle_id=2, service_type=9),
        spec.HandleOpen(channel_id=1, handle_id=2),
        spec.HandleFlow(handle_id=2),
    ]
    server.receive_data(written(*commands), 0.0)
    assert said(server) == [("channel close", 1, 541, "broken")] * 6
    server.receive_data(written(spec.ChannelClose(channel_id=1)), 0.0)
    assert names(server) == []
    assert arrivals_of(channel) == []
    assert channel.state is ChannelState.CLOSED
    assert server.take_touched() == [channel]
    channel.wake()


@pytest.mark.parametrize("command", [spec.ChannelCommit(channel_id=1), spec.ChannelRollback(channel_id=1)])
def test_transaction_on_a_channel_without_them_closes_it(command: Any) -> None:
    server, _ = server_with()
    server.receive_data(written(command), 0.0)
    assert failure(server) == ("channel", 503)


def test_transaction_has_a_number_of_messages_at_most() -> None:
    server, _ = server_with(limits=Limits(txn_limit=2), transacted=True)
    commit = written(spec.ChannelCommit(channel_id=1))
    server.receive_data((sending() * 2 + commit) * 2 + sending() * 2, 0.0)
    assert events_of(server) == []
    server.receive_data(sending(), 0.0)
    assert failure(server) == ("channel", 506)


def test_channel_reply_is_for_a_command_that_waits() -> None:
    client, channel, _ = client_with(transacted=True)
    channel.write(spec.ChannelAck(confirm_tag=3))
    channel.write(spec.ChannelCommit(confirm_tag=4))
    client.receive_data(written(spec.ChannelReply(channel_id=1, confirm_tag=4)), 0.0)
    client.receive_data(written(spec.ChannelReply(channel_id=1, confirm_tag=3)), 0.0)
    assert [each.command.confirm_tag for each in arrivals_of(channel)] == [4, 3]  # type: ignore[attr-defined]
    fault = refusal(client.receive_data, written(spec.ChannelReply(channel_id=1, confirm_tag=3)), 0.0)
    assert fault is not None
    assert fault.code == 503


def test_server_replies_to_what_waits_alone() -> None:
    server, channel = server_with()
    server.receive_data(written(spec.ChannelAck(channel_id=1, confirm_tag=5)), 0.0)
    channel.write(spec.ChannelReply(confirm_tag=5))
    assert said(server) == [("channel reply", 1, 5, 200, "")]
    with pytest.raises(LocalProtocolError):
        channel.write(spec.ChannelReply(confirm_tag=5))


def test_loss_of_the_connection_ends_channels_and_handles() -> None:
    client, channel, handle = client_with()
    client.transport_lost()
    assert (channel.state, handle.state) == (ChannelState.CLOSED, HandleState.CLOSED)
    assert client.take_touched() == [channel]


# -- what is not ours to do -----------------------------------------------------------------


def test_channel_writes_only_what_is_its_turn() -> None:
    client, channel, handle = client_with()
    server, served = server_with()
    for call in (
        lambda: channel.write(spec.ChannelReply()),
        lambda: channel.write(spec.ChannelOpen()),
        lambda: channel.write(spec.ChannelCommit()),
        lambda: served.write(spec.ChannelAck()),
        lambda: served.open_handle(spec.HandleOpen()),
        lambda: channel.open_handle(spec.HandleOpen(handle_id=1)),
        lambda: channel.open_handle(spec.HandleOpen(service_type=9)),
        lambda: handle.write(spec.HandleCreated()),
        lambda: handle.write(spec.HandleClose()),
        lambda: handle.write(spec.ChannelAck()),
        lambda: handle.notify(HELLO),
        lambda: served.handles[1].send(HELLO),
        lambda: client.open_channel(spec.ChannelOpen(channel_id=1)),
        lambda: channel.open_handle(spec.HandleOpen(options={"A": b"x" * 9000})),
    ):
        with pytest.raises(LocalProtocolError):
            call()
    assert names(client) == names(server) == []
    handle.close()
    with pytest.raises(LocalProtocolError):
        handle.send(HELLO)
    channel.close()
    channel.close()
    for call in (lambda: channel.write(spec.ChannelAck()), lambda: channel.open_handle(spec.HandleOpen())):
        with pytest.raises(LocalProtocolError):
            call()
    assert names(client) == ["handle close", "channel close"]


def test_client_keeps_to_the_channels_that_the_server_bears() -> None:
    client = open_client(tune={"FRAME_MAX": 1024, "CHANNEL_MAX": 1})
    client.open_channel()
    with pytest.raises(LocalProtocolError, match="allows 1 channels"):
        client.open_channel()


def test_numbers_are_not_used_again_at_once() -> None:
    pair = connected()
    numbers = []
    for _ in range(3):
        ours, theirs = pair.channels()
        handle, _ = pair.handles((ours, theirs), **QUEUE)
        numbers.append((ours.id, handle.id))
        ours.close()
        pair.run()
        theirs.close()
        pair.run()
    assert numbers == [(1, 1), (2, 2), (3, 3)]


def test_numbers_may_all_be_taken() -> None:
    client = open_client()
    client._handles.update(dict.fromkeys(range(1, 0x10000)))  # type: ignore[arg-type]
    with pytest.raises(LocalProtocolError, match="all numbers"):
        client.open_channel().open_handle(spec.HandleOpen())


def test_arrival_may_be_taken_when_the_channel_is_over() -> None:
    server, channel = server_with()
    server.receive_data(sending(), 0.0)
    server.transport_lost()
    assert server.held == 0
    assert len(arrivals_of(channel)) == 1
