"""The spool: rows survive, damage is noticed, and one process has it at a time."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from trio_amqp10.spark.spool import Slice, Spool, SpoolError, SpoolFullError

from .failures import EXIT_CODE, Failures

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO


LOW = f"low-{0:020d}"


def write(spool: Spool, rows: int, octets: int = 100) -> None:
    spool.write(rows, lambda file: file.write(b"x" * octets))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*-*"))


def test_rows_are_there_after_opening_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    write(spool, 3)
    write(spool, 2)
    spool.close()
    again = Spool(tmp_path)
    assert (again.id, again.low, again.end) == (spool.id, 0, 5)
    again.close()


def test_slices_are_parts_of_segments(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for rows in (3, 2, 4):
        write(spool, rows)
    first, second, third = [str(path) for path in spool.segments]
    assert spool.slices(1, 7) == [
        Slice(first, 1, 3, 0),
        Slice(second, 0, 2, 3),
        Slice(third, 0, 2, 5),
    ]
    assert spool.slices(3, 3) == []
    spool.close()


def test_consumed_segments_are_deleted(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for rows in (3, 2, 4):
        write(spool, rows)
    spool.release(4)
    assert [path.name[-6 - 20 : -6] for path in spool.segments] == [f"{5:020d}", f"{9:020d}"]
    with pytest.raises(SpoolError, match="not in the spool"):
        spool.slices(0, 5)
    spool.release(9)
    assert spool.segments == []
    spool.release(2)  # consumed long since
    spool.close()
    again = Spool(tmp_path)
    assert (again.low, again.end) == (9, 9)
    again.close()


def test_last_rows_are_kept_for_their_ids(tmp_path: Path) -> None:
    spool = Spool(tmp_path, keep=5)
    for _ in range(4):
        write(spool, 3)
    spool.release(12)
    assert len(spool.segments) == 2
    spool.close()
    again = Spool(tmp_path, keep=5)
    assert (again.low, again.end, len(again.segments)) == (12, 12, 2)
    again.close()


def test_spool_is_full_by_what_is_not_consumed(tmp_path: Path) -> None:
    spool = Spool(tmp_path, max_bytes=150, keep=100)
    write(spool, 1)
    assert not spool.full
    write(spool, 1)
    assert spool.full
    spool.release(1)
    assert not spool.full
    spool.close()
    again = Spool(tmp_path, max_bytes=101, keep=100)
    assert not again.full
    again.close()


def test_octets_limit_a_batch_to_about_so_many_rows(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    write(spool, 10, 1000)
    write(spool, 10, 2000)
    assert spool.fitting(0, 500) == 5
    assert spool.fitting(0, 1000) == 10
    assert spool.fitting(0, 1400) == 12
    assert spool.fitting(0, 1) == 1
    assert spool.fitting(15, 10_000) == 20
    assert spool.fitting(20, 10) == 20
    spool.close()


def test_what_was_half_written_is_removed(tmp_path: Path) -> None:
    spool = Spool(tmp_path)

    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        spool.write(1, fail)
    assert (spool.end, names(tmp_path)) == (0, [LOW])
    spool.close()
    (tmp_path / "tmp-00000000000000000007").write_bytes(b"\xff")
    again = Spool(tmp_path)
    assert (again.end, names(tmp_path)) == (0, [LOW])
    again.close()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_disk_without_room_is_a_full_spool_that_is_mended_by_consuming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    spool = Spool(tmp_path)
    write(spool, 2)
    write(spool, 3)

    def fill(file: BinaryIO) -> None:
        file.write(b"half")
        raise OSError(number, os.strerror(number))

    with pytest.raises(SpoolFullError, match=r"the disk of the spool .* is full"):
        spool.write(1, fill)
    assert (spool.full, spool.end, len(names(tmp_path))) == (True, 5, 3)

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:  # nothing new may be written, and consumed rows go all the same
        patch.setattr(Spool, "write_note", refuse)
        patch.setattr("builtins.open", refuse)
        spool.release(2)
    assert not spool.full
    write(spool, 1)
    assert (spool.low, spool.end) == (2, 6)
    spool.close()
    again = Spool(tmp_path)
    assert (again.low, again.end, again.full) == (2, 6, False)
    again.close()


def test_disk_without_room_is_tried_again_though_nothing_was_consumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("trio_amqp10.spark.spool.time.monotonic", lambda: now)
    spool = Spool(tmp_path)

    def fill(_: BinaryIO) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(SpoolFullError):
        spool.write(1, fill)
    assert spool.full
    now += 1.0
    assert not spool.full
    spool.close()


def former(folder: Path, low: int) -> None:
    """A spool as version 1 left it: two segments of five rows."""
    folder.mkdir(exist_ok=True)
    (folder / "spool.json").write_text('{"spool": "old", "version": 1}')
    (folder / "low").write_text(str(low))
    for first in (0, 5):
        (folder / f"seg-{first:020d}-{first + 5:020d}.arrow").write_bytes(b"x")


def test_spool_of_version_1_is_taken_over(tmp_path: Path) -> None:
    former(tmp_path, 3)
    for _ in range(2):
        spool = Spool(tmp_path)
        assert (spool.id, spool.low, spool.end) == ("old", 3, 10)
        spool.close()
    assert json.loads((tmp_path / "spool.json").read_text()) == {"spool": "old", "version": 2}
    assert not (tmp_path / "low").exists()


def test_taking_over_that_was_broken_off_loses_no_consumption(tmp_path: Path) -> None:
    former(tmp_path, 7)  # by the former version, after a newer one had died while it took over
    (tmp_path / f"low-{3:020d}").touch()
    spool = Spool(tmp_path)
    assert (spool.low, spool.end) == (7, 10)
    assert [path.name for path in tmp_path.glob("low-*")] == [f"low-{7:020d}"]
    spool.close()


def test_second_process_is_refused(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    program = f"from trio_amqp10.spark.spool import Spool; Spool({str(tmp_path)!r}, patience=0.1)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "is in use by another query" in done.stderr
    spool.close()
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_second_process_waits_for_a_dying_first(tmp_path: Path) -> None:
    program = f"from trio_amqp10.spark.spool import Spool; spool = Spool({str(tmp_path)!r}); print(1, flush=True); input()"
    first = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    assert first.stdout is not None
    assert first.stdout.readline() == "1\n"
    with pytest.raises(SpoolError, match="in use"):
        Spool(tmp_path, patience=0)
    first.kill()
    Spool(tmp_path, patience=10).close()
    first.communicate()


def test_missing_segment_is_noticed(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for _ in range(3):
        write(spool, 2)
    spool.segments[1].unlink()
    with pytest.raises(SpoolError, match="is missing"):
        spool.slices(0, 6)
    spool.close()
    with pytest.raises(SpoolError, match="rows 2 to 4 are missing"):
        Spool(tmp_path)


def test_lost_tail_is_noticed(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for _ in range(3):
        write(spool, 2)
    end = spool.end
    name = spool.id
    spool.segments[2].unlink()
    spool.close()
    again = Spool(tmp_path)
    with pytest.raises(SpoolError, match="rows were lost"):
        again.check(name, end)
    again.close()


def test_low_mark_beyond_what_was_written_is_noticed(tmp_path: Path) -> None:
    spool = Spool(tmp_path, keep=10)
    write(spool, 2)
    spool.close()
    (tmp_path / LOW).rename(tmp_path / f"low-{7:020d}")
    with pytest.raises(SpoolError, match="rows up to 7 are consumed, and only 2"):
        Spool(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("spool.json", "{}"),
        ("spool.json", "x"),
        ("low", "x"),
        ("low", ""),
    ],
)
def test_damaged_file_is_noticed(tmp_path: Path, name: str, text: str) -> None:
    former(tmp_path, 0)
    (tmp_path / name).write_text(text)
    with pytest.raises(SpoolError, match=name):
        Spool(tmp_path)


def test_spool_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    Spool(tmp_path).close()
    (tmp_path / "spool.json").write_text('{"spool": "s", "version": 3}')
    with pytest.raises(SpoolError, match=r"version 3, .* knows versions 1 and 2: .* newer trio-amqp10"):
        Spool(tmp_path)


def test_lost_number_of_consumed_rows_is_noticed(tmp_path: Path) -> None:
    Spool(tmp_path).close()
    (tmp_path / LOW).unlink()
    with pytest.raises(SpoolError, match=r"no file low-N"):
        Spool(tmp_path)


def test_segments_without_a_name_are_nobodys(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    write(spool, 1)
    spool.close()
    (tmp_path / "spool.json").unlink()
    with pytest.raises(SpoolError, match=r"no spool\.json"):
        Spool(tmp_path)


def test_checkpoint_of_another_spool_is_refused(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a")
    write(spool, 1)
    for name, row, message in (("other", 0, "belongs to the spool other"), (spool.id, 2, "rows were lost")):
        with pytest.raises(SpoolError, match=message):
            spool.check(name, row)
    with pytest.raises(SpoolError, match="at row None"):
        spool.check(spool.id, None)
    assert spool.check(spool.id, 1) == 1
    spool.close()


@pytest.mark.parametrize(("place", "rows"), [("unwritten", 1), ("written", 1), ("synced", 2)])
def test_crash_leaves_a_whole_segment_or_none(tmp_path: Path, place: str, rows: int) -> None:
    folder = tmp_path / "spool"
    write(first := Spool(folder), 1)
    first.close()
    (tmp_path / "failures").mkdir()
    failures = Failures(tmp_path / "failures")
    failures.crash(place)
    program = f"from trio_amqp10.spark.spool import Spool; Spool({str(folder)!r}).write(1, lambda file: file.write(b'x'))"
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | failures.environment(), check=False
    )
    assert done.returncode == EXIT_CODE
    spool = Spool(folder)
    assert (spool.end, len(list(folder.glob("tmp-*")))) == (rows, 0)
    spool.close()
