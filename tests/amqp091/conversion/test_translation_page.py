"""The table of translations in the manual says what the code does, row by row, and has a row for every field and letter."""

from __future__ import annotations

import dataclasses
import re
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from tests.places import ROOT
from trio_amqp10.amqp091.conversion.translate import to_publication, to_sections
from trio_amqp10.amqp091.conversion.value_translation import LEFT_OUT, from_standard, to_standard
from trio_amqp10.amqp091.wire import typed_values as classic
from trio_amqp10.amqp091.wire.content import BasicProperties
from trio_amqp10.amqp091.wire.fields import USUAL, from_seconds, write_table
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.message.fields import PROPERTY_FIELDS
from trio_amqp10.amqp10.wire import values as standard

PAGE = ROOT / "docs/reference/amqp091_translation.rst"
_BOTH = {"Decimal": Decimal, "UUID": UUID, "from_seconds": from_seconds, "LEFT_OUT": LEFT_OUT}
CLASSIC = {**vars(classic), **_BOTH}
STANDARD = {**vars(standard), **_BOTH}


def tables() -> list[list[list[str]]]:
    """The rows of each table, without their heads."""
    found: list[list[list[str]]] = []
    for line in PAGE.read_text().splitlines():
        if line.startswith(".. list-table::"):
            found.append([])
        elif line.startswith("   * - "):
            found[-1].append([line[7:]])
        elif line.startswith("     - "):
            found[-1][-1].append(line[7:])
    return [rows[1:] for rows in found]


FORTH, BACK, LETTERS = tables()


def code(cell: str) -> str:
    """What stands in a cell as code; an empty string for ``nothing``."""
    found = re.fullmatch(r"``(.*)``", cell)
    assert found or cell == "nothing", cell
    return found[1] if found else ""


def fields(cell: str, names: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = eval(f"dict({code(cell)})", dict(names))
    return made


def translated(**properties: Any) -> Message:
    payload = to_sections(BasicProperties(**properties), b"", exchange="", routing_key="")
    return Message.from_payload(payload)


def letter_of(value: Any) -> str:
    out = bytearray()
    write_table(out, {"a": value}, USUAL)
    return chr(out[6])


@pytest.mark.parametrize("row", FORTH, ids=lambda row: row[0])
def test_row_of_0_9_1_says_what_becomes_of_it(row: list[str]) -> None:
    message = translated(**fields(row[2], CLASSIC))
    for name, expected in fields(row[3], STANDARD).items():
        value = getattr(message, name)
        assert (
            value if not isinstance(expected, dict) else {key: value[key] for key in expected}
        ) == expected
    if row[3] == "nothing":
        assert message.to_payload() == translated().to_payload()


@pytest.mark.parametrize("row", BACK, ids=lambda row: row[0])
def test_row_of_1_0_says_what_becomes_of_it(row: list[str]) -> None:
    found = to_publication(Message(b"", **fields(row[2], STANDARD))).properties
    for name, expected in fields(row[3], CLASSIC).items():
        assert getattr(found, name) == expected
    if row[3] == "nothing":
        assert found == to_publication(Message(b"")).properties


@pytest.mark.parametrize("row", LETTERS, ids=lambda row: row[0])
def test_row_of_a_letter_says_what_becomes_of_it(row: list[str]) -> None:
    there = eval(code(row[1]), dict(CLASSIC))
    here = eval(code(row[2]) or "LEFT_OUT", dict(STANDARD))
    assert letter_of(there) == row[0][2]
    assert to_standard(there) == here
    assert type(to_standard(there)) is type(here)
    if here is not LEFT_OUT:
        assert letter_of(from_standard(here)) == code(row[3])


def test_every_field_and_letter_has_a_row() -> None:
    forth = {name for row in FORTH for name in fields(row[2], CLASSIC)}
    assert forth == {each.name for each in dataclasses.fields(BasicProperties)}
    back = {name for row in BACK for name in fields(row[2], STANDARD)}
    assert back >= {*PROPERTY_FIELDS, "durable", "priority", "ttl", "annotations", "application_properties"}
    assert {row[0][2] for row in LETTERS} == set("tbBsuIilLfdSxTVAFD")
