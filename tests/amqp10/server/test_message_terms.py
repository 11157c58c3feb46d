"""The priority and lifetime of a message, found by its octets and by decoding it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trio_amqp10 as amqp
from tests.scaled import scaled
from trio_amqp10.amqp10.server.message_terms import for_next_hop, is_durable, terms_of, usual_durability
from trio_amqp10.amqp10.server.native_message import received

USUAL = (4, None, None, None)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "durable": st.booleans(),
        "priority": st.integers(0, 255),
        "ttl": st.integers(0, 2**32 - 1),
        "delivery_count": st.integers(0, 9),
        "annotations": st.dictionaries(st.sampled_from(["x-a", "x-b"]), st.text(max_size=200)),
        "message_id": st.text(max_size=100),
        "content_encoding": st.sampled_from(["gzip"]),
        "absolute_expiry_time": st.integers(-(2**40), 2**40),
        "group_id": st.text(max_size=300),
        "application_properties": st.just({"n": 1}),
    },
)
BODIES = st.sampled_from([b"data", "text", amqp.Sequence([1]), None])


@settings(max_examples=scaled(150), deadline=None)
@given(FIELDS, BODIES)
def test_terms_are_those_that_the_message_has(fields: dict[str, Any], body: Any) -> None:
    message = amqp.Message.from_payload(amqp.Message(body, **fields).to_payload())
    terms = (message.priority, message.ttl, message.absolute_expiry_time, message.group_id)
    assert terms_of(message.to_payload()) == terms
    assert terms[0] == fields.get("priority", 4)
    message.annotations = {**message.annotations, "x-opt-deadletter-reason": "expired"}
    dead = terms_of(message.to_payload())
    assert (dead.priority, dead.ttl, dead.expiry) == (message.priority, None, None)


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"\x00",
        b"\x00\x53\x70",
        b"\x00\x53\x70\xc0",
        b"\x00\x53\x70\xc0\x09\x09",
        b"\x00\x53\x70\x45",
        b"\x00\x53\x72\xc1",
        b"\x00\x53\x72\xc1\xff\xff",
        b"\x00\x53\x73",
        b"\x00\x53\x73\xc0\x03",
        b"\x00\x53\x99\x45",
        b"nothing of the kind",
    ],
)
def test_terms_are_the_usual_ones_where_a_message_cannot_be_read(octets: bytes) -> None:
    assert terms_of(octets) == USUAL


@settings(max_examples=scaled(150), deadline=None)
@given(FIELDS, BODIES, st.dictionaries(st.just("x-opt-hop"), st.integers(), max_size=1), st.data())
def test_glance_says_what_is_read_in_full_or_nothing(
    fields: dict[str, Any], body: Any, hop: dict[str, int], data: st.DataObject
) -> None:
    octets = amqp.Message(body, delivery_annotations=hop, **fields).to_payload()
    if data.draw(st.booleans(), "damaged"):
        octets = octets[: data.draw(st.integers(0, len(octets)))]
    durable = usual_durability(octets)
    if durable is not None:
        assert (terms_of(octets), is_durable(octets), for_next_hop(octets)) == (USUAL, durable, octets)


def test_glance_is_enough_for_a_message_as_programs_send_it() -> None:
    fields: dict[str, Any] = {"message_id": 1, "to": "q", "application_properties": {"n": 1}}
    assert usual_durability(amqp.Message(b"x", durable=True, **fields).to_payload()) is True
    assert usual_durability(amqp.Message(b"x", **fields).to_payload()) is False
    assert usual_durability(amqp.Message(b"x", priority=5).to_payload()) is None


def test_terms_keep_the_header_where_the_properties_cannot_be_read() -> None:
    header = amqp.Message(priority=7, ttl=5).to_payload().removesuffix(amqp.Message().to_payload())
    broken = header + (b"\x00\x53\x73\xd0\x00\x00\x00\x05\x00\x00\x00\x01\x41\x00\x53\x77\x40")
    assert terms_of(broken) == (7, 5, None, None)


def test_terms_are_not_looked_for_in_another_message_format() -> None:
    octets = amqp.Message("x", priority=9, ttl=1).to_payload()
    assert received(0x100, octets).terms == USUAL
