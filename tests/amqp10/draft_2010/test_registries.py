"""Declared types of the draft are found by their descriptors, and wrong octets are refused."""

from __future__ import annotations

import pytest

from trio_amqp10.amqp10.draft_2010 import registries
from trio_amqp10.amqp10.draft_2010.registries import FRAME_BODIES, TYPES, read, write
from trio_amqp10.amqp10.draft_2010.spec import transport
from trio_amqp10.amqp10.wire.composite import plan_of
from trio_amqp10.amqp10.wire.decode_budget import Budget
from trio_amqp10.amqp10.wire.values import ULong
from trio_amqp10.core.errors import RemoteProtocolError

STATE = ULong(transport.DOMAIN | 0x203)


def test_octets_behind_a_frame_body_are_refused() -> None:
    assert read(write(transport.End()), budget=Budget(9)) == transport.End()
    with pytest.raises(RemoteProtocolError, match="1 octets after end"):
        read(write(transport.End()) + b"\x40")


def test_final_performative_is_none_of_the_draft() -> None:
    with pytest.raises(RemoteProtocolError, match="performative"):
        read(bytes.fromhex("005317c00100"))


def test_every_type_is_found_by_both_descriptors() -> None:
    for registry in (TYPES, FRAME_BODIES, registries.SASL_FRAME_BODIES):
        for cls in registry:
            plan = plan_of(cls)
            assert registry.lookup(plan.code) is registry.lookup(plan.name) is cls
            assert plan.code >> 32 == 1
            assert str(plan.name).endswith(f":{plan.shape}")
