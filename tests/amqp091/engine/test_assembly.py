"""Contents are put together of frames, within their bounds."""

from __future__ import annotations

import pytest

from tests.amqp091.pairs import HELLO, PUBLISH, Pair, codes, head, open_server, published, refused, written
from tests.engine_pairs import arrivals_of, events_of
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.events import ChannelOpened
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.wire.content import BasicProperties, Content, write_header
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.amqp091.wire.frames import BODY, HEADER, frame


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
