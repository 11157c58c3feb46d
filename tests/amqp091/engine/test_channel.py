"""A channel of the engine: what may be said on it, flow, opening and closing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.amqp091.pairs import (
    HELLO,
    PUBLISH,
    codes,
    connected,
    consuming,
    head,
    methods_of,
    open_client,
    open_server,
    published,
    refused,
    said,
    written,
)
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.events import ChannelClosed, ChannelOpened
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.engine.states import ChannelState
from trio_amqp10.amqp091.wire.content import BasicProperties, Content
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.frames import BODY, HEADER, frame
from trio_amqp10.core.errors import LocalProtocolError


@pytest.mark.parametrize(
    ("octets", "close"),
    [
        (head(1), ("connection.close", 505, (0, 0))),
        (published() + head(1), ("connection.close", 505, (0, 0))),
        (frame(BODY, 1, b"x"), ("connection.close", 505, (0, 0))),
        (PUBLISH + PUBLISH, ("connection.close", 505, (60, 40))),
        (PUBLISH + frame(BODY, 1, b"x"), ("connection.close", 505, (60, 40))),
        (PUBLISH + head(1) + head(1), ("connection.close", 505, (60, 40))),
        (PUBLISH + head(1) + frame(BODY, 1, b"xy"), ("connection.close", 501, (60, 40))),
        (PUBLISH + frame(HEADER, 1, b""), ("connection.close", 501, (60, 40))),
        (written(spec.BasicDeliver(), 1), ("connection.close", 503, (60, 60))),
        (written(spec.ChannelOpen(), 1), ("connection.close", 504, (20, 10))),
        (written(spec.ChannelCloseOk(), 1), ("connection.close", 503, (20, 41))),
        (written(spec.ChannelFlowOk(), 1), ("connection.close", 503, (20, 21))),
        (written(spec.BasicCancelOk(), 1), ("connection.close", 503, (60, 31))),
        (frame(1, 1, b"\0\x3c"), ("connection.close", 501, (0, 0))),
        (written(spec.BasicPublish(immediate=True), 1) + head(0), ("connection.close", 540, (60, 40))),
        (written(spec.BasicQos(prefetch_size=1), 1), ("connection.close", 540, (60, 10))),
        (written(spec.BasicRecover(), 1), ("connection.close", 540, (60, 110))),
        (written(spec.BasicRecoverAsync(), 1), ("connection.close", 540, (60, 100))),
        (written(spec.BasicConsume(consumer_tag="t"), 1) * 2, ("connection.close", 530, (60, 20))),
        (
            written(spec.BasicConsume(consumer_tag="t", no_wait=True), 1) * 2,
            ("connection.close", 530, (60, 20)),
        ),
        (published(properties=BasicProperties(expiration="-1")), ("channel.close", 406, (60, 40))),
        (published(properties=BasicProperties(expiration="²")), ("channel.close", 406, (60, 40))),
        (published(properties=BasicProperties(user_id="eve")), ("channel.close", 406, (60, 40))),
        (written(spec.BasicAck(delivery_tag=1), 1), ("channel.close", 406, (60, 80))),
        (written(spec.BasicReject(delivery_tag=0), 1), ("channel.close", 406, (60, 90))),
        (written(spec.BasicNack(delivery_tag=1, multiple=True), 1), ("channel.close", 406, (60, 120))),
        (written(spec.TxCommit(), 1), ("channel.close", 406, (90, 20))),
        (written(spec.TxRollback(), 1), ("channel.close", 406, (90, 30))),
        (written(spec.TxSelect(), 1) + written(spec.ConfirmSelect(), 1), ("channel.close", 406, (85, 10))),
        (written(spec.ConfirmSelect(), 1) + written(spec.TxSelect(), 1), ("channel.close", 406, (90, 10))),
    ],
)
def test_what_a_client_may_not_say_on_a_channel_gets_its_code(octets: bytes, close: Any) -> None:
    assert refused(octets) == close


@pytest.mark.parametrize("body", [b"hello", b"\0\x14\0\x28 begins as channel.close does"])
def test_rest_of_a_refused_publish_is_dropped_whatever_its_body_is(body: bytes) -> None:
    server = open_server()
    server.receive_data(
        written(spec.QueueDeclare(), 1) + published(body, BasicProperties(user_id="eve")), 0.0
    )
    (channel,) = server._channels.values()
    assert (server.is_open, codes(server)) == (True, [])
    assert channel.next_arrival() is not None
    with pytest.raises(ReplyError) as caught:
        channel.next_arrival()
    assert caught.value.code == 406


def test_flow_is_refused_with_540_where_it_is_not_obeyed() -> None:
    octets = written(spec.ChannelFlow(active=False), 1)
    assert refused(octets, Limits(flow_control=False)) == ("connection.close", 540, (20, 20))
    server = open_server(Limits(flow_control=False))
    server.receive_data(written(spec.ChannelFlow(), 1), 0.0)
    assert [name for _, name, _ in said(server)] == ["channel.flow-ok"]


def test_flow_stops_publishes_and_deliveries_and_nothing_else() -> None:
    pair = connected()
    ours, theirs = pair.channels()
    consuming(pair, ours, theirs)
    ours.flow(False)
    theirs.flow(False)
    pair.run()
    assert methods_of(ours) == methods_of(theirs) == ["channel.flow-ok"]
    with pytest.raises(LocalProtocolError, match="stopped the flow"):
        ours.send(spec.BasicPublish(), HELLO)
    with pytest.raises(LocalProtocolError, match="stopped the flow"):
        theirs.send(spec.BasicDeliver(consumer_tag="t", delivery_tag=1), HELLO)
    ours.send(spec.BasicGet(queue="q"))
    pair.run()
    theirs.send(spec.BasicGetOk(delivery_tag=1), HELLO)
    ours.flow(True)
    pair.run()
    assert theirs.flowing
    theirs.send(spec.BasicDeliver(consumer_tag="t", delivery_tag=2), HELLO)


def test_channel_is_opened_used_closed_and_its_number_used_again() -> None:
    pair = connected()
    ours, theirs = pair.channels()
    touched: list[str] = []
    ours.on_touch = lambda: touched.append("ours")
    with pytest.raises(LocalProtocolError):
        ours.open()
    ours.close()
    ours.close()
    with pytest.raises(LocalProtocolError, match="close_sent"):
        ours.send(spec.QueueDeclare())
    with pytest.raises(LocalProtocolError, match="close_sent"):
        ours.flow(True)
    pair.run()
    for channel in pair.client.take_touched():
        channel.wake()
    assert touched == ["ours"]
    theirs.wake()
    closed = pair.events["server"][-1]
    assert isinstance(closed, ChannelClosed)
    assert closed.by_peer
    assert ours.state is theirs.state is ChannelState.CLOSED
    again, _ = pair.channels()
    assert again.number == ours.number == 1
    assert pair.client.open_channel(7).number == 7
    assert pair.client.open_channel().number == 2


def test_methods_may_follow_the_open_at_once() -> None:
    pair = connected()
    channel = pair.client.open_channel()
    channel.send(spec.QueueDeclare(queue="q"))
    pair.run()
    opened = pair.events["server"][-1]
    assert isinstance(opened, ChannelOpened)
    assert methods_of(opened.channel) == ["queue.declare"]


def test_server_that_uses_a_channel_before_open_ok_is_refused() -> None:
    client, _ = open_client()
    client.open_channel()
    with pytest.raises(ReplyError, match=r"before channel\.open-ok"):
        client.receive_data(written(spec.BasicCancel(), 2), 0.0)
    client, channel = open_client()
    with pytest.raises(ReplyError):
        client.receive_data(written(spec.ChannelOpenOk(), 1), 0.0)
    assert codes(client) == [("connection.close", 503, (20, 11))]
    assert channel.state is ChannelState.CLOSED


def test_both_closing_a_channel_at_once_close_it() -> None:
    server = open_server()
    server.receive_data(written(spec.TxCommit(), 1), 0.0)
    rest = head(1) + PUBLISH + frame(1, 1, b"\0\x63\0\1") + written(spec.ChannelClose(), 1)
    server.receive_data(rest, 0.0)
    assert [name for _, name, _ in said(server)] == ["channel.close", "channel.close-ok"]
    server.receive_data(written(spec.ChannelCloseOk(), 1) + written(spec.ChannelOpen(), 1), 0.0)
    assert [name for _, name, _ in said(server)] == ["channel.open-ok"]


@pytest.mark.parametrize(
    ("method", "content"),
    [
        (spec.BasicDeliver(), HELLO),
        (spec.ConnectionClose(), None),
        (spec.ChannelClose(), None),
        (spec.BasicPublish(), None),
        (spec.QueueDeclare(), HELLO),
        (spec.QueueDeclare(queue="q" * 256), None),
        (spec.QueueDeclare(arguments={"k": bytes(140_000)}), None),
        (spec.BasicPublish(), Content(BasicProperties(headers={"k": bytes(140_000)}), b"")),
        (spec.BasicCancelOk(), None),
        (spec.BasicAck(delivery_tag=1), None),
    ],
)
def test_method_that_is_not_for_now_changes_nothing(method: Any, content: Content | None) -> None:
    client, channel = open_client()
    with pytest.raises(LocalProtocolError):
        channel.send(method, content)
    assert client.data_to_send() == b""
    assert channel.state is ChannelState.OPEN


@pytest.mark.parametrize("place", [(["x"], "q"), ("x", {})])
def test_publish_to_what_is_no_name_changes_nothing(place: Any) -> None:
    client, channel = open_client()
    with pytest.raises(LocalProtocolError, match="a short string must be a str"):
        channel.publish(*place, HELLO)
    assert client.data_to_send() == b""
    channel.publish("x", "q", HELLO)
    assert b"hello" in client.data_to_send().lower()
