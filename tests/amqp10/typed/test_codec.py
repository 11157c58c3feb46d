"""What errors of the typed codec show of a value."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp10.typed.codec import Misfit, got, sent, shown
from trio_amqp10.amqp10.wire.values import Array, Described, Symbol, ULong
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.typed import Registry

TYPES = Registry()


def test_long_text_in_a_fault_is_cut() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        TYPES.from_value(int, "x" * 5000)
    assert len(caught.value.description) < 150


def test_path_of_a_misfit_begins_at_the_root() -> None:
    misfit = Misfit("expected string, got long 1")
    misfit.path.extend([".name", "[2]", ".items"])
    assert misfit.text("order") == "order.items[2].name: expected string, got long 1"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "boolean True"),
        (ULong(5), "ulong 5"),
        (Symbol("a"), "symbol 'a'"),
        (Described(Symbol("a"), 1), "a value described by Symbol('a')"),
        ([1], "a list"),
        ({1: 2}, "a map"),
        (Array([1]), "an array"),
        (object, "a Python type"),
    ],
)
def test_received_value_is_shown_with_the_standards_name_of_its_type(value: Any, text: str) -> None:
    assert got(value) == text


def test_object_is_shown_with_its_class_and_a_number_of_any_size_is_short() -> None:
    assert sent(None) == "None"
    assert sent("a") == "str 'a'"
    assert sent(10**400) == "int of 1329 bits"
    assert shown(Symbol("a" * 5_000)).count("a") < 60
