"""A lock is one's own until its file is closed, and a folder that there is not cannot be flushed."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from trio_amqp10.spark.local_files import flush_folder, lock_file

if TYPE_CHECKING:
    from pathlib import Path


def test_lock_is_one_owners_until_its_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    held = lock_file(path, 0)
    assert held is not None
    assert lock_file(path, 0) is None
    held.close()
    again = lock_file(path, 0)
    assert again is not None
    again.close()


def test_lock_is_waited_for_as_long_as_patience_lasts(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    held = lock_file(path, 0)
    assert held is not None
    threading.Timer(0.2, held.close).start()
    later = lock_file(path, 30)
    assert later is not None
    later.close()


def test_folder_is_flushed_and_its_descriptor_closed(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    flush_folder(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before
    with pytest.raises(FileNotFoundError):
        flush_folder(tmp_path / "none")
