"""What a command says about a failure, and how it takes signals."""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import Any

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.cli.command_runner import CommandError, Interrupts, explain, harmless
from trio_amqp10.cli.receive import ReceiveOptions, browse, receive
from trio_amqp10.peer.errors import ConnectionClosedError, LinkRefusedError
from trio_amqp10.spec.transport import Error


def refused(condition: str) -> LinkRefusedError:
    return LinkRefusedError(f"refused, {condition}", Error(condition=condition))


def because(failure: Exception, cause: BaseException) -> Exception:
    failure.__cause__ = cause
    return failure


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (amqp.LocalProtocolError("a rule"), "a rule"),
        (refused("amqp:not-found"), "the address is everything after the first /"),
        (refused("amqp:unauthorized-access"), "user and password belong in the URL"),
        (amqp.SecurityError("no"), "no"),
        (amqp.sasl.AuthenticationError(None, "PLAIN", "no"), "not authenticated: no"),
        (
            because(ConnectionClosedError("failed"), amqp.sasl.AuthenticationError(None, "PLAIN", "no")),
            "not authenticated: no",
        ),
        (amqp.AmqpError("two\nlines"), "two lines"),
        (OSError(2, "No such file", "name"), "name: No such file"),
        (ExceptionGroup("", [OSError(1, "b"), ExceptionGroup("", [OSError(2, "a")])]), "a; b"),
    ],
)
def test_failure_is_one_line(failure: Exception, said: str) -> None:
    text = explain(failure)
    assert text is not None
    assert said in text
    assert "\n" not in text


@pytest.mark.parametrize("failure", [KeyError("bug"), ExceptionGroup("", [OSError(1, "a"), KeyError("bug")])])
def test_failure_that_is_a_bug_is_not_explained_away(failure: Exception) -> None:
    assert explain(failure) is None


async def test_interrupt_ends_the_innermost_part_first_and_everything_next() -> None:
    with trio.CancelScope() as everything:
        interrupts = Interrupts(everything)
        with interrupts.here() as outer:
            with interrupts.here() as inner:
                interrupts.interrupt()
                await trio.sleep_forever()
            assert inner.cancelled_caught
            assert not outer.cancel_called
            with interrupts.here() as late:
                await trio.sleep_forever()
            assert late.cancelled_caught
            interrupts.interrupt()
            await trio.sleep_forever()
    assert everything.cancelled_caught


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
    monkeypatch.setattr("trio_amqp10.cli.receive._MOST_WITHHELD", 2)
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


def test_control_characters_are_shown_and_not_obeyed() -> None:
    every = "".join(map(chr, range(256)))
    shown = harmless(every)
    assert "\\x1b" in shown
    assert "\\x9b" in shown
    assert [one for one in shown if ord(one) < 32 or 127 <= ord(one) < 160] == ["\t", "\n"]
    assert harmless("gr\u00fc\u00df \u2713") == "gr\u00fc\u00df \u2713"


def test_credentials_are_not_blamed_for_a_peer_without_tls() -> None:
    assert explain(amqp.SecurityError("what the peer sent is not TLS")) == "what the peer sent is not TLS"


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
    assert said.count("amqp10: the message of delivery-tag ") == 2
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


def test_every_character_that_a_terminal_obeys_is_shown() -> None:
    obeyed = [
        chr(number)
        for number in range(sys.maxunicode + 1)
        if unicodedata.category(chr(number)) in ("Cc", "Cf", "Zl", "Zp")
    ]
    kept = {each for each in obeyed if harmless(each) == each}
    assert kept == {"\t", "\n", "\u200c", "\u200d"}
    assert harmless("a\u202eb\U000e0041") == "a\\u202eb\\U000e0041"
