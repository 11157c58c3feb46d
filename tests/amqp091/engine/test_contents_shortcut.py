"""The hot path by hand does what the generic path does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.amqp091.pairs import connected, open_client, open_server, written
from tests.engine_pairs import arrivals_of, events_of, refusal
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.contents_shortcut import (
    NO_PROPERTIES,
    DeliverNames,
    arrival_of,
    deliver_parts,
    deliver_tag,
    extent,
    publish_prefix,
    publish_rest,
    read_deliver,
    read_properties,
    read_publish,
    shared_properties,
)
from trio_amqp10.amqp091.engine.events import Arrival
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.wire.content import BasicProperties, Content, write_header
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.fields import STRICT, USUAL
from trio_amqp10.amqp091.wire.frames import BODY, HEADER, METHOD, body_frames, frame
from trio_amqp10.core.errors import LocalProtocolError

if TYPE_CHECKING:
    from trio_amqp10.amqp091.wire.methods import Method

names = st.text(max_size=20).map(lambda text: text.replace("\0", ""))
contents = st.builds(
    Content,
    st.builds(BasicProperties, message_id=st.none() | names, priority=st.none() | st.integers(0, 255)),
    st.binary(max_size=40),
)
delivers = st.builds(
    spec.BasicDeliver,
    consumer_tag=names,
    delivery_tag=st.integers(1, 2**64 - 1),
    redelivered=st.booleans(),
    exchange=names,
    routing_key=names,
)


def framed(method: Method, content: Content, channel: int = 1, largest: int = 4088) -> bytes:
    """The frames of a method with content, by the generic path."""
    header = frame(HEADER, channel, write_header(content, USUAL))
    return b"".join((written(method, channel), header, *body_frames(channel, content.body, largest)))


@given(delivers)
def test_deliver_is_read_as_the_generic_path_reads_it(deliver: spec.BasicDeliver) -> None:
    payload = deliver.plan.write(deliver, USUAL)
    assert read_deliver(payload, {}) == deliver


@given(st.lists(delivers, max_size=8), st.permutations(range(8)))
def test_deliver_is_read_the_same_after_any_others(
    several: list[spec.BasicDeliver], order: list[int]
) -> None:
    known: DeliverNames = {}
    for deliver in [*several, *(several[n] for n in order if n < len(several))]:
        assert read_deliver(deliver.plan.write(deliver, USUAL), known) == deliver


def test_names_of_deliveries_that_are_remembered_are_bounded() -> None:
    known: DeliverNames = {}
    for n in range(1000):
        deliver = spec.BasicDeliver(consumer_tag="c", delivery_tag=n, routing_key=f"key-{n}")
        assert read_deliver(deliver.plan.write(deliver, USUAL), known) == deliver
        assert len(known) <= 256


@given(delivers, contents)
def test_arrival_by_hand_is_that_of_the_generic_path(deliver: spec.BasicDeliver, content: Content) -> None:
    content = Content(content.properties, content.body)
    found = arrival_of(deliver, content.properties.encode(USUAL), content.body, USUAL)
    client, channel = open_client()
    channel.numbers.consumers[deliver.consumer_tag] = True
    for octet in framed(deliver, content):  # one by one, so that no content comes whole
        client.receive_data(bytes([octet]), 0.0)
    assert arrivals_of(channel) == [found]
    assert type(found) is Arrival
    assert type(found.content) is Content


@pytest.mark.parametrize("step", [1, 1000])
def test_client_reads_a_return_however_its_octets_come(step: int) -> None:
    client, channel = open_client()
    method = spec.BasicReturn(reply_code=312, reply_text="NO_ROUTE", routing_key="q")
    octets = framed(method, Content(BasicProperties(message_id="m"), b"tea"))
    for start in range(0, len(octets), step):
        client.receive_data(octets[start : start + step], 0.0)
    [arrival] = arrivals_of(channel)
    assert arrival.method == method
    assert arrival.content is not None
    assert (arrival.content.properties.message_id, arrival.content.body) == ("m", b"tea")


@given(delivers, st.integers(0, 80), st.binary(max_size=3))
def test_deliver_that_is_malformed_is_left_to_the_generic_path(
    deliver: spec.BasicDeliver, cut: int, more: bytes
) -> None:
    payload = deliver.plan.write(deliver, USUAL)
    payload = payload[: max(4, len(payload) - cut)] + more
    found = read_deliver(payload, {})
    fault = refusal(deliver.plan.read, payload, USUAL)
    if found is None:
        assert fault is not None or "\0" in str(payload) or more
    else:
        assert fault is None
        assert deliver.plan.read(payload, USUAL) == found


@pytest.mark.parametrize("name", ["a\0b", "\udcff"])
def test_deliver_with_an_odd_name_is_left_to_the_generic_path(name: str) -> None:
    payload = b"\0\x3c\0\x3c\x01t" + bytes(8) + b"\0\0\x03" + name.encode("utf-8", "surrogateescape").ljust(3)
    assert read_deliver(payload, {}) is None


@given(names, names, st.booleans(), contents, st.booleans())
def test_publish_is_written_as_the_generic_path_writes_it(
    exchange: str, key: str, mandatory: bool, content: Content, encoded: bool
) -> None:
    method = spec.BasicPublish(exchange=exchange, routing_key=key, mandatory=mandatory)
    if encoded:
        content = Content(content.properties, content.body, content.properties.encode(USUAL))
    octets = publish_prefix(1, exchange, key, mandatory, USUAL, 4088)
    octets += b"".join(publish_rest(1, content, USUAL, 4088, 4088))
    assert octets == framed(method, content)


@given(names, names, names, st.booleans(), contents, st.integers(1, 2**64 - 1))
def test_deliver_is_written_as_the_generic_path_writes_it(
    consumer: str, exchange: str, key: str, redelivered: bool, content: Content, tag: int
) -> None:
    method = spec.BasicDeliver(
        consumer_tag=consumer,
        delivery_tag=tag,
        redelivered=redelivered,
        exchange=exchange,
        routing_key=key,
    )
    front, back = deliver_parts(1, consumer, exchange, key, USUAL, 4088)
    octets = front + deliver_tag(tag, redelivered) + back
    octets += b"".join(publish_rest(1, content, USUAL, 4088, 4088))
    assert octets == framed(method, content)


def test_deliver_of_a_channel_is_numbered_and_bounded() -> None:
    pair = connected()
    client, server = pair.channels()
    client.send(spec.BasicConsume(queue="q", consumer_tag="c"))
    pair.run()
    server.send(spec.BasicConsumeOk(consumer_tag="c"))
    content = Content(BasicProperties(), b"x", NO_PROPERTIES)
    tags = [server.deliver("c", "", f"k{n % 300}", content, redelivered=n == 599) for n in range(600)]
    assert tags == list(range(1, 601))
    assert [server.deliver("c", "", "k", content) for _ in range(2)] == [601, 602]
    assert server.numbers.deliveries.last == 602
    pair.run()
    found = arrivals_of(client)[-3].method
    assert (found.delivery_tag, found.routing_key, found.redelivered) == (600, "k299", True)


def test_deliver_of_a_channel_that_cannot_says_so() -> None:
    pair = connected()
    client, server = pair.channels()
    content = Content(BasicProperties(), b"")
    with pytest.raises(LocalProtocolError, match="no consumer 'c'"):
        server.deliver("c", "", "", content)
    with pytest.raises(LocalProtocolError):
        client.deliver("c", "", "", content)
    client.send(spec.BasicConsume(queue="q", consumer_tag="c", no_ack=True))
    pair.run()
    server.send(spec.BasicConsumeOk(consumer_tag="c"))
    with pytest.raises(LocalProtocolError):
        server.deliver("c", "", "x" * 300, content)
    with pytest.raises(LocalProtocolError):
        server.deliver("c", "", "", Content(BasicProperties(message_id="x" * 300), b""))
    assert server.numbers.deliveries.last == 0
    server.flowing = False
    with pytest.raises(LocalProtocolError, match="stopped the flow"):
        server.deliver("c", "", "", content)


def test_publish_and_properties_are_read_once_for_the_same_octets() -> None:
    method = spec.BasicPublish(exchange="e", routing_key="k", mandatory=True)
    payload = method.plan.write(method, USUAL)
    assert read_publish(payload) == method
    assert read_publish(payload) is read_publish(bytes(bytearray(payload)))
    octets = BasicProperties(content_type="a/b").encode(USUAL)
    assert shared_properties(octets, USUAL) is shared_properties(bytes(bytearray(octets)), USUAL)
    assert shared_properties(octets, STRICT) == BasicProperties(content_type="a/b")
    long = BasicProperties(message_id="m" * 60).encode(USUAL)
    assert shared_properties(long, USUAL) == BasicProperties(message_id="m" * 60)
    assert shared_properties(long, USUAL) is not shared_properties(long, USUAL)


def test_publish_splits_what_a_frame_does_not_take() -> None:
    content = Content(BasicProperties(), bytes(9000), NO_PROPERTIES)
    assert (
        b"".join(publish_rest(1, content, USUAL, 4088, 4088))
        == framed(spec.BasicPublish(), content)[len(written(spec.BasicPublish(), 1)) :]
    )
    with pytest.raises(LocalProtocolError, match="exceed the largest frame payload"):
        publish_rest(1, Content(BasicProperties(), b"", bytes(5000)), USUAL, 4088, 4088)


def test_publish_of_an_empty_body_has_a_header_alone() -> None:
    content = Content(BasicProperties(), b"", NO_PROPERTIES)
    rest = b"".join(publish_rest(1, content, USUAL, 4088, 4088))
    assert written(spec.BasicPublish(), 1) + rest == framed(spec.BasicPublish(), content)


def test_publish_of_a_channel_is_numbered_and_bounded() -> None:
    pair = connected()
    ours, theirs = pair.channels()
    content = Content(BasicProperties(), b"x", NO_PROPERTIES)
    assert [ours.publish("", "q", content) for _ in range(2)] == [0, 0]
    ours.send(spec.ConfirmSelect())
    pair.run()
    assert [ours.publish("", f"q{n % 300}", content, mandatory=True) for n in range(600)] == list(
        range(1, 601)
    )
    pair.run()
    found = arrivals_of(theirs)
    assert len(found) == 603
    assert (found[-1].number, found[-1].method.routing_key, found[-1].method.mandatory) == (600, "q299", True)


def test_publish_of_a_channel_that_cannot_says_so() -> None:
    client, channel = open_client()
    channel.flowing = False
    content = Content(BasicProperties(), b"")
    with pytest.raises(LocalProtocolError, match="stopped the flow"):
        channel.publish("", "q", content)
    channel.flowing = True
    with pytest.raises(LocalProtocolError):
        channel.publish("x" * 300, "q", content)
    channel.close()
    with pytest.raises(LocalProtocolError, match="close_sent"):
        channel.publish("", "q", content)
    assert client.is_open


# -- receiving ------------------------------------------------------------------------------

WHOLE = framed(spec.BasicDeliver(consumer_tag="c", delivery_tag=1), Content(BasicProperties(), b"tea"))


def test_extent_finds_the_three_frames() -> None:
    found = extent(bytearray(b"xx" + WHOLE + b"rest"), 2, 4088)
    assert found is not None
    assert (found[0], found[-1]) == (1, 2 + len(WHOLE))
    empty = framed(spec.BasicDeliver(delivery_tag=1), Content(BasicProperties(), b""))
    found = extent(bytearray(empty), 0, 4088)
    assert found is not None
    assert found[-3:] == (len(empty), len(empty), len(empty))


@pytest.mark.parametrize("size", range(len(WHOLE)))
def test_extent_waits_for_the_last_octet(size: int) -> None:
    assert extent(bytearray(WHOLE[:size]), 0, 4088) is None


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
def test_engine_answers_a_changed_octet_as_if_it_came_octet_by_octet(place: int, octet: int) -> None:
    octets = bytearray(WHOLE)
    octets[place] = octet
    outcomes = []
    for step in (1, len(octets)):
        client, channel = open_client()
        channel.numbers.consumers["c"] = False
        fault = None
        for start in range(0, len(octets), step):
            fault = fault or refusal(client.receive_data, bytes(octets[start : start + step]), 0.0)
        outcomes.append(
            (
                str(fault),
                client.state,
                [(each.method, each.content, each.size) for each in arrivals_of(channel)],
                client.data_to_send(),
                len(events_of(client)),
                client.partial,
                client.held,
            )
        )
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize(
    "limits", [Limits(max_message_size=2), Limits(max_partial=4), Limits(max_message_size=100)]
)
def test_engine_holds_limits_however_the_octets_come(limits: Limits) -> None:
    outcomes = []
    for step in (1, len(WHOLE)):
        client, channel = open_client(limits)
        faults = [refusal(client.receive_data, WHOLE[n : n + step], 0.0) for n in range(0, len(WHOLE), step)]
        outcomes.append((str(max(faults, key=str)), channel.state, client.data_to_send()))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("step", [1, 1000])
def test_server_reads_a_publish_however_its_octets_come(step: int) -> None:
    server = open_server()
    method = spec.BasicPublish(routing_key="q")
    good = framed(method, Content(BasicProperties(user_id="ada"), b"1"))
    bad = framed(method, Content(BasicProperties(expiration="soon"), b"2"))
    octets = good + bad
    for start in range(0, len(octets), step):
        server.receive_data(octets[start : start + step], 0.0)
    [channel] = server._channels.values()
    assert channel.next_arrival() is not None
    assert channel.has_arrivals
    with pytest.raises(ReplyError, match="invalid expiration") as caught:
        channel.next_arrival()
    assert (caught.value.code, channel.has_arrivals, channel.next_arrival()) == (406, False, None)


@pytest.mark.parametrize("confirming", [False, True])
@given(
    st.lists(st.tuples(contents, st.booleans(), st.booleans(), st.sampled_from((0, 0, 20_000))), max_size=3),
    st.integers(1, 60_000),
)
def test_publishes_that_come_whole_are_read_as_those_that_come_octet_by_octet(
    confirming: bool, publishes: list[tuple[Content, bool, bool, int]], step: int
) -> None:
    octets = b"".join(
        framed(
            spec.BasicPublish(exchange="e", routing_key="k", mandatory=mandatory, immediate=immediate),
            content._replace(body=content.body + bytes(more)),
            largest=100_000,
        )
        for content, mandatory, immediate, more in publishes
    )
    outcomes: list[Any] = []
    for size in (7, step, len(octets) or 1):
        server = open_server()
        opened: list[Any] = []
        if confirming:
            server.receive_data(written(spec.ConfirmSelect(no_wait=True), 1), 0.0)
        faults: list[Any] = []
        for start in range(0, len(octets), size):
            faults.append(refusal(server.receive_data, octets[start : start + size], 0.0))
            opened += server.take_touched()
        found = [arrival for channel in dict.fromkeys(opened) for arrival in arrivals_of(channel)]
        outcomes.append(
            (next((str(each) for each in faults if each), None), found, server.partial, server.held)
        )
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_slice_takes_64_contents_that_are_whole() -> None:
    server = open_server()
    octets = framed(spec.BasicPublish(routing_key="q"), Content(BasicProperties(), b"1"))
    server.receive_slice(octets * 64, 0.0)
    assert not server.has_input()
    server.receive_slice(octets * 65, 0.0)
    assert server.has_input()


def test_engine_takes_contents_of_channels_that_are_closed_or_unknown_singly() -> None:
    client, channel = open_client()
    channel.close()
    client.receive_data(WHOLE, 0.0)
    assert not arrivals_of(channel)
    fault = refusal(client.receive_data, framed(spec.BasicDeliver(), Content(BasicProperties(), b""), 9), 0.0)
    assert fault is not None
    assert fault.code == 504


def test_engine_takes_a_deliver_with_a_name_that_may_not_be_singly() -> None:
    client, channel = open_client()
    fault = refusal(client.receive_data, WHOLE.replace(b"\x01c", b"\x01\0"), 0.0)
    assert fault is not None
    assert fault.code == 502
    assert not arrivals_of(channel)


def test_engine_takes_answers_with_contents_singly() -> None:
    client, channel = open_client()
    channel.send(spec.BasicGet(queue="q"))
    client.receive_data(framed(spec.BasicGetOk(delivery_tag=1), Content(BasicProperties(), b"1")), 0.0)
    [arrival] = arrivals_of(channel)
    assert isinstance(arrival.request, spec.BasicGet)


def test_properties_that_are_absent_cost_nothing() -> None:
    assert read_properties(NO_PROPERTIES, USUAL) == BasicProperties()
    octets = BasicProperties(priority=1).encode(USUAL)
    assert read_properties(octets, USUAL) == BasicProperties(priority=1)


@pytest.mark.parametrize(
    "octets",
    [
        frame(METHOD, 1, b"\0\x3c\0\x3c") + frame(BODY, 1, bytes(30)),
        frame(METHOD, 1, b"\0\x3c\0\x3c") + frame(HEADER, 1, b"\0\x3c" + bytes(10)) + bytes(30),
        frame(METHOD, 1, b"\0\x32\0\x0a" + bytes(40)),
        WHOLE[:-1] + b"\0",
    ],
)
def test_extent_leaves_what_is_no_content_to_the_generic_path(octets: bytes) -> None:
    assert extent(bytearray(octets), 0, 4088) is None


# -- tags, room and the crossing of closes --------------------------------------------------


def test_engine_reports_room_and_wakes_channels_when_there_is_room_again() -> None:
    client, channel = open_client(Limits(write_buffer=100))
    assert client.has_room
    channel.publish("", "q", Content(BasicProperties(), bytes(200)))
    assert client.queued > 200
    assert not client.has_room
    client.take_touched()
    assert client.data_to_send()
    assert client.has_room
    assert client.take_touched() == [channel]
    client.transport_lost()
    assert client.queued == 0


def test_error_of_the_server_that_crosses_our_close_is_reported() -> None:
    client, channel = open_client()
    channel.close()
    close: Any = spec.ChannelClose(reply_code=404, reply_text="NOT_FOUND", class_id=60, method_id=40)
    client.receive_data(written(close, 1) + written(spec.ChannelCloseOk(), 1), 0.0)
    [event] = events_of(client)
    assert (event.close, event.by_peer) == (close, True)
