"""What fast readers and writers remember is what the codec writes and reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.shortcut_memos import (
    ENCODED_STRINGS,
    ENCODED_SYMBOLS,
    STRING_HEADS,
    SYMBOLS,
    WRITE_FAULTS,
    encoder,
)
from trio_amqp10.amqp10.wire.values import Symbol, UInt


@given(st.text(st.characters(max_codepoint=127), max_size=300))
def test_remembered_octets_are_those_of_the_codec(text: str) -> None:
    for _ in range(2):
        assert ENCODED_STRINGS[text] == encode(text)
        assert ENCODED_SYMBOLS[text] == encode(Symbol(text))
        found = SYMBOLS[text.encode()]
        assert (type(found), found) == (Symbol, text)


@given(st.integers(0, 2**32 - 1))
def test_encoder_writes_values_of_its_type_with_their_constructor(number: int) -> None:
    assert encoder("uint")(number) == encode(UInt(number))


@pytest.mark.parametrize("size", [0, 1, 255])
def test_head_of_a_short_string_is_that_of_the_codec(size: int) -> None:
    assert STRING_HEADS[size] + b"x" * size == encode("x" * size)


@pytest.mark.parametrize(("name", "value"), [("string", "\ud800"), ("symbol", "é"), ("uint", -1)])
def test_value_that_cannot_be_sent_raises_what_fast_writers_expect(name: str, value: object) -> None:
    with pytest.raises(WRITE_FAULTS):
        encoder(name)(value)
