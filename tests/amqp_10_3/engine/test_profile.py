"""The engine of 10.3, where it differs from that of 0-9-1: redirects, contents, alerts, clusters."""

from __future__ import annotations

from typing import Any

import pytest

from tests.amqp_10_3.pairs import (
    Pair,
    client_engine,
    connected,
    open_client,
    open_server,
    said,
    server_engine,
    written,
)
from tests.engine_pairs import arrivals_of, events_of, refusal
from trio_amqp10.amqp091.engine.events import (
    ChallengeAnswered,
    Challenged,
    ChannelClosed,
    ClusterReceived,
    ConnectionClosed,
    ConnectionOpened,
    ContentAborted,
    OpenRequested,
    Redirected,
)
from trio_amqp10.amqp091.engine.states import ChannelState, ConnectionState
from trio_amqp10.amqp091.wire.content import BasicProperties, Content, write_header
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.fields import FIVE
from trio_amqp10.amqp091.wire.frames import BODY, HEADER
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.wire.frames import FRAMES, PROTOCOL_HEADER
from trio_amqp10.amqp_10_3.wire.properties import (
    FileProperties,
    StreamProperties,
    TestProperties,
    TunnelProperties,
)
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.reply_codes import ReplyCode091

HELLO = Content(BasicProperties(content_type="text/plain"), b"hello")


def header(content: Content, class_id: int, channel: int = 1) -> bytes:
    return FRAMES.frame(HEADER, channel, write_header(content, FIVE, class_id))


# -- the connection -------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [0, 1, 7])
def test_client_and_server_agree(chunk: int) -> None:
    pair = connected(chunk=chunk)
    assert pair.client.is_open
    assert pair.server.is_open
    assert ConnectionOpened("h2:5672") in pair.events["client"]
    assert (pair.client.frame_max, pair.client.heartbeat) == (131_072, 60)
    assert pair.client.largest_payload == 131_072 - 9


def test_client_of_another_version_gets_our_header() -> None:
    server = server_engine()
    assert refusal(server.receive_data, b"AMQP\0\0\x09\x01", 0.0) is not None
    assert server.data_to_send() == PROTOCOL_HEADER
    assert server.data_to_send() is None


@pytest.mark.parametrize("version", [(0, 9), (10, 4), (11, 3)])
def test_client_closes_when_the_server_proposes_another_version(version: tuple[int, int]) -> None:
    client = client_engine()
    client.data_to_send()
    start = spec.ConnectionStart(version_major=version[0], version_minor=version[1])
    fault = refusal(client.receive_data, written(start), 0.0)
    assert fault is not None
    assert f"{version[0]}-{version[1]}" in str(fault)
    assert client.data_to_send() is None


def test_client_is_redirected_and_both_are_done() -> None:
    pair = connected(redirect="h2:5672")
    assert pair.events["client"][-1] == Redirected("h2:5672", "h3:5672")
    assert pair.client.state is pair.server.state is ConnectionState.CLOSED
    assert pair.server.awaits_eof()
    assert pair.client.data_to_send() is pair.server.data_to_send() is None


def test_client_that_insists_is_not_redirected() -> None:
    pair = connected(redirect="h2:5672", opening={"insist": True, "capabilities": "x"})
    assert OpenRequested("/", insist=True) in pair.events["server"]
    assert pair.client.is_open


def test_redirect_has_its_time() -> None:
    server = open_server()
    with pytest.raises(LocalProtocolError):
        server.redirect("h2")
    client, _ = open_client()
    fault = refusal(client.receive_data, written(spec.ConnectionRedirect(host="h2")), 0.0)
    assert fault is not None
    assert fault.code == 503


def test_version_without_a_method_does_not_send_it() -> None:
    pair = connected()
    assert not pair.server.block("low on memory")
    assert not pair.server.unblock()
    with pytest.raises(LocalProtocolError, match=r"update-secret"):
        pair.client.update_secret(b"")


def test_challenges_go_on_until_the_login_is_decided() -> None:
    client, server = client_engine(), server_engine()
    server.receive_data(client.data_to_send() or b"", 0.0)
    client.receive_data(server.data_to_send() or b"", 0.0)
    client.answer_start(spec.ConnectionStartOk(mechanism="X"), 0.0)
    for token in (b"1", b"2"):
        server.receive_data(client.data_to_send() or b"", 0.0)
        server.challenge(token, 0.0)
        client.receive_data(server.data_to_send() or b"", 0.0)
        assert events_of(client)[-1] == Challenged(token)
        client.answer_challenge(token * 2, 0.0)
    server.receive_data(client.data_to_send() or b"", 0.0)
    assert events_of(server)[-2:] == [ChallengeAnswered(b"11"), ChallengeAnswered(b"22")]
    server.accept_login("ada", 0.0)
    assert [name for _, name, _ in said(server)] == ["connection.tune"]


