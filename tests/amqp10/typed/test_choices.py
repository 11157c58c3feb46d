"""Codecs of closed choices: members of an Enum, and literal values."""

from __future__ import annotations

import enum
from typing import Any

import pytest

from trio_amqp10.amqp10.typed.choices import enum_codec, literal_codec
from trio_amqp10.amqp10.typed.codec import CLOSED, Misfit
from trio_amqp10.amqp10.typed.scalars import PLAIN_CODECS


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


COLOURS = enum_codec(Colour, PLAIN_CODECS[str])
RIGHTS = enum_codec(Rights, PLAIN_CODECS[int])
MIXED = literal_codec(("a", 1, True), {each: PLAIN_CODECS[each] for each in (str, int, bool)})


@pytest.mark.parametrize("colour", Colour)
def test_member_is_sent_as_its_value_and_comes_back(colour: Colour) -> None:
    assert COLOURS.write(colour) == colour.value
    assert COLOURS.read(colour.value) is colour


@pytest.mark.parametrize("rights", [Rights(0), Rights.READ, Rights.READ | Rights.WRITE])
def test_combination_of_a_flag_is_a_value_too(rights: Rights) -> None:
    assert RIGHTS.read(RIGHTS.write(rights)) == rights


@pytest.mark.parametrize("value", ["a", 1, True])
def test_literal_value_comes_back_as_the_one_of_its_class(value: Any) -> None:
    found = MIXED.read(MIXED.write(value))
    assert (found.__class__, found) == (value.__class__, value)


@pytest.mark.parametrize(
    ("call", "value", "text"),
    [
        (COLOURS.read, "green", "expected one of Colour, got string 'green'"),
        (COLOURS.write, "red", "expected Colour, got str 'red'"),
        (MIXED.read, "b", "expected one of 'a', 1, True, got string 'b'"),
        (MIXED.read, False, "expected one of 'a', 1, True, got boolean False"),
        (MIXED.write, 2, "expected one of 'a', 1, True, got int 2"),
    ],
)
def test_what_is_no_choice_is_refused(call: Any, value: Any, text: str) -> None:
    with pytest.raises(Misfit) as caught:
        call(value)
    assert caught.value.detail == text


def test_choices_come_first_in_a_union_and_name_the_type_of_their_values() -> None:
    assert COLOURS.rank == MIXED.rank == CLOSED
    assert COLOURS.wire == PLAIN_CODECS[str].wire
    assert literal_codec(("a", "b"), {str: PLAIN_CODECS[str]}).wire == PLAIN_CODECS[str].wire
    assert MIXED.wire == ""


def test_literal_none_is_null() -> None:
    assert literal_codec(("a", None), {str: PLAIN_CODECS[str], type(None): PLAIN_CODECS[type(None)]}).nullable
    assert not MIXED.nullable
