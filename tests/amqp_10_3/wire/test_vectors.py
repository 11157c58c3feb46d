"""Vectors: octets that two encoders agree about, and octets that are refused with a code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.amqp091.wire.test_vectors import plain, without_letters
from tests.amqp_10_3 import naive
from tests.amqp_10_3.pairs import client_engine, codes, open_client, open_server, written
from tests.engine_pairs import events_of
from trio_amqp10.amqp091.engine.events import ContentAborted
from trio_amqp10.amqp091.wire.content import Content, read_header, write_header
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.fields import FIVE
from trio_amqp10.amqp091.wire.frames import BODY, HEADER, HEARTBEAT, METHOD
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.wire.frames import FRAMES, PROTOCOL_HEADER
from trio_amqp10.amqp_10_3.wire.properties import PROPERTIES

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())
GOOD = [row for row in VECTORS if "code" not in row and row["name"] not in ("protocol-header", "basic-abort")]
BAD = [row for row in VECTORS if "code" in row]


def rows(found: list[dict[str, Any]]) -> pytest.MarkDecorator:
    assert found
    return pytest.mark.parametrize("row", found, ids=[row["name"] for row in found])


def test_protocol_header_is_what_a_client_begins_with() -> None:
    (row,) = (row for row in VECTORS if row["name"] == "protocol-header")
    assert bytes.fromhex(row["octets"]) == PROTOCOL_HEADER == client_engine().data_to_send()


@rows(GOOD)
def test_vector_is_read_as_the_second_reader_does_and_written_back(row: dict[str, Any]) -> None:
    octets = bytes.fromhex(row["octets"])
    ((kind, channel, payload),) = naive.frames(octets)
    assert FRAMES.read_head(octets, 0, 1 << 20) == (kind, channel, len(payload))
    if kind == METHOD:
        method = spec.METHODS.read(payload, FIVE)
        name, arguments = naive.method(payload)
        assert method.plan.name == name
        assert [plain(getattr(method, each)) for each, _ in method.plan.arguments] == [
            without_letters(value) for value in arguments
        ]
        payload = method.plan.write(method, FIVE)
    elif kind == HEADER:
        class_id, weight, size, found = naive.header(payload)
        header = read_header(payload, FIVE, PROPERTIES[class_id])
        assert (weight, header.size) == (0, size)
        assert [plain(getattr(header.properties, name)) for _, name, _ in header.properties.rows] == found
        assert header.properties.encode(FIVE) == header.octets
        payload = write_header(Content(header.properties, bytes(size)), FIVE, class_id)
    else:
        assert (kind, payload) == (HEARTBEAT, b"")
    assert FRAMES.frame(kind, channel, payload) == octets


@rows(VECTORS)
def test_vector_cut_anywhere_leaves_either_end_in_the_same_state(row: dict[str, Any]) -> None:
    octets = bytes.fromhex(row["octets"])

    def outcome(cut: int, *, server: bool) -> tuple[Any, ...]:
        engine = open_server() if server else open_client()[0]
        refused = None
        try:
            engine.receive_data(octets[:cut], 0.0)
            engine.receive_data(octets[cut:], 0.0)
        except ReplyError as fault:
            refused = str(fault)
        return refused, engine.state, engine.data_to_send(), repr(events_of(engine))[:60]

    for server in (True, False):
        assert len({outcome(cut, server=server) for cut in range(len(octets))}) == 1


@rows(BAD)
def test_bad_octets_close_the_connection_with_the_code_in_every_split_of_two(row: dict[str, Any]) -> None:
    octets = bytes.fromhex(row["octets"])
    for cut in range(len(octets)):
        server = open_server()
        with pytest.raises(ReplyError) as caught:
            for piece in (octets[:cut], octets[cut:]):
                server.receive_data(piece, 0.0)
        assert (caught.value.code, caught.value.scope) == (row["code"], row["scope"])
        assert codes(server) == [("connection.close", row["code"])]


def test_body_frame_without_payload_gives_up_the_content_of_the_vector() -> None:
    by_name = {row["name"]: bytes.fromhex(row["octets"]) for row in VECTORS}
    server = open_server()
    server.receive_data(
        written(spec.BasicPublish(exchange="ex"), 1)
        + by_name["basic-header"]
        + FRAMES.frame(BODY, 1, b"hel")
        + by_name["basic-abort"],
        0.0,
    )
    (event,) = events_of(server)
    assert isinstance(event, ContentAborted)
    assert (event.method, event.request) == (spec.BasicPublish(exchange="ex"), None)
    assert event.channel.next_arrival() is None
    assert server.partial == server.held == 0