def test_507_is_read_as_530() -> None:
    client, channel = open_client()
    client.receive_data(written(spec.ChannelClose(reply_code=507), 1), 0.0)
    client.receive_data(written(spec.ConnectionClose(reply_code=507)), 0.0)
    channel_closed, connection_closed = events_of(client)
    assert isinstance(channel_closed, ChannelClosed)
    assert isinstance(connection_closed, ConnectionClosed)
    assert channel_closed.channel is channel
    assert channel_closed.close.reply_code == connection_closed.close.reply_code == 530


def test_507_of_a_close_that_crosses_ours_is_read_as_530() -> None:
    client, channel = open_client()
    channel.close()
    client.receive_data(written(spec.ChannelClose(reply_code=507), 1), 0.0)
    (closed,) = events_of(client)
    assert closed.close.reply_code == 530


# -- contents -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sender", "method", "properties"),
    [
        ("client", spec.BasicPublish(ticket=1, exchange="e"), BasicProperties(priority=3, headers={"n": 1})),
        ("client", spec.StreamPublish(exchange="e"), StreamProperties(content_type="a/b")),
        ("client", spec.FileStage(), FileProperties(filename="f.txt", message_id="m")),
        ("server", spec.FileStage(), FileProperties(cluster_id="c")),
        ("client", spec.TunnelRequest(meta_data={"a": "b"}), TunnelProperties(proxy_name="p", durable=1)),
        ("server", spec.TunnelRequest(), TunnelProperties(broadcast=1)),
        ("server", spec.BasicReturn(reply_code=313), BasicProperties()),
        ("server", spec.StreamReturn(reply_code=313), StreamProperties(priority=9)),
        ("server", spec.FileReturn(reply_code=313), FileProperties()),
    ],
    ids=lambda each: each.plan.name if hasattr(each, "plan") else None,
)
@pytest.mark.parametrize("size", [0, 1, 5000])
def test_content_arrives_with_the_properties_of_its_class(
    sender: str, method: Any, properties: Any, size: int
) -> None:
    pair = connected(chunk=100)
    ours, theirs = pair.channels()
    source, target = (ours, theirs) if sender == "client" else (theirs, ours)
    source.send(method, Content(properties, bytes(size)))
    pair.run()
    (arrival,) = arrivals_of(target)
    assert arrival.method == method
    assert arrival.content.properties == properties
    assert arrival.content.body == bytes(size)
    assert arrival.content.octets == properties.encode(FIVE)


def test_deliveries_have_tags_as_in_0_9_1_and_streams_need_no_settling() -> None:
    pair = connected()
    ours, theirs = pair.channels()
    for request in (
        spec.BasicConsume(consumer_tag="b"),
        spec.FileConsume(consumer_tag="f"),
        spec.StreamConsume(consumer_tag="s"),
    ):
        ours.send(request)
    pair.run()
    for answer in (spec.BasicConsumeOk, spec.FileConsumeOk, spec.StreamConsumeOk):
        theirs.send(answer(consumer_tag=answer.plan.name[0]))
    theirs.deliver("b", "e", "k", HELLO, redelivered=True)
    theirs.send(spec.FileDeliver(consumer_tag="f", delivery_tag=2, identifier="i"))
    theirs.send(spec.StreamDeliver(consumer_tag="s", delivery_tag=3), Content(StreamProperties(), b""))
    pair.run()
    assert [type(each.method).__name__ for each in arrivals_of(ours)][3:] == [
        "BasicDeliver",
        "FileDeliver",
        "StreamDeliver",
    ]
    assert list(ours.numbers.deliveries._out) == list(theirs.numbers.deliveries._out) == [1, 2]
    ours.send(spec.FileAck(delivery_tag=2))
    ours.send(spec.BasicReject(delivery_tag=1, requeue=False))
    pair.run()
    assert [each.tags for each in arrivals_of(theirs)][3:] == [(2,), (1,)]
    with pytest.raises(LocalProtocolError):
        theirs.deliver("nobody", "e", "k", HELLO)


