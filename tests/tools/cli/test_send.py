"""amqp10 send: bodies, lines and files, their properties, and what it waits for."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from tests.amqp10.peer.helpers import served
from tests.ports import free_port
from trio_amqp10.tools.cli.progress import Progress
from trio_amqp10.tools.cli.send import _Flight  # pyright: ignore[reportPrivateUsage]

from .conftest import (
    SECONDS,
    amqp10,
    done,
    failed,
    interrupt,
    server_of,
    serving,
    start,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_send_sends_one_message_when_given_a_body(queue: str) -> None:
    assert done("send", queue, "--body", "hello") == b"sent 1\n"
    assert done("receive", queue, "--count", "1") == b"hello\n"


def test_send_sends_a_body_as_often_as_asked(queue: str) -> None:
    assert done("send", queue, "--body", "again", "--count", "3") == b"sent 3\n"
    assert done("receive", queue, "--count", "3") == b"again\n" * 3


def test_send_sends_each_line_of_stdin_without_its_newline(queue: str) -> None:
    lines = "eins\n\nzwei \u00fc\nthe last without an end".encode()
    assert done("send", queue, stdin=lines) == b"sent 4\n"
    assert done("receive", queue, "--count", "4") == lines + b"\n"


def test_send_sends_each_line_of_a_file(queue: str, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"".join(b"%d\n" % number for number in range(5000)))
    assert done("send", queue, "--file", str(file)) == b"sent 5000\n"
    assert done("receive", queue, "--count", "5000") == file.read_bytes()


def test_send_sends_the_first_lines_when_counted(queue: str) -> None:
    assert done("send", queue, "--count", "2", stdin=b"a\nb\nc\n") == b"sent 2\n"
    assert done("receive", queue, "--timeout", "0.2") == b"a\nb\n"


def test_send_fails_when_there_are_fewer_lines_than_counted(queue: str) -> None:
    assert "sent 1 of 3" in failed("send", queue, "--count", "3", stdin=b"a\n")


def test_send_keeps_octets_when_binary(queue: str) -> None:
    assert done("send", queue, "--binary", stdin=b"\xff\xfe\n\x00\n") == b"sent 2\n"
    assert done("receive", queue, "--count", "2") == b"\xff\xfe\n\x00\n"


def test_send_fails_when_a_line_is_no_text(queue: str) -> None:
    assert "line 2 is not UTF-8" in failed("send", queue, stdin=b"good\n\xff\n")


def test_send_sets_properties_and_durable(queue: str) -> None:
    done("send", queue, "--body", "x", "--durable", "--property", "a=1", "--property", "b=c=d")
    shown = json.loads(done("receive", queue, "--count", "1", "--json"))
    assert shown == {
        "body": "x",
        "body_type": "value",
        "durable": True,
        "application_properties": {"a": "1", "b": "c=d"},
    }


def test_send_sends_a_line_as_soon_as_it_is_there(queue: str) -> None:
    sender = start("send", queue)
    assert sender.stdin is not None
    sender.stdin.write(b"now\n")
    sender.stdin.flush()
    assert done("receive", queue, "--count", "1") == b"now\n"
    assert sender.communicate(b"later\n", timeout=20)[0] == b"sent 2\n"


def test_send_fails_in_one_line_when_nobody_listens() -> None:
    said = failed("send", f"amqp://127.0.0.1:{free_port()}/q", "--body", "x")
    assert "refused" in said
    assert "no program listens there" in said


def test_send_leaves_carriage_returns_out_of_lines_unless_they_are_binary(queue: str) -> None:
    assert done("send", queue, stdin=b"one\r\ntwo\r\n") == b"sent 2\n"
    assert done("send", queue, "--binary", stdin=b"three\r\n") == b"sent 1\n"
    assert done("receive", queue, "--count", "3") == b"one\ntwo\nthree\r\n"


FIELDS = (
    *(
        "--subject",
        "greeting",
        "--ttl",
        "60",
        "--priority",
        "7",
        "--message-id",
        "m1",
        "--correlation-id",
        "c1",
    ),
    *("--reply-to", "answers", "--content-type", "text/plain"),
)


def test_send_sets_the_fields_that_are_named(queue: str) -> None:
    done("send", queue, "--body", "hi", *FIELDS)
    shown = json.loads(done("receive", queue, "--count", "1", "--json"))
    assert {
        name: shown[name] for name in ("subject", "priority", "message_id", "correlation_id", "reply_to")
    } == {
        "subject": "greeting",
        "priority": 7,
        "message_id": "m1",
        "correlation_id": "c1",
        "reply_to": "answers",
    }
    assert shown["content_type"] == "text/plain"
    assert 0 < shown["ttl"] <= 60_000


@pytest.mark.parametrize("more", [("--body", "x", "--count", "2"), ()])
def test_message_id_is_for_one_message(queue: str, more: tuple[str, ...]) -> None:
    result = amqp10("send", queue, "--message-id", "m", *more)
    assert result.returncode == 2
    assert b"--message-id is for one message" in result.stderr


@pytest.mark.parametrize("credit", [0, 10])
async def test_send_says_once_what_it_waits_for(
    credit: int, autojump_clock: object, capsys: pytest.CaptureFixture[str]
) -> None:
    """A peer without room grants no credit, or keeps what it was sent."""

    async def full(conn: amqp.Connection) -> None:
        async for link in conn.incoming_links():
            assert isinstance(link, amqp.IncomingReceiver)
            async with link.accept(credit=credit):
                await trio.sleep_forever()

    async with served(full) as conn, conn.open_sender("small") as sender:
        flight = _Flight(sender, Progress("sending", None, quiet=True))
        for _ in range(2):
            with trio.move_on_after(60):
                await flight.send("tea")
                await flight.land()
    assert capsys.readouterr().err == (
        "amqp10: waiting: 'small' does not accept message 1 yet; a full queue accepts a message after others are received from it\n"
    )


def test_send_to_an_address_that_does_not_exist_reports_no_outcomes() -> None:
    with serving("--strict") as url:
        assert failed("send", f"{url}/q", "--body", "x").endswith(
            "no node 'q' (the address is everything after the first / that follows the host)"
        )


@pytest.mark.parametrize("dialect", ["1.0", "0-9-1"])
def test_send_that_loses_its_server_reports_what_was_accepted(dialect: str) -> None:
    with server_of("--queue", "q") as (url, server):
        target = (f"{url}/q",) if dialect == "1.0" else (url, "q", "--dialect", dialect)
        sending = start("send", *target)
        assert sending.stdin is not None
        sending.stdin.write(b"1\n2\n")
        sending.stdin.flush()
        assert done("receive", f"{url}/q", "--count", "2") == b"1\n2\n"
        interrupt(server)
        said = sending.communicate(b"".join(b"%d\n" % number for number in range(5000)), timeout=SECONDS)[1]
    assert sending.returncode == 1
    assert re.search(
        rb"\(\d+ messages were (accepted|confirmed); the outcome of others is unknown\)\n$", said
    )
