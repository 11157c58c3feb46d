"""AMQP 0-9-1 as source and sink, with the same columns as AMQP 1.0."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10 import amqp091
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.spark import amqp091_peer
from trio_amqp10.spark.amqp091_peer import is_091_loss, place_of
from trio_amqp10.spark.connections import GaveUpError
from trio_amqp10.spark.options import BrowseOptions, LogOptions, OptionError, QueueOptions, SinkOptions
from trio_amqp10.spark.sink_delivery import Report, SinkError
from trio_amqp10.spark.spool_receiver import SpoolReceiverError

from .broker import BrokerPeer
from .conftest import OURS
from .desk import PATIENCE, Desk, bodies, numbered, read, until
from .server import Server
from .test_sink_delivery import bodies as sent
from .test_sink_delivery import numbers, send

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .peers import Peer


@pytest.fixture
def peer(which: str, request: pytest.FixtureRequest) -> Iterator[Peer]:
    """A container that serves both protocols at one port."""
    if which == OURS:
        with Server(dialects="all") as running:
            yield running
    else:
        with BrokerPeer(request.getfixturevalue("broker")) as running:
            yield running


@pytest.fixture
def desk(peer: Peer, tmp_path: Path) -> Iterator[Desk]:
    one = Desk(peer, tmp_path)
    yield one
    one.stop()


def url(peer: Peer) -> str:
    """The URL of AMQP 0-9-1, whose user may do everything."""
    return peer.url.replace("amqp://", "amqp091://" if "@" in peer.url else "amqp091://ada:enigma@", 1)


def test_all_is_settled_soon_after_it_came(peer: Peer, desk: Desk) -> None:
    peer.put("q", numbered(2500))
    _, spool = desk.start(url=url(peer))
    until(lambda: spool.end == 2500)
    until(lambda: peer.held("q") == 0)
    assert bodies(spool) == [b"%d" % number for number in range(2500)]


def test_columns_are_those_of_amqp_1_0(peer: Peer, desk: Desk) -> None:
    peer.put(
        "q",
        [
            amqp.Message(
                b"tea",
                durable=True,
                priority=3,
                message_id="m-1",
                correlation_id="c-1",
                content_type="text/plain",
                application_properties={"n": 5, "kind": "green"},
            )
        ],
    )
    _, spool = desk.start(url=url(peer))
    until(lambda: spool.end == 1)
    (row,) = read(spool.slices(0, 1), propertyColumns="n int, kind string")
    assert (row["body"], row["body_type"], row["n"], row["kind"]) == (b"tea", "data", 5, "green")
    said = row["properties"]
    assert (said["message_id"], said["correlation_id"], said["content_type"]) == ("m-1", "c-1", "text/plain")
    assert (row["header"]["durable"], row["header"]["priority"]) == (True, 3)
    assert dict(row["message_annotations"])["x-routing-key"] == peer.address("q").rpartition("/")[2]


def test_emptying_takes_what_there_was_and_ends(peer: Peer, desk: Desk) -> None:
    peer.put("q", numbered(2000))
    receiver, spool = desk.start(url=url(peer), emptying=True, credit="300")
    receiver.wait_until(lambda: False)
    receiver.check()
    assert (receiver.emptied, spool.end, peer.held("q")) == (True, 2000, 0)


def test_emptying_an_empty_queue_ends(peer: Peer, desk: Desk) -> None:
    peer.address("q")
    receiver, spool = desk.start(url=url(peer), emptying=True)
    receiver.wait_until(lambda: False)
    receiver.check()
    assert (receiver.emptied, spool.end) == (True, 0)


def test_emptying_ends_where_others_take_some(
    peer: Peer, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = amqp091_peer._Receiver.__init__

    def promised(self: Any, connection: Any, queue: Any, ready: int) -> None:
        begin(self, connection, queue, ready + 5)  # which others take before us

    monkeypatch.setattr(amqp091_peer._Receiver, "__init__", promised)
    peer.put("q", numbered(20))
    receiver, spool = desk.start(url=url(peer), emptying=True, availableNowIdle="500ms")
    receiver.wait_until(lambda: False)
    receiver.check()
    assert (spool.end, peer.held("q")) == (20, 0)


def test_full_spool_takes_no_more_until_there_is_room(peer: Peer, desk: Desk) -> None:
    peer.put("q", [bytes(1000)] * 400)
    receiver, spool = desk.start(url=url(peer), spool_maxBytes="64k", credit="20")
    until(lambda: spool.full and not any(receiver._credit._granted.values()))
    taken = spool.end
    assert taken < 200
    until(lambda: peer.held("q") == 400 - taken)
    while spool.end < 400:
        spool.release(spool.end)
        receiver.released()
        until(lambda: spool.full or spool.end == 400)


def test_connection_that_is_lost_is_made_anew(peer: Peer, desk: Desk) -> None:
    peer.put("q", numbered(300))
    receiver, spool = desk.start(url=url(peer), credit="10")
    until(lambda: spool.end > 0)
    for _ in range(2):
        peer.down()
        peer.up()
    peer.put("q", numbered(300))
    everything = {b"%d" % number for number in range(300)}
    try:
        until(lambda: peer.held("q") == 0 and {*bodies(spool)} == everything)
    finally:
        receiver.check()


@pytest.mark.logs_errors
def test_queue_that_there_is_not_is_an_error_at_once(peer: Peer, desk: Desk) -> None:
    peer.address("q")
    receiver, _ = desk.start(url=url(peer), address="there-is-none")
    receiver.wait_until(lambda: False)
    with pytest.raises(SpoolReceiverError, match="404"):
        receiver.check()


@pytest.mark.logs_errors
def test_exchange_is_no_source(peer: Peer, desk: Desk) -> None:
    peer.address("q")
    receiver, _ = desk.start(url=url(peer), address="/exchanges/amq.direct/key")
    receiver.wait_until(lambda: False)
    with pytest.raises(SpoolReceiverError, match="is an exchange"):
        receiver.check()


# The sink -----------------------------------------------------------------------------------------


def test_all_messages_are_confirmed_and_arrive_in_order(peer: Peer) -> None:
    assert send(peer, 3000, url=url(peer), maxInFlight="100") == Report(3000, 3000, 0)
    assert sent(peer) == numbers(3000)


def test_message_that_no_queue_gets_is_an_error(peer: Peer) -> None:
    peer.address("out")
    with pytest.raises(SinkError, match="was rejected: amqp:not-found"):
        send(peer, 3, url=url(peer), address="/exchanges/amq.direct/nobody")
    dropped = send(peer, 3, url=url(peer), address="/exchanges/amq.direct/nobody", onReject="drop")
    assert dropped == Report(3, 0, 3)


def test_message_that_is_refused_is_an_error(peer: Peer) -> None:
    full = peer.bounded("full", 5)
    with pytest.raises(SinkError, match="was rejected: amqp:resource-limit-exceeded"):
        send(peer, 50, url=url(peer), address=full)


def test_exchange_that_there_is_not_is_an_error(peer: Peer) -> None:
    peer.address("out")
    for count in (1, 2, 3, 30):  # of several, the server says of none which one it is
        with pytest.raises(amqp.AmqpError, match="404") as told:
            send(peer, count, url=url(peer), address="/exchanges/there-is-none/key")
        assert not isinstance(told.value, GaveUpError)


def test_messages_in_doubt_are_sent_again(peer: Peer) -> None:
    def restart() -> None:
        peer.down()
        peer.up()

    report = send(peer, 2000, url=url(peer), at={1000: restart})
    assert (report.sent, report.accepted) == (2000, 2000)
    assert {*sent(peer)} == {*numbers(2000)}


def test_query_reads_and_writes_amqp_0_9_1(spark: Any, peer: Peer, tmp_path: Path) -> None:
    peer.put("q", [amqp.Message(b"%d" % n, application_properties={"n": n}) for n in range(50)])
    source = spark.readStream.format("amqp10").options(
        url=url(peer),
        address=peer.address("q"),
        spool=str(tmp_path / "spool"),
        columns="body",
        propertyColumns="n int",
    )
    rows = source.load().where("n >= 10")
    sink = rows.writeStream.format("amqp10").options(
        url=url(peer), address=peer.address("out"), propertyColumns="n int"
    )
    query = sink.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE)
    taken = peer.take("out")
    assert sorted(int(each.body) for each in taken) == list(range(10, 50))
    assert all(each.application_properties["n"] == int(each.body) for each in taken)


# What needs no peer -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("orders", ("", "orders")),
        ("/queues/a%2Fb", ("", "a/b")),
        ("/exchanges/shop/green.tea", ("shop", "green.tea")),
        ("/exchanges/sh%2Fop", ("sh/op", "")),
    ],
)
def test_address_is_a_queue_or_an_exchange(address: str, place: tuple[str, str]) -> None:
    assert place_of(address) == place


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (QueueOptions, {"selector": "n > 1"}, "'selector' is for AMQP 1.0"),
        (
            QueueOptions,
            {"durable": "true", "linkName": "a", "containerId": "b"},
            "'linkName' is for AMQP 1.0",
        ),
        (QueueOptions, {"dedup": "link"}, "has no links"),
        (QueueOptions, {"token": "sas", "username": "a", "secretEnv": "b"}, "'token' is for AMQP 1.0"),
        (BrowseOptions, {}, "cannot browse"),
        (LogOptions, {"mode": "log"}, "needs a URL of AMQP 1.0"),
        (SinkOptions, {"transactions": "task"}, "'transactions' is for AMQP 1.0"),
    ],
)
def test_what_amqp_0_9_1_has_not_is_refused(kind: Any, given: dict[str, str], message: str) -> None:
    spool = {"spool": "/s"} if kind is QueueOptions else {}
    with pytest.raises(OptionError, match=message):
        kind.parse({"url": "amqp091://h/", "address": "q"} | spool | given)


def test_url_is_shown_without_credentials() -> None:
    options = SinkOptions.parse({"url": "amqp091s://ada:enigma@h/vhost"})
    assert options.where == "amqp091s://h:5671"
    assert options.password() == "enigma"


def in_doubt(reason: Exception | None) -> amqp091.PublishInDoubtError:
    ticket: Any = SimpleNamespace(place="a place")
    return amqp091.PublishInDoubtError(ticket, reason)


@pytest.mark.parametrize(
    ("failure", "came_through", "loss"),
    [
        (amqp091.ConnectionClosedError("lost"), False, True),
        (amqp091.ConnectionClosedError("no such vhost", 530, "no"), True, False),
        (amqp091.NotFoundError("none", 404, "none"), True, True),
        (amqp091.NotFoundError("none", 404, "none"), False, False),
        (amqp091.ConsumerCancelledError("tag", "q"), True, True),
        (in_doubt(amqp091.ConnectionClosedError("lost")), False, True),
        (in_doubt(None), False, True),
        (in_doubt(amqp091.NotFoundError("none", 404, "none")), True, True),
        (in_doubt(amqp091.NotFoundError("none", 404, "none")), False, False),
        (in_doubt(amqp091.ConnectionClosedError("no such vhost", 530, "no")), True, False),
        (LocalProtocolError("ours"), True, None),
    ],
)
def test_loss_is_told_from_what_no_patience_mends(
    failure: Exception, came_through: bool, loss: bool | None
) -> None:
    assert is_091_loss(failure, came_through) is loss