def test_tag_0_with_multiple_acknowledges_all_that_is_out() -> None:
    pair = connected()
    ours, theirs = pair.channels()
    ours.send(spec.BasicConsume(consumer_tag="b"))
    pair.run()
    theirs.send(spec.BasicConsumeOk(consumer_tag="b"))
    for _ in range(3):
        theirs.deliver("b", "e", "k", HELLO)
    pair.run()
    arrivals_of(theirs)
    ours.send(spec.BasicAck(delivery_tag=0, multiple=True))
    pair.run()
    assert [each.tags for each in arrivals_of(theirs)] == [(1, 2, 3)]


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (header(HELLO, 70), 501),
        (FRAMES.frame(HEADER, 1, b"\0\x3c\0\1" + bytes(10)), 540),
        (FRAMES.frame(BODY, 1, b"x"), 501),
        (written(spec.BasicPublish(), 1), 501),
        (header(HELLO, 60) + written(spec.BasicPublish(), 1), 501),
        (header(HELLO, 60) + FRAMES.frame(BODY, 1, b"hello you"), 501),
    ],
    ids=["class", "weight", "no header", "method for header", "method for body", "too much"],
)
def test_content_that_is_out_of_place_gets_its_code(octets: bytes, code: int) -> None:
    server = open_server()
    fault = refusal(server.receive_data, written(spec.BasicPublish(), 1) + octets, 0.0)
    assert fault is not None
    assert (fault.code, fault.class_id, fault.method_id) == (code, 60, 50)


def test_properties_are_checked_in_the_class_basic_alone() -> None:
    pair = connected()
    ours, _ = pair.channels()
    ours.send(spec.BasicPublish(), Content(BasicProperties(expiration="soon"), b""))
    pair.run()
    assert ours.state is ChannelState.CLOSED
    assert [each.close.reply_code for each in pair.events["client"] if isinstance(each, ChannelClosed)] == [
        406
    ]


@pytest.mark.parametrize("begun", [b"", b"hel"], ids=["at once", "amid"])
def test_delivery_that_is_given_up_needs_no_settling(begun: bytes) -> None:
    client, channel = open_client()
    channel.send(spec.BasicGet(queue="q"))
    head = written(spec.BasicGetOk(delivery_tag=1), 1) + header(HELLO, 60)
    client.receive_data(head + (FRAMES.frame(BODY, 1, begun) if begun else b""), 0.0)
    client.receive_data(FRAMES.frame(BODY, 1, b""), 0.0)
    (event,) = events_of(client)
    assert isinstance(event, ContentAborted)
    assert (event.channel, event.request) == (channel, spec.BasicGet(queue="q"))
    assert event.part is not None
    assert (event.part.properties, event.part.body) == (HELLO.properties, begun)
    assert len(channel.numbers.deliveries) == 0
    assert channel.next_arrival() is None
    channel.send(spec.BasicGet(queue="q"))
    client.receive_data(written(spec.BasicGetOk(delivery_tag=2), 1) + header(HELLO, 60), 0.0)
    client.receive_data(FRAMES.frame(BODY, 1, b"hello"), 0.0)
    (arrival,) = arrivals_of(channel)
    assert arrival.content.body == b"hello"
    assert client.partial == 0


@pytest.mark.parametrize("end", ["transport", "our close", "connection"])
@pytest.mark.parametrize("octets", [b"", b"hel"])
def test_content_that_breaks_off_is_reported_with_what_came(end: str, octets: bytes) -> None:
    server = open_server()
    content = Content(FileProperties(filename="f"), b"hello")
    octets_of_properties = content.properties.encode(FIVE)
    server.receive_data(written(spec.ChannelOpen(), 2) + written(spec.FileStage(), 2), 0.0)
    if octets:
        server.receive_data(header(content, 70, 2) + FRAMES.frame(BODY, 2, octets), 0.0)
    channel = events_of(server)[0].channel
    assert channel.part == (
        (spec.FileStage(), (*content[:1], octets, octets_of_properties)) if octets else None
    )
    if end == "transport":
        server.receive_eof(0.0)
    elif end == "our close":
        channel.close()
    else:
        server.close(0.0)
    (event,) = (each for each in events_of(server) if isinstance(each, ContentAborted))
    assert (event.channel, event.method, event.request) == (channel, spec.FileStage(), None)
    assert event.part == ((content.properties, octets, octets_of_properties) if octets else None)
    assert server.partial == 0


def test_flow_stops_contents_of_all_classes() -> None:
    pair = connected()
    ours, theirs = pair.channels()
    theirs.flow(False)
    pair.run()
    for method, properties in (
        (spec.BasicPublish(), BasicProperties()),
        (spec.StreamPublish(), StreamProperties()),
        (spec.FileStage(), FileProperties()),
        (spec.TunnelRequest(), TunnelProperties()),
    ):
        with pytest.raises(LocalProtocolError, match="stopped the flow"):
            ours.send(method, Content(properties, b""))
    ours.send(spec.FilePublish(identifier="i"))
    theirs.flow(True)
    pair.run()
    ours.publish("e", "k", HELLO, mandatory=True)
    pair.run()
    assert [each.method.plan.name for each in arrivals_of(theirs)] == [
        "channel.flow-ok",
        "file.publish",
        "channel.flow-ok",
        "basic.publish",
    ]


# -- the channel ----------------------------------------------------------------------------


