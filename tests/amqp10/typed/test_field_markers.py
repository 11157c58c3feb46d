"""Marks of a field beside its type."""

from __future__ import annotations

import copy
from typing import Annotated, get_args

from trio_amqp10.amqp10.typed.field_markers import REST, Key


def test_keys_are_equal_when_their_names_are() -> None:
    assert Key("unit-price") == Key("unit-price")
    assert Key("unit-price") != Key("price")
    assert Key("price") != "price"
    assert len({Key("a"), Key("a"), Key("b")}) == 2


def test_marks_show_how_they_are_written() -> None:
    assert repr(Key("unit-price")) == "Key('unit-price')"
    assert repr(REST) == "REST"
    assert get_args(Annotated[int, Key("a")])[1].name == "a"


def test_annotations_with_equal_keys_are_equal() -> None:
    assert Annotated[int, Key("a")] == Annotated[int, copy.copy(Key("a"))]
