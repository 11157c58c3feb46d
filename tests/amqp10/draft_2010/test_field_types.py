"""Fields of zero or more values: null, one value, or a list under true (D 466)."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp10.draft_2010.field_types import several
from trio_amqp10.amqp10.draft_2010.registries import read, write
from trio_amqp10.amqp10.draft_2010.spec import transport
from trio_amqp10.amqp10.wire.composite import plan_of
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.fields import InvalidFieldError, string
from trio_amqp10.amqp10.wire.values import Described, Symbol, ULong
from trio_amqp10.core.errors import LocalProtocolError


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