def test_server_sees_the_window_that_a_channel_was_opened_with() -> None:
    pair = connected()
    pair.channels(prefetch_max=65_536)
    assert pair.events["server"][-1].method == spec.ChannelOpen(prefetch_max=65_536)


def test_alert_is_an_arrival_and_no_error() -> None:
    pair = connected()
    ours, theirs = pair.channels()
    alert = spec.ChannelAlert(reply_code=404, reply_text="no such", details={"queue": "q"})
    theirs.send(alert)
    pair.run()
    assert [each.method for each in arrivals_of(ours)] == [alert]
    assert ours.state is ChannelState.OPEN
    with pytest.raises(LocalProtocolError):
        ours.send(alert)
    fault = refusal(pair.server.receive_data, written(alert, 1), 0.0)
    assert fault is not None
    assert fault.code == 503


@pytest.mark.parametrize("name", ["close", "open", "flow", "flow-ok"])
def test_other_methods_of_the_channel_are_the_engines(name: str) -> None:
    _, channel = open_client()
    with pytest.raises(LocalProtocolError):
        channel.send(spec.METHODS.make(f"channel.{name}"))


def test_either_end_opens_a_file_and_the_other_answers() -> None:
    pair = connected()
    ours, theirs = pair.channels()
    ours.send(spec.FileOpen(identifier="a", content_size=5))
    theirs.send(spec.FileOpen(identifier="b", content_size=6))
    pair.run()
    assert [each.method.identifier for each in arrivals_of(theirs)] == ["a"]
    theirs.send(spec.FileOpenOk(staged_size=2))
    ours.send(spec.FileOpenOk(staged_size=3))
    pair.run()
    assert [each.request for each in arrivals_of(theirs)] == [spec.FileOpen(identifier="b", content_size=6)]
    assert [each.request for each in arrivals_of(ours)][1:] == [spec.FileOpen(identifier="a", content_size=5)]


def test_answer_to_another_class_is_no_answer() -> None:
    pair = connected()
    ours, theirs = pair.channels()
    ours.send(spec.FileCancel(consumer_tag="f"))
    pair.run()
    with pytest.raises(LocalProtocolError, match="answers no request"):
        theirs.send(spec.BasicCancelOk(consumer_tag="f"))
    theirs.send(spec.FileCancelOk(consumer_tag="f"))


def test_error_with_a_soft_code_may_end_the_connection() -> None:
    assert ReplyError(ReplyCode091.ACCESS_REFUSED, "x").scope == "session"
    assert ReplyError(ReplyCode091.ACCESS_REFUSED, "x", hard=True).scope == "connection"
    assert ReplyError(ReplyCode091.INVALID_PATH, "x").scope == "connection"
    assert ReplyError(ReplyCode091.INVALID_PATH, "x", hard=False).scope == "session"


# -- the class cluster ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "method",
    [
        spec.ClusterHello(version=1, name="n", signature=7),
        spec.ClusterStatus(master=True, heartbeat=3, peers=8),
        spec.ClusterBind(exchange="e", routing_key="k", arguments={"a": 1}),
    ],
)
def test_methods_of_the_cluster_are_events_on_channel_0(method: Any) -> None:
    pair = connected()
    pair.client.send_cluster(method)
    pair.server.send_cluster(method)
    pair.run()
    assert pair.events["server"][-1] == ClusterReceived(method) == pair.events["client"][-1]


def test_cluster_is_not_said_elsewhere() -> None:
    server = open_server()
    fault = refusal(server.receive_data, written(spec.ClusterHello(), 1), 0.0)
    assert fault is not None
    assert fault.code == 503
    half = server_engine()
    half.receive_data(PROTOCOL_HEADER, 0.0)
    assert refusal(half.receive_data, written(spec.ClusterHello()), 0.0) is not None
    assert [name for _, name, _ in said(half)] == ["connection.start"]
    client, _ = open_client()
    for method in (spec.ConnectionClose(), spec.BasicAck()):
        with pytest.raises(LocalProtocolError):
            client.send_cluster(method)
    with pytest.raises(LocalProtocolError):
        client_engine().send_cluster(spec.ClusterHello())


def test_whole_dialogue_is_the_same_in_pieces_of_any_size() -> None:
    def dialogue(chunk: int) -> list[str]:
        pair = Pair(chunk=chunk)
        pair.run()
        ours, theirs = pair.channels()
        ours.publish("e", "k", HELLO)
        ours.send(spec.TestContent(), Content(TestProperties(), b"x" * 5000))
        pair.run()
        ours.close()
        pair.run()
        return [repr(each.method) for each in (*arrivals_of(theirs), *arrivals_of(ours))]

    assert dialogue(1) == dialogue(13) == dialogue(0)
