"""Names that are made of others, and found again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.http.api.shapes import Shapes, number_of_connection, properties_key


@given(st.integers(0, 2**62), st.none() | st.text(), st.text())
def test_number_is_found_in_the_name_of_a_connection(number: int, host: str | None, node: str) -> None:
    assert number_of_connection(Shapes(node, "/").connection_name(number, host)) == number


@pytest.mark.parametrize("name", ["", "x", "x #", "x #-1", "x #1a", "x #" + "1" * 30, "x #²"])
def test_other_names_have_no_number(name: str) -> None:
    assert number_of_connection(name) is None


@pytest.mark.parametrize(
    ("key", "name"), [("", "~"), ("k", "k"), ("a.#", "a.%23"), ("a b/ü", "a%20b%2F%C3%BC")]
)
def test_binding_without_arguments_is_named_by_its_key(key: str, name: str) -> None:
    assert properties_key(key, {}) == name


@given(st.text(st.characters(codec="utf-8")), st.dictionaries(st.text(max_size=3), st.integers(), min_size=1))
def test_arguments_count_in_the_name_of_a_binding(key: str, arguments: dict[str, int]) -> None:
    name = properties_key(key, arguments)
    assert name == properties_key(key, dict(reversed(arguments.items())))
    assert name != properties_key(key, {})
    assert name != properties_key(key, {**arguments, "another": 1})
