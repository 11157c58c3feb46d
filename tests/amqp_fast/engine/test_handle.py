"""Handles: what their service takes, when they are free, and what a client takes for an answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.amqp_fast.pairs import (
    HELLO,
    PEER,
    client_with,
    failure,
    names,
    notifying,
    open_client,
    said,
    sending,
    server_with,
    written,
)
from tests.engine_pairs import arrivals_of, refusal
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.states import HandleState
from trio_amqp10.core.errors import LocalProtocolError

TOPIC: dict[str, Any] = {"service_type": 2}


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
