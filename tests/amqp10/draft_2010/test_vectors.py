"""Vectors of the draft: octets that are read and written back, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trio_amqp10.amqp10.draft_2010 import registries
from trio_amqp10.amqp10.draft_2010.encodings import from_draft
from trio_amqp10.amqp10.wire.composite import plan_of
from trio_amqp10.amqp10.wire.decode import decode
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.core.protocol_headers import AMQP_HEADER, SASL_HEADER

VECTORS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("vectors.json").read_text())
SYMBOLIC = {"open-symbolic": "open", "accepted-symbolic": None}
VALUES = {"string-utf16-32": "hi", "array-as-list": [1, 2]}
HEADERS = {"header": AMQP_HEADER, "header-sasl": SASL_HEADER}


def named(name: str) -> bytes:
    """The octets of a vector."""
    (row,) = (row for row in VECTORS if row["name"] == name)
    return bytes.fromhex(row["hex"])


def framed(octets: bytes) -> bool:
    """Whether these are a whole frame."""
    return len(octets) >= 8 and int.from_bytes(octets[:4], "big") == len(octets)


COMPOSITES = [
    row
    for row in VECTORS
    if "expect" not in row and row["name"] not in (*VALUES, *HEADERS, *SYMBOLIC, "empty-frame")
]


def body_of(octets: bytes) -> tuple[bytes, Any]:
    """The composite in a vector, and the registry that it is of."""
    if not framed(octets):
        return octets, registries.TYPES
    return octets[8:], registries.SASL_FRAME_BODIES if octets[5] == 1 else registries.FRAME_BODIES


@pytest.mark.parametrize("row", COMPOSITES, ids=[row["name"] for row in COMPOSITES])
def test_vector_is_read_and_written_back(row: dict[str, Any]) -> None:
    body, registry = body_of(bytes.fromhex(row["hex"]))
    value = registries.read(body, registry, strict=True)
    assert registries.write(value) == body
    assert repr(value).startswith(type(value).__name__)


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_descriptor_is_read(name: str) -> None:
    body, registry = body_of(named(name))
    value = registries.read(body, registry, strict=True)
    assert str(plan_of(type(value)).name).encode() in body
    again = SYMBOLIC[name]
    if again is not None:
        assert registries.write(value) == named(again)[8:]


@pytest.mark.parametrize("name", VALUES)
def test_value_in_an_encoding_of_the_draft_alone(name: str) -> None:
    assert decode(from_draft(named(name), strict=True))[0] == VALUES[name]


@pytest.mark.parametrize("name", HEADERS)
def test_protocol_headers_are_those_of_the_final_standard(name: str) -> None:
    assert named(name) == HEADERS[name]


@pytest.mark.parametrize("name", ["final-code-list0", "final-code-boolean"])
def test_encoding_of_the_final_standard_is_refused_where_strict(name: str) -> None:
    from_draft(named(name))
    with pytest.raises(RemoteProtocolError) as caught:
        from_draft(named(name), strict=True)
    assert caught.value.condition == "amqp:decode-error"


def test_every_vector_is_used() -> None:
    bad = {row["name"] for row in VECTORS if "expect" in row and "strict" not in row["expect"]}
    strict = {row["name"] for row in VECTORS if "strict" in row.get("expect", {})}
    used = {row["name"] for row in COMPOSITES} | {*SYMBOLIC, *VALUES, *HEADERS, "empty-frame"} | strict | bad
    assert used == {row["name"] for row in VECTORS}
    assert bad == {"bad-attach-no-flow-state", "bad-unknown-option", "bad-map-as-list", "bad-state-key"}
