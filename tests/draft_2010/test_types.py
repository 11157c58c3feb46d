"""Declared types of the draft: maps, several values, and octets that are none of them."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.draft_2010 import registries
from trio_amqp10.draft_2010.fields import several
from trio_amqp10.draft_2010.registries import FRAME_BODIES, TYPES, read, write
from trio_amqp10.draft_2010.spec import messaging, transport
from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.wire.composite import Registry, composite, plan_of
from trio_amqp10.wire.decode_budget import Budget
from trio_amqp10.wire.encode import encode
from trio_amqp10.wire.fields import InvalidFieldError, string, uint
from trio_amqp10.wire.values import Described, Symbol, UInt, ULong

STATE = ULong(transport.DOMAIN | 0x203)


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
        ({Symbol("number"): UInt(1), Symbol("other"): 1}, "name of no field"),
        ({"number": UInt(1)}, "name of no field"),
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
        ("c1130470" + "00000001" * 3, "inside|name of no"),
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
    with pytest.raises(RemoteProtocolError, match="not a map"):
        MAPPED.decode(encode(Described(plan_of(Mapped).code, [UInt(1)])))
    state = Described(plan_of(messaging.TransferState).code, [])
    extent = Described(plan_of(transport.Extent).code, [UInt(1), None, None, True, state])
    with pytest.raises(InvalidFieldError, match="is a map"):
        read(encode(extent), TYPES)


def test_several_are_a_list_under_true_and_one_stands_bare() -> None:
    one, two = (
        transport.Begin(offered_capabilities=("a",)),
        transport.Begin(offered_capabilities=("a", "b")),
    )
    assert read(write(one)) == one
    assert read(write(two)) == two
    assert b"\x00\x41\xc0" in write(two)
    assert b"\x00\x41" not in write(one)
    many = transport.Begin(offered_capabilities=tuple("x" * 200 for _ in range(3)))
    assert read(write(many)) == many


def begin_with(capabilities: Any) -> bytes:
    fields = [None, None, capabilities]
    return encode(Described(plan_of(transport.Begin).code, fields))


@pytest.mark.parametrize("none", [None, Described(None, [])])
def test_none_of_several(none: Any) -> None:
    if none is not None:
        none.descriptor = True
    assert read(begin_with(none)).offered_capabilities == ()


def several_of(value: Any) -> Described:
    made = Described(None, value)
    made.descriptor = True
    return made


@pytest.mark.parametrize(
    "wrong", [several_of([Symbol("a"), "b"]), several_of({}), Described(ULong(3), [Symbol("a")]), "text"]
)
def test_several_of_something_else_are_refused(wrong: Any) -> None:
    with pytest.raises(InvalidFieldError):
        read(begin_with(wrong))


def test_one_of_several_composites_that_is_something_else_is_refused() -> None:
    fields = [None, True, None, Described(plan_of(transport.Error).code, [Symbol("x")])]
    with pytest.raises(InvalidFieldError, match="does not describe"):
        read(encode(Described(plan_of(transport.Disposition).code, fields)))


def test_a_str_is_not_several() -> None:
    with pytest.raises(LocalProtocolError, match="tuple"):
        write(transport.Begin(offered_capabilities="queue"))
    assert several(string).name == "string"


def test_octets_behind_a_frame_body_are_refused() -> None:
    assert read(write(transport.End()), budget=Budget(9)) == transport.End()
    with pytest.raises(RemoteProtocolError, match="1 octets behind end"):
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
