"""The subject filters of old exchanges."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scaled import scaled
from trio_amqp10.amqp10.filters import FilterError
from trio_amqp10.amqp10.filters.subject import exact_subject, matching_subject
from trio_amqp10.amqp10.message import Message

BARE = Message.from_payload(Message(b"body").to_payload())


def words(choices: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(choices), min_size=1, max_size=5).map(".".join)


def by_regular_expression(pattern: str, subject: str) -> bool:
    made = "".join(
        {"#": r"(?:[^.]*\.)*", "*": r"[^.]*\."}.get(word, re.escape(word) + r"\.")
        for word in pattern.split(".")
    )
    return re.fullmatch(made, subject + ".") is not None


@settings(deadline=None, max_examples=scaled(300))
@given(words("ab*#"), words("ab"))
def test_topic_pattern_equals_a_regular_expression(pattern: str, subject: str) -> None:
    assert matching_subject(pattern)(Message(subject=subject)) == by_regular_expression(pattern, subject)


@pytest.mark.parametrize(
    ("pattern", "subject", "expected"),
    [
        ("*.stock.#", "usd.stock", True),
        ("*.stock.#", "eur.stock.db", True),
        ("*.stock.#", "stock.nasdaq", False),
        ("#.b", "a.b.b", True),
        ("#", None, True),
        ("*", None, False),
        ("#.#", None, False),
        ("#", "", True),
        ("", "", True),
        ("a.*", "a.", True),
        ("a.*", "a", False),
    ],
)
def test_topic_pattern_matches_words(pattern: str, subject: str | None, expected: bool) -> None:
    assert matching_subject(pattern)(Message(subject=subject) if subject is not None else BARE) is expected


def test_exact_subject_matches_nothing_else() -> None:
    passes = exact_subject("a.b")
    assert passes(Message(subject="a.b"))
    assert not passes(Message(subject="a.*"))
    assert not passes(Message(to="a.b"))
    assert not passes(BARE)


@pytest.mark.parametrize("value", [None, 5, b"a", "x" * 4097])
def test_subject_filter_raises_when_it_is_no_short_string(value: Any) -> None:
    for build in (exact_subject, matching_subject):
        with pytest.raises(FilterError, match="a subject filter"):
            build(value)


def test_topic_pattern_takes_time_in_proportion_to_the_subject() -> None:
    passes = matching_subject("#.a" * 1000)
    message = Message(subject="a." * 50_000 + "b")
    start = time.process_time()
    assert not passes(message)
    assert time.process_time() - start < 1
