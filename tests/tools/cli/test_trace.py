"""``amqp10 trace``: each kind of file, on stdout, and what is said of those that are none."""

from __future__ import annotations

import os
import pty
from typing import TYPE_CHECKING

import pytest
import trio

from tests.container.served import served
from tests.naive.performatives import frame, header
from tests.tools.trace.captures import End, pcap, segment
from trio_amqp10 import amqp091
from trio_amqp10.amqp091.server.protocol import Amqp091
from trio_amqp10.amqp10.peer.tapped_stream import tapped
from trio_amqp10.container import Container
from trio_amqp10.tools.trace.frame_log import FrameLog, Record

from .conftest import SECONDS, amqp10, done, failed, read_terminal, start

if TYPE_CHECKING:
    from pathlib import Path

OPEN = header() + frame("open", container_id="peer")


def test_trace_shows_hex_of_stdin() -> None:
    assert done("trace", "-", stdin=OPEN.hex().encode()) == (
        b"-> header AMQP 0 1.0.0 (AMQP)\n-> [0] Open(container_id='peer')\n"
    )


def test_trace_shows_octets_when_asked(tmp_path: Path) -> None:
    file = tmp_path / "raw"
    file.write_bytes(header())
    assert done("trace", str(file), "--octets").decode().splitlines() == [
        "-> header AMQP 0 1.0.0 (AMQP)",
        "    000000  41 4d 51 50 00 01 00 00                          AMQP....",
    ]


def test_trace_shows_times_ways_and_conversations(tmp_path: Path) -> None:
    log = FrameLog()
    file = tmp_path / "talk.jsonl"
    file.write_text(
        log.begin() + log.feed(Record(1, ">", header(), 0.25)) + log.feed(Record(2, "<", header(), 1.5))
    )
    assert done("trace", str(file)).decode().splitlines() == [
        "   0.250000  1  -> header AMQP 0 1.0.0 (AMQP)",
        "   1.500000  2  <- header AMQP 0 1.0.0 (AMQP)",
    ]


def test_trace_shows_escape_codes_of_peers_on_a_terminal_and_does_not_send_them(tmp_path: Path) -> None:
    file = tmp_path / "raw"
    error = ("error", {"condition": "x", "description": "\x1b[2J\x9b31m"})
    file.write_bytes(header() + frame("open", container_id="\x1b]0;title\x07") + frame("close", error=error))
    ours, theirs = pty.openpty()
    process = start("trace", str(file), "--octets", stdout=theirs)
    os.close(theirs)
    shown = read_terminal(ours)
    assert process.wait(timeout=SECONDS) == 0
    process.communicate()
    assert b"title" in shown
    assert not {0x1B, 0x07} & set(shown)
    assert "\x9b" not in shown.decode()


def test_trace_of_a_capture_says_who_talks_and_draws_it(tmp_path: Path) -> None:
    client, server = End(bytes((127, 0, 0, 1)), 40000), End(bytes((127, 0, 0, 1)), 5672)
    file = tmp_path / "talk.pcap"
    file.write_bytes(pcap([segment(client, server, 1, OPEN)]))
    result = amqp10("trace", str(file))
    assert result.stderr == b"conversation 1: 127.0.0.1:40000 -> 127.0.0.1:5672\n"
    assert b"0.000000  -> [0] Open(container_id='peer')\n" in result.stdout
    page = tmp_path / "page.html"
    assert done("trace", "--html", str(page), str(file)) == b""
    assert page.read_text().startswith("<!doctype html>")
    assert "<title>talk.pcap</title>" in page.read_text()
    assert "127.0.0.1:40000 -\\u003e 127.0.0.1:5672" in page.read_text()
    assert "<title>stdin</title>" in done("trace", "-", "--html", "-", stdin=OPEN).decode()


def test_trace_of_several_files_numbers_their_conversations_in_a_row(tmp_path: Path) -> None:
    client, server = End(bytes((127, 0, 0, 1)), 40000), End(bytes((127, 0, 0, 1)), 5672)
    capture, raw = tmp_path / "talk.pcap", tmp_path / "raw"
    capture.write_bytes(pcap([segment(client, server, 1, OPEN)]))
    raw.write_bytes(header())
    result = amqp10("trace", str(capture), str(raw))
    assert result.stderr == b"talk.pcap: conversation 1: 127.0.0.1:40000 -> 127.0.0.1:5672\n"
    assert result.stdout.decode().splitlines() == [
        "   0.000000  1  -> header AMQP 0 1.0.0 (AMQP)",
        "   0.000000  1  -> [0] Open(container_id='peer')",
        "2  -> header AMQP 0 1.0.0 (AMQP)",
    ]
    page = done("trace", "--html", "-", str(capture), str(raw)).decode()
    assert "<title>talk.pcap, raw</title>" in page


