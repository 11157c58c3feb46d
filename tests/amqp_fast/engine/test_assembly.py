"""Messages: fragments, sizes, restart, streams, and the order in which channels write (RFC 006, 3.4, 3.5.3, 3.5.13)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.amqp_fast import naive
from tests.amqp_fast.pairs import (
    HEAD,
    HELLO,
    QUEUE,
    SMALL,
    block_of,
    bodies,
    client_with,
    connected,
    names,
    octets_of,
    prepare,
    restartable,
    said,
    send,
    sending,
    server_with,
    written,
)
from tests.engine_pairs import arrivals_of, events_of, refusal
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.events import ChannelFailed, HandleFailed
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.amqp_fast.engine.message import Message, hash_of, head_octets
from trio_amqp10.core.errors import LocalProtocolError

PEER: dict[str, Any] = {"service_type": 3, "producer": False, "consumer": False, "browser": False}


@pytest.mark.parametrize("size", [0, 5, 900, 1024, 10_000])
@pytest.mark.parametrize("chunk", [0, 7])
def test_message_arrives_whole_in_fragments_of_the_size_that_was_agreed(size: int, chunk: int) -> None:
    pair = connected(chunk=chunk, client=SMALL)
    channels = pair.channels()
    ours, theirs = pair.handles(channels, **QUEUE)
    message = Message(
        spec.MessageHead(persistent=True, priority=7, mime_type="text/plain", headers={"a": 1}), b"x" * size
    )
    ours.send(message, "name", confirm_tag=3)
    found = naive.read(octets := octets_of(pair.client))
    assert all(len(fragment) <= 1024 for _, _, fragment in found)
    assert [values[3] for _, values, _ in found] == [True] * (len(found) - 1) + [False]
    assert [values[1] for _, values, _ in found] == [0] * (len(found) - 1) + [3]
    assert [values[-1] for _, values, _ in found] == [""] * (len(found) - 1) + ["name"]
    pair.server.receive_data(octets, 0.0)
    (arrival,) = arrivals_of(channels[1])
    assert arrival.handle is theirs
    assert arrival.message is not None
    assert arrival.message.body == message.body
    assert arrival.message.head.headers == {"a": 1}
    assert arrival.message.head.body_size == size
    assert pair.server.partial == 0


def test_command_between_fragments_is_taken() -> None:
    server, channel = server_with()
    block = block_of(HELLO)
    octets = send(block[:-2], partial=True) + written(spec.ChannelAck(channel_id=1)) + send(block[-2:])
    server.receive_data(octets, 0.0)
    assert [each.command.plan.name for each in arrivals_of(channel)] == ["channel ack", "handle send"]


def test_what_comes_behind_an_empty_fragment_is_taken_at_once() -> None:
    server, channel = server_with()
    block = block_of(HELLO)
    octets = send(block[:-2], partial=True) + 5 * send(b"", partial=True) + send(block[-2:])
    server.receive_data(octets, 0.0)
    assert bodies(channel) == [HELLO.body]


@pytest.mark.parametrize(
    ("octets", "level", "code"),
    [
        (send(b"short"), HandleFailed, 542),
        (send(block_of(HELLO) + b"more"), HandleFailed, 542),
        (send(block_of(HELLO)[:-1]), HandleFailed, 542),
        (send(head_octets(HEAD, 2001, 4096)), ChannelFailed, 311),
        (send(head_octets(HEAD, 1900, 4096) + b"x" * 1101, partial=True), ChannelFailed, 506),
        (send(block_of(HELLO)[:-2], partial=True) + send(b"lo", recovery=True), HandleFailed, 503),
        (send(b"lo", recovery=True), HandleFailed, 503),
        (send(block_of(HELLO)[:-2], partial=True) + send(b"lo", handle=2), ChannelFailed, 503),
    ],
)
def test_message_that_cannot_be_is_refused_at_the_level(octets: bytes, level: type[Any], code: int) -> None:
    server, channel = server_with(limits=Limits(max_message_size=2000, max_partial=1100))
    server.receive_data(written(spec.HandleOpen(channel_id=1, handle_id=2, producer=True)), 0.0)
    server.receive_data(octets, 0.0)
    (event,) = events_of(server)
    assert isinstance(event, level)
    assert event.code == code
    assert server.partial == 0
    assert bodies(channel) == []


def test_handle_that_is_closed_within_a_message_takes_no_more_of_it() -> None:
    server, channel = server_with()
    block = block_of(HELLO)
    server.receive_data(send(block[:-2], partial=True), 0.0)
    channel.handles[1].close(541, "broken")
    octets_of(server)
    server.receive_data(send(block[-2:]), 0.0)
    assert server.partial == 0
    assert names(server) == []


def test_channels_take_turns_and_the_connection_goes_first() -> None:
    pair = connected(client=SMALL)
    for _ in range(2):
        pair.handles(pair.channels(), **QUEUE)
    octets_of(pair.client)
    for number in (1, 2):
        handle = pair.client.handle(number)
        assert handle is not None
        handle.send(Message(HEAD, b"x" * 300_000))
    assert not Limits(write_buffer=1).write_buffer > pair.client.queued
    pair.client.ping()
    first = pair.client.data_to_send()
    assert first is not None
    found = naive.read(first)
    assert found[0][0] == 14
    assert [values[0] for _, values, _ in found[1:9]] == [1, 2] * 4
    assert 256 * 1024 <= len(first) < 270 * 1024
    pair.client.ping()
    second = pair.client.data_to_send()
    assert second is not None
    assert naive.read(second)[0][0] == 14


def test_channels_are_woken_when_there_is_room_to_write() -> None:
    pair = connected(client=Limits(frame_max=1024, write_buffer=1000))
    channels = pair.channels()
    ours, _ = pair.handles(channels, **QUEUE)
    pair.client.take_touched()
    ours.send(Message(HEAD, b"x" * 2000))
    assert not pair.client.has_room
    octets_of(pair.client)
    assert pair.client.has_room
    assert pair.client.take_touched() == [channels[0]]


# -- restart --------------------------------------------------------------------------------


def test_large_message_is_prepared_and_what_follows_waits() -> None:
    pair = connected(client=SMALL)
    channel, served, ours, _ = restartable(pair)
    ours.send(Message(HEAD, b"x" * 3000))
    ours.send(HELLO)
    ours.send(Message(HEAD, b"y" * 3000))
    channel.write(spec.ChannelAck())
    assert names(pair.client) == ["handle prepare"]
    ours.send(HELLO)
    pair.server.receive_data(b"", 0.0)
    assert names(pair.client) == []
    pair = connected(client=SMALL)
    channel, served, ours, _ = restartable(pair)
    for message in (Message(HEAD, b"x" * 3000), HELLO, Message(HEAD, b"y" * 3000)):
        ours.send(message)
    channel.write(spec.ChannelAck())
    pair.run()
    assert [each.command.plan.name for each in arrivals_of(served)] == ["handle send"] * 3 + ["channel ack"]


def test_notify_is_prepared_too_and_has_the_recovery_flag() -> None:
    pair = connected(client=SMALL)
    channel, _, ours, theirs = restartable(pair)
    ours.write(spec.HandleConsume(prefetch=5))
    pair.run()
    theirs.notify(Message(HEAD, b"x" * 3000), "q")
    pair.run()
    (arrival,) = arrivals_of(channel)
    assert arrival.message is not None
    assert arrival.message.body == b"x" * 3000
    assert (arrival.command.recovery, arrival.command.message_nbr) == (True, 1)  # type: ignore[attr-defined]


@pytest.mark.parametrize("content_hash", ["", hash_of(b"hello"), hash_of(b"hello").upper()])
def test_prepared_message_arrives_when_its_hash_is_right(content_hash: str) -> None:
    server, channel = server_with(restartable=True)
    server.receive_data(prepare(block_of(HELLO)[:-2], content_hash) + send(b"lo", recovery=True), 0.0)
    assert bodies(channel) == [b"hello"]
    assert len(server.partials) == 0


def test_prepared_message_is_refused_when_its_hash_is_wrong() -> None:
    server, channel = server_with(restartable=True)
    server.receive_data(prepare(block_of(HELLO)[:-2], hash_of(b"other")) + send(b"lo", recovery=True), 0.0)
    (event,) = events_of(server)
    assert isinstance(event, HandleFailed)
    assert event.code == 542
    assert bodies(channel) == []
    assert len(server.partials) == 0


@pytest.mark.parametrize(
    ("octets", "level", "code"),
    [
        (prepare(b"short"), HandleFailed, 542),
        (prepare(block_of(HELLO) + b"more"), HandleFailed, 542),
        (prepare(head_octets(HEAD, 2001, 4096)), ChannelFailed, 311),
        (prepare(block_of(HELLO)) * 2, HandleFailed, 503),
        (written(spec.HandleReady(handle_id=1)), HandleFailed, 503),
    ],
)
def test_prepare_that_cannot_be_is_refused_at_the_level(octets: bytes, level: type[Any], code: int) -> None:
    server, _ = server_with(limits=Limits(max_message_size=2000), restartable=True)
    server.receive_data(octets, 0.0)
    (event,) = events_of(server)
    assert isinstance(event, level)
    assert event.code == code


def test_prepare_needs_a_restartable_channel() -> None:
    server, _ = server_with()
    server.receive_data(prepare(block_of(HELLO)), 0.0)
    assert [event.code for event in events_of(server)] == [503]


def preparing() -> tuple[Any, Any, Any]:
    """A client that waits for a READY on handle 1, and has written more on both of its handles."""
    client, channel, handle = client_with(restartable=True)
    other = channel.open_handle(spec.HandleOpen(handle_id=2, producer=True))
    handle.send(Message(HEAD, b"x" * 9000))
    handle.send(HELLO)
    other.send(HELLO)
    octets_of(client)
    return client, channel, handle


def test_ready_above_the_body_is_refused_and_the_rest_of_the_channel_goes_on() -> None:
    client, _, _ = preparing()
    client.receive_data(written(spec.HandleReady(handle_id=1, message_size=9001)), 0.0)
    assert [event.code for event in events_of(client)] == [502]
    assert [(each[0], each[1]) for each in said(client)] == [("handle send", 2), ("handle close", 1)]


def test_ready_on_another_handle_is_refused() -> None:
    client, _, _ = preparing()
    client.receive_data(written(spec.HandleReady(handle_id=2)), 0.0)
    assert [event.code for event in events_of(client)] == [503]


def test_close_of_a_handle_ends_its_prepared_message_and_frees_the_others() -> None:
    client, channel, handle = preparing()
    client.receive_data(written(spec.HandleClose(handle_id=1, reply_code=311)), 0.0)
    handle.close()
    assert [(each[0], each[1]) for each in said(client)] == [("handle send", 2), ("handle close", 1)]
    channel.handles[2].close()
    assert names(client) == ["handle close"]


def test_close_of_a_handle_waits_behind_its_messages() -> None:
    client, _, handle = preparing()
    handle.close()
    assert names(client) == []
    client.receive_data(written(spec.HandleReady(handle_id=1, message_size=8990)), 0.0)
    assert [(each[0], each[1]) for each in said(client)] == [
        ("handle send", 1),
        ("handle send", 1),
        ("handle send", 2),
        ("handle close", 1),
    ]


def test_close_of_a_channel_does_not_wait() -> None:
    client, channel, _ = preparing()
    channel.close()
    assert names(client) == ["channel close"]


# -- streams --------------------------------------------------------------------------------


def test_stream_arrives_piece_by_piece_until_the_handle_is_closed() -> None:
    pair = connected()
    channels = pair.channels()
    ours, theirs = pair.handles(channels, service_type=3)
    ours.stream(b"one", HEAD)
    ours.stream(b"two")
    theirs.stream(b"back", HEAD)
    pair.run()
    assert bodies(channels[1]) == [b"one", b"two"]
    assert bodies(channels[0]) == [b"back"]
    with pytest.raises(LocalProtocolError, match="stream"):
        ours.send(HELLO)
    with pytest.raises(LocalProtocolError, match="stream"):
        ours.stream(b"", HEAD)
    ours.close()
    pair.run()
    theirs.close()
    pair.run()
    again, _ = pair.handles(channels, service_type=3)
    again.stream(b"new", HEAD)
    again.close(541, "broken")
    assert channels[0]._streaming is None


def test_stream_is_refused_when_it_cannot_be() -> None:
    pair = connected()
    channels = pair.channels()
    ours, _ = pair.handles(channels, **QUEUE)
    peer, _ = pair.handles(channels, service_type=3)
    for handle, octets, head in ((ours, b"", HEAD), (peer, b"not begun", None), (peer, b"x" * 70_000, HEAD)):
        with pytest.raises(LocalProtocolError):
            handle.stream(octets, head)
    assert names(pair.client) == []


@pytest.mark.parametrize(
    ("octets", "level", "code"),
    [
        (send(block_of(HELLO), partial=True, streaming=True), HandleFailed, 542),
        (
            send(head_octets(HEAD, 0, 1024), partial=True, streaming=True) + send(b"x", partial=True),
            HandleFailed,
            503,
        ),
        (
            send(head_octets(HEAD, 0, 1024), partial=True, streaming=True) + send(block_of(HELLO), handle=2),
            ChannelFailed,
            503,
        ),
    ],
)
def test_stream_of_a_peer_is_refused_when_it_cannot_be(octets: bytes, level: type[Any], code: int) -> None:
    server, _ = server_with(**PEER)
    server.receive_data(written(spec.HandleOpen(channel_id=1, handle_id=2, service_type=3)), 0.0)
    server.receive_data(octets, 0.0)
    (event,) = events_of(server)
    assert isinstance(event, level)
    assert event.code == code


def test_client_takes_no_message_out_of_band() -> None:
    client, _, handle = client_with()
    handle.write(spec.HandleConsume())
    octets_of(client)
    out_of_band = spec.HandleNotify(handle_id=1, delivered=True, out_of_band=True, fragment_size=100)
    assert refusal(client.receive_data, written(out_of_band), 0.0) is None
    assert [event.code for event in events_of(client)] == [540]


def test_message_of_a_handle_that_is_gone_is_an_error_with_its_fragment_skipped() -> None:
    server, _ = server_with()
    server.close(0.0)
    server.receive_data(sending() + written(spec.ConnectionClose()), 0.0)
    assert server.state.name == "CLOSED"
