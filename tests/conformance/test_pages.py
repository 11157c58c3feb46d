"""The pages and the tables that they are made of are one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from trio_amqp10.amqp10.draft_2010.registries import FRAME_BODIES, SASL_FRAME_BODIES, TYPES
from trio_amqp10.amqp10.engine.states import ConnectionState, SessionState
from trio_amqp10.amqp10.wire.composite import plan_of
from trio_amqp10.amqp_fast.engine.states import EXPECTED
from trio_amqp10.core.peer_rules import RULES

from . import amqp091, amqp091_mutants, amqp_10_3, amqp_10_3_mutants, amqp_fast_mutants, draft_2010_mutants
from .amqp_fast import COMMANDS, STATES
from .conformance import PARTS
from .draft_2010 import STATES as DRAFT_STATES
from .draft_2010 import TYPE_LINES
from .features import CHAPTERS, SYSTEMS
from .figures import Figures, figures_of
from .mutants import changed_sources
from .pages import PAGES, ROWS
from .requirement import BINDING, KINDS, MUST, Change, Requirement
from .rst import find_test

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

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

STATEMENTS = """
0.1: 1, 0.2: 19
1.1: 2, 1.2: 7, 1.3: 2, 1.4: 7, 1.5: 2, 1.6.2: 1, 1.6.3: 1, 1.6.11: 1, 1.6.13: 1, 1.6.16: 1, 1.6.17: 1
1.6.18: 1, 1.6.19: 1, 1.6.20: 1, 1.6.21: 1, 1.6.22: 1, 1.6.23: 3, 1.6.24: 1
2.1.1: 1, 2.1.2: 4, 2.1.3: 1, 2.2: 16, 2.3.1: 6, 2.3.2: 5, 2.4: 1, 2.4.1: 5, 2.4.2: 2, 2.4.3: 9, 2.4.4: 1
2.4.5: 15, 2.4.6: 6, 2.5: 2, 2.5.1: 5, 2.5.2: 3, 2.5.3: 1, 2.5.4: 2, 2.5.5: 8, 2.5.6: 14, 2.6: 5
2.6.1: 4, 2.6.2: 2, 2.6.3: 15, 2.6.4: 4, 2.6.5: 6, 2.6.6: 3, 2.6.7: 20, 2.6.8: 1, 2.6.9: 1, 2.6.10: 2
2.6.11: 1, 2.6.12: 11, 2.6.13: 13, 2.6.14: 5, 2.7.1: 22, 2.7.2: 6, 2.7.3: 25, 2.7.4: 19, 2.7.5: 33
2.7.6: 8, 2.7.7: 2, 2.7.8: 1, 2.7.9: 2, 2.8.2: 1, 2.8.3: 1, 2.8.4: 1, 2.8.7: 1, 2.8.10: 1, 2.8.11: 1
2.8.12: 1, 2.8.13: 1, 2.8.14: 1, 2.8.15: 1, 2.8.16: 2, 2.8.18: 2, 2.8.19: 3
3.2: 7, 3.2.1: 17, 3.2.2: 4, 3.2.3: 3, 3.2.4: 16, 3.2.5: 3, 3.2.10: 4, 3.2.16: 1, 3.3: 6, 3.4: 1
3.4.1: 5, 3.4.2: 4, 3.4.3: 3, 3.4.4: 3, 3.4.5: 6, 3.4.6: 23, 3.5.1: 1, 3.5.2: 3, 3.5.3: 18, 3.5.4: 6
3.5.5: 1, 3.5.6: 4, 3.5.7: 2, 3.5.8: 4, 3.5.9: 3, 3.5.10: 1, 3.5.11: 1, 3.5.12: 1, 3.5.13: 1
4.1: 5, 4.2: 11, 4.3: 6, 4.4: 3, 4.4.1: 6, 4.4.2: 4, 4.4.3: 6, 4.4.4.1: 9, 4.4.4.2: 2, 4.4.4.3: 2
4.5.1: 1, 4.5.2: 2, 4.5.3: 1, 4.5.4: 1, 4.5.5: 1, 4.5.6: 1, 4.5.7: 1, 4.5.8: 1
5.1: 3, 5.2: 6, 5.2.1: 1, 5.3: 2, 5.3.1: 6, 5.3.2: 3, 5.3.3.1: 3, 5.3.3.2: 4, 5.3.3.5: 2, 5.3.3.6: 1
A-2.2: 1, A-2.2.1: 2, A-2.2.2: 6
B-2: 2, B-2.1: 1, B-3: 1
C-1: 1, C-2: 1, C-3: 1, C-4: 1, C-5: 1, C-6: 1
D-2.1: 2, D-2.2: 1, D-2.3: 1, D-2.4: 1, D-3: 1, D-4: 1, D-5: 1, D-6: 1, D-7: 1
E-2.1: 2, E-2.2: 3, E-2.3: 5, E-3: 3, E-4: 4, E-4.1: 7, E-4.2: 2, E-5: 1, E-6.1: 1, E-6.2: 5, E-6.3: 2
E-6.4: 2, E-6.6: 4, E-6.7: 3, E-7.1: 2, E-7.2: 1, E-8: 1
F-1: 2, F-2: 2, F-3: 2, F-4.1: 2, F-4.2: 5, F-4.3: 2, F-4.4: 1, F-5: 1, F-5.1: 1, F-5.2: 1, F-5.3: 3
G-3: 5, G-16: 2
"""
"""How many statements each section has, in the standard's order: 636 in Parts 0 to 5, and those of the extensions."""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_is_what_its_tables_say(path: Path) -> None:
    assert path.read_text() == PAGES[path](), "run `python -m tests.conformance`"


