"""``amqp10 trace``: each kind of file, on stdout, and what is said of those that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.naive.performatives import frame, header
from tests.trace.captures import End, pcap, segment
from trio_amqp10.trace.records import FrameLog, Record

from .conftest import amqp10, done, failed

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


def test_trace_of_a_capture_says_who_talks_and_draws_it(tmp_path: Path) -> None:
    client, server = End(bytes((127, 0, 0, 1)), 40000), End(bytes((127, 0, 0, 1)), 5672)
    file = tmp_path / "talk.pcap"
    file.write_bytes(pcap([segment(client, server, 1, OPEN)]))
    result = amqp10("trace", str(file))
    assert result.stderr == b"conversation 1: 127.0.0.1:40000 -> 127.0.0.1:5672\n"
    assert b"0.000000  -> [0] Open(container_id='peer')\n" in result.stdout
    page = done("trace", str(file), "--html").decode()
    assert page.startswith("<!doctype html>")
    assert "<title>talk.pcap</title>" in page
    assert "127.0.0.1:40000 -&gt; 127.0.0.1:5672" in page
    assert "<title>AMQP 1.0</title>" in done("trace", "-", "--html", stdin=OPEN).decode()


def test_trace_says_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    file = tmp_path / "nothing"
    file.write_bytes(b"")
    assert failed("trace", str(file)) == "amqp10: the file is empty"
