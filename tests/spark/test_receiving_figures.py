"""Figures in a file: when it is written, and that a failing disk does no harm."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import trio
import trio.testing

from trio_amqp10.spark.receiving_figures import FILE, ReceivingFigures
from trio_amqp10.spark.spool import Spool

if TYPE_CHECKING:
    from pathlib import Path


async def test_file_is_written_when_something_changes_and_now_and_then(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    spool = Spool(tmp_path)
    file = tmp_path / FILE
    figures = ReceivingFigures()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(figures.report, spool)
        await trio.sleep(0.5)
        assert json.loads(file.read_text())["received"] == 0
        file.unlink()
        figures.received = 7
        await trio.sleep(1)
        assert json.loads(file.read_text())["received"] == 7
        file.unlink()
        await trio.sleep(5)
        assert not file.exists()
        await trio.sleep(6)
        assert file.exists()
        figures.received = 9
        nursery.cancel_scope.cancel()
    assert json.loads(file.read_text())["received"] == 9
    spool.close()


async def test_folder_that_cannot_be_written_stops_nothing(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    spool = Spool(tmp_path / "spool")
    shutil.rmtree(tmp_path / "spool")
    with trio.move_on_after(5) as patience:
        await ReceivingFigures().report(spool)
    assert patience.cancelled_caught
    spool.close()


def test_oldest_row_that_is_not_consumed_says_for_how_long_it_waits(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    assert spool.waiting_since is None
    for _ in range(2):
        spool.write(1, lambda file: file.write(b"x"))
    first, second = [path.stat().st_mtime for path in spool.segments]
    assert spool.waiting_since == first
    assert ReceivingFigures().snapshot(spool)["octets_waiting"] == 2
    spool.release(1)
    assert spool.waiting_since == second
    spool.release(2)
    assert spool.waiting_since is None
    spool.close()
