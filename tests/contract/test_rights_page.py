"""The page about permissions has the tables that the tests run."""

from __future__ import annotations

from .rights_page import PAGE, tables


def test_page_has_the_tables_of_methods_and_permissions() -> None:
    assert tables() in PAGE.read_text(encoding="utf-8"), "python -m tests.contract.rights_page"
