"""``amqp10 receive`` until empty, with a format, rejecting, and raw."""

from __future__ import annotations

import pytest

import trio_amqp10 as amqp
from trio_amqp10.tools.cli.message_format import parse_format

from .conftest import amqp10, done, failed, misused, serving

MESSAGE = amqp.Message(
    b"tea", subject="s", message_id=7, priority=9, application_properties={"table": 5, "octets": b"\xff"}
)


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("%s %b", b"s tea"),
        ("%i,%p,%d,%c%r%g%t", b"7,9,0,"),
        ("%{table}:%{octets}:%{none}", b"5:\xff:"),
        (r"a\tb\nc\0d\\n100%%", b"a\tb\nc\x00d\\n100%"),
        (r"\x", rb"\x"),
        ("\udcff", b"\xff"),
        ("", b""),
    ],
)
def test_format_shows_the_parts_of_a_message(template: str, line: bytes) -> None:
    assert parse_format(template)(MESSAGE) == line


@pytest.mark.parametrize("template", ["%", "%x", "%{", "%{}", "a%"])
def test_format_without_such_a_code_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="is not a code of a format"):
        parse_format(template)


def test_receive_ends_when_the_queue_is_empty(queue: str) -> None:
    done("send", queue, stdin=b"a\nb\nc\n")
    assert done("receive", queue, "--until-empty", "--count", "1") == b"a\n"
    assert done("receive", queue, "--until-empty", "--format", "<%b>") == b"<b>\n<c>\n"
    assert done("receive", queue, "--until-empty") == b""
    assert "received 0 of 1: there are no more messages" in failed(
        "receive", queue, "--until-empty", "--count", "1"
    )


def test_receive_gets_more_than_one_batch_until_empty(queue: str) -> None:
    lines = b"".join(b"%d\n" % number for number in range(600))
    done("send", queue, stdin=lines)
    assert done("receive", queue, "--until-empty", "--credit", "100") == lines


def test_receive_rejects_what_it_printed() -> None:
    with serving("--queue", "orders,dead-letter=dead", "--queue", "dead", "--dialect", "0-9-1") as url:
        done("send", f"{url}/orders", stdin=b"a\nb\n")
        assert done("receive", f"{url}/orders", "--reject", "--count", "1") == b"a\n"
        old = url.replace("amqp:", "amqp091:")
        assert done("receive", old, "orders", "--reject", "--until-empty") == b"b\n"
        assert done("receive", old, "dead", "--until-empty", "--format", "%b!") == b"a!\nb!\n"
        assert done("receive", old, "dead", "--until-empty") == b""


def test_receive_prints_the_octets_that_are_no_message(queue: str) -> None:
    done("send", queue, "--json", stdin=b'{"undecodable": {"base64": "AFN3wQ=="}}\n')
    assert amqp10("browse", queue).returncode == 1
    line = b'{"undecodable": {"base64": "AFN3wQ=="}, "message_format": 0}\n'
    assert amqp10("receive", queue, "--until-empty", "--raw", "--json").stdout == line


def test_receive_names_options_that_exclude_each_other(queue: str) -> None:
    assert "exclude each other" in misused("receive", queue, "--json", "--format", "%b")
    assert "--reject needs" in misused("receive", queue, "--reject", "--guarantee", "at-most-once")
    assert "'%x' is not a code" in misused("receive", queue, "--format", "%x")


def test_json_goes_through_0_9_1_and_back() -> None:
    with serving("--queue", "orders", "--dialect", "0-9-1") as url:
        old = url.replace("amqp:", "amqp091:")
        line = b'{"body": "tea", "subject": "s", "application_properties": {"n": 5}, "types": {"/application_properties/n": "int"}}\n'
        assert done("send", old, "orders", "--json", "--property", "m:short=2", stdin=line) == b"sent 1\n"
        shown = done("receive", old, "orders", "--until-empty", "--json")
        assert b'"n": 5' in shown
        assert b'"m": "short"' in shown or b"short" in shown
        assert done("send", old, "orders", "--json", stdin=shown) == b"sent 1\n"
        assert done("receive", old, "orders", "--until-empty", "--json") == shown
        assert "line 1: unknown member" in failed("send", old, "orders", "--json", stdin=b'{"boddy": 1}\n')
