"""amqp10 receive and browse: what they print, take and leave, and how they end."""

from __future__ import annotations

import json
import os
import pty
import signal
from typing import Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.tools.cli.command_runner import CommandError, Interrupts
from trio_amqp10.tools.cli.receive import ReceiveOptions, browse, receive

from .conftest import (
    amqp10,
    done,
    failed,
    interrupt,
    read_terminal,
    start,
)


@pytest.mark.parametrize("guarantee", ["at-most-once", "at-least-once", "exactly-once"])
def test_send_and_receive_give_the_guarantee_asked_for(queue: str, guarantee: str) -> None:
    assert done("send", queue, "--guarantee", guarantee, stdin=b"a\nb\n") == b"sent 2\n"
    assert done("receive", queue, "--guarantee", guarantee, "--count", "2") == b"a\nb\n"


def test_receive_shows_other_values_as_json(queue: str) -> None:
    done("send", queue, "--binary", "--body", "{}")
    shown = json.loads(done("receive", queue, "--count", "1", "--json"))
    assert shown == {"body": "{}", "body_type": "data"}


def test_receive_fails_when_fewer_come_than_counted(queue: str) -> None:
    done("send", queue, "--body", "only")
    result = amqp10("receive", queue, "--count", "2", "--timeout", "0.2")
    assert (result.returncode, result.stdout) == (1, b"only\n")
    assert result.stderr == b"amqp10: received 1 of 2: no message arrived for 0.2 s\n"


def test_receive_ends_well_when_nothing_is_counted_and_it_gets_quiet(queue: str) -> None:
    assert done("receive", queue, "--timeout", "0.2") == b""


def test_receive_leaves_what_it_was_not_asked_for(queue: str) -> None:
    done("send", queue, stdin=b"1\n2\n3\n")
    assert done("receive", queue, "--count", "1") == b"1\n"
    assert done("receive", queue, "--count", "2") == b"2\n3\n"


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
def test_receive_ends_well_when_interrupted_without_a_count(queue: str, sig: signal.Signals) -> None:
    done("send", queue, stdin=b"1\n2\n")
    receiver = start("receive", queue)
    assert receiver.stdout is not None
    assert receiver.stdout.readline() + receiver.stdout.readline() == b"1\n2\n"
    assert interrupt(receiver, sig) == (b"", b"")
    assert receiver.returncode == 0


def test_receive_fails_when_interrupted_before_its_count(queue: str) -> None:
    done("send", queue, "--body", "1")
    receiver = start("receive", queue, "--count", "2")
    assert receiver.stdout is not None
    assert receiver.stdout.readline() == b"1\n"
    assert interrupt(receiver, signal.SIGINT)[1] == b"amqp10: received 1 of 2: interrupted\n"
    assert receiver.returncode == 130


def test_receive_accepts_nothing_that_nobody_reads(queue: str) -> None:
    done("send", queue, "--body", "kept")
    reader, writer = os.pipe()
    os.close(reader)
    receiver = start("receive", queue, "--count", "1", stdout=writer)
    os.close(writer)
    said = receiver.communicate(timeout=20)[1]
    assert said == b"amqp10: the output was closed: no message was accepted\n"
    assert receiver.returncode == 1
    assert done("receive", queue, "--count", "1") == b"kept\n"


@pytest.mark.parametrize("dialect", ["1.0", "0-9-1"])
def test_receive_reports_how_many_it_accepted_when_its_reader_ends(queue: str, dialect: str) -> None:
    url, _, name = queue.rpartition("/")
    done("send", queue, stdin=b"1\n2\n")
    target = (queue,) if dialect == "1.0" else (url, name, "--dialect", dialect)
    receiver = start("receive", *target)
    assert receiver.stdout is not None
    assert receiver.stdout.readline() + receiver.stdout.readline() == b"1\n2\n"
    receiver.stdout.close()
    assert receiver.stderr is not None
    assert receiver.stderr.readline() == (
        b"amqp10: the output was closed: 2 messages were accepted, and its reader may not have read the last of them; use --count "
        b"to receive a number of messages\n"
    )
    receiver.communicate(timeout=20)
    assert receiver.returncode == 1
    done("send", queue, "--body", "kept")
    assert done("receive", queue, "--count", "1") == b"kept\n"


