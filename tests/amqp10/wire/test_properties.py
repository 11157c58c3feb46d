"""The laws of the codec, over random values and random damage (1.6)."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive import codec as naive
from tests.scaled import scaled
from trio_amqp10.amqp10.wire.decode import Budget, decode
from trio_amqp10.amqp10.wire.encode import encode, encode_into
from trio_amqp10.core.errors import RemoteProtocolError

from .strategies import modest_values, same, values


@given(values)
@settings(deadline=None)
def test_value_comes_back_with_its_type_when_decoded(value: Any) -> None:
    octets = encode(value)
    back, end = decode(octets)
    assert end == len(octets)
    assert same(back, value)


@given(values)
@settings(deadline=None)
def test_encode_reaches_a_fixed_point_when_it_encodes_what_it_decoded(value: Any) -> None:
    octets = encode(value)
    assert encode(decode(octets)[0]) == octets


@given(st.lists(values, max_size=3), st.binary(max_size=5))
@settings(deadline=None)
def test_decode_goes_on_where_it_stopped_when_values_follow_each_other(
    each: list[Any], before: bytes
) -> None:
    out = bytearray(before)
    for value in each:
        encode_into(out, value)
    octets, pos = bytes(out), len(before)
    for value in each:
        back, pos = decode(octets, pos)
        assert same(back, value)
    assert pos == len(octets)


@given(modest_values)
@settings(deadline=None)
def test_second_codec_reads_the_same_octets_to_their_end(value: Any) -> None:
    octets = encode(value)
    _, rest = naive.decode(octets)
    assert rest == b""


def decode_or_refuse(octets: bytes) -> None:
    """Anything but a value or a RemoteProtocolError escapes, and fails the test."""
    condition = ""
    try:
        value, end = decode(octets)
    except RemoteProtocolError as error:
        condition = error.condition
    else:
        assert 0 < end <= len(octets)
        encode(value)
    assert condition in ("", "amqp:decode-error", "amqp:resource-limit-exceeded")


@given(values)
@settings(deadline=None, max_examples=scaled(50))
def test_every_truncation_is_refused(value: Any) -> None:
    octets = encode(value)
    for end in range(len(octets)):
        try:
            decode(octets[:end])
        except RemoteProtocolError as error:
            refused = error.condition
        else:
            refused = ""
        assert refused == "amqp:decode-error", octets[:end]


@given(values, st.data())
@settings(deadline=None, max_examples=scaled(50))
def test_every_octet_can_be_damaged_without_another_kind_of_error(value: Any, data: st.DataObject) -> None:
    octets = encode(value)
    damage = data.draw(st.integers(1, 255))
    for index in range(len(octets)):
        decode_or_refuse(octets[:index] + bytes((octets[index] ^ damage,)) + octets[index + 1 :])


@given(st.binary(max_size=64))
@settings(deadline=None)
def test_random_octets_give_a_value_or_a_remote_error(octets: bytes) -> None:
    decode_or_refuse(octets)


@given(st.binary(max_size=40), st.sampled_from([0x00, 0xC0, 0xC1, 0xD0, 0xD1, 0xE0, 0xF0]))
@settings(deadline=None)
def test_random_compounds_give_a_value_or_a_remote_error(octets: bytes, code: int) -> None:
    decode_or_refuse(bytes((code,)) + octets)


@given(values)
@settings(deadline=None)
def test_nodes_are_at_most_the_octets_whatever_the_value(value: Any) -> None:
    """Linear cost: what a value may make is bounded by its length, and the budget counts all of it."""
    octets = encode(value)
    budget = Budget()
    decode(octets, 0, budget)
    assert 65_536 - budget.nodes <= len(octets)
    assert budget.depth == 32
