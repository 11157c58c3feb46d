"""Composites that are maps: their keys are names of fields, and others are refused."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp10.draft_2010.registries import TYPES, read
from trio_amqp10.amqp10.draft_2010.spec import messaging, transport
from trio_amqp10.amqp10.wire.composite import Registry, composite, plan_of
from trio_amqp10.amqp10.wire.decode_budget import Budget
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.fields import InvalidFieldError, string, uint
from trio_amqp10.amqp10.wire.values import Described, Symbol, UInt, ULong
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError


@composite("test:mapped:map", 0x1_FFFF_0001, encoding="map")
class Mapped:
    """A map with a field that has to be there."""

    number: uint
    text: string | None = None
    inner: transport.Error | None = None


MAPPED = Registry(Mapped)


@pytest.mark.parametrize(
    "value",
    [
        Mapped(number=1),
        Mapped(number=2, text="two", inner=transport.Error(condition=Symbol("x"))),
        Mapped(number=3, text="x" * 300),
    ],
)
def test_map_composite_comes_back(value: Any) -> None:
    assert MAPPED.decode(encode(value))[0] == value


def test_map_is_long_where_its_octets_are() -> None:
    assert encode(Mapped(number=1, text="x" * 300))[len(plan_of(Mapped).prefix)] == 0xD1


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ({Symbol("text"): "a"}, "mandatory"),
        ({Symbol("number"): "a"}, "uint expected"),
        ({Symbol("number"): None}, "mandatory"),
        ({Symbol("number"): UInt(1), Symbol("other"): 1}, "not the name of a field"),
        ({"number": UInt(1)}, "not the name of a field"),
        ({Symbol("number"): UInt(1), Symbol("inner"): Described(ULong(1), [])}, "does not describe"),
        (
            {Symbol("number"): UInt(1), Symbol("inner"): Described(plan_of(transport.Error).code, [])},
            "amqp:error:list.condition: mandatory",
        ),
    ],
)
def test_map_with_a_wrong_field_is_refused(pairs: Any, text: str) -> None:
    with pytest.raises(InvalidFieldError, match=text):
        MAPPED.decode(encode(Described(plan_of(Mapped).code, pairs)))


def test_null_in_a_map_is_no_value() -> None:
    value = Described(plan_of(Mapped).code, {Symbol("number"): UInt(1), Symbol("text"): None})
    assert MAPPED.decode(encode(value))[0] == Mapped(number=1)


def test_map_that_has_to_have_a_field_is_not_written_without() -> None:
    nothing: Any = None
    with pytest.raises(LocalProtocolError, match="number is mandatory"):
        encode(Mapped(number=nothing))
    with pytest.raises(LocalProtocolError, match=r"test:mapped:map\.number"):
        encode(Mapped(number=-1))


@pytest.mark.parametrize(
    ("tail", "text"),
    [
        ("c10301a301", "ends? inside|elements in"),
        ("c10501a3016141", "without a value|inside"),
        ("c1130470" + "00000001" * 3, "inside|not the name of"),
        ("c1160407a3066e756d62657243" + "a3066e756d62657243", "inside"),
        ("c104004040", "before its size|inside"),
    ],
)
def test_map_that_is_malformed_is_refused(tail: str, text: str) -> None:
    octets = plan_of(Mapped).prefix + bytes.fromhex(tail)
    with pytest.raises(RemoteProtocolError):
        MAPPED.decode(octets)


def test_map_with_a_key_twice_is_refused_unless_that_is_taken() -> None:
    pair = bytes.fromhex("a3066e756d62657252")
    body = pair + b"\x01" + pair + b"\x02"
    octets = plan_of(Mapped).prefix + bytes((0xC1, len(body) + 1, 4)) + body
    with pytest.raises(RemoteProtocolError, match="twice"):
        MAPPED.decode(octets)
    value, _ = MAPPED.decode(octets, 0, Budget(100, allow_duplicate_keys=True))
    assert value == Mapped(number=2)


def test_map_with_an_odd_count_and_one_with_octets_left_are_malformed() -> None:
    key = bytes.fromhex("a3066e756d626572")
    for count, rest in ((3, b"\x43\x43"), (2, b"\x43\x40")):
        body = key + rest
        octets = plan_of(Mapped).prefix + bytes((0xC1, len(body) + 1, count)) + body
        with pytest.raises(RemoteProtocolError) as caught:
            MAPPED.decode(octets)
        assert caught.value.condition == "amqp:decode-error"


def test_list_where_a_map_is_due_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="must be a map"):
        MAPPED.decode(encode(Described(plan_of(Mapped).code, [UInt(1)])))
    state = Described(plan_of(messaging.TransferState).code, [])
    extent = Described(plan_of(transport.Extent).code, [UInt(1), None, None, True, state])
    with pytest.raises(InvalidFieldError, match="must be a map"):
        read(encode(extent), TYPES)
