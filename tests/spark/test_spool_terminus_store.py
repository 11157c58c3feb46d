"""A peer that keeps links does not resend what is on the disk (``dedup=link``)."""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING, Any

import pytest

import trio_amqp10 as amqp
from trio_amqp10.spark.spool import Spool, SpoolError
from trio_amqp10.spark.spool_receiver import SpoolReceiverError

from .desk import consumed, until
from .failures import call_at
from .peers import lacks

if TYPE_CHECKING:
    from .desk import Desk
    from .server import Server

pytestmark = lacks("keeping")


def numbers(count: int) -> list[bytes]:
    return [b"%04d" % number for number in range(count)]


class Killed(BaseException):
    """Ends a receiver as a crash would: without a detach."""


def kill_at(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next receiver die there: it sends nothing more to the peer."""

    def die() -> None:
        raise Killed

    call_at(monkeypatch, place, die)
    monkeypatch.setattr(amqp.Receiver, "aclose", _die_silently)


def killed(desk: Desk, monkeypatch: pytest.MonkeyPatch, place: str, **given: str) -> Spool:
    """Run a receiver that dies there; return its spool."""
    with monkeypatch.context() as patch:
        kill_at(place, patch)
        receiver, spool = desk.start(**given)
        receiver.wait_until(lambda: False)
        with pytest.raises(SpoolReceiverError):
            receiver.check()
    return spool


async def _die_silently(receiver: amqp.Receiver) -> None:
    receiver.session.connection.pump.cancel()


@pytest.mark.parametrize("links", ["1", "3"])
@pytest.mark.parametrize("place", ["synced", "settled"])
@pytest.mark.logs_errors
def test_what_was_on_disk_does_not_come_again_from_a_peer_that_keeps_the_link(
    server: Server, desk: Desk, monkeypatch: pytest.MonkeyPatch, place: str, links: str
) -> None:
    server.put("q", numbers(3000))
    given = {"dedup": "link", "credit": "200", "links": links, "spool_flushRows": "100"}
    taken: list[bytes] = []
    for _ in range(4):
        spool = killed(desk, monkeypatch, place, **given)
        taken += consumed(spool)
        assert 0 < spool.end == len(taken) < 3000
        desk.stop()
    _, spool = desk.start(**given)
    until(lambda: spool.end >= 3000 and server.held("q") == 0)
    desk.stop()
    taken += consumed(spool)
    assert sorted(taken) == numbers(3000)


@pytest.mark.logs_errors
def test_tags_of_a_link_that_the_peer_has_begun_anew_mean_nothing(
    server: Server, desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server.put("q", numbers(500))
    given = {
        "dedup": "link",
        "credit": "200",
        "containerId": "spark",
        "linkName": "x",
        "spool_flushRows": "100",
    }
    spool = killed(desk, monkeypatch, "synced", **given)
    known = consumed(spool)
    desk.stop()

    async def forget() -> None:
        async with (
            server.container.connect(container_id="spark") as connection,
            connection.open_receiver("q", name="x", credit=0, expiry_timeout=60),
        ):
            pass  # it knows nothing of before, and closes

    server.call(forget)
    assert not consumed(killed(desk, monkeypatch, "unwritten", **given))
    assert "has started the link 'x' from scratch" in caplog.text
    desk.stop()  # what came then had tags that had been others' before
    _, spool = desk.start(**given)
    until(lambda: server.held("q") == 0)
    desk.stop()
    assert sorted(consumed(spool)) == numbers(500)
    assert sorted(known) == numbers(len(known))  # and those came twice


def test_link_is_closed_when_told_to_stop(
    server: Server, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    for turn in range(1, 4):
        server.put("q", numbers(300))
        _, spool = desk.start(dedup="link", credit="100")
        until(lambda turn=turn, spool=spool: spool.end == 300 * turn)
        desk.stop()
        assert server.ask(lambda: len(server.container.termini)) == 0
    assert (spool.end, server.held("q")) == (900, 0)
    assert "anew" not in caplog.text
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


def test_connection_that_is_lost_brings_nothing_twice(server: Server, desk: Desk) -> None:
    server.put("q", numbers(5000))
    receiver, spool = desk.start(dedup="link", credit="100", links="2", spool_flushRows="50")
    for turn in range(1, 5):
        until(lambda turn=turn: spool.end >= 500 * turn)
        server.down()
        server.up()
    until(lambda: spool.end >= 5000 and server.held("q") == 0)
    receiver.check()
    assert sorted(consumed(spool)) == numbers(5000)


@pytest.mark.logs_errors
def test_emptying_takes_all_of_it_once(server: Server, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    server.put("q", numbers(1000))
    given: dict[str, Any] = {"dedup": "link", "credit": "200", "spool_flushRows": "100"}
    taken = consumed(killed(desk, monkeypatch, "synced", **given))
    desk.stop()
    receiver, spool = desk.start(emptying=True, **given)
    receiver.wait_until(lambda: False)
    receiver.check()
    assert receiver.emptied
    assert sorted(taken + consumed(spool)) == numbers(1000)
    assert server.held("q") == 0


def test_message_that_cannot_be_read_is_rejected_and_gives_its_credit_back(
    server: Server, desk: Desk
) -> None:
    bad = amqp.Message.from_payload(b"\x00\x53\x73\xc0\x01\x05")
    server.put("q", [*[bad] * 10, *numbers(10)])
    _, spool = desk.start(dedup="link", credit="3", onDecodeError="reject")
    until(lambda: server.held("q") == 0)
    assert sorted(consumed(spool)) == numbers(10)


@pytest.mark.parametrize("noted", ["", "x", "7"])
def test_spool_that_was_damaged_says_so(server: Server, desk: Desk, noted: str) -> None:
    server.address("q")
    spool = Spool(desk.folder / "spool")
    spool.write_note("links", noted)
    spool.close()
    with pytest.raises(SpoolError, match=r"'links' .* is damaged"):
        desk.start(dedup="link")


def test_disk_that_is_full_lets_nothing_come_until_it_has_room(
    server: Server, desk: Desk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server.put("q", numbers(3))
    Spool(desk.folder / "spool").close()

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("trio_amqp10.spark.spool.os.fsync", refuse)
        receiver, spool = desk.start(dedup="link")
        until(lambda: "receiving pauses until there is room" in caplog.text)
        assert (spool.end, server.held("q")) == (0, 3)
    until(lambda: spool.end == 3 and server.held("q") == 0)
    receiver.check()


@pytest.mark.logs_errors
def test_disk_that_fails_is_an_error_before_anything_comes(
    server: Server, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    server.put("q", numbers(3))
    Spool(desk.folder / "spool").close()
    monkeypatch.setattr(Spool, "write_note", fail)
    receiver, _ = desk.start(dedup="link")
    receiver.wait_until(lambda: False)
    with pytest.raises(SpoolReceiverError, match=r"cannot be written: .*Input/output error"):
        receiver.check()
    assert server.held("q") == 3


SUBSCRIBED = {"address": "news", "durable": "true", "linkName": "x", "containerId": "spark"}


@pytest.mark.parametrize("dedup", ["none", "link"])
def test_subscription_goes_on_while_nobody_receives(server: Server, desk: Desk, dedup: str) -> None:
    topic = server.ask(lambda: server.container.add_topic("news"))
    for turn in range(3):
        _, spool = desk.start(dedup=dedup, **SUBSCRIBED)
        until(lambda: len(topic.outlets) == 1)
        server.put("news", numbers(10))
        until(lambda spool=spool, turn=turn: spool.end == 20 * turn + 10)
        desk.stop()
        until(lambda: not topic.outlets)
        server.put("news", numbers(10))
    _, spool = desk.start(dedup=dedup, **SUBSCRIBED)
    until(lambda: spool.end == 60)
    assert sorted(consumed(spool)) == sorted(numbers(10) * 6)


@pytest.mark.parametrize("dedup", ["none", "link"])
def test_subscription_that_is_emptied_goes_on(server: Server, desk: Desk, dedup: str) -> None:
    server.ask(lambda: server.container.add_topic("news"))
    for turn in range(3):
        receiver, spool = desk.start(emptying=True, dedup=dedup, **SUBSCRIBED)
        receiver.wait_until(lambda: False)
        receiver.check()
        assert spool.end == 10 * turn
        desk.stop()
        server.put("news", numbers(10))
