"""The names of declared types that no composite of the standard uses."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp10.wire.composite import Registry, composite
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.fields import InvalidFieldError, byte, char, double, float_, int_, long, short
from trio_amqp10.core.errors import LocalProtocolError


@composite("example:all:list", 0x1_0000_0001)
class All:
    """One of each."""

    a: byte | None = None
    b: short | None = None
    c: int_ | None = None
    d: long | None = None
    e: float_ | None = None
    f: double | None = None
    g: char | None = None


OURS = Registry(All)


@pytest.mark.parametrize(
    ("values", "wire"),
    [
        ({"a": -128}, "5180"),
        ({"b": -2}, "4061fffe"),
        ({"c": -128}, "40405480"),
        ({"c": -129}, "404071ffffff7f"),
        ({"d": 5}, "4040405505"),
        ({"e": 1.5}, "40404040723fc00000"),
        ({"f": 1.5}, "4040404040823ff8000000000000"),
        ({"g": "é"}, "40404040404073000000e9"),
    ],
)
def test_field_is_of_exactly_its_type_and_read_as_a_plain_value(values: dict[str, Any], wire: str) -> None:
    octets = encode(All(**values))
    assert octets.hex().endswith(wire)
    found, _ = OURS.decode(octets)
    ((name, value),) = values.items()
    assert getattr(found, name) == value
    assert isinstance(value, float | str) or getattr(found, name).__class__ is int


@pytest.mark.parametrize("values", [{"a": 128}, {"b": 1.0}, {"c": 2**31}, {"e": 1}, {"g": "xy"}])
def test_field_refuses_what_its_type_cannot_hold(values: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError):
        encode(All(**values))


def test_field_refuses_a_type_that_is_close() -> None:
    with pytest.raises(InvalidFieldError, match="byte expected, got ubyte"):
        OURS.decode(bytes.fromhex("00800000000100000001c003015005"))
