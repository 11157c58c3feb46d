"""Selectors as objects."""

from __future__ import annotations

import sys

import pytest

from trio_amqp10.amqp10.filters import FilterError, Selector
from trio_amqp10.amqp10.filters.selector import is_available
from trio_amqp10.core.errors import LocalProtocolError


def test_selectors_are_equal_when_they_say_the_same() -> None:
    assert Selector("a=1") == Selector("a = 1")
    assert hash(Selector("a=1")) == hash(Selector("a = 1"))
    assert Selector("a=1") != Selector("a = 1.0")
    assert Selector("a=1") != Selector("a = 1", dialect="sql")
    assert Selector("a=1") != "a = 1"


def test_selector_shows_its_canonical_text() -> None:
    assert repr(Selector("a=1")) == "Selector('a = 1', dialect='jms')"


def test_selector_takes_any_length_when_told_so() -> None:
    text = "a = '" + "x" * 5000 + "'"
    with pytest.raises(FilterError, match="expected at most 4096"):
        Selector(text)
    assert str(Selector(text, max_length=None)) == text


def test_selector_names_the_extra_when_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_available()
    monkeypatch.setitem(sys.modules, "trio_amqp10.amqp10.filters.grammar", None)
    assert not is_available()
    with pytest.raises(LocalProtocolError, match=r"trio-amqp10\[selector\]"):
        Selector("a = 1")
