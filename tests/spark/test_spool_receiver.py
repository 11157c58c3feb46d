"""The intake: nothing is settled before it is on disk, and nothing that is settled is lost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

import trio_amqp10 as amqp
from trio_amqp10.spark.browse import browse
from trio_amqp10.spark.options import BrowseOptions
from trio_amqp10.spark.spool import Spool
from trio_amqp10.spark.spool_receiver import SpoolReceiverError

from .desk import bodies, numbered, until
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
    intake, spool = desk.start(emptying=True, credit="500")
    intake.wait_until(lambda: False)
    assert intake.emptied
    assert (spool.end, peer.held("q")) == (2000, 0)


def test_emptying_an_empty_queue_ends(peer: Peer, desk: Desk) -> None:
    peer.address("q")
    intake, spool = desk.start(emptying=True)
    intake.wait_until(lambda: False)
    intake.check()
    assert (intake.emptied, spool.end) == (True, 0)


def test_full_spool_takes_no_more_until_there_is_room(peer: Peer, desk: Desk) -> None:
    peer.put("q", [bytes(1000)] * 400)
    intake, spool = desk.start(spool_maxBytes="64k", credit="20")
    until(lambda: spool.full and sum(intake._owed.values()) == 20)  # nothing more can come
    taken = spool.end
    assert taken < 200
    until(lambda: peer.held("q") == 400 - taken)
    while spool.end < 400:
        spool.release(spool.end)
        intake.released()
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
    intake, spool = desk.start(credit="10")
    until(lambda: spool.end > 0)
    for _ in range(3):
        peer.down()
        peer.up()
    peer.put("q", numbered(300))
    everything = {b"%d" % number for number in range(300)}
    try:
        until(lambda: peer.held("q") == 0 and {*bodies(spool)} == everything)
    finally:
        intake.check()
    assert 600 <= spool.end <= 600 + 3 * 10  # what was on disk and not settled came again: credit, at most


def test_connection_that_is_lost_while_the_spool_is_full_is_made_anew(peer: Peer, desk: Desk) -> None:
    peer.put("q", [bytes(1000)] * 100)
    intake, spool = desk.start(spool_maxBytes="30k", credit="10")
    until(lambda: spool.full)
    peer.down()
    peer.up()

    def consumed() -> bool:
        spool.release(spool.end)
        intake.released()
        return peer.held("q") == 0

    until(consumed)
    intake.check()


def test_peer_that_stays_away_is_an_error(peer: Peer, desk: Desk) -> None:
    intake, _ = desk.start(reconnect_timeout="300ms")
    until(lambda: peer.receivers("q") == 1)
    peer.down()
    intake.wait_until(lambda: False)
    with pytest.raises(SpoolReceiverError, match=r"no success for 0\.3 s"):
        intake.check()


def test_peer_that_refuses_is_an_error_with_its_condition(peer: Peer, desk: Desk) -> None:
    intake, _ = desk.start(address=peer.missing())
    intake.wait_until(lambda: False)
    with pytest.raises(SpoolReceiverError, match=r"amqp:not-found: no (node|queue) '"):
        intake.check()


@lacks("undecodable")
def test_message_that_cannot_be_decoded_fails_or_is_rejected(server: Server, desk: Desk) -> None:
    server.put("q", [b"good", amqp.Message.from_payload(b"\x00\x53\x73\xc0\x01\x05"), b"good too"])
    intake, spool = desk.start()
    intake.wait_until(lambda: False)
    with pytest.raises(SpoolReceiverError, match="decode-error"):
        intake.check()
    desk.stop()
    _, spool = desk.start(onDecodeError="reject")
    until(lambda: spool.end >= 2 and server.held("q") == 0)
    assert bodies(spool)[-2:] == [b"good", b"good too"]


def test_stop_writes_and_settles_what_has_come(peer: Peer, desk: Desk) -> None:
    peer.put("q", numbered(30))
    intake, spool = desk.start(spool_flushInterval="1m", credit="100")
    until(lambda: intake._busy == 30 if hasattr(intake, "_busy") else False)
    assert spool.end == 0
    intake.stop()
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
    intake, spool = desk.start(dedup=dedup)
    until(lambda: peer.held("q") == 0)
    intake.stop()
    assert spool.end == rows


def test_messages_without_an_id_are_all_taken(peer: Peer, desk: Desk) -> None:
    peer.put("q", [b"same"] * 5)
    _, spool = desk.start(dedup="message-id")
    until(lambda: spool.end == 5)


def test_disk_that_fails_is_an_error_and_settles_nothing(
    peer: Peer, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Spool, "write", fail)
    peer.put("q", [b"x"])
    intake, _ = desk.start()
    intake.wait_until(lambda: False)
    with pytest.raises(SpoolReceiverError, match=r"cannot be written.*No space left"):
        intake.check()
    until(lambda: peer.receivers("q") == 0)
    assert [message.body for message in peer.take("q")] == [b"x"]


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
        intake, _ = desk.start(**given, sasl_mechanism=mechanism, emptying=True)
        intake.wait_until(lambda: False)
        intake.check()
        assert peer.held("q") == 0
        desk.stop()
    monkeypatch.setenv("SECRET", "wrong")
    intake, _ = desk.start(**given, sasl_mechanism="PLAIN")
    intake.wait_until(lambda: False)
    with pytest.raises(SpoolReceiverError, match="has failed"):
        intake.check()


def test_message_after_a_pause_is_written_at_once(peer: Peer, desk: Desk) -> None:
    peer.address("q")
    intake, spool = desk.start(spool_flushInterval="1m")
    until(lambda: hasattr(intake, "_written_at"))
    intake._written_at -= 60  # as if a minute had gone by
    peer.put("q", [b"one"])
    until(lambda: spool.end == 1)


def test_intake_is_pressed_while_very_many_messages_come(
    peer: Peer, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trio_amqp10.spark.spool_receiver._FAST", 1000)
    intake, spool = desk.start(spool_flushInterval="0.5s")
    assert not intake.pressed
    peer.put("q", numbered(20))
    until(lambda: spool.end == 20)
    assert not intake.pressed  # however fast those came, the spool had waited for long
    peer.put("q", [amqp.Message(b"x")] * 20_000)
    until(lambda: intake.pressed)
    until(lambda: spool.end == 20_020)
    until(lambda: not intake.pressed)


class Mute(amqp.Node):
    """Gives two messages, and never says that there are no more: nobody who drains it gets an answer (2.6.7)."""

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
    intake, spool = desk.start(emptying=True, address="mute", availableNowIdle="300ms")
    intake.wait_until(lambda: False)
    intake.check()
    assert bodies(spool) == [b"1", b"2"]
    assert time.monotonic() - began < 8  # it would be 10 without the option


@lacks("inside")
def test_browsing_fails_when_a_drain_is_not_answered(server: Server) -> None:
    server.ask(lambda: server.container.add_node(Mute("mute")))
    options = BrowseOptions.parse({"url": server.url, "address": "mute", "browseTimeout": "200ms"})
    with pytest.raises(TimeoutError, match=r"did not answer a drain within 0\.2 s \(browseTimeout\)"):
        list(browse(options))
