"""Receiving into a spool: messages are on disk before they are settled."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

import trio_amqp10 as amqp
from trio_amqp10.spark.browse import browse
from trio_amqp10.spark.options import BrowseOptions
from trio_amqp10.spark.segments import SegmentError
from trio_amqp10.spark.spool import Spool
from trio_amqp10.spark.spool_receiver import SpoolReceiver, SpoolReceiverError

from .desk import bodies, numbered, read, until
from .peers import lacks

if TYPE_CHECKING:
    from .desk import Desk
    from .peers import Peer
    from .server import Server


def test_all_is_settled_soon_after_it_came_though_nobody_asks(peer: Peer, desk: Desk) -> None:
    peer.put("q", numbered(2500))
    _, spool = desk.start()
    until(lambda: spool.end == 2500)
    until(lambda: peer.held("q") == 0)
    assert bodies(spool) == [b"%d" % number for number in range(2500)]


def test_single_message_is_there_after_the_flush_interval(peer: Peer, desk: Desk) -> None:
    peer.address("q")
    _, spool = desk.start(spool_flushInterval="20ms")
    peer.put("q", [b"one"])
    until(lambda: spool.end == 1)


def test_emptying_ends_when_all_is_taken(peer: Peer, desk: Desk) -> None:
    peer.put("q", numbered(2000))
    receiver, spool = desk.start(emptying=True, credit="500")
    receiver.wait_until(lambda: False)
    assert receiver.emptied
    assert (spool.end, peer.held("q")) == (2000, 0)


def test_emptying_an_empty_queue_ends(peer: Peer, desk: Desk) -> None:
    peer.address("q")
    receiver, spool = desk.start(emptying=True)
    receiver.wait_until(lambda: False)
    receiver.check()
    assert (receiver.emptied, spool.end) == (True, 0)


def test_full_spool_takes_no_more_until_there_is_room(peer: Peer, desk: Desk) -> None:
    peer.put("q", [bytes(1000)] * 400)
    receiver, spool = desk.start(spool_maxBytes="64k", credit="20")
    until(lambda: spool.full and not any(receiver._credit._granted.values()))  # nothing more can come
    taken = spool.end
    assert taken < 200
    until(lambda: peer.held("q") == 400 - taken)
    while spool.end < 400:
        spool.release(spool.end)
        receiver.released()
        until(lambda: spool.full or spool.end == 400)


def test_links_share_the_work(peer: Peer, desk: Desk) -> None:
    peer.put("q", numbered(1500))
    _, spool = desk.start(links="3", credit="50")
    until(lambda: spool.end == 1500)
    assert sorted(bodies(spool)) == sorted(b"%d" % number for number in range(1500))


@lacks("selector")
def test_selector_takes_only_what_it_names(server: Server, desk: Desk) -> None:
    server.put("q", [amqp.Message(b"%d" % n, application_properties={"n": n}) for n in range(10)])
    _, spool = desk.start(selector="n >= 7")
    until(lambda: spool.end == 3)
    assert bodies(spool) == [b"7", b"8", b"9"]


def test_connection_that_is_lost_is_made_anew(peer: Peer, desk: Desk) -> None:
    peer.put("q", numbered(300))
    receiver, spool = desk.start(credit="10")
    until(lambda: spool.end > 0)
    for _ in range(3):
        peer.down()
        peer.up()
    peer.put("q", numbered(300))
    everything = {b"%d" % number for number in range(300)}
    try:
        until(lambda: peer.held("q") == 0 and {*bodies(spool)} == everything)
    finally:
        receiver.check()
    assert 600 <= spool.end <= 600 + 3 * 10  # what was on disk and not settled came again: credit, at most


def test_connection_that_is_lost_while_the_spool_is_full_is_made_anew(peer: Peer, desk: Desk) -> None:
    peer.put("q", [bytes(1000)] * 100)
    receiver, spool = desk.start(spool_maxBytes="30k", credit="10")
    until(lambda: spool.full)
    peer.down()
    peer.up()

    def consumed() -> bool:
        spool.release(spool.end)
        receiver.released()
        return peer.held("q") == 0

    until(consumed)
    receiver.check()


@pytest.mark.logs_errors
def test_peer_that_stays_away_is_an_error(peer: Peer, desk: Desk) -> None:
    receiver, _ = desk.start(reconnect_timeout="300ms")
    until(lambda: peer.receivers("q") == 1)
    peer.down()
    receiver.wait_until(lambda: False)
    with pytest.raises(SpoolReceiverError, match=r"no success for 0\.3 s"):
        receiver.check()


@pytest.mark.logs_errors
def test_peer_that_refuses_is_an_error_with_its_condition(peer: Peer, desk: Desk) -> None:
    receiver, _ = desk.start(address=peer.missing())
    receiver.wait_until(lambda: False)
    with pytest.raises(SpoolReceiverError, match=r"amqp:not-found: no (node|queue) '"):
        receiver.check()


@lacks("undecodable")
@pytest.mark.parametrize("columns", ["body", "properties"])
def test_message_that_cannot_be_decoded_is_stored_or_rejected(
    server: Server, desk: Desk, columns: str
) -> None:
    sent = [b"good", amqp.Message.from_payload(b"\x00\x53\x73\xc0\x01\x05"), b"good too"]
    server.put("q", sent)
    receiver, spool = desk.start(columns=columns)
    until(lambda: spool.end == 3 and server.held("q") == 0)
    receiver.check()
    with pytest.raises(SegmentError, match="decode-error"):
        read(spool.slices(0, 3))
    desk.stop()
    server.put("q", sent)
    _, spool = desk.start(onDecodeError="reject", columns=columns)  # whether that column needs it or not
    until(lambda: spool.end >= 5 and server.held("q") == 0)
    assert read(spool.slices(3, 5), columns="seq,body") == [
        {"seq": 3, "body": b"good"},
        {"seq": 4, "body": b"good too"},
    ]


def no_room(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A disk that has no room for any segment, as long as the list is not empty."""
    full = [True]
    sync = os.fsync

    def fsync(file: int) -> None:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(file)

    monkeypatch.setattr("trio_amqp10.spark.spool.os.fsync", fsync)
    return full


