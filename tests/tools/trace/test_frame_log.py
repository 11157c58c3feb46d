"""Frame logs: what is written is read again, and no secret is in it."""

from __future__ import annotations

import json

import pytest

from tests.naive.performatives import frame, header
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.tools.trace.frame_log import FrameLog, Record, entries_of, read_frame_log

INIT = header("sasl") + frame("sasl-init", mechanism="PLAIN", initial_response=b"\0ada\0xyzzy")
OPEN = header() + frame("open", container_id="peer")


def logged(*records: Record, secrets: bool = False) -> str:
    log = FrameLog(secrets=secrets)
    return log.begin() + "".join(log.feed(record) for record in records) + log.finish()


def test_frame_log_has_a_line_for_each_piece() -> None:
    text = logged(
        Record(1, ">", OPEN[:11], 0.5),
        Record(1, "<", OPEN, 1.0),
        Record(1, ">", OPEN[11:], 1.23456789),
        Record(2, "<", b"AM"),
    )
    first, *lines = [json.loads(line) for line in text.splitlines()]
    assert first == {"format": "amqp10-frame-log", "version": 1}
    assert [(line["conversation"], line["way"], line["at"]) for line in lines] == [
        (1, ">", 0.5),
        (1, "<", 1.0),
        (1, "<", 1.0),
        (1, ">", 1.234568),
        (2, "<", None),
    ]
    assert lines[0] == {
        "at": 0.5,
        "conversation": 1,
        "way": ">",
        "octets": "414d515000010000",
        "shows": "header AMQP 0 1.0.0 (AMQP)",
    }
    assert lines[3]["shows"] == "[0] Open(container_id='peer')"
    assert lines[4]["shows"] == "2 octets: the stream ends within it"


def test_frame_log_is_read_again() -> None:
    records = [Record(1, ">", header(), 0.5), Record(1, "<", header()), Record(2, ">", OPEN[8:], 2.0)]
    assert read_frame_log(logged(*records)) == records


def test_frame_log_keeps_secrets_only_when_told_to() -> None:
    assert b"xyzzy".hex() not in logged(Record(1, ">", INIT))
    assert b"xyzzy".hex() in logged(Record(1, ">", INIT), secrets=True)
    assert "xyzzy" not in logged(Record(1, ">", INIT), secrets=True)


def test_entries_are_pieces_in_the_order_of_their_ends() -> None:
    entries = entries_of(
        [Record(1, ">", OPEN[:9], 1.0), Record(1, "<", OPEN, 2.0), Record(1, ">", OPEN[9:-1], 3.0)]
    )
    assert [(entry.way, entry.piece.name, entry.at) for entry in entries] == [
        (">", "header", 1.0),
        ("<", "header", 2.0),
        ("<", "Open", 2.0),
        (">", "octets", None),
    ]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("[]", "line 2 of the frame log is not a JSON object"),
        ("nothing", "line 2 of the frame log is not JSON"),
        ("{}", "line 2 of the frame log is not valid: KeyError"),
        ('{"way": ">", "octets": "4"}', "line 2 of the frame log is not valid: ValueError"),
        ('{"way": ">", "octets": 4}', "line 2 of the frame log is not valid: TypeError"),
        ('{"way": "->", "octets": "40"}', "> or <, not '->'"),
    ],
    ids=range(6),
)
def test_broken_line_says_which_and_why(line: str, says: str) -> None:
    with pytest.raises(LocalProtocolError, match=says):
        read_frame_log(f"{FrameLog().begin()}{line}\n")


def test_empty_text_is_no_frame_log() -> None:
    with pytest.raises(LocalProtocolError, match="not a frame log"):
        read_frame_log("")
