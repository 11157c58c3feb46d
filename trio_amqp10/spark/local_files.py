"""Locks and flushes of files in a folder of this machine (POSIX).

Knows neither spools nor stores.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The numbers of errors that mean that a disk is full, or a quota is used up."""
_PAUSE: Final = 0.05


def lock_file(path: Path, patience: float) -> BinaryIO | None:
    """Lock a file (flock) until the returned file is closed, or the process ends.

    Args:
        path: the file; it is made if it does not exist.
        patience: seconds to wait for another process.

    Returns:
        The open file; None if another process has the lock.
    """
    file = open(path, "ab")  # noqa: SIM115 - stays open as long as the lock is held
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() >= deadline:
                file.close()
                return None
            time.sleep(_PAUSE)
        else:
            return file


def flush_folder(folder: Path) -> None:
    """Write the names in a folder to the disk, so that a rename survives a crash."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
