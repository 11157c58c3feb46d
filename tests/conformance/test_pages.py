"""The pages and the tables that they are made of are one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trio_amqp10.rules import RULES

from .conformance import PARTS
from .features import CHAPTERS, SYSTEMS
from .mutants import changed_sources
from .pages import PAGES
from .requirement import BINDING, KINDS
from .rst import find_test

if TYPE_CHECKING:
    from pathlib import Path

    from .requirement import Requirement

ELSEWHERE = {
    "delivery-state",
    "endpoint-state",
    "handles",
    "link-direction",
    "sasl-challenge",
    "sessions",
    "terminus",
    "unsettled-map-size",
}
"""Rules that stand behind others, or say what we do where the standard is silent."""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_is_what_its_tables_say(path: Path) -> None:
    assert path.read_text() == PAGES[path](), "run `python -m tests.conformance`"


def test_requirement_is_shown_or_says_why_not() -> None:
    for needs in PARTS.values():
        for need in needs:
            assert need.tests or need.gap.partition(": ")[0] in KINDS, need
            assert len(set(need.tests)) == len(need.tests), need


def _rows() -> list[Requirement]:
    return [row for rows in PARTS.values() for row in rows]


def test_requirement_that_binds_has_a_mutant_or_says_why_not() -> None:
    for row in _rows():
        if row.numbered and row.level in BINDING and row.tests:
            assert row.mutants, f"{row.number} has no mutant"


def test_numbers_of_requirements_are_unique() -> None:
    numbers = [row.number for row in _rows() if row.numbered]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("row", [row for row in _rows() if row.mutants], ids=lambda row: row.number)
def test_mutant_changes_the_sources_and_leaves_python(row: Requirement) -> None:
    for mutant in row.mutants:
        for path, text in changed_sources(mutant).items():
            compile(text, path, "exec", dont_inherit=True)


def test_requirements_name_every_rule_of_the_standard() -> None:
    named = {
        test[1:-1] for needs in PARTS.values() for need in needs for test in need.tests if test[0] == "["
    }
    assert named <= RULES.keys()
    limits = {name for name, rule in RULES.items() if rule.section == "2.8.15"}  # ours: each end has its own
    assert RULES.keys() - named - limits == ELSEWHERE


def test_features_have_a_mark_for_each_system() -> None:
    for systems, features in CHAPTERS.values():
        keys = systems.split()
        assert {key for pair in keys for key in pair.split("/")} <= SYSTEMS.keys()
        for feature in features:
            assert len(feature.theirs.split()) == len(keys), feature.name


@pytest.mark.parametrize("reference", ["no_such_test", "engine/test_rules:no_such_test", "page_is_what"])
def test_find_test_finds_nothing_where_there_is_nothing(reference: str) -> None:
    with pytest.raises(LookupError):
        find_test(reference)


def test_find_test_wants_the_file_where_the_name_is_not_enough() -> None:
    with pytest.raises(LookupError, match="say which"):
        find_test("row_24_octets_that_are_no_value_are_a_decode_error")
    file, name = find_test("wire/test_rows:row_24_octets_that_are_no_value_are_a_decode_error")
    assert (file, name) == ("wire/test_rows.py", "test_row_24_octets_that_are_no_value_are_a_decode_error")
