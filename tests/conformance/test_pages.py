"""The pages and the tables that they are made of are one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .pages import PAGES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_is_what_its_tables_say(path: Path) -> None:
    assert path.read_text() == PAGES[path](), "run `python -m tests.conformance`"
