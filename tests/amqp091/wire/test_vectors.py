"""Vectors: octets that other implementations agree about, and octets that are refused with a code."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tests.amqp091 import naive
from tests.amqp091.pairs import codes, open_server
from tests.engine_pairs import events_of
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.engine import Engine
from trio_amqp10.amqp091.engine.states import ConnectionState
from trio_amqp10.amqp091.wire.content import BasicProperties, Content, read_header, write_header
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.fields import STRICT, USUAL, Scan, read_table, write_table
from trio_amqp10.amqp091.wire.frames import HEADER, METHOD, PROTOCOL_HEADER, frame
from trio_amqp10.core.endpoint_role import EndpointRole

NAMES = [each.name for each in fields(BasicProperties)]
VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())


def vectors(*kinds: str) -> pytest.MarkDecorator:
    rows = [row for row in VECTORS if row["kind"] in kinds]
    assert rows
    return pytest.mark.parametrize("row", rows, ids=[row["name"] for row in rows])


def plain(value: Any) -> Any:
    """A value of ours in the form that the second reader has."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, dict):
        return [(plain(name), plain(each)) for name, each in value.items()]
    return value


def without_letters(value: Any) -> Any:
    return [(name, without_letters(each[1])) for name, each in value] if isinstance(value, list) else value


def test_greeting_is_what_a_client_begins_with() -> None:
    (row,) = (row for row in VECTORS if row["kind"] == "greeting")
    assert bytes.fromhex(row["octets"]) == PROTOCOL_HEADER == Engine(EndpointRole.CLIENT, 0.0).data_to_send()


@vectors("frames")
def test_vector_is_read_as_the_second_reader_does_and_written_back(row: dict[str, Any]) -> None:
    octets = bytes.fromhex(row["octets"])
    again = b""
    for kind, channel, came in naive.frames(octets):
        payload = came
        if kind == METHOD:
            method = spec.METHODS.read(payload, USUAL)
            name, arguments = naive.method(payload)
            assert method.plan.name == name
            assert {each: plain(getattr(method, each)) for each in arguments} == {
                each: without_letters(value) for each, value in arguments.items()
            }
            payload = method.plan.write(method, USUAL)
        elif kind == HEADER:
            header = read_header(payload, USUAL)
            written = header.properties.encode(USUAL)
            assert written == header.octets
            assert [plain(getattr(header.properties, each)) for each in NAMES] == (
                naive.properties(header.octets)
            )
            if header.size < 100:
                payload = write_header(Content(header.properties, b"x" * header.size), USUAL)
        again += frame(kind, channel, payload)
    assert again == octets


@vectors("frames")
def test_vector_cut_anywhere_leaves_the_server_in_the_same_state(row: dict[str, Any]) -> None:
    octets = bytes.fromhex(row["octets"])

    def outcome(cut: int) -> tuple[Any, ...]:
        server = open_server()
        refused = None
        try:
            server.receive_data(octets[:cut], 0.0)
            server.receive_data(octets[cut:], 0.0)
        except ReplyError as fault:
            refused = str(fault)
        return refused, server.state, server.data_to_send(), repr(events_of(server))[:60]

    assert len({outcome(cut) for cut in range(len(octets))}) == 1


@vectors("table", "strict-table")
def test_table_is_written_as_it_was_read(row: dict[str, Any]) -> None:
    octets = bytes.fromhex(row["octets"])
    letters = STRICT if row["kind"] == "strict-table" else USUAL
    table, end = read_table(octets, 0, len(octets), Scan(letters))
    assert end == len(octets)
    out = bytearray()
    write_table(out, table, letters)
    assert out == octets
    if letters is USUAL:
        assert list(table) == [name.decode() for name, _ in naive.table(octets)]


@vectors("refused-table")
def test_bad_table_is_refused(row: dict[str, Any]) -> None:
    octets = bytes.fromhex(row["octets"])
    with pytest.raises(ReplyError) as caught:
        read_table(octets, 0, len(octets), Scan(USUAL))
    assert caught.value.code == row["code"]


def reaction(octets: bytes, cut: int) -> tuple[int, list[tuple[str, int]], ConnectionState]:
    """The code that a server finds, the closes that it sends, and its state, for octets that come in two pieces."""
    server = open_server()
    with pytest.raises(ReplyError) as caught:
        for piece in (octets[:cut], octets[cut:]):
            server.receive_data(piece, 0.0)
    assert caught.value.scope == "connection"
    return int(caught.value.code), [(name, code) for name, code, _ in codes(server)], server.state


@vectors("refused")
def test_bad_octets_close_the_connection_with_the_code_in_every_split_of_two(row: dict[str, Any]) -> None:
    octets, code = bytes.fromhex(row["octets"]), row["code"]
    found = {str(reaction(octets, cut)) for cut in range(len(octets) + 1)}
    assert len(found) == 1, found
    refused, closes, state = reaction(octets, 0)
    assert (refused, closes) == (code, [("connection.close", code)])
    assert state in (ConnectionState.CLOSE_SENT, ConnectionState.CLOSED)


@vectors("refused-table")
def test_bad_table_of_a_declaration_closes_the_connection_in_every_split_of_two(row: dict[str, Any]) -> None:
    empty = spec.QueueDeclare(queue="q").plan.write(spec.QueueDeclare(queue="q"), USUAL)
    octets = frame(METHOD, 1, empty[:-4] + bytes.fromhex(row["octets"]))
    assert {str(reaction(octets, cut)) for cut in range(len(octets) + 1)} == {str(reaction(octets, 0))}
    assert reaction(octets, 0)[:2] == (row["code"], [("connection.close", row["code"])])