def test_receiving_rests_while_the_disk_is_full_and_goes_on(
    peer: Peer, desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Spool(desk.folder / "spool").close()
    peer.put("q", numbered(50))
    with monkeypatch.context() as patch:
        full = no_room(patch)
        receiver, spool = desk.start(credit="20")
        until(lambda: "receiving pauses until there is room" in caplog.text)
        receiver.check()
        assert (spool.end, peer.held("q")) == (0, 50)
        full.clear()
        until(lambda: spool.end == 50 and peer.held("q") == 0)
        receiver.check()
    assert bodies(spool) == [b"%d" % number for number in range(50)]
    assert "receiving continues" in caplog.text


@pytest.mark.logs_errors
def test_emptying_with_a_full_disk_and_nothing_to_consume_is_an_error_and_settles_nothing(
    peer: Peer, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    Spool(desk.folder / "spool").close()
    peer.put("q", numbered(5))
    with monkeypatch.context() as patch:
        no_room(patch)
        receiver, spool = desk.start(emptying=True, reconnect_timeout="1s")
        receiver.wait_until(lambda: False)
        with pytest.raises(SpoolReceiverError, match="no row of the spool waits for its consumption"):
            receiver.check()
    desk.stop()
    until(lambda: peer.receivers("q") == 0)
    assert (spool.end, peer.held("q")) == (0, 5)


def test_credit_is_bounded_in_octets(peer: Peer, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    peer.put("q", [bytes(100_000)] * 60)
    Spool(desk.folder / "spool").close()
    with monkeypatch.context() as patch:
        full = no_room(patch)
        receiver, spool = desk.start(credit_maxBytes="2m")
        until(lambda: spool.full)
        assert receiver._busy <= 2
        full.clear()
        until(lambda: spool.end == 60)
    assert receiver._credit.most == 2 * 2**20 // 100_006


def test_stop_writes_and_settles_what_has_come(peer: Peer, desk: Desk) -> None:
    peer.put("q", numbered(30))
    receiver, spool = desk.start(spool_flushInterval="1m", credit="100")
    until(lambda: hasattr(receiver, "_busy") and receiver._busy + spool.end == 30)
    assert spool.end < 30
    receiver.stop()
    assert spool.end == 30
    until(lambda: peer.held("q") == 0)


@pytest.mark.parametrize(("dedup", "rows"), [("none", 20), ("message-id", 10)])
def test_what_comes_again_is_known_by_its_id(peer: Peer, desk: Desk, dedup: str, rows: int) -> None:
    peer.put("q", numbered(10))
    _, spool = desk.start(dedup=dedup)
    until(lambda: spool.end == 10)
    spool.release(10)
    desk.stop()
    peer.put("q", numbered(10))
    receiver, spool = desk.start(dedup=dedup)
    until(lambda: peer.held("q") == 0)
    receiver.stop()
    assert spool.end == rows


def test_messages_without_an_id_are_all_taken(peer: Peer, desk: Desk) -> None:
    peer.put("q", [b"same"] * 5)
    _, spool = desk.start(dedup="message-id")
    until(lambda: spool.end == 5)


@pytest.mark.logs_errors
def test_disk_that_fails_is_an_error_and_settles_nothing(
    peer: Peer, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Spool, "write", fail)
    peer.put("q", [b"x"])
    receiver, _ = desk.start()
    receiver.wait_until(lambda: False)
    with pytest.raises(SpoolReceiverError, match=r"cannot be written.*Input/output error"):
        receiver.check()
    until(lambda: peer.receivers("q") == 0)
    assert [message.body for message in peer.take("q")] == [b"x"]


@pytest.mark.logs_errors
def test_password_is_taken_from_the_environment(
    peer: Peer, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, password = peer.user
    given = {
        "url": f"amqp://{urlsplit(peer.url).netloc.rpartition('@')[2]}",
        "username": name,
        "secretEnv": "SECRET",
    }
    monkeypatch.setenv("SECRET", password)
    for mechanism in peer.mechanisms:
        peer.put("q", [b"x"])
        receiver, _ = desk.start(**given, sasl_mechanism=mechanism, emptying=True)
        receiver.wait_until(lambda: False)
        receiver.check()
        assert peer.held("q") == 0
        desk.stop()
    monkeypatch.setenv("SECRET", "wrong")
    receiver, _ = desk.start(**given, sasl_mechanism="PLAIN")
    receiver.wait_until(lambda: False)
    with pytest.raises(SpoolReceiverError, match="has failed"):
        receiver.check()


def test_message_after_a_pause_is_written_at_once(peer: Peer, desk: Desk) -> None:
    peer.address("q")
    receiver, spool = desk.start(spool_flushInterval="1m")
    until(lambda: hasattr(receiver, "_written_at"))
    receiver._written_at -= 60  # as if a minute had gone by
    peer.put("q", [b"one"])
    until(lambda: spool.end == 1)


def test_intake_is_pressed_while_very_many_messages_come(
    peer: Peer, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trio_amqp10.spark.spool_receiver._FAST", 1000)
    receiver, spool = desk.start(spool_flushInterval="0.5s")
    assert not receiver.pressed
    until(lambda: receiver._connected)
    receiver._wrote_at -= 60  # as if a minute had gone by
    peer.put("q", numbered(20))
    until(lambda: spool.end == 20)
    assert not receiver.pressed  # however fast those came, the spool had waited for long
    filling = threading.Thread(target=peer.put, args=("q", [amqp.Message(b"x")] * 20_000))
    filling.start()  # some are received while others are sent
    until(lambda: receiver.pressed)
    filling.join()
    until(lambda: spool.end == 20_020)
    until(lambda: not receiver.pressed)


def test_receiver_that_is_stopped_before_its_thread_runs_ends(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped, run = threading.Event(), SpoolReceiver._main

    def run_late(receiver: SpoolReceiver) -> None:
        stopped.wait()
        run(receiver)

    monkeypatch.setattr(SpoolReceiver, "_main", run_late)
    receiver, _ = desk.start()
    receiver.stop(patience=0.0)
    stopped.set()
    receiver._thread.join(10)
    assert not receiver._thread.is_alive()


def test_emptying_ends_though_a_producer_keeps_up(
    peer: Peer, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer.put("q", numbered(300))
    write = Spool.write

    def write_and_put(spool: Spool, rows: int, fill: Any) -> None:
        peer.put("q", [b"later"] * rows)  # for each that is taken another one comes
        write(spool, rows, fill)

    monkeypatch.setattr(Spool, "write", write_and_put)
    receiver, spool = desk.start(emptying=True, credit="50")
    receiver.wait_until(lambda: False)
    receiver.check()
    assert receiver.emptied
    found = bodies(spool)
    assert found[:300] == [b"%d" % number for number in range(300)]
    assert len(found) <= 300 + 50  # what came until the first answer counts too
    assert peer.held("q") == len(found)


def test_figures_are_in_a_file_beside_the_spool(peer: Peer, desk: Desk) -> None:
    peer.put("q", [*numbered(30), *numbered(10)])  # ten come twice
    _, spool = desk.start(dedup="message-id")
    file = desk.folder / "spool" / "metrics.json"
    until(lambda: file.exists() and json.loads(file.read_text())["rows"] == 30 and peer.held("q") == 0)
    until(lambda: json.loads(file.read_text())["received"] == 40)
    found = json.loads(file.read_text())
    assert (found["connections"], found["duplicates"], found["rejected"]) == (1, 10, 0)
    assert (found["spool"], found["rows_waiting"], found["full"]) == (spool.id, 30, False)
    assert found["octets_waiting"] == sum(path.stat().st_size for path in spool.segments)
    spool.release(30)
    until(lambda: json.loads(file.read_text())["rows_waiting"] == 0)
    assert json.loads(file.read_text())["lag_seconds"] == 0


class Endless(amqp.Node):
    """A node that always has a message, and does not report how many."""

    accepts_receivers = True

    def on_demand(self, outlet: amqp.Outlet) -> None:
        while outlet.ready():
            outlet.give(amqp.Message(b"more"), None)


@lacks("inside")
def test_emptying_ends_in_time_if_the_peer_does_not_say_how_many_wait(server: Server, desk: Desk) -> None:
    server.ask(lambda: server.container.add_node(Endless("endless")))
    receiver, spool = desk.start(
        emptying=True, address="endless", availableNowTimeout="300ms", credit="10", spool_flushRows="10"
    )
    receiver.wait_until(lambda: False)
    receiver.check()
    assert receiver.emptied
    assert spool.end >= 10


class Mute(amqp.Node):
    """A node that sends two messages, and never answers a drain (2.6.7)."""

    accepts_receivers = True
    given = 0

    def on_demand(self, outlet: amqp.Outlet) -> None:
        while self.given < 2 and outlet.ready():
            self.given += 1
            outlet.give(amqp.Message(b"%d" % self.given), None)


@lacks("inside")
def test_emptying_ends_when_a_drain_is_not_answered_and_nothing_comes(server: Server, desk: Desk) -> None:
    server.ask(lambda: server.container.add_node(Mute("mute")))
    began = time.monotonic()
    receiver, spool = desk.start(emptying=True, address="mute", availableNowIdle="300ms")
    receiver.wait_until(lambda: False)
    receiver.check()
    assert bodies(spool) == [b"1", b"2"]
    assert time.monotonic() - began < 8  # it would be 10 without the option


@lacks("inside")
def test_browsing_fails_when_a_drain_is_not_answered(server: Server) -> None:
    server.ask(lambda: server.container.add_node(Mute("mute")))
    options = BrowseOptions.parse({"url": server.url, "address": "mute", "browseTimeout": "200ms"})
    with pytest.raises(TimeoutError, match=r"did not answer a drain within 0\.2 s \(browseTimeout\)"):
        list(browse(options))
