"""Every row runs at a tiny size, with this library alone: what the figures are is for ``make bench`` to say."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from bench import rows
from bench.__main__ import QUICK, measure
from bench.lab import Lab
from bench.registry import ROWS
from bench.results import summary
from bench.table import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

assert rows
PEERS = frozenset(peer for row in ROWS.values() for peer in row.peers)
OURS = [name for name in ROWS if not name.endswith("-rabbitmq")]
ALONE = ["direct-full", *(name for name in OURS if not ROWS[name].peers)]
"""Rows that need nobody else, and one that can do without; ``tests/interop/test_bench.py`` tries the others beside their peers."""

SLOW = {
    "celery",
    "memory",
    "memory-091",
    "store-restart",
    "growth-depth",
    "growth-connections",
    "growth-links",
    "queue-transactional",
}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Without any peer, whichever are there."""
    with Lab(QUICK, without=PEERS) as lab:
        yield lab


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.whole] if name in SLOW else []) for name in ALONE]
)
def test_row_finds_figures(name: str, lab: Lab) -> None:
    row = ROWS[name]
    (figures,) = measure(row, lab, 1)
    assert figures
    assert all(math.isfinite(each) for each in figures.values())
    found = summary(row, [figures], 1.0)
    assert len(found["gates"]) == sum(
        gate.top in figures and (gate.bottom is None or gate.bottom in figures) for gate in row.gates
    )
    assert row.name in shown(row, found)


def test_row_of_a_peer_alone_is_empty_without_it(lab: Lab) -> None:
    assert list(ROWS) != OURS
    for name in ROWS.keys() - OURS:
        assert measure(ROWS[name], lab, 1) == [{}]


@pytest.mark.usefixtures("quick")
def test_message_larger_than_memory_leaves_both_ends_small(lab: Lab) -> None:
    (figures,) = measure(ROWS["stream-1GiB"], lab, 1)
    assert {who for who, _ in figures} == {"sender", "receiver"}
    assert all(0 <= each < 16 for each in figures.values())
