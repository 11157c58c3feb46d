"""Rows of all lanes of a store: where they end, how a batch is shared among them, and who consumes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10.spark.lane_spool import LaneSpool
from trio_amqp10.spark.lanes_reader import LaneRows
from trio_amqp10.spark.spool import SpoolError
from trio_amqp10.spark.storage import FolderStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def lanes(tmp_path: Path) -> Iterator[dict[str, LaneSpool]]:
    """Two lanes, with segments of 30 and of 10 rows."""
    made = {name: LaneSpool(str(tmp_path), name, patience=0.2) for name in ("a", "b")}
    write(made["a"], 30)
    write(made["b"], 10)
    yield made
    for each in made.values():
        each.close()


def write(lane: LaneSpool, rows: int) -> None:
    lane.write(rows, lambda file: file.write(b"x" * 10 * rows))


def by_lane(position: dict[str, int]) -> dict[str, int]:
    return {key.partition("/")[0]: row for key, row in position.items()}


def test_rows_of_all_lanes_are_found_as_they_come(tmp_path: Path, lanes: dict[str, LaneSpool]) -> None:
    rows = LaneRows(FolderStore(tmp_path))
    end = rows.ends({})
    assert by_lane(end) == {"a": 30, "b": 10}
    assert rows.rows({}, end) == 40
    assert rows.octets({}) == pytest.approx({"a": 300, "b": 100}, rel=0.1)
    write(lanes["b"], 5)
    later = rows.ends(end)
    assert (by_lane(later), rows.rows(end, later)) == ({"a": 30, "b": 15}, 5)
    assert [each.stop - each.start for each in rows.batch(end, later)] == [5]


@pytest.mark.parametrize("wanted", [1, 4, 20, 39, 40, 100])
def test_batch_is_shared_among_the_lanes_in_proportion(
    tmp_path: Path, lanes: dict[str, LaneSpool], wanted: int
) -> None:
    rows = LaneRows(FolderStore(tmp_path))
    end = rows.ends({})
    cut = rows.cut({}, end, wanted, None)
    assert rows.rows({}, cut) == min(wanted, 40)
    if wanted in (4, 20):
        assert by_lane(cut) == {"a": wanted * 3 // 4, "b": wanted // 4}


def test_consumed_rows_are_noted_for_the_next_reader_which_takes_them_over(
    tmp_path: Path, lanes: dict[str, LaneSpool]
) -> None:
    first = LaneRows(FolderStore(tmp_path))
    end = first.ends({})
    first.release(end)
    second = LaneRows(FolderStore(tmp_path))
    assert second.consumed == end
    write(lanes["a"], 1)
    with pytest.raises(SpoolError, match="another query consumes"):
        first.release(first.ends(end))


def test_failing_store_is_waited_for_as_long_as_patience_lasts(
    tmp_path: Path, lanes: dict[str, LaneSpool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("away")

    patient, hasty = (LaneRows(FolderStore(tmp_path), patience=seconds) for seconds in (60.0, 0.0))
    end = patient.ends({})
    monkeypatch.setattr(FolderStore, "names", fail)
    assert patient.ends(end) == end
    with pytest.raises(OSError, match="away"):
        hasty.ends({})
