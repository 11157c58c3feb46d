"""LIKE against a regular expression, and its time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scaled import scaled
from trio_amqp10.amqp10.filters.errors import FilterError
from trio_amqp10.amqp10.filters.like import compile_like

from .reference import like

patterns = st.text("ab%_", max_size=8)
escaped_patterns = st.lists(st.sampled_from(["a", "b", "%", "_", "!%", "!_", "!!", "!a"]), max_size=6).map(
    "".join
)


@settings(deadline=None, max_examples=scaled(500))
@given(patterns, st.text("ab%_", max_size=12))
def test_like_equals_a_regular_expression(pattern: str, text: str) -> None:
    assert compile_like(pattern)(text) == like(text, pattern, None)


@settings(deadline=None, max_examples=scaled(200))
@given(escaped_patterns, st.text("ab%_!", max_size=8))
def test_like_equals_a_regular_expression_when_characters_are_escaped(pattern: str, text: str) -> None:
    assert compile_like(pattern, "!")(text) == like(text, pattern, "!")


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("", "", True),
        ("%_%", "", False),
        ("", "a", False),
        ("%", "", True),
        ("%%", "", True),
        ("_", "", False),
        ("_", "🥕", True),
        ("12%3", "123", True),
        ("12%3", "12993", True),
        ("12%3", "1234", False),
        ("l_se", "lose", True),
        ("l_se", "loose", False),
        ("a%a", "a", False),
        ("%a_c%", "xxabaxcabc", True),
        ("%_a_c_%", "abacabc", False),
        ("%a\nb", "\na\nb", True),
        (".*", "ab", False),
    ],
)
def test_like_matches_as_sql_says(pattern: str, text: str, expected: bool) -> None:
    assert compile_like(pattern)(text) is expected


@pytest.mark.parametrize(("pattern", "escape"), [("a", ""), ("a", "!!"), ("a!", "!")])
def test_like_raises_when_the_escape_makes_no_sense(pattern: str, escape: str) -> None:
    with pytest.raises(FilterError):
        compile_like(pattern, escape)


@pytest.mark.parametrize(
    "pattern",
    ["%a" * 500, "%a" * 500 + "b", "%" + "a" * 500 + "b%", "%" + "a_" * 400 + "b%", "%_" * 900 + "b%"],
)
def test_like_takes_time_in_proportion_to_the_text(pattern: str) -> None:
    matches = compile_like(pattern)
    spent = [_processor_time(matches, "a" * size) for size in (10_000, 80_000)]
    assert spent[1] < 40 * spent[0] + 0.05  # 8 times the text; 64 times the time, were it quadratic
    assert spent[1] < 1


def _processor_time(matches: object, text: str) -> float:
    assert callable(matches)
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        matches(text)
        best = min(best, time.process_time() - start)
    return best
