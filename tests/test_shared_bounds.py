"""What the engines of all protocols offer the pump for the bounds that connections share."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp091 import spec as spec091
from trio_amqp10.amqp091.engine.engine import Engine as Engine091
from trio_amqp10.amqp091.wire.content import BasicProperties, Content
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.frames import BODY, frame
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.layer_stack import Stack
from trio_amqp10.amqp_fast import spec as spec_fast
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.partial_pool import Pool

from .amqp091 import pairs as pairs091
from .amqp_fast import pairs as pairs_fast
from .engine_pairs import arrivals_of


def test_engine_of_0_9_1_shares_a_pool() -> None:
    pair = pairs091.Pair()
    pair.run()
    server = pair.server
    pool = Pool(100)
    pool.join(server)
    server.count_partial(60)
    assert (server.partial_octets, pool.octets, server.has_room_for_answers) == (60, 60, True)
    with pytest.raises(ReplyError) as caught:
        server.count_partial(60)
    assert caught.value.code == 506
    server.count_partial(-120)
    assert (server.partial, pool.octets) == (0, 0)
    assert not server.drop_largest("the pool")
    server.count_partial(50)
    assert server.drop_largest("the pool")
    assert [code for _, code, _ in pairs091.codes(server)] == [506]
    assert not server.drop_largest("the pool")


def test_engine_of_0_9_1_alone_counts_what_is_not_complete() -> None:
    pair = pairs091.Pair()
    pair.run()
    server = pair.server
    server.count_partial(10)
    with pytest.raises(ReplyError) as caught:
        server.count_partial(server.limits.max_partial)
    assert caught.value.code == 506


def test_engine_of_amqp_fast_shares_a_pool() -> None:
    server, channel = pairs_fast.server_with()
    pool = Pool(100)
    pool.join(server)
    assert not server.drop_largest("the pool")
    server.count_partial(60)
    assert (server.partial_octets, pool.octets) == (60, 60)
    with pytest.raises(Exception, match="octets"):
        server.count_partial(60)
    assert not channel.has_arrivals


def test_engine_of_amqp_fast_alone_counts_what_is_not_complete() -> None:
    server, _ = pairs_fast.server_with()
    server.count_partial(10)
    with pytest.raises(Exception, match="octets on this connection"):
        server.count_partial(server.limits.max_partial)


def test_largest_of_amqp_fast_is_the_channel_that_holds_most() -> None:
    server, channel = pairs_fast.server_with()
    block = pairs_fast.block_of(pairs_fast.HELLO)
    server.receive_data(
        pairs_fast.written(
            spec_fast.HandleSend(handle_id=1, fragment_size=len(block) - 2, partial=True),
            fragment=block[:-2],
        ),
        0.0,
    )
    assert channel.partial
    assert server.drop_largest("the pool")
    assert not channel.partial


def test_message_that_amqp_fast_only_prepared_is_dropped_before_the_peer_answers() -> None:
    server, _ = pairs_fast.server_with(restartable=True)
    pool = Pool(100)
    server.receive_data(pairs_fast.prepare(pairs_fast.block_of(pairs_fast.HELLO)[:-2]), 0.0)
    pool.join(server)
    assert pool.octets == 3
    assert server.drop_largest("the pool")
    assert (server.partial_octets, pool.octets, server.partials.octets) == (0, 0, 3)
    assert not server.drop_largest("the pool")


def _stack() -> Stack:
    return Stack(Connection("c"), 0.0)


@pytest.mark.parametrize(
    "engine",
    [Engine091(EndpointRole.SERVER, 0.0), _stack()],
    ids=["0-9-1", "1.0"],
)
def test_hook_of_the_output_is_that_of_its_buffer(engine: Any) -> None:
    called: list[None] = []
    engine.on_output = lambda: called.append(None)
    engine.on_output()
    assert called == [None]


def test_end_of_output_is_reported_to_the_hook() -> None:
    called: list[None] = []
    watched, other = pairs_fast.server_with()[0], pairs_fast.server_with()[0]
    watched.on_output = lambda: called.append(None)
    for engine in (watched, other):
        engine.receive_eof(0.0)
    assert called == [None]


def test_channel_of_0_9_1_has_arrivals_until_they_are_taken() -> None:
    pair = pairs091.Pair()
    pair.run()
    ours, theirs = pair.channels()
    ours.send(spec091.BasicQos(prefetch_count=1))
    pair.run()
    assert theirs.has_arrivals
    theirs.next_arrival()
    assert not theirs.has_arrivals


def test_body_frame_of_0_9_1_without_octets_holds_nothing() -> None:
    pair = pairs091.Pair()
    pair.run()
    ours, theirs = pair.channels()
    content = Content(BasicProperties(), b"tea")
    ours.publish("", "q", content)
    octets = pair.client.data_to_send() or b""
    at = octets.index(frame(BODY, ours.number, b"tea"))
    pair.server.receive_data(octets[:at] + frame(BODY, ours.number, b"") + octets[at:], 0.0)
    (arrival,) = arrivals_of(theirs)
    assert arrival.content.body == b"tea"


def test_first_output_of_amqp_fast_is_reported_to_the_hook() -> None:
    server, _ = pairs_fast.server_with()
    pairs_fast.octets_of(server)
    called: list[None] = []
    server.on_output = lambda: called.append(None)
    server.close(0.0, 200, "the end")
    assert called