@pytest.mark.parametrize(
    "command", [("browse", "{queue}"), ("demo",), ("demo", "--frames"), ("completion", "bash")]
)
def test_command_whose_reader_has_ended_ends_without_a_word(queue: str, command: tuple[str, ...]) -> None:
    done("send", queue, "--body", "kept")
    reader, writer = os.pipe()
    os.close(reader)
    closed = start(*(word.format(queue=queue) for word in command), stdout=writer)
    os.close(writer)
    assert closed.communicate(timeout=20)[1] == b""
    assert closed.returncode == 1


def test_browse_leaves_the_messages_where_they_are(queue: str) -> None:
    done("send", queue, stdin=b"".join(b"%d\n" % number for number in range(600)))
    everything = done("browse", queue)
    assert everything.split() == [b"%d" % number for number in range(600)]
    assert done("browse", queue, "--count", "2") == b"0\n1\n"
    assert done("receive", queue, "--count", "600") == everything


def test_browse_fails_when_fewer_are_there_than_counted(queue: str) -> None:
    assert "0 of 1" in failed("browse", queue, "--count", "1")


ESCAPES = b"a\tb\x1b]0;title\x07\x1b[2J\xc2\x9b31m\xff\r\n"


def test_receive_shows_escape_codes_on_a_terminal_and_does_not_send_them(queue: str) -> None:
    done("send", queue, "--binary", stdin=ESCAPES)
    ours, theirs = pty.openpty()
    receiver = start("receive", queue, "--count", "1", stdout=theirs)
    os.close(theirs)
    receiver.wait(timeout=20)
    shown = read_terminal(ours)
    assert shown == b"a\tb\\x1b]0;title\\x07\\x1b[2J\\x9b31m\\xff\\x0d\r\n"
    receiver.communicate()


def test_receive_writes_octets_as_they_are_where_there_is_no_terminal(queue: str) -> None:
    done("send", queue, "--binary", stdin=ESCAPES)
    assert done("receive", queue, "--count", "1") == ESCAPES


@pytest.mark.parametrize("command", ["receive", "browse"])
def test_filter_takes_only_what_it_is_true_for(queue: str, command: str) -> None:
    for colour in ("red", "blue", "red"):
        done("send", queue, "--body", colour, "--property", f"colour={colour}")
    assert done(command, queue, "--count", "1", "--filter", "colour = 'blue'") == b"blue\n"


def test_filter_that_is_none_is_refused(queue: str) -> None:
    assert "selector" in failed("receive", queue, "--count", "1", "--filter", "colour = = 1")


def test_receive_takes_no_more_ahead_than_its_credit(queue: str) -> None:
    done("send", queue, "--body", "x", "--count", "30")
    receiver = start("receive", queue, "--credit", "2", "--timeout", "1")
    stdout, _ = receiver.communicate(timeout=20)
    assert stdout == b"x\n" * 30
    assert done("receive", queue, "--credit", "2", "--timeout", "0.2") == b""


async def test_receive_never_grants_more_than_it_was_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    count = 2500
    granted: list[int] = []

    async def handle(connection: amqp.Connection) -> None:
        async for link in connection.incoming_links():
            assert isinstance(link, amqp.IncomingSender)
            async with link.accept() as sender:
                for sent in range(count):
                    await sender.wait_sendable()
                    granted.append(sent + sender.credit)
                    await sender.transmit(str(sent))
                await sender.flush()
                granted.append(count + sender.credit)

    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(amqp.serve, handle, "amqp://127.0.0.1:0")
        options = ReceiveOptions(url=listeners[0].url, address="numbers", count=count, timeout=5, json=False)
        await receive(options, Interrupts(trio.CancelScope()))
        nursery.cancel_scope.cancel()
    assert capfd.readouterr().out.split() == [str(number) for number in range(count)]
    assert max(granted) == count


