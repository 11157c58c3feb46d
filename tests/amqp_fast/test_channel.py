"""Channels and handles: what opens and closes them, confirmations, what each service takes (RFC 006, 3.3, 3.5)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine_pairs import arrivals_of, events_of, refusal
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.events import ChannelFailed, ChannelOpened, HandleFailed
from trio_amqp10.amqp_fast.limits import Limits
from trio_amqp10.amqp_fast.states import ChannelState, HandleState
from trio_amqp10.errors import LocalProtocolError

from .pairs import (
    HELLO,
    QUEUE,
    client_with,
    connected,
    names,
    notifying,
    octets_of,
    open_client,
    open_server,
    said,
    sending,
    server_with,
    written,
)

TOPIC: dict[str, Any] = {"service_type": 2}
PEER: dict[str, Any] = {"service_type": 3, "producer": False, "consumer": False, "browser": False}


def failure(server: Any) -> tuple[str, int]:
    """The one handle or channel that was closed, and with which code; the client was sent the same."""
    (event,) = events_of(server)
    kind = "channel" if isinstance(event, ChannelFailed) else "handle"
    assert isinstance(event, ChannelFailed | HandleFailed)
    assert [(each[0], each[2]) for each in said(server)] == [(f"{kind} close", event.code)]
    return kind, event.code


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


@pytest.mark.parametrize(
    "made",
    [
        spec.HandleSend,
        spec.HandleConsume,
        spec.HandleCancel,
        spec.HandleFlow,
        spec.HandleUnget,
        spec.HandleQuery,
        spec.HandleBrowse,
        spec.HandlePrepare,
        spec.HandleReady,
    ],
)
def test_command_on_a_closed_handle_closes_the_connection_with_505(made: Any) -> None:
    server, _ = server_with()
    fault = refusal(server.receive_data, written(made(handle_id=9)), 0.0)
    assert fault is not None
    assert (fault.code, fault.scope) == (505, "connection")


@pytest.mark.parametrize("made", [spec.HandleCreated, spec.HandleNotify, spec.HandleIndex, spec.HandleReply])
def test_client_closes_the_connection_with_505_for_a_handle_that_is_not_open(made: Any) -> None:
    client = open_client()
    fault = refusal(client.receive_data, written(made(handle_id=9)), 0.0)
    assert fault is not None
    assert fault.code == 505


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


def test_ack_with_peer_services_alone_closes_the_channel() -> None:
    server, _ = server_with(**PEER)
    server.receive_data(written(spec.ChannelAck(channel_id=1)), 0.0)
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


# -- message numbers ------------------------------------------------------------------------


def consuming(**fields: Any) -> tuple[Any, Any, Any]:
    """A server that has sent messages 1 to 3 by handle 1."""
    server, channel = server_with(**fields)
    server.receive_data(written(spec.HandleConsume(handle_id=1, prefetch=9)), 0.0)
    handle = channel.handles[1]
    assert [handle.notify(HELLO) for _ in range(3)] == [1, 2, 3]
    octets_of(server)
    arrivals_of(channel)
    return server, channel, handle


def numbers_of(channel: Any) -> list[tuple[int, ...]]:
    return [each.numbers for each in arrivals_of(channel)]


def test_ack_settles_all_up_to_its_number_which_need_not_exist() -> None:
    server, channel, _ = consuming()
    acks = [spec.ChannelAck(channel_id=1, message_nbr=each) for each in (2, 1, 99)]
    server.receive_data(written(*acks), 0.0)
    assert numbers_of(channel) == [(1, 2), (), (3,)]
    assert channel.numbers.count(1) == 0


def test_unget_gives_one_message_back_before_the_ack() -> None:
    server, channel, _ = consuming()
    unget = spec.HandleUnget(handle_id=1, message_nbr=2)
    server.receive_data(written(unget, spec.ChannelAck(channel_id=1, message_nbr=3)), 0.0)
    assert numbers_of(channel) == [(2,), (1, 3)]
    server.receive_data(written(unget), 0.0)
    assert failure(server) == ("handle", 310)


def test_commit_and_rollback_settle_all_that_was_sent() -> None:
    server, channel, handle = consuming(transacted=True)
    server.receive_data(written(spec.ChannelAck(channel_id=1, message_nbr=2)), 0.0)
    assert channel.numbers.count(1) == 1
    server.receive_data(written(spec.ChannelCommit(channel_id=1)), 0.0)
    handle.notify(HELLO)
    server.receive_data(written(spec.ChannelRollback(channel_id=1)), 0.0)
    assert numbers_of(channel) == [(1, 2), (1, 2, 3), (4,)]


def test_numbers_of_a_closed_handle_are_not_settled_by_an_ack() -> None:
    server, channel, _ = consuming()
    close = spec.HandleClose(handle_id=1)
    server.receive_data(written(close, spec.ChannelAck(channel_id=1, message_nbr=3)), 0.0)
    assert numbers_of(channel) == [(), ()]


def test_unreliable_messages_wait_for_no_ack() -> None:
    server, channel = server_with()
    server.receive_data(written(spec.HandleConsume(handle_id=1, unreliable=True)), 0.0)
    channel.handles[1].notify(HELLO, unreliable=True)
    assert channel.numbers.count(1) == 0


# -- handles --------------------------------------------------------------------------------


def test_handle_that_is_open_is_closed_when_it_is_opened_again() -> None:
    server, channel = server_with()
    server.receive_data(written(spec.HandleOpen(channel_id=1, handle_id=1)), 0.0)
    assert failure(server) == ("handle", 503)
    server.receive_data(sending(), 0.0)  # discarded
    assert arrivals_of(channel) == []
    close = written(spec.HandleClose(handle_id=1))
    server.receive_data(close + written(spec.HandleOpen(channel_id=1, handle_id=1)), 0.0)
    assert [type(each.command) for each in arrivals_of(channel)] == [spec.HandleClose, spec.HandleOpen]


def test_handle_that_failed_is_no_service_that_an_ack_asks_for() -> None:
    server, channel = server_with()
    bad = spec.HandleOpen(channel_id=1, handle_id=2, service_type=9)
    server.receive_data(written(bad, spec.ChannelAck(channel_id=1)), 0.0)
    assert failure(server) == ("handle", 401)
    assert len(arrivals_of(channel)) == 1


def test_handle_closed_without_an_error_still_takes_what_comes() -> None:
    server, channel = server_with()
    handle = channel.handles[1]
    handle.close()
    server.receive_data(sending(), 0.0)
    assert len(arrivals_of(channel)) == 1
    handle.close(541, "now")
    assert names(server) == ["handle close"]
    server.receive_data(sending(), 0.0)
    assert arrivals_of(channel) == []


def test_close_of_a_handle_arrives_in_order_and_nothing_may_follow() -> None:
    server, channel = server_with()
    server.receive_data(sending(confirm_tag=1) + written(spec.HandleClose(handle_id=1)), 0.0)
    handle = channel.handles[1]
    assert [type(each.command) for each in arrivals_of(channel)] == [spec.HandleSend, spec.HandleClose]
    handle.write(spec.HandleReply(confirm_tag=1))
    assert names(server) == ["handle reply"]
    fault = refusal(server.receive_data, sending(), 0.0)
    assert fault is not None
    assert fault.code == 505
    assert handle.state is HandleState.CLOSED


def test_handle_is_free_when_its_close_is_answered() -> None:
    server, channel = server_with()
    server.receive_data(written(spec.HandleClose(handle_id=1)), 0.0)
    channel.handles[1].close()
    assert said(server) == [("handle close", 1, 200, "")]
    assert channel.handles == {}
    assert server.handle(1) is None


@pytest.mark.parametrize(
    ("opened", "command", "code"),
    [
        ({}, spec.HandleCancel(handle_id=1, identifier="x"), 503),
        (TOPIC, spec.HandleUnget(handle_id=1), 503),
        (PEER, spec.HandleConsume(handle_id=1), 503),
        (PEER, spec.HandleQuery(handle_id=1), 503),
        (PEER, spec.HandleFlow(handle_id=1), 503),
        (PEER, spec.HandleBrowse(handle_id=1), 503),
        ({"producer": False}, spec.HandleSend(handle_id=1), 403),
        ({"consumer": False}, spec.HandleConsume(handle_id=1), 403),
        ({"browser": False}, spec.HandleQuery(handle_id=1), 403),
        ({"browser": False}, spec.HandleBrowse(handle_id=1), 403),
        ({}, spec.HandleConsume(handle_id=1, prefetch=0), 502),
        ({}, spec.HandleConsume(handle_id=1, identifier="x"), 503),
        ({}, spec.HandleConsume(handle_id=1, no_local=True), 503),
        (TOPIC | {"temporary": True}, spec.HandleConsume(handle_id=1, identifier="x"), 540),
        (TOPIC, spec.HandleCancel(handle_id=1), 502),
        ({}, spec.HandleSend(handle_id=1, out_of_band=True), 540),
        ({}, spec.HandleSend(handle_id=1, partial=True, streaming=True), 540),
        (PEER, spec.HandleSend(handle_id=1, streaming=True), 502),
        (PEER, spec.HandleSend(handle_id=1, streaming=True, partial=True, recovery=True), 502),
    ],
)
def test_handle_is_closed_when_its_service_does_not_take_a_command(
    opened: dict[str, Any], command: Any, code: int
) -> None:
    server, _ = server_with(**opened)
    server.receive_data(written(command), 0.0)
    assert failure(server) == ("handle", code)
    client, _, handle = client_with(**opened)
    if not isinstance(command, spec.HandleSend):
        with pytest.raises(LocalProtocolError):
            handle.write(command)
        assert names(client) == []


@pytest.mark.parametrize(
    ("opened", "command"),
    [
        (TOPIC, spec.HandleConsume(handle_id=1, identifier="x", no_local=True)),
        (TOPIC, spec.HandleCancel(handle_id=1, identifier="x")),
        ({}, spec.HandleFlow(handle_id=1, flow_pause=True)),
        ({}, spec.HandleQuery(handle_id=1)),
    ],
)
def test_handle_takes_the_commands_of_its_service(opened: dict[str, Any], command: Any) -> None:
    server, channel = server_with(**opened)
    server.receive_data(written(command), 0.0)
    assert [each.command for each in arrivals_of(channel)] == [command]
    client, _, handle = client_with(**opened)
    handle.write(command)
    assert names(client) == [command.plan.name]


# -- what a server answers ------------------------------------------------------------------


def test_client_takes_answers_to_what_it_asked() -> None:
    client, channel, handle = client_with(temporary=True, confirm_tag=1)
    handle.write(spec.HandleQuery())
    handle.write(spec.HandleBrowse(message_nbr=5))
    handle.write(spec.HandleBrowse(message_nbr=6, confirm_tag=2))
    handle.write(spec.HandleBrowse(message_nbr=7))
    handle.send(HELLO, confirm_tag=3)
    answers = [
        written(spec.HandleCreated(handle_id=1, dest_name="t")),
        written(spec.HandleReply(handle_id=1, confirm_tag=1), spec.HandleIndex(handle_id=1)),
        notifying(message_nbr=5),
        written(spec.HandleReply(handle_id=1, confirm_tag=2, reply_code=310)),
        written(spec.HandleReply(handle_id=1, reply_code=310)),
        written(spec.HandleReply(handle_id=1, confirm_tag=3)),
    ]
    client.receive_data(b"".join(answers), 0.0)
    assert [each.command.plan.name for each in arrivals_of(channel)] == [
        "handle created",
        "handle reply",
        "handle index",
        "handle notify",
        "handle reply",
        "handle reply",
        "handle reply",
    ]
    assert handle._browses == []


@pytest.mark.parametrize(
    "octets",
    [
        written(spec.HandleCreated(handle_id=1)),
        written(spec.HandleIndex(handle_id=1)),
        written(spec.HandleReply(handle_id=1)),
        written(spec.HandleReply(handle_id=1, confirm_tag=9)),
        notifying(delivered=True),
        notifying(),
    ],
)
def test_client_closes_the_connection_when_a_command_answers_nothing(octets: bytes) -> None:
    client, _, _ = client_with()
    fault = refusal(client.receive_data, octets, 0.0)
    assert fault is not None
    assert (fault.code, fault.scope) == (503, "connection")


def test_server_writes_only_what_was_asked_for() -> None:
    server, channel = server_with()
    handle = channel.handles[1]
    for command in (spec.HandleCreated(), spec.HandleIndex(), spec.HandleReply(confirm_tag=4)):
        with pytest.raises(LocalProtocolError):
            handle.write(command)
    with pytest.raises(LocalProtocolError):
        handle.notify(HELLO)
    with pytest.raises(LocalProtocolError):
        handle.show(1, HELLO)
    browse = [spec.HandleBrowse(handle_id=1, message_nbr=4), spec.HandleBrowse(handle_id=1, confirm_tag=2)]
    server.receive_data(written(*browse), 0.0)
    handle.show(4, HELLO, "q")
    handle.write(spec.HandleReply(confirm_tag=2, reply_code=310))
    assert [(each[0], each[2]) for each in said(server)] == [("handle notify", 4), ("handle reply", 2)]


def test_peer_service_answers_without_being_consumed() -> None:
    server, channel = server_with(**PEER)
    channel.handles[1].notify(HELLO)
    assert channel.numbers.count(1) == 0
    client, client_channel, _ = client_with(**PEER)
    client.receive_data(octets_of(server), 0.0)
    (arrival,) = arrivals_of(client_channel)
    assert arrival.message == HELLO._replace(head=arrival.message.head)  # type: ignore[union-attr]


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
    with pytest.raises(LocalProtocolError, match="bears 1"):
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
