"""Statements on the rows of a part, whatever values a damaged file has."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from trio_amqp10.broker.stores.part_statements import bound, index_of, place_of, rows_after, with_surrogates

from .rows import PARCELS


@pytest.mark.parametrize("cell", [None, 7, 1.5, b"\xff", "", "Zürich", "a\udcffb"])
def test_any_cell_comes_back(cell: Any) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.text_factory = with_surrogates
        ((found,),) = db.execute(f"SELECT {place_of(cell)}", (bound(cell),))
    assert found == cell
    assert type(found) is type(cell)


@pytest.mark.parametrize(
    ("after", "keys"),
    [(None, [1, 2, 3, 4, 5]), ((None, 9), [2, 3, 4, 5]), ((5, 2), [3, 4, 5]), ((6, 4), [5]), (("z", 9), [])],
)
def test_rows_after_a_position_are_chosen(after: Any, keys: list[int]) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE parcels (id INTEGER PRIMARY KEY, town, place, octets, until)")
        rows = [(1, None), (2, 5), (3, 5), (4, 6), (5, "a")]
        db.executemany("INSERT INTO parcels VALUES (?, 'Ulm', ?, x'', NULL)", rows)
        db.execute("INSERT INTO parcels VALUES (6, 'Zürich', 7, x'', NULL)")
        chosen, values = rows_after(PARCELS, "Ulm", after)
        found = db.execute(f"SELECT id FROM parcels WHERE {chosen} ORDER BY id", values).fetchall()
    assert [key for (key,) in found] == keys
    assert index_of(PARCELS) == "parts_of_parcels"
