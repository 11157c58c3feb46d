"""Functions get changed code, and lines get plain mutants; the files stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trio_amqp10.amqp10.engine import serial_numbers

from .code_swap import Functions, changed_code
from .requirement import Change
from .rst import ROOT
from .runner import PACKAGE

if TYPE_CHECKING:
    from pathlib import Path

PATH = ROOT / "trio_amqp10/amqp10/engine/serial_numbers.py"


def changed(old: str, new: str) -> dict[Path, str]:
    text = PATH.read_text()
    assert old in text
    return {PATH: text.replace(old, new)}


def test_function_gets_the_code_of_its_changed_source_and_again_its_own() -> None:
    (pair,) = changed_code(changed("return (serial + n) & MASK", "return 77")) or ()
    functions = Functions(PACKAGE)
    assert functions.swap([pair])
    try:
        assert serial_numbers.add(1, 2) == 77
    finally:
        serial_numbers.add.__code__ = pair[0]
    assert serial_numbers.add(1, 2) == 3


def test_change_outside_of_functions_needs_an_import() -> None:
    assert changed_code(changed("MASK: Final = ", "MASK: Final = 1 + ")) is None


def test_text_that_runs_the_same_changes_no_code() -> None:
    assert changed_code({PATH: "\n\n" + PATH.read_text()}) == []


def test_plain_mutants_are_of_the_lines_that_were_asked_for_and_change_something() -> None:
    pytest.importorskip("mutmut")  # of the extra "mutants", which the tests do without
    from .plain_mutants import plain_mutants, touched_lines

    text = PATH.read_text()
    lines = touched_lines(Change("return (serial + n) & MASK", "return 77"), text)
    (line,) = lines
    made = list(plain_mutants(PATH, lines))
    assert {mutant.line for mutant in made} == {line}
    assert {mutant.lines()[1] for mutant in made} >= {
        "return None",
        "return (serial - n) & MASK",
        "return (serial + n) | MASK",
    }
    assert len({mutant.text() for mutant in made} | {text}) == len(made) + 1
    assert PATH.read_text() == text
