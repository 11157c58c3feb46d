"""What a channel keeps count of: answers, confirms, deliveries, consumers, and what a transaction takes back."""

from __future__ import annotations

import pytest

from tests.amqp091.pairs import (
    HELLO,
    Pair,
    codes,
    connected,
    consuming,
    head,
    methods_of,
    open_client,
    open_server,
    written,
)
from tests.engine_pairs import arrivals_of
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.bookkeeping import ChannelNumbers, check_properties
from trio_amqp10.amqp091.wire.content import BasicProperties
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.core.errors import LocalProtocolError


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
    with pytest.raises(ReplyError, match="a delivery for the unknown consumer 'other'") as caught:
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
        with pytest.raises(LocalProtocolError, match="expected a new tag that is not empty"):
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


@pytest.mark.parametrize("expiration", ["0", "60000", "+60000"])
def test_expiration_is_a_number_of_milliseconds_with_or_without_a_sign(expiration: str) -> None:
    numbers = ChannelNumbers(None)
    check_properties(numbers, BasicProperties(expiration=expiration))
    with pytest.raises(ReplyError, match="invalid expiration"):
        check_properties(numbers, BasicProperties(expiration=f"+{expiration}x"))