def test_page_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    out = tmp_path / "missing" / "page.html"
    assert failed("trace", "-", "--html", str(out), stdin=OPEN).startswith(f"amqp10: {out}: No such file")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "Give files to decode, or --listen and --to"),
        (["-", "--listen", "amqp://127.0.0.1:0", "--to", "amqp://127.0.0.1:1"], "Give files to decode, or"),
        (["--listen", "amqp://127.0.0.1:0"], "--listen and --to need each other"),
        (["-", "--to", "amqp://127.0.0.1:1"], "--listen and --to need each other"),
        (["-", "--insecure"], "need --listen and --to"),
        (["--listen", "amqp://127.0.0.1:0", "--to", "amqp://h", "--html", "-"], "give --html a file"),
        (
            ["--listen", "amqp://127.0.0.1:0", "--to", "amqp://h", "--listen-key", __file__],
            "--listen-key needs",
        ),
        (["--listen", "amqp://127.0.0.1:0", "--to", "amqpws://h"], "could not copy octet for octet"),
        (["--listen", "amqp://127.0.0.1:0", "--to", "amqp://h/orders"], "give only amqp://h:5672"),
        (["--listen", "amqp://ada:x@127.0.0.1:0", "--to", "amqp://h"], "give only amqp://127.0.0.1:0"),
    ],
)
def test_trace_says_which_options_do_not_go_together(arguments: list[str], why: str) -> None:
    result = amqp10("trace", *arguments)
    assert result.returncode == 2
    assert why in " ".join(result.stderr.decode().split())


async def conversation() -> list[tuple[bool, bytes]]:
    """What a client of 0-9-1 and a container say: whether the client wrote it, and the octets."""
    said: list[tuple[bool, bytes]] = []
    async with served(Amqp091(Container())) as plain:
        stream = tapped(
            plain, lambda octets: said.append((True, octets)), lambda octets: said.append((False, octets))
        )
        async with amqp091.open_connection(stream) as connection, connection.open_publisher() as out:
            queue = await out.declare_queue("tea", durable=True)
            await out.publish("", "tea", b"a cup of it", correlation_id="7")
            got = await queue.get()
            assert got is not None
            got.ack()
    return said


def captured(said: list[tuple[bool, bytes]], *, port: int, most: int) -> list[bytes]:
    """The packets of a conversation, with at most so many octets each; every third comes before the one it follows."""
    client, server = End(bytes((127, 0, 0, 1)), port), End(bytes((127, 0, 0, 2)), 5672)
    packets: list[bytes] = [segment(client, server, 0, flags=2), segment(server, client, 0, flags=18)]
    sequences = {True: 1, False: 1}
    for ours, octets in said:
        ends = (client, server) if ours else (server, client)
        for begin in range(0, len(octets), most):
            part = octets[begin : begin + most]
            packets.append(segment(*ends, sequences[ours], part))
            sequences[ours] += len(part)
    for at in range(3, len(packets) - 1, 3):
        if packets[at][12:20] == packets[at + 1][12:20]:  # the same ends: TCP puts them in order
            packets[at], packets[at + 1] = packets[at + 1], packets[at]
    return packets


def test_trace_of_a_capture_shows_a_conversation_of_0_9_1(tmp_path: Path) -> None:
    said = trio.run(conversation)
    file = tmp_path / "talk.pcap"
    file.write_bytes(pcap([*captured(said, port=40000, most=50), *captured(said, port=40001, most=10_000)]))
    result = amqp10("trace", str(file))
    assert result.returncode == 0
    assert result.stderr.decode().splitlines() == [
        "conversation 1: 127.0.0.1:40000 -> 127.0.0.2:5672",
        "conversation 2: 127.0.0.1:40001 -> 127.0.0.2:5672",
    ]
    lines = [line.split(maxsplit=2)[1:] for line in result.stdout.decode().splitlines()]
    one, other = ([rest for number, rest in lines if number == each] for each in "12")
    assert one == other
    shown = [line.partition("(")[0] for line in one]
    assert shown[:4] == [
        "-> header AMQP 0 0.9.1 ",
        "<- [0] connection.start",
        "-> [0] connection.start-ok",
        "<- [0] connection.tune",
    ]
    assert one[one.index("-> [1] queue.declare(queue='tea', durable=True)") + 1 :] == [
        "<- [1] queue.declare-ok(queue='tea')",
        "-> [1] basic.publish(routing_key='tea')",
        "-> [1] header(correlation_id='7')",
        "-> [1] body + 11 octets",
        "<- [1] basic.ack(delivery_tag=1)",
        "-> [1] basic.get(queue='tea')",
        "<- [1] basic.get-ok(delivery_tag=1, routing_key='tea')",
        "<- [1] header(correlation_id='7')",
        "<- [1] body + 11 octets",
        "-> [1] basic.ack(delivery_tag=1, multiple=True)",
        "-> [1] channel.close(reply_code=200)",
        "<- [1] channel.close-ok()",
        "-> [0] connection.close(reply_code=200)",
        "<- [0] connection.close-ok()",
    ]
    assert b"basic.publish" in done("trace", str(file), "--html", "-")


def test_trace_says_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    file = tmp_path / "nothing"
    file.write_bytes(b"")
    assert failed("trace", str(file)) == "amqp10: the file is empty"


@pytest.mark.parametrize("content", [b"root:x:0:0:root:/root:/bin/bash\n" * 20, b"\xff" * 64, b"hello"])
def test_trace_fails_where_nothing_is_amqp(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "passwd"
    file.write_bytes(content)
    assert failed("trace", str(file)).startswith(
        f"amqp10: {file} has no protocol header and no frame of AMQP: {len(content)} octets: "
    )
