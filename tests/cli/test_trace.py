"""``amqp10 trace``: each kind of file, on stdout, and what is said of those that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from tests.container.protocols.served import served
from tests.naive.performatives import frame, header
from tests.trace.captures import End, pcap, segment
from trio_amqp10 import amqp091
from trio_amqp10.container import Container
from trio_amqp10.container.protocols.amqp091.protocol import Amqp091
from trio_amqp10.peer.tapped_stream import tapped
from trio_amqp10.trace.frame_log import FrameLog, Record

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
        for start in range(0, len(octets), most):
            part = octets[start : start + most]
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
    page = amqp10("trace", str(file), "--html")
    assert page.returncode == 0
    assert b"basic.publish" in page.stdout


def test_trace_says_what_is_wrong_with_a_file(tmp_path: Path) -> None:
    file = tmp_path / "nothing"
    file.write_bytes(b"")
    assert failed("trace", str(file)) == "amqp10: the file is empty"


@pytest.mark.parametrize("content", [b"root:x:0:0:root:/root:/bin/bash\n" * 20, b"\xff" * 64, b"hello"])
def test_trace_fails_where_nothing_is_amqp(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "passwd"
    file.write_bytes(content)
    assert failed("trace", str(file)).startswith(
        f"amqp10: {file} has no header and no frame of AMQP in it: {len(content)} octets: "
    )
