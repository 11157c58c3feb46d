"""Vectors: octets computed from the document, and octets that are refused with a code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.amqp_fast import naive
from tests.amqp_fast.pairs import open_server, said, server_with, tuning_server, written
from tests.engine_pairs import events_of
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.engine import Engine
from trio_amqp10.amqp_fast.engine.events import HandleFailed
from trio_amqp10.amqp_fast.engine.message import read_head
from trio_amqp10.amqp_fast.wire.faults import ReplyError
from trio_amqp10.amqp_fast.wire.frames import INITIATION, frame_of, read_size
from trio_amqp10.core.endpoint_role import EndpointRole

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())
GOOD = [row for row in VECTORS if "code" not in row and row["name"] != "initiation"]
BAD = [row for row in VECTORS if "code" in row]


def rows(found: list[dict[str, Any]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", found, ids=[row["name"] for row in found])


def commands_in(octets: bytes) -> list[tuple[Any, bytes]]:
    """Each command as we read it, with its fragment."""
    found, pos = [], 0
    while pos < len(octets):
        sized = read_size(octets, pos, 1 << 20)
        assert sized is not None
        end = sum(sized)
        command: Any = spec.COMMANDS.read(octets[sized[0] : end - 1])
        size = 0 if getattr(command, "out_of_band", False) else getattr(command, "fragment_size", 0)
        found.append((command, octets[end : end + size]))
        pos = end + size
    return found


def test_initiation_is_what_a_client_begins_with() -> None:
    (row,) = (row for row in VECTORS if row["name"] == "initiation")
    assert bytes.fromhex(row["octets"]) == INITIATION == Engine(EndpointRole.CLIENT, 0.0).data_to_send()


@rows(GOOD)
def test_vector_is_read_as_the_second_reader_does_and_written_back(row: dict[str, Any]) -> None:
    octets = bytes.fromhex(row["octets"])
    ours, theirs = commands_in(octets), naive.read(octets)
    assert len(ours) == len(theirs)
    again = b""
    for (command, fragment), (number, values, carried) in zip(ours, theirs, strict=True):
        assert command.plan.id == number
        assert fragment == carried
        for (name, kind), value in zip(command.plan.fields, values, strict=True):
            got = getattr(command, name)
            assert list(got) == [each[0] for each in value] if kind.name == "table" else got == value
        again += frame_of(command) + fragment
    if row["name"] == "size-escape":  # where the short size would do, it is written
        again = b"\xff\xff\0\0" + again
    assert again == octets


@rows([row for row in GOOD if row["name"] in ("handle.send-first-fragment", "handle.notify")])
def test_head_of_a_message_is_read_as_the_second_reader_does_and_written_back(row: dict[str, Any]) -> None:
    ((_, fragment),) = commands_in(bytes.fromhex(row["octets"]))
    head, start = read_head(fragment)
    values, used = naive.fields(naive.HEAD, fragment)
    assert used == start
    assert [
        getattr(head, name) if kind.name != "table" else len(head.headers) for name, kind in head.plan.fields
    ] == [value if not isinstance(value, list) else len(value) for value in values]
    out = bytearray()
    head.plan.write(out, head)
    assert bytes(out) == fragment[:start]


@rows(VECTORS)
def test_vector_cut_anywhere_leaves_the_server_in_the_same_state(row: dict[str, Any]) -> None:
    octets = bytes.fromhex(row["octets"])

    def outcome(cut: int) -> tuple[Any, ...]:
        server, _ = server_with()
        refused = None
        try:
            server.receive_data(octets[:cut], 0.0)
            server.receive_data(octets[cut:], 0.0)
        except ReplyError as fault:
            refused = str(fault)
        return refused, server.state, server.data_to_send(), repr(events_of(server))[:60]

    assert len({outcome(cut) for cut in range(len(octets))}) == 1


@rows(BAD)
def test_bad_octets_get_the_code_at_the_level(row: dict[str, Any]) -> None:
    octets = bytes.fromhex(row["octets"])
    tuned = row["name"].startswith("bad-tune")
    server = tuning_server() if tuned else open_server()
    server.receive_data(b"" if tuned else written(spec.ChannelOpen(channel_id=1)), 0.0)
    if row["name"].startswith("bad-prefetch"):
        server.receive_data(written(spec.HandleOpen(channel_id=1, handle_id=1, consumer=True)), 0.0)
    events_of(server)
    server.data_to_send()
    if row["scope"] == "connection":
        with pytest.raises(ReplyError) as caught:
            server.receive_data(octets, 0.0)
        assert (caught.value.code, caught.value.scope) == (row["code"], "connection")
        if tuned:
            assert "FRAME_MAX" in caught.value.reply_text
            server.handle_timer(10.0)
        assert said(server)[0][:2] == ("connection close", row["code"])
        return
    server.receive_data(octets, 0.0)
    (failed,) = events_of(server)
    assert isinstance(failed, HandleFailed)
    (close,) = said(server)
    assert close[0] == "handle close"
    assert close[2] == failed.code == row["code"]
