"""A channel: contents, answers, delivery tags both ways, confirms, consumers, transactions, flow, closing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine_pairs import arrivals_of, events_of
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.content import BasicProperties, Content, write_header
from trio_amqp10.amqp091.events import ChannelClosed, ChannelOpened
from trio_amqp10.amqp091.faults import ReplyError
from trio_amqp10.amqp091.fields import USUAL
from trio_amqp10.amqp091.frames import BODY, HEADER, frame
from trio_amqp10.amqp091.limits import Limits
from trio_amqp10.amqp091.states import ChannelState
from trio_amqp10.errors import LocalProtocolError

from .pairs import Pair, codes, connected, open_client, open_server, said, written

HELLO = Content(BasicProperties(content_type="text/plain"), b"hello")
PUBLISH = written(spec.BasicPublish(routing_key="q"), 1)


def head(size: int, properties: BasicProperties | None = None) -> bytes:
    payload = write_header(Content(properties or BasicProperties(), b""), USUAL)
    return frame(HEADER, 1, payload[:4] + size.to_bytes(8) + payload[12:])


def published(body: bytes = b"", properties: BasicProperties | None = None) -> bytes:
    return PUBLISH + head(len(body), properties) + (frame(BODY, 1, body) if body else b"")


def methods_of(channel: Any) -> list[str]:
    return [arrival.method.plan.name for arrival in arrivals_of(channel)]


def consuming(pair: Pair, ours: Any, theirs: Any, tag: str = "t", **options: Any) -> None:
    """A consumer at both ends."""
    ours.send(spec.BasicConsume(queue="q", consumer_tag=tag, **options))
    pair.run()
    if not options.get("no_wait"):
        theirs.send(spec.BasicConsumeOk(consumer_tag=tag or "made-up"))
        pair.run()
    arrivals_of(ours)
    arrivals_of(theirs)


def refused(octets: bytes, limits: Limits | None = None) -> Any:
    """The only close that a server says to these octets on channel 1, and whether it raised."""
    server = open_server(limits)
    raised = False
    try:
        server.receive_data(octets, 0.0)
    except ReplyError:
        raised = True
    (close,) = codes(server)
    assert raised == (close[0] == "connection.close")
    return close


@pytest.mark.parametrize("size", [0, 1, 4088, 4089, 10_000])
def test_content_is_split_by_frame_max_and_put_together(size: int) -> None:
    pair = Pair(client=Limits(frame_max=4096))
    pair.run()
    ours, theirs = pair.channels()
    content = Content(BasicProperties(headers={"k": 1}), bytes(range(256)) * 40)
    content = content._replace(body=content.body[:size])
    assert ours.send(spec.BasicPublish(exchange="x", routing_key="k"), content) == 0
    pair.run()
    (arrival,) = arrivals_of(theirs)
    assert arrival.method == spec.BasicPublish(exchange="x", routing_key="k")
    assert arrival.content is not None
    assert arrival.content.properties == content.properties
    assert arrival.content.body == content.body
    assert pair.server.partial == pair.server.held == 0


def test_contents_of_channels_may_be_mixed() -> None:
    server = open_server(channels=2)
    second = written(spec.BasicPublish(), 2) + frame(HEADER, 2, write_header(HELLO, USUAL))
    server.receive_data(PUBLISH + head(4) + second + frame(BODY, 1, b"ab") + frame(BODY, 2, b"hello"), 0.0)
    server.receive_data(frame(BODY, 1, b"") + frame(BODY, 1, b"cd"), 0.0)
    bodies = [channel.next_arrival().content.body for channel in server.take_touched()]  # type: ignore[union-attr]
    assert bodies == [b"hello", b"abcd"]


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


def test_content_that_is_too_large_closes_the_channel_and_its_body_is_dropped() -> None:
    server = open_server(Limits(max_message_size=4))
    server.receive_data(published(b"12345") + published(b"6789") + written(spec.QueueDeclare(), 1), 0.0)
    assert codes(server) == [("channel.close", 406, (60, 40))]
    assert server.partial == 0
    assert refused(PUBLISH + head((1 << 64) - 1)) == ("channel.close", 406, (60, 40))


def test_contents_that_are_never_completed_are_bounded_together() -> None:
    assert refused(PUBLISH + head(50) + frame(BODY, 1, bytes(30)), Limits(max_partial=20)) == (
        "connection.close",
        506,
        (60, 40),
    )


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


def test_answers_are_matched_with_requests_first_in_first_out() -> None:
    pair = connected()
    ours, theirs = pair.channels()
    first, second = spec.QueueDeclare(queue="a"), spec.QueueDeclare(queue="b")
    get = spec.BasicGet(queue="a")
    for request in (first, get, second, spec.QueueDeclare(queue="c", no_wait=True)):
        ours.send(request)
    pair.run()
    assert len(arrivals_of(theirs)) == 4
    for answer in (spec.QueueDeclareOk(queue="a"), spec.QueueDeclareOk(queue="b"), spec.BasicGetEmpty()):
        theirs.send(answer)
    pair.run()
    assert [arrival.request for arrival in arrivals_of(ours)] == [first, second, get]
    with pytest.raises(LocalProtocolError, match="answers no request"):
        theirs.send(spec.QueueDeclareOk())
    with pytest.raises(ReplyError, match="answers no request"):
        pair.client.receive_data(written(spec.BasicGetEmpty(), 1), 0.0)


def test_confirms_settle_publishes_by_number() -> None:
    pair = connected()
    ours, theirs = pair.channels()
    ours.send(spec.ConfirmSelect())
    assert [ours.send(spec.BasicPublish(), HELLO) for _ in range(5)] == [1, 2, 3, 4, 5]
    pair.run()
    assert [arrival.number for arrival in arrivals_of(theirs)] == [0, 1, 2, 3, 4, 5]
    theirs.send(spec.ConfirmSelectOk())
    theirs.send(spec.BasicNack(delivery_tag=4))
    theirs.send(spec.BasicAck(delivery_tag=3, multiple=True))
    for tag in (3, 6, 0):
        with pytest.raises(LocalProtocolError, match="waits for a confirm"):
            theirs.send(spec.BasicAck(delivery_tag=tag))
    with pytest.raises(LocalProtocolError, match="waits for a confirm"):
        theirs.send(spec.BasicAck(delivery_tag=0, multiple=True))
    pair.run()
    assert [arrival.tags for arrival in arrivals_of(ours)] == [(), (4,), (1, 2, 3)]
    pair.client.receive_data(written(spec.BasicAck(delivery_tag=4, multiple=True), 1), 0.0)
    assert [arrival.tags for arrival in arrivals_of(ours)] == [()]
    pair.client.receive_data(written(spec.BasicAck(delivery_tag=9, multiple=True), 1), 0.0)
    assert codes(pair.client) == [("channel.close", 406, (60, 80))]


def test_deliveries_are_numbered_and_settled_at_both_ends() -> None:
    pair = connected()
    ours, theirs = pair.channels()
    consuming(pair, ours, theirs)
    consuming(pair, ours, theirs, "quiet", no_ack=True)
    for tag, consumer in enumerate(("t", "quiet", "t", "t"), 1):
        theirs.send(spec.BasicDeliver(consumer_tag=consumer, delivery_tag=tag), HELLO)
    for wrong in (
        spec.BasicDeliver(consumer_tag="t", delivery_tag=9),
        spec.BasicDeliver(consumer_tag="x", delivery_tag=5),
    ):
        with pytest.raises(LocalProtocolError):
            theirs.send(wrong, HELLO)
    pair.run()
    assert [arrival.method for arrival in arrivals_of(ours)] == [
        spec.BasicDeliver(consumer_tag=consumer, delivery_tag=tag)
        for tag, consumer in enumerate(("t", "quiet", "t", "t"), 1)
    ]
    with pytest.raises(LocalProtocolError, match="unknown delivery tag 2"):
        ours.send(spec.BasicAck(delivery_tag=2))
    ours.send(spec.BasicAck(delivery_tag=3, multiple=True))
    ours.send(spec.BasicReject(delivery_tag=4))
    ours.send(spec.BasicNack(delivery_tag=0, multiple=True))
    pair.run()
    assert [arrival.tags for arrival in arrivals_of(theirs)] == [(1, 3), (4,), ()]
    assert len(theirs.numbers.deliveries) == len(ours.numbers.deliveries) == 0


def test_client_refuses_delivery_tags_that_do_not_rise() -> None:
    client, channel = open_client()
    channel.send(spec.BasicConsume(consumer_tag="t"))
    client.receive_data(written(spec.BasicConsumeOk(consumer_tag="t"), 1), 0.0)
    octets = written(spec.BasicDeliver(consumer_tag="t", delivery_tag=1), 1) + head(0)
    with pytest.raises(ReplyError, match="delivery tag 1 after 1"):
        client.receive_data(octets * 2, 0.0)


def test_delivery_for_no_consumer_is_an_error_of_the_server() -> None:
    client, channel = open_client()
    channel.send(spec.BasicConsume(consumer_tag="t", no_wait=True))
    channel.send(spec.BasicConsume(consumer_tag="quiet", no_ack=True, no_wait=True))
    channel.send(spec.BasicCancel(consumer_tag="t", no_wait=True))
    channel.send(spec.BasicCancel(consumer_tag="quiet", no_wait=True))
    channel.send(spec.BasicCancel(consumer_tag="nobody", no_wait=True))
    for tag, consumer in enumerate(("t", "quiet"), 1):  # under way when they were cancelled
        client.receive_data(
            written(spec.BasicDeliver(consumer_tag=consumer, delivery_tag=tag), 1) + head(0), 0.0
        )
    assert len(channel.numbers.deliveries) == 1
    assert 1 in channel.numbers.deliveries
    with pytest.raises(ReplyError, match="a delivery for 'other', which is no consumer") as caught:
        client.receive_data(
            written(spec.BasicDeliver(consumer_tag="other", delivery_tag=3), 1) + head(0), 0.0
        )
    assert caught.value.code == 503


def test_recover_puts_all_deliveries_back() -> None:
    pair = connected()
    ours, theirs = pair.channels()
    consuming(pair, ours, theirs)
    for tag, recover in ((1, spec.BasicRecover(requeue=True)), (2, spec.BasicRecoverAsync(requeue=True))):
        theirs.send(spec.BasicDeliver(consumer_tag="t", delivery_tag=tag), HELLO)
        pair.run()
        ours.send(recover)
        pair.run()
        if tag == 1:
            theirs.send(spec.BasicRecoverOk())
            pair.run()
        assert len(theirs.numbers.deliveries) == len(ours.numbers.deliveries) == 0


def test_rollback_makes_what_was_settled_unsettled_again() -> None:
    pair = connected()
    ours, theirs = pair.channels()
    consuming(pair, ours, theirs)
    for select in (spec.TxCommit(), spec.TxRollback()):
        with pytest.raises(LocalProtocolError, match=r"tx\.select"):
            ours.send(select)
    ours.send(spec.TxSelect())
    with pytest.raises(LocalProtocolError, match="has transactions"):
        ours.send(spec.ConfirmSelect())
    pair.run()
    for tag in (1, 2, 3):
        theirs.send(spec.BasicDeliver(consumer_tag="t", delivery_tag=tag), HELLO)
    pair.run()
    ours.send(spec.BasicAck(delivery_tag=1))
    ours.send(spec.TxCommit())
    ours.send(spec.BasicAck(delivery_tag=2))
    ours.send(spec.TxRollback())
    pair.run()
    for numbers in (ours.numbers, theirs.numbers):
        assert numbers.deliveries.settle(3, multiple=True) == (2, 3)


def test_confirms_and_transactions_exclude_each_other_here_too() -> None:
    _, channel = open_client()
    channel.send(spec.ConfirmSelect())
    channel.send(spec.ConfirmSelect())
    with pytest.raises(LocalProtocolError, match="has confirms"):
        channel.send(spec.TxSelect())


def test_consumers_have_tags_of_their_own() -> None:
    pair = connected()
    ours, theirs = pair.channels()
    consuming(pair, ours, theirs, "")
    assert ours.numbers.consumers == theirs.numbers.consumers == {"made-up": False}
    consuming(pair, ours, theirs, "now", no_wait=True, no_ack=True)
    for wrong in (spec.BasicConsume(consumer_tag="now"), spec.BasicConsume(no_wait=True)):
        with pytest.raises(LocalProtocolError):
            ours.send(wrong)
    ours.send(spec.BasicConsume(consumer_tag="mine"))
    pair.run()
    with pytest.raises(LocalProtocolError, match="no consumer 'mine'"):
        theirs.send(spec.BasicDeliver(consumer_tag="mine", delivery_tag=1), HELLO)
    with pytest.raises(LocalProtocolError, match="chose the tag"):
        theirs.send(spec.BasicConsumeOk(consumer_tag="other"))
    theirs.send(spec.BasicConsumeOk(consumer_tag="mine"))
    ours.send(spec.BasicConsume())
    pair.run()
    for tag in ("", "now"):
        with pytest.raises(LocalProtocolError, match="new and not empty"):
            theirs.send(spec.BasicConsumeOk(consumer_tag=tag))


def test_server_may_register_a_consumer_that_waits_for_no_tag() -> None:
    server = open_server()
    server.receive_data(written(spec.BasicConsume(no_wait=True), 1), 0.0)
    (channel,) = server.take_touched()
    assert channel.numbers.consumers == {}
    channel.numbers.consumers["made-up"] = True
    channel.send(spec.BasicDeliver(consumer_tag="made-up", delivery_tag=1), HELLO)


def test_consumers_are_cancelled_by_either_end() -> None:
    pair = connected()
    ours, theirs = pair.channels()
    for tag in "abc":
        consuming(pair, ours, theirs, tag)
    ours.send(spec.BasicCancel(consumer_tag="a"))
    ours.send(spec.BasicCancel(consumer_tag="b", no_wait=True))
    pair.run()
    theirs.send(spec.BasicCancelOk(consumer_tag="a"))
    theirs.send(spec.BasicCancel(consumer_tag="c", no_wait=True))
    pair.run()
    assert ours.numbers.consumers == theirs.numbers.consumers == {}
    theirs.send(spec.BasicCancel(consumer_tag="d"))
    pair.run()
    ours.send(spec.BasicCancelOk(consumer_tag="d"))
    pair.run()
    assert methods_of(theirs)[-1] == "basic.cancel-ok"


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


def test_closing_amid_a_content_forgets_it() -> None:
    server = open_server(channels=0)
    server.receive_data(written(spec.ChannelOpen(), 1), 0.0)
    (event,) = events_of(server)
    assert isinstance(event, ChannelOpened)
    server.receive_data(PUBLISH + head(10) + frame(BODY, 1, b"123"), 0.0)
    assert server.partial
    event.channel.close(541, "INTERNAL_ERROR", 60, 40)
    assert server.partial == 0
    server.receive_data(frame(BODY, 1, b"4567890"), 0.0)
    assert arrivals_of(event.channel) == []


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


def test_tag_0_with_multiple_settles_all_that_is_out() -> None:
    pair = Pair()
    pair.run()
    ours, theirs = pair.channels()
    theirs.numbers.consumers["c"] = ours.numbers.consumers["c"] = False
    for tag in (1, 2, 3):
        theirs.send(spec.BasicDeliver(consumer_tag="c", delivery_tag=tag), HELLO)
    pair.run()
    arrivals_of(ours)
    ours.send(spec.BasicAck(delivery_tag=2))
    ours.send(spec.BasicAck(delivery_tag=0, multiple=True))
    pair.run()
    assert [each.tags for each in arrivals_of(theirs)] == [(2,), (1, 3)]
    assert len(theirs.numbers.deliveries) == len(ours.numbers.deliveries) == 0
