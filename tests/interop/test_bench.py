"""Rows of ``make bench`` that are held against others, at a tiny size: all who are named have figures, and every gate can be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench import rows
from bench.__main__ import QUICK, measure
from bench.lab import Lab
from bench.registry import ROWS
from bench.results import summary

from .conftest import need

if TYPE_CHECKING:
    from collections.abc import Iterator

assert rows


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(QUICK) as lab:
        yield lab


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.peers])
def test_row_has_figures_of_its_peers(name: str, lab: Lab) -> None:
    row = ROWS[name]
    for peer in row.peers:
        need(peer)
    (figures,) = measure(row, lab, 1)
    assert len(summary(row, [figures], 1.0)["gates"]) == len(row.gates)
    if row.curve is None:
        assert len({who for who, _ in figures}) > 1