def test_page_of_amqp_fast_has_every_command_and_every_state() -> None:
    assert {role: set(rules) for role, rules in EXPECTED.items()} == {
        role: set(rows) for role, rows in COMMANDS.items()
    }
    for states, _, tests in STATES.values():
        assert [state.name for state in states] == list(tests)


def test_page_of_10_3_has_every_state_and_methods_that_there_are() -> None:
    assert list(amqp_10_3.STATES) == [*amqp_10_3.CONNECTION, *amqp_10_3.CHANNEL]
    assert set(amqp_10_3.METHODS) <= set(amqp_10_3.spec.METHODS.by_name)


def test_page_of_the_draft_has_every_type_and_every_state() -> None:
    types = {str(plan_of(cls).name) for each in (FRAME_BODIES, TYPES, SASL_FRAME_BODIES) for cls in each}
    assert types == set(TYPE_LINES)
    shown = {state for _, _, state, _, _ in DRAFT_STATES}
    assert {*ConnectionState, *SessionState} - shown == {ConnectionState.DISCARDING, SessionState.ENDED}


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


def _sections() -> dict[str, int]:
    return {section: int(count) for section, count in re.findall(r"(\S+): (\d+)", STATEMENTS)}


def test_sections_have_the_statements_of_the_standard() -> None:
    assert sum(count for section, count in _sections().items() if section[0].isdigit()) == 636


@pytest.mark.parametrize("part", sorted({section[0] for section in _sections()}))
def test_numbers_of_requirements_are_complete_and_in_order(part: str) -> None:
    due = [
        f"{section}-{number}"
        for section, count in _sections().items()
        for number in range(1, count + 1)
        if section[0] == part
    ]
    assert [row.number for row in _rows() if row.number[0] == part] == due


_EVERY = [row for rows in ROWS.values() for row in rows]


def test_numbers_of_rows_are_unique_over_all_pages() -> None:
    numbers = [row.number for row in _EVERY if row.numbered or ":" in row.number]
    assert len(set(numbers)) == len(numbers)


def test_mutants_of_a_page_stand_for_rows_that_there_are() -> None:
    pages: list[tuple[str, Iterable[str]]] = [
        ("0-9-1", amqp091_mutants.MUTANTS),
        ("10.3", amqp_10_3_mutants.MUTANTS),
        ("fast", amqp_fast_mutants.MUTANTS),
        ("draft", draft_2010_mutants.MUTANTS),
    ]
    there = {row.number for row in _EVERY}
    for page, numbers in pages:
        assert {f"{page}:{number}" for number in numbers} <= there


def test_rule_of_0_9_1_is_shown_or_says_why_not() -> None:
    for row in amqp091.REQUIREMENTS:
        assert row.role in ("server", "client", "both"), row
        assert row.tests or row.gap.partition(": ")[0] in KINDS, row
        assert row.tests or not row.gap.startswith(amqp091.OTHERWISE), row


def test_mutant_of_several_rows_counts_once() -> None:
    mutant = (Change("old", "new"),)
    rows = [Requirement(number, MUST, "", ("a",), (mutant,)) for number in ("1", "2")]
    assert figures_of([*rows, Requirement("3", MUST, "")]) == Figures(3, 2, 1)


def test_mutants_change_the_sources() -> None:
    for row in _EVERY:
        for mutant in row.mutants:
            assert changed_sources(mutant), row.number


@pytest.mark.whole
@pytest.mark.parametrize("row", [row for row in _EVERY if row.mutants], ids=lambda row: row.number)
def test_mutant_leaves_python(row: Requirement) -> None:
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


@pytest.mark.parametrize(
    "reference", ["no_such_test", "amqp10/engine/test_rules:no_such_test", "page_is_what"]
)
def test_find_test_finds_nothing_where_there_is_nothing(reference: str) -> None:
    with pytest.raises(LookupError):
        find_test(reference)


def test_find_test_wants_the_file_where_the_name_is_not_enough() -> None:
    with pytest.raises(LookupError, match="say which"):
        find_test("row_24_octets_that_are_no_value_are_a_decode_error")
    file, name = find_test("amqp10/wire/test_rows:row_24_octets_that_are_no_value_are_a_decode_error")
    assert (file, name) == (
        "amqp10/wire/test_rows.py",
        "test_row_24_octets_that_are_no_value_are_a_decode_error",
    )