async def test_receive_releases_what_it_cannot_decode_at_the_end_and_fails(
    capfd: pytest.CaptureFixture[str],
) -> None:
    outcomes: list[Any] = []
    bad = amqp.Message.from_payload(b"\x00\x53\x77\xc1\xff")

    async def handle(connection: amqp.Connection) -> None:
        async for link in connection.incoming_links():
            assert isinstance(link, amqp.IncomingSender)
            async with link.accept() as sender:
                deliveries = [await sender.transmit(message) for message in (bad, "good")]
                outcomes.extend([await delivery.outcome() for delivery in deliveries])

    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(amqp.serve, handle, "amqp://127.0.0.1:0")
        options = ReceiveOptions(url=listeners[0].url, address="q", count=2, timeout=5, json=False)
        with pytest.raises(CommandError, match="1 of 2"):
            await receive(options, Interrupts(trio.CancelScope()))
        nursery.cancel_scope.cancel()
    assert [type(outcome) for outcome in outcomes] == [amqp.Released, amqp.Accepted]
    captured = capfd.readouterr()
    assert captured.out == "good\n"
    assert "could not be decoded" in captured.err


async def test_receive_prints_maps_with_keys_that_only_the_standard_tells_apart(
    capfd: pytest.CaptureFixture[str],
) -> None:
    pairs: Any = amqp.PairMap([(amqp.Symbol("k"), 1), ("k", 2), ([1], 3)])
    message = amqp.Message(pairs, annotations={"x-opt": pairs})
    container = amqp.Container("shop")
    container.add_queue("q")
    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        url = listeners[0].url
        async with amqp.open_connection(url) as conn, conn.open_sender("q") as sender:
            for _ in range(2):
                await sender.send(message)
        for json, shown in (
            (True, '"body": [["k", 1], ["k", 2], [[1], 3]]'),
            (False, '[["k", 1], ["k", 2], [[1], 3]]'),
        ):
            options = ReceiveOptions(url=url, address="q", count=1, timeout=5, json=json)
            await receive(options, Interrupts(trio.CancelScope()))
            assert shown in capfd.readouterr().out
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("guarantee", ["at-least-once", "at-most-once"])
async def test_receive_says_where_a_message_is_that_it_could_not_print(
    guarantee: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = amqp.Message.from_payload(b"\x00\x53\x77\xc1\xff")
    container = amqp.Container("shop")
    queue = container.add_queue("q")
    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        async with amqp.open_connection(listeners[0].url) as conn, conn.open_sender("q") as sender:
            await sender.send(bad)
        options = ReceiveOptions(
            url=listeners[0].url, address="q", count=1, timeout=5, json=True, guarantee=guarantee
        )
        with pytest.raises(CommandError, match="0 of 1"):
            await receive(options, Interrupts(trio.CancelScope()))
        if guarantee == "at-least-once":
            async with amqp.open_connection(listeners[0].url) as conn, conn.open_receiver("q") as receiver:
                (await receiver.receive()).accept()
        else:
            assert not len(queue)
        nursery.cancel_scope.cancel()
    where = "stays at the peer" if guarantee == "at-least-once" else "is gone"
    assert where in capfd.readouterr().err


async def test_receive_ends_when_more_cannot_be_decoded_than_it_holds(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("trio_amqp10.tools.cli.receive._MOST_WITHHELD", 2)
    outcomes: list[Any] = []
    bad = amqp.Message.from_payload(b"\x00\x53\x77\xc1\xff")

    async def handle(connection: amqp.Connection) -> None:
        async for link in connection.incoming_links():
            assert isinstance(link, amqp.IncomingSender)
            async with link.accept() as sender:
                deliveries = [await sender.transmit(bad) for _ in range(2)]
                outcomes.extend([await delivery.outcome() for delivery in deliveries])

    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(amqp.serve, handle, "amqp://127.0.0.1:0")
        options = ReceiveOptions(url=listeners[0].url, address="q", count=None, timeout=None, json=False)
        with pytest.raises(CommandError, match="2 of the messages"):
            await receive(options, Interrupts(trio.CancelScope()))
        nursery.cancel_scope.cancel()
    assert [type(outcome) for outcome in outcomes] == [amqp.Released] * 2
    assert not capfd.readouterr().out


def undecodable(number: int) -> amqp.Message:
    return amqp.Message.from_payload(b"\x00\x53\x77\xc1\xff%d" % number, 0x80013700)


@pytest.mark.parametrize(
    ("choice", "outcomes", "out", "fate"),
    [
        ("release", ["Released", "Accepted", "Released", "Accepted"], b"one\ntwo\n", "stays at the peer"),
        ("reject", ["Rejected", "Accepted", "Rejected", "Accepted"], b"one\ntwo\n", "is rejected"),
        (
            "raw",
            ["Accepted"] * 4,
            b"\x00\x53\x77\xc1\xff1\none\n\x00\x53\x77\xc1\xff2\ntwo\n",
            "could not be decoded: ",
        ),
    ],
)
@pytest.mark.parametrize("counted", [False, True])
async def test_receive_does_with_what_it_cannot_decode_what_it_is_told(
    choice: Any,
    outcomes: list[str],
    out: bytes,
    fate: str,
    counted: bool,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    found: list[Any] = []

    async def handle(connection: amqp.Connection) -> None:
        async for link in connection.incoming_links():
            assert isinstance(link, amqp.IncomingSender)
            async with link.accept() as sender:
                messages = [undecodable(1), "one", undecodable(2), "two"]
                deliveries = [await sender.transmit(message) for message in messages]
                found.extend([await delivery.outcome() for delivery in deliveries])
                await trio.sleep_forever()

    # What is rejected does not count, and what is kept back does.
    count = {"release": 4, "reject": 2, "raw": 4}[choice] if counted else None
    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(amqp.serve, handle, "amqp://127.0.0.1:0")
        options = ReceiveOptions(
            url=listeners[0].url, address="q", count=count, timeout=1, json=False, undecodable=choice
        )
        if choice == "release":
            with pytest.raises(CommandError, match=r"2 of 4|2 of the messages could not be decoded"):
                await receive(options, Interrupts(trio.CancelScope()))
        else:
            await receive(options, Interrupts(trio.CancelScope()))
        nursery.cancel_scope.cancel()
    assert [type(outcome).__name__ for outcome in found] == outcomes
    if choice == "reject":
        assert found[0].error.condition == "amqp:decode-error"
    captured = capfdbinary.readouterr()
    assert captured.out == out
    said = captured.err.decode()
    assert said.count("amqp10: the message with delivery-tag ") == 2
    assert said.count("message-format 0x80013700") == 2
    assert said.count(fate) == 2


async def test_receive_and_browse_print_octets_that_cannot_be_decoded_as_json(
    capfd: pytest.CaptureFixture[str],
) -> None:
    container = amqp.Container("shop")
    container.add_queue("q")
    await container.send("q", undecodable(1))
    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(container.serve, "amqp://127.0.0.1:0")
        for run in (browse, receive):
            options = ReceiveOptions(
                url=listeners[0].url, address="q", count=1, timeout=5, json=True, undecodable="raw"
            )
            await run(options, Interrupts(trio.CancelScope()))
            assert json.loads(capfd.readouterr().out) == {
                "undecodable": {"base64": "AFN3wf8x"},
                "message_format": 0x80013700,
            }
        nursery.cancel_scope.cancel()
    assert len(container.nodes["q"]) == 0  # type: ignore[arg-type]
