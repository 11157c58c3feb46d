"""Rows of a spool and of lanes that Spark has not consumed: positions, limits of a batch, and offsets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.spark.backlog import Backlog, Position, _identified
from trio_amqp10.spark.options import QueueOptions
from trio_amqp10.spark.spool import Spool, SpoolError
from trio_amqp10.spark.storage import FolderStore

from .desk import dotted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def options(folder: Path, **given: str) -> QueueOptions:
    needed = {"url": "amqp://127.0.0.1:1", "address": "q", "spool": str(folder)}
    return QueueOptions.parse(needed | dotted(given))


@pytest.fixture
def backlog(tmp_path: Path) -> Iterator[Backlog]:
    """Segments of 3, 2 and 4 rows, of 100 octets each."""
    spool = Spool(tmp_path)
    for rows in (3, 2, 4):
        spool.write(rows, lambda file: file.write(b"x" * 100))
    spool.close()
    one = Backlog(options(tmp_path))
    yield one
    one.close()


def test_positions_go_from_what_is_consumed_to_the_end(backlog: Backlog) -> None:
    start = backlog.low()
    end = backlog.end(start)
    assert (start, end) == (Position(0, {}), Position(9, {}))
    assert backlog.rows(start, end) == 9
    assert [each.stop - each.start for each in backlog.slices(Position(1, {}), Position(7, {}))] == [2, 2, 2]
    backlog.release(Position(5, {}))
    assert backlog.low() == Position(5, {})
    with pytest.raises(SpoolError):
        backlog.slices(start, end)


@pytest.mark.parametrize(("start", "end", "octets"), [(0, 9, 300), (3, 5, 100), (4, 7, 100), (5, 5, 0)])
def test_octets_between_positions_are_those_of_segments_in_proportion(
    backlog: Backlog, start: int, end: int, octets: float
) -> None:
    assert backlog.octets(Position(start, {}), Position(end, {})) == octets


@pytest.mark.parametrize(
    ("rows", "octets", "end"), [(None, None, 9), (4, None, 4), (40, None, 9), (None, 100, 3), (2, 100, 2)]
)
def test_batch_ends_at_the_first_limit(
    backlog: Backlog, rows: int | None, octets: int | None, end: int
) -> None:
    start = backlog.low()
    assert backlog.cut(start, backlog.end(start), rows, octets).row == end


@given(row=st.integers(0, 9))
def test_offset_is_read_back_as_its_position(tmp_path_factory: pytest.TempPathFactory, row: int) -> None:
    folder = tmp_path_factory.mktemp("spool")
    spool = Spool(folder)
    spool.write(9, lambda file: file.write(b"x"))
    spool.close()
    one = Backlog(options(folder))
    try:
        offset = one.offset(Position(row, {}))
        assert offset == {"spool": one.id, "seq": row}
        assert one.position(json.loads(json.dumps(offset))) == Position(row, {})
    finally:
        one.close()


@pytest.mark.parametrize(
    "change", [{"spool": "another"}, {"seq": 10}, {"lanes": {"lane-0/e": 1}}], ids=["spool", "row", "lanes"]
)
def test_offset_that_is_not_of_this_spool_is_refused(backlog: Backlog, change: dict[str, Any]) -> None:
    with pytest.raises(SpoolError):
        backlog.position(backlog.offset(Position(0, {})) | change)


def test_spool_is_one_backlogs_until_it_is_closed(tmp_path: Path) -> None:
    first = Backlog(options(tmp_path))
    with pytest.raises(SpoolError):
        Backlog(options(tmp_path))
    first.close()
    Backlog(options(tmp_path)).close()


def test_external_lanes_are_not_received_here(tmp_path: Path) -> None:
    one = Backlog(options(tmp_path, lanes="external"))
    try:
        one.receive(emptying=True)
        one.check()
        one.wait(one.low(), None)
        assert one.rows(one.low(), one.end(one.low())) == 0
        assert not one.is_resting(one.low())
    finally:
        one.close()


def test_store_has_one_id_and_a_damaged_one_is_an_error(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    assert _identified(store) == _identified(store)
    store.put("spool.json", b"[]")
    with pytest.raises(SpoolError, match="damaged"):
        _identified(store)
