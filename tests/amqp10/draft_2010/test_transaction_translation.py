"""Declare and discharge survive a translation; other messages are no commands."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp10.draft_2010.registries import TYPES, read, write
from trio_amqp10.amqp10.draft_2010.spec.messaging import SectionCode
from trio_amqp10.amqp10.draft_2010.spec.transactions import Declare as DraftDeclare
from trio_amqp10.amqp10.draft_2010.spec.transactions import Discharge as DraftDischarge
from trio_amqp10.amqp10.draft_2010.transaction_translation import draft_command, final_command
from trio_amqp10.amqp10.message import Message, Value
from trio_amqp10.amqp10.spec.messaging import Properties
from trio_amqp10.amqp10.spec.transactions import Declare, Discharge
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.values import Symbol
from trio_amqp10.core.errors import RemoteProtocolError


def payload_of(value: Any) -> bytes:
    return Message(Value(value)).to_payload()


def test_declare_comes_back() -> None:
    command = Declare(global_id="g")
    made = draft_command(payload_of(command))
    assert made is not None
    sections, txn_id = made
    assert [code for code, _ in sections] == [0, 1, SectionCode.AMQP_DATA, 2]
    assert read(sections[2][1], TYPES) == DraftDeclare(global_id="g")
    assert txn_id is None
    assert final_command(sections, None) == payload_of(command)


@pytest.mark.parametrize("fail", [None, False, True])
def test_discharge_comes_back_and_names_its_transaction_beside(fail: Any) -> None:
    command = Discharge(txn_id=b"t", fail=fail)
    made = draft_command(payload_of(command))
    assert made is not None
    sections, txn_id = made
    assert read(sections[2][1], TYPES) == DraftDischarge(fail=fail)
    assert txn_id == b"t"
    assert final_command(sections, txn_id) == payload_of(command)


@pytest.mark.parametrize("payload", [payload_of("x"), encode(Properties(subject="s")), b"garbage", b"\x00"])
def test_other_messages_are_no_commands(payload: bytes) -> None:
    assert draft_command(payload) is None


@pytest.mark.parametrize(
    "sections", [[], [(4, b"")], [(4, write("x"))], [(3, b"x")], [(4, write(1)), (4, write(2))]]
)
def test_other_sections_are_no_commands(sections: Any) -> None:
    assert final_command(sections, b"t") is None


def test_discharge_without_a_transaction_or_with_a_strange_option_is_refused() -> None:
    sections = [(4, write(DraftDischarge()))]
    with pytest.raises(RemoteProtocolError, match="discharge with txn-id None: expected binary"):
        final_command(sections, None)
    with pytest.raises(RemoteProtocolError, match="mine"):
        final_command([(4, write(DraftDeclare(options={Symbol("mine"): 1})))], None)
