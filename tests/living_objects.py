"""Every object that there is, also where ``tests/conftest.py`` keeps the garbage collector off those of modules."""

from __future__ import annotations

import gc
from typing import Any


def living_objects() -> list[Any]:
    """Collect garbage, and return all objects that the collector knows."""
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    try:
        gc.collect()
        return gc.get_objects()
    finally:
        if frozen:
            gc.freeze()
