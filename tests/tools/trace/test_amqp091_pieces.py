"""Conversations in AMQP 0-9-1 are cut into frames, told from AMQP 1.0, and shown without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.wire.content import BasicProperties, Content, write_header
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.amqp091.wire.frames import BODY, HEADER, HEARTBEAT_FRAME, METHOD, PROTOCOL_HEADER, frame
from trio_amqp10.core.protocol_headers import AMQP_ID
from trio_amqp10.tools.trace.frame_log import Record, entries_of
from trio_amqp10.tools.trace.frame_splitter import FrameSplitter, read_pieces
from trio_amqp10.tools.trace.frame_text import describe, fields_of, redacted
from trio_amqp10.tools.trace.page_model import PageModel

if TYPE_CHECKING:
    from trio_amqp10.amqp091.wire.methods import Method


def method(said: Method, channel: int = 0) -> bytes:
    return frame(METHOD, channel, said.plan.write(said, USUAL))


START = method(spec.ConnectionStart(server_properties={}, mechanisms=b"PLAIN", locales=b"en_US"))
START_OK = method(
    spec.ConnectionStartOk(
        client_properties={}, mechanism="PLAIN", response=b"\0guest\0secret", locale="en_US"
    )
)
DECLARE = method(spec.QueueDeclare(queue="tea", durable=True), 1)
CLOSE = method(spec.ChannelClose(reply_code=404, reply_text="NOT_FOUND", class_id=50, method_id=10), 1)
PUBLISH = method(spec.BasicPublish(routing_key="tea"), 1)
CONTENT = frame(
    HEADER, 1, write_header(Content(BasicProperties(content_type="text/plain"), b"one cup"), USUAL)
)
CUP = frame(BODY, 1, b"one cup")
CLIENT = PROTOCOL_HEADER + START_OK + DECLARE + PUBLISH + CONTENT + CUP + HEARTBEAT_FRAME


def test_client_is_cut_into_methods_headers_bodies_and_heartbeats() -> None:
    assert [describe(piece) for piece in read_pieces(CLIENT)] == [
        "header AMQP 0 0.9.1 (AMQP)",
        "[0] connection.start-ok(mechanism='PLAIN', response=<13 octets>, locale='en_US')",
        "[1] queue.declare(queue='tea', durable=True)",
        "[1] basic.publish(routing_key='tea')",
        "[1] header(content_type='text/plain')",
        "[1] body + 7 octets",
        "heartbeat",
    ]
    assert read_pieces(CLIENT)[-1].is_empty


def test_server_without_a_header_is_told_from_1_0_octet_by_octet() -> None:
    splitter = FrameSplitter()
    stream = START + CLOSE
    pieces = [piece for at in range(len(stream)) for piece in splitter.feed(stream[at : at + 1])]
    assert [piece.name for piece in pieces] == ["connection.start", "channel.close"]
    assert describe(pieces[1]).endswith(
        "reply_code=404, reply_text='NOT_FOUND', class_id=50, method_id=10) !"
    )
    assert not splitter.rest


def test_conversations_of_both_protocols_are_told_apart() -> None:
    records = [
        Record(1, ">", CLIENT),
        Record(2, ">", b"AMQP" + bytes((AMQP_ID, 1, 0, 0)) + b"\0\0\0\x08\x02\0\0\0"),
        Record(1, "<", START + CLOSE),
    ]
    names = [(entry.conversation, entry.piece.name) for entry in entries_of(records)]
    assert names[:2] == [(1, "header"), (1, "connection.start-ok")]
    assert names[7:] == [(2, "header"), (2, "empty frame"), (1, "connection.start"), (1, "channel.close")]
    model = PageModel()
    for entry in entries_of(records):
        model.feed(entry)
    rows = model.as_json()["rows"]
    assert [row["error"]["what"] for row in rows if "error" in row] == ["404 NOT_FOUND"]
    assert "secret" not in str(rows)
    assert ["queue", "'tea'"] in rows[2]["fields"]


def test_secrets_are_not_shown_and_frames_stay_as_long() -> None:
    piece = read_pieces(CLIENT)[1]
    assert b"secret" not in redacted(piece)
    assert [each.name for each in read_pieces(PROTOCOL_HEADER + redacted(piece))] == [
        "header",
        "connection.start-ok",
    ]
    assert fields_of(piece.performative)["response"] == "<13 octets>"
    assert redacted(read_pieces(CLIENT)[2]) == DECLARE
    assert redacted(read_pieces(CLIENT)[4]) == CONTENT
    broken = frame(METHOD, 0, START_OK[7:-3])
    cut = read_pieces(PROTOCOL_HEADER + broken)[1]
    assert cut.fault is not None
    assert cut.name == "method"
    assert b"secret" not in redacted(cut)
    assert b"guest" not in redacted(cut)


def test_secret_is_not_kept_of_a_login_that_is_torn_or_has_another_end() -> None:
    for broken in (START_OK[:-8], START_OK[:-1] + b"\0" + CLOSE):
        header, piece = read_pieces(PROTOCOL_HEADER + broken)
        assert piece.fault is not None
        assert redacted(header) == PROTOCOL_HEADER
        assert redacted(piece) == broken[:8] + b"*" * (len(broken) - 8)


@pytest.mark.parametrize(
    ("octets", "said"),
    [
        (frame(METHOD, 1, b"\0\x32\0\xff"), "unknown method 50.255"),
        (frame(HEADER, 1, b"\0"), "a content header of 1 octets"),
        (DECLARE[:-1] + b"\0", "the frame does not end with its end octet"),
        (b"\x07\0\0\0\0\0\0", "unknown frame type 7"),
        (DECLARE[:-1], "the stream ends within it"),
    ],
)
def test_what_cannot_be_read_says_why(octets: bytes, said: str) -> None:
    *_, last = read_pieces(PROTOCOL_HEADER + octets)
    assert last.fault is not None
    assert said in describe(last)
