"""Names of manifests: positions of many epochs, listed in any order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.spark.manifest_catalog import Catalog, Epoch, Manifest, Part, Positions

FIRST = Epoch.make(1, 0, "aaaaaaaa")
SECOND = Epoch.make(2, 100, "bbbbbbbb")


def manifest(epoch: Epoch, first: int, end: int, lane: str = "a", octets: int = 10) -> Manifest:
    return Manifest(lane, epoch.name, first, end, octets)


def catalog(*found: Manifest) -> Catalog:
    return Catalog([each.name for each in found])


def at(**rows: int) -> Positions:
    """Return a position in lane ``a``, by the names of its epochs."""
    names = {"first": FIRST, "second": SECOND}
    return {f"a/{names[name].name}": row for name, row in rows.items()}


def test_names_say_everything_and_nothing_else_is_one() -> None:
    one = manifest(SECOND, 100, 250, octets=4096)
    assert Manifest.parse(one.name) == one
    assert Epoch.parse(SECOND.name) == SECOND
    assert one.key == f"a/{SECOND.name}"
    for other in ("spool.json", one.segment, one.name + "x", f"manifests/a/tmp-1-{one.name[12:]}"):
        assert Manifest.parse(other) is None
    assert Epoch.parse("1-2-3") is None


def test_manifest_that_is_published_late_is_read() -> None:
    """A receiver that seemed dead publishes after the position of its own epoch."""
    before = catalog(manifest(FIRST, 0, 100), manifest(SECOND, 100, 300))
    seen = before.ends({})
    assert seen == at(first=100, second=300)
    late = manifest(FIRST, 100, 150)
    after = catalog(manifest(FIRST, 0, 100), manifest(SECOND, 100, 300), late)
    assert after.parts(seen, after.ends(seen)) == [Part(late, 100, 150)]


def test_gap_is_told_until_what_is_missing_is_there() -> None:
    listed = catalog(manifest(FIRST, 10, 20))
    assert listed.gap({}) == f"rows 0 to 10 of a/{FIRST.name} are missing"
    assert listed.gap(at(first=10)) is None
    assert catalog(manifest(FIRST, 0, 10), manifest(FIRST, 10, 20)).gap({}) is None
    torn = catalog(manifest(FIRST, 0, 10), manifest(FIRST, 20, 30))
    assert torn.gap(at(first=5)) == f"rows 10 to 20 of a/{FIRST.name} are missing"


def test_position_forgets_epochs_that_are_read_and_deleted_but_not_what_they_publish_after_that() -> None:
    lives = [Epoch.make(number, 0, "aaaaaaaa") for number in range(1, 30)]
    start = {f"a/{each.name}": 5 for each in lives} | {f"b/{lives[0].name}": 7}
    ends = catalog(manifest(lives[2], 0, 5)).ends(start)
    assert len(ends) == 16 + 1 + 1
    assert f"b/{lives[0].name}" in ends
    assert f"a/{lives[2].name}" in ends  # it has a manifest
    late = manifest(lives[0], 5, 9)
    assert catalog(late).parts(ends, catalog(late).ends(ends)) == [Part(late, 5, 9)]


def test_last_rows_are_counted_by_lane_and_backwards_over_epochs() -> None:
    one, two = manifest(FIRST, 0, 100), manifest(SECOND, 100, 130)
    other = manifest(FIRST, 0, 8, lane="b")
    found = catalog(one, two, other).last(at(first=100, second=120) | {f"b/{FIRST.name}": 8}, 30)
    assert found == [Part(one, 90, 100), Part(two, 100, 120), Part(other, 0, 8)]


@st.composite
def histories(draw: st.DrawFn) -> list[Manifest]:
    """The manifests of some lanes, in the order of publishing."""
    logs: list[list[Manifest]] = []
    for lane in draw(st.sampled_from([("a",), ("a", "b")])):
        for number in range(draw(st.integers(1, 3))):
            first = draw(st.integers(0, 5))
            epoch = Epoch.make(number, first, "cccccccc")
            log: list[Manifest] = []
            for rows in draw(st.lists(st.integers(1, 5), max_size=4)):
                log.append(manifest(epoch, first, first + rows, lane))
                first += rows
            logs.append(log)
    found: list[Manifest] = []
    while any(logs):
        log = draw(st.sampled_from([each for each in logs if each]))
        found.append(log.pop(0))
    return found


@given(histories(), st.data())
def test_each_row_is_read_once_whenever_batches_are_made(
    history: list[Manifest], data: st.DataObject
) -> None:
    read: list[tuple[str, int]] = []
    position: Positions = {}
    for count in (*data.draw(st.lists(st.integers(0, len(history)), max_size=4).map(sorted)), len(history)):
        listed = Catalog(data.draw(st.permutations([each.name for each in history[:count]])))
        assert listed.gap(position) is None
        ends = listed.ends(position)
        for part in listed.parts(position, ends):
            read += [(part.manifest.key, row) for row in range(part.start, part.stop)]
        assert listed.parts(ends, ends) == []
        position = ends
    assert len(read) == len({*read})
    assert {*read} == {(each.key, row) for each in history for row in range(each.first, each.end)}


@given(histories(), st.integers(0, 20))
def test_last_rows_do_not_depend_on_what_was_deleted_before_them(history: list[Manifest], rows: int) -> None:
    listed = catalog(*history)
    position = listed.ends({})
    last = listed.last(position, rows)
    assert catalog(*{part.manifest for part in last}).last(position, rows) == last
    for lane in ("a", "b"):
        here = [part.stop - part.start for part in last if part.manifest.lane == lane]
        assert sum(here) == min(rows, sum([each.end - each.first for each in history if each.lane == lane]))


@pytest.mark.parametrize("order", [1, -1])
def test_listing_has_no_order(order: int) -> None:
    logs = [manifest(FIRST, 0, 10), manifest(FIRST, 10, 20), manifest(FIRST, 20, 30)]
    parts = catalog(*logs[::order]).parts(at(first=5), at(first=25))
    assert [(part.start, part.stop) for part in parts] == [(5, 10), (10, 20), (20, 25)]
