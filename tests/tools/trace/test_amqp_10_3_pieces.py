"""Conversations in 10.3 are cut into frames, told from 0-9-1, and shown without secrets."""

from __future__ import annotations

import pytest

from tests.amqp_10_3.pairs import written
from trio_amqp10.amqp091.wire.content import BasicProperties, Content, write_header
from trio_amqp10.amqp091.wire.fields import FIVE
from trio_amqp10.amqp091.wire.frames import BODY, HEADER, METHOD
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.wire.frames import FRAMES, PROTOCOL_HEADER, TRACE
from trio_amqp10.amqp_10_3.wire.properties import FileProperties
from trio_amqp10.tools.trace.frame_splitter import FrameSplitter, read_pieces
from trio_amqp10.tools.trace.frame_text import describe, fields_of, redacted

START_OK = written(spec.ConnectionStartOk(mechanism="PLAIN", response=b"\0ada\0secret"), 0)
STAGE = written(spec.FileStage(), 1)
HEAD = FRAMES.frame(
    HEADER, 1, write_header(Content(FileProperties(filename="f.txt"), b"cup"), FIVE, FileProperties.class_id)
)
PUBLISH = written(spec.BasicPublish(routing_key="tea"), 1)
PROPERTIES = FRAMES.frame(HEADER, 1, write_header(Content(BasicProperties(priority=7), b"cup"), FIVE))
CUP = FRAMES.frame(BODY, 1, b"cup")
CLIENT = (
    PROTOCOL_HEADER
    + START_OK
    + STAGE
    + HEAD
    + CUP
    + PUBLISH
    + PROPERTIES
    + CUP
    + FRAMES.frame(TRACE, 0, b"seen")
    + FRAMES.heartbeat
)
SERVER = written(spec.ConnectionStart(version_major=10, version_minor=3, mechanisms=b"PLAIN"), 0) + written(
    spec.ChannelAlert(reply_code=403, reply_text="ACCESS_REFUSED"), 1
)


def test_client_is_cut_into_methods_headers_bodies_and_heartbeats() -> None:
    assert [describe(piece) for piece in read_pieces(CLIENT)] == [
        "header AMQP 1 1.10.3",
        "[0] connection.start-ok(mechanism='PLAIN', response=<11 octets>, locale='en_US')",
        "[1] file.stage()",
        "[1] header(filename='f.txt')",
        "[1] body + 3 octets",
        "[1] basic.publish(routing_key='tea')",
        "[1] header(priority=7)",
        "[1] body + 3 octets",
        "[0] trace + 4 octets",
        "heartbeat",
    ]


@pytest.mark.parametrize("stream", [CLIENT, SERVER])
def test_stream_is_told_octet_by_octet(stream: bytes) -> None:
    splitter = FrameSplitter()
    pieces = [piece for at in range(len(stream)) for piece in splitter.feed(stream[at : at + 1])]
    assert pieces == read_pieces(stream)
    assert b"".join(piece.octets for piece in pieces) == stream
    assert not splitter.rest


def test_server_without_a_header_is_told_from_0_9_1() -> None:
    assert [piece.name for piece in read_pieces(SERVER)] == ["connection.start", "channel.alert"]


def test_answer_of_a_login_is_not_shown() -> None:
    piece = read_pieces(CLIENT)[1]
    assert fields_of(piece.performative)["response"] == "<11 octets>"
    assert b"secret" not in redacted(piece)
    torn = FRAMES.frame(METHOD, 0, START_OK[8:-2])
    assert b"secre" not in redacted(read_pieces(PROTOCOL_HEADER + torn)[1])
