"""Partial messages: kept for another connection, bounded in time and number, and begun anew."""

from __future__ import annotations

from tests.amqp_fast.pairs import (
    HEAD,
    HELLO,
    SMALL,
    block_of,
    bodies,
    connected,
    octets_of,
    prepare,
    restartable,
    said,
    send,
    server_with,
    written,
)
from tests.engine_pairs import events_of
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.events import ChannelFailed
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.amqp_fast.engine.message import Message, head_octets
from trio_amqp10.amqp_fast.engine.partial_messages import PartialMessages


def test_transfer_that_broke_off_goes_on_where_it_was() -> None:
    kept = PartialMessages()
    message = Message(HEAD, bytes(range(256)) * 20)
    pair = connected(client=SMALL, partials=(None, kept))
    _, _, ours, _ = restartable(pair)
    ours.send(message)
    pair.server.receive_data(octets_of(pair.client), 0.0)  # prepare
    pair.client.receive_data(octets_of(pair.server), 0.0)  # ready
    rest = octets_of(pair.client)
    pair.server.receive_data(rest[:2100], 0.0)
    pair.server.transport_lost()
    assert len(kept) == 1
    there = kept.octets
    assert 1900 < there < 3100
    pair = connected(client=SMALL, partials=(None, kept))
    _, served, ours, _ = restartable(pair)
    ours.send(message)
    pair.server.receive_data(octets_of(pair.client), 0.0)
    assert said(pair.server) == [("handle ready", 1, there)]
    pair = connected(client=SMALL, partials=(None, kept))
    _, served, ours, _ = restartable(pair)
    ours.send(message)
    pair.run()
    assert bodies(served) == [message.body]


def test_message_that_was_prepared_and_not_sent_is_kept() -> None:
    server, channel = server_with(restartable=True)
    block = block_of(HELLO)
    server.receive_data(prepare(block[:-2]), 0.0)
    assert said(server) == [("handle ready", 1, 3)]
    server.receive_data(written(spec.ChannelClose(channel_id=1)), 0.0)
    channel.close()
    assert (len(server.partials), server.partials.octets) == (1, 3)


def test_partial_messages_are_forgotten_in_time_and_above_their_number() -> None:
    kept = PartialMessages(kept=10.0, max_messages=2, max_octets=100)
    first = kept.prepare("ada", b"1", HEAD, b"x" * 40, "", 0.0)
    kept.release(first, 0.0)
    assert kept.prepare("ada", b"1", HEAD, b"", "", 9.0) is first
    assert kept.prepare("ada", b"1", HEAD, b"", "", 9.0) is not first  # another connection has it
    kept.release(first, 9.0)
    assert kept.prepare("eve", b"1", HEAD, b"", "", 9.0) is not first
    assert kept.prepare("ada", b"1", HEAD, b"", "", 19.0) is not first  # too late
    assert len(kept) == 2
    for number in range(5):
        kept.release(kept.prepare("x", bytes((number,)), HEAD, b"y" * 30, "", 20.0), 20.0)
    assert len(kept) <= 3
    kept.release(kept.prepare("x", b"big", HEAD, b"y" * 200, "", 21.0), 21.0)
    assert kept.octets <= 100


def test_messages_that_are_prepared_count_as_incomplete_until_they_are_sent_or_kept() -> None:
    server, channel = server_with(limits=Limits(max_partial=1100), restartable=True)
    server.receive_data(written(spec.HandleOpen(channel_id=1, handle_id=2, producer=True)), 0.0)
    head = head_octets(HEAD, 1000, 4096)
    server.receive_data(prepare(head + b"x" * 900), 0.0)
    assert server.partial == 900
    server.receive_data(send(b"x" * 50, partial=True, recovery=True), 0.0)
    assert server.partial == 950
    server.receive_data(send(b"x" * 50, recovery=True), 0.0)
    assert bodies(channel) == [b"x" * 1000]
    assert server.partial == 0
    server.receive_data(prepare(head + b"x" * 900), 0.0)
    server.receive_data(written(spec.HandleClose(handle_id=1)), 0.0)
    channel.handles[1].close()
    assert (server.partial, server.partials.octets) == (0, 900)
    server.receive_data(prepare(head, handle=2), 0.0)
    assert server.partial == 900
    server.receive_data(written(spec.HandleOpen(channel_id=1, handle_id=3, producer=True)), 0.0)
    server.receive_data(prepare(head_octets(HEAD, 999, 4096) + b"y" * 201, handle=3), 0.0)
    (event,) = events_of(server)
    assert (type(event), event.code) == (ChannelFailed, 506)
    assert (server.partial, server.partials.octets) == (0, 1101)
    server.receive_data(written(spec.ChannelClose(channel_id=1)), 0.0)
    assert (server.partial, server.partials.octets) == (0, 1101)


def test_partial_message_with_another_hash_begins_anew() -> None:
    kept = PartialMessages()
    first = kept.prepare("ada", b"1", HEAD, b"x", "aa", 0.0)
    second = kept.prepare("ada", b"1", HEAD, b"", "bb", 0.0)  # while the first is received
    assert second is not first
    kept.release(second, 0.0)
    kept.finish(second)
    assert len(kept) == 1
    kept.release(first, 0.0)
    third = kept.prepare("ada", b"1", HEAD, b"", "bb", 0.0)
    assert third.body == b""
    kept.finish(third)
    assert len(kept) == 0
