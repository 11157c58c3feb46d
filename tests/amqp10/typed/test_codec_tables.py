"""The tables of a registry: which class has which descriptor, and what may still be declared."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from trio_amqp10.amqp10.spec.messaging import Received
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.amqp10.wire.values import Described, Symbol
from trio_amqp10.typed import Registry

from .lines import LINE, TYPES, VALUE, Line, Mapped, Pair


def test_registry_knows_its_described_types() -> None:
    assert list(TYPES) == [Line, Pair]
    assert Line in TYPES
    assert Mapped not in TYPES
    assert TYPES.lookup(0x1_0000_0002) is TYPES.lookup("test:line:list") is Line
    assert TYPES.lookup("test:other") is None
    assert repr(TYPES) == "<Registry of Line, Pair>"
    assert repr(Registry()) == "<Registry of nothing>"


def test_registry_knows_what_other_registries_know() -> None:
    types = Registry(TYPES, Error, Received)
    assert list(types) == [Line, Pair, Error, Received]
    error = Error(condition="a")
    value = [VALUE, Described("amqp:error:list", [Symbol("a")])]
    assert types.from_value(object, value) == [LINE, error]
    assert types.to_value([LINE, error]) == [VALUE, Described(0x1D, [Symbol("a")])]


def test_descriptor_that_is_taken_is_a_type_error() -> None:
    types = Registry(TYPES, TYPES)
    for name, code in (("test:line:list", None), ("test:other:list", 0x1_0000_0003)):
        with pytest.raises(TypeError, match=r"describes (Line|Pair) already"):
            types.composite(name, code)(dataclass(type("Other", (), {})))
    with pytest.raises(TypeError, match="Mapped'> is not a composite of the standard"):
        Registry(Mapped)


def test_class_that_is_in_use_cannot_be_declared() -> None:
    @dataclass
    class Late:
        a: int

    for use in (lambda types: types.to_value(Late(1)), lambda types: types.from_value(Late, {"a": 1})):
        types = Registry()
        use(types)
        with pytest.raises(TypeError, match="Late is in use already"):
            types.composite("test:late:list")(Late)
        with pytest.raises(TypeError, match="Late is in use already"):
            types.adapt(Late, int, lambda late: late.a, Late)
