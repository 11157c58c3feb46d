"""What a command says about a failure, and how it takes signals."""

from __future__ import annotations

import re
import sys
import unicodedata
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.errors import ConnectionClosedError, LinkRefusedError
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.net.tls_options import TlsOptions
from trio_amqp10.net.urls import parse_url
from trio_amqp10.tools.cli.command_runner import Interrupts, explain, harmless

if TYPE_CHECKING:
    from pathlib import Path


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
        (
            amqp.SessionEndedError('Attach rejected: {unknown_destination,"queues/orders"}'),
            "as in amqp://HOST//queues/NAME",
        ),
        (
            amqp.SessionEndedError("amqp:not-implemented: Dynamic sources not supported"),
            "use an amqp091:// URL and the name of the queue",
        ),
        (
            refused("amqp:unauthorized-access"),
            "(log in: set AMQP10_USER and AMQP10_PASSWORD, or use a context)",
        ),
        (amqp.SecurityError("no"), "no"),
        (amqp.sasl.AuthenticationError(None, "PLAIN", "no"), "not authenticated: no"),
        (
            because(ConnectionClosedError("failed"), amqp.sasl.AuthenticationError(None, "PLAIN", "no")),
            "not authenticated: no",
        ),
        (amqp.AmqpError("two\nlines"), "two lines"),
        (
            amqp.sasl.NoAcceptableMechanismError(["PLAIN"], ["ANONYMOUS"]),
            "requires a user: amqp://USER:PASSWORD@HOST",
        ),
        (
            amqp.sasl.NoAcceptableMechanismError(["ANONYMOUS"], ["PLAIN"]),
            "knows no users: leave user and password out",
        ),
        (OSError(2, "No such file", "name"), "name: No such file"),
        (ExceptionGroup("", [OSError(1, "b"), ExceptionGroup("", [OSError(2, "a")])]), "a; b"),
    ],
)
def test_failure_is_one_line(failure: Exception, said: str) -> None:
    text = explain(failure)
    assert text is not None
    assert said in text
    assert "\n" not in text


def test_failure_names_options_of_the_command_line_and_no_arguments_of_python(tmp_path: Path) -> None:
    said: list[str] = []
    for options in (
        {"cafile": tmp_path / "no"},
        {"certfile": tmp_path / "no"},
        {"cafile": "a", "insecure": True},
        {"keyfile": "a"},
    ):
        for url in ("amqp://localhost", "amqps://localhost"):
            try:
                TlsOptions(**options).layers_for(parse_url(url))
                TlsOptions(**options).make_context()
            except Exception as failure:
                said.append(explain(failure) or "")
    assert len(said) == 8
    assert [
        text for text in said if re.search(r"\w=|_|cafile|certfile|keyfile|\(\)", text.split("/")[0])
    ] == []
    assert [text for text in said if "--tls-" not in text] == [said[0], said[2]]  # amqp:// has no TLS at all


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


def test_control_characters_are_shown_and_not_obeyed() -> None:
    every = "".join(map(chr, range(256)))
    shown = harmless(every)
    assert "\\x1b" in shown
    assert "\\x9b" in shown
    assert [one for one in shown if ord(one) < 32 or 127 <= ord(one) < 160] == ["\t", "\n"]
    assert harmless("gr\u00fc\u00df \u2713") == "gr\u00fc\u00df \u2713"


def test_salted_keys_are_not_blamed_for_a_peer_without_tls() -> None:
    assert (
        explain(amqp.SecurityError("the input from the peer is not TLS"))
        == "the input from the peer is not TLS"
    )


def test_every_character_that_a_terminal_obeys_is_shown() -> None:
    obeyed = [
        chr(number)
        for number in range(sys.maxunicode + 1)
        if unicodedata.category(chr(number)) in ("Cc", "Cf", "Zl", "Zp")
    ]
    kept = {each for each in obeyed if harmless(each) == each}
    assert kept == {"\t", "\n", "\u200c", "\u200d"}
    assert harmless("a\u202eb\U000e0041") == "a\\u202eb\\U000e0041"
