"""The manual's page of clients has what the table of the tests has."""

from __future__ import annotations

from .interop.clients.page import PAGE, page
from .interop.clients.table import CLIENTS, EXCEPTIONS, REMARKS, SCENARIOS, TITLES


def test_page_of_clients_is_made_from_the_table() -> None:
    assert PAGE.read_text() == page(), "run python -m tests.interop.clients.page"


def test_notes_of_the_table_belong_to_its_cells() -> None:
    cells = {(client.name, scenario) for client in CLIENTS for scenario in SCENARIOS}
    assert EXCEPTIONS.keys() | REMARKS.keys() <= cells
    assert TITLES.keys() == SCENARIOS.keys()
