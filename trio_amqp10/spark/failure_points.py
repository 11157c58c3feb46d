"""Places at which tests make the process die or pause, by a variable.

``TRIO_AMQP10_SPARK_HOOKS`` names a folder. A file ``crash-PLACE`` in it has the next process that
comes by that place remove the file and die on the spot, as by ``kill -9``; ``delay-PLACE`` holds
seconds to wait each time.

Knows nothing of what happens in those places.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final

__all__ = ["HOOKS", "passing"]

HOOKS: Final = "TRIO_AMQP10_SPARK_HOOKS"


def passing(place: str) -> None:
    """The caller is at ``place``: e.g. ``"synced"``, between what is on disk and its settlement."""
    folder = os.environ.get(HOOKS)
    if not folder:
        return
    try:
        seconds = float(Path(folder, f"delay-{place}").read_text())
    except FileNotFoundError:
        pass
    else:
        time.sleep(seconds)
    try:
        Path(folder, f"crash-{place}").unlink()
    except FileNotFoundError:
        return
    os._exit(86)
