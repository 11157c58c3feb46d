"""The manual's tables of what emulators do name tests that exist."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from .places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGES = ("azure.rst", "rabbitmq.rst")
DEFINED = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


def names_in(folder: Path) -> set[str]:
    return {name for file in folder.rglob("test_*.py") for name in DEFINED.findall(file.read_text())}


@pytest.mark.parametrize("page", PAGES)
def test_rows_of_a_table_name_tests_that_there_are(page: str) -> None:
    text = (ROOT / "docs/how-to" / page).read_text()
    tables = re.findall(r"     - the test that shows it\n(.*?)\n\n", text, re.DOTALL)
    named = [
        set(re.findall(r"``(test_\w+)``", row)) for table in tables for row in table.split("   * - ")[1:]
    ]
    assert len(named) > 8
    assert all(named), "a row without a test"
    there = names_in(ROOT / "tests/testing") | names_in(ROOT / "tests/interop")
    assert set().union(*named) <= there, set().union(*named) - there
