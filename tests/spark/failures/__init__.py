"""Failures: lets processes of a test die or wait at named places."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .sitecustomize import EXIT_CODE, FOLDER, PLACES, PRODUCT, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

__all__ = ["EXIT_CODE", "HERE", "Failures", "call_at"]

HERE: Final = str(Path(__file__).parent)
"""The folder whose ``sitecustomize`` every Python of the environment imports."""


class Failures:
    """Has processes die or wait at places (``sitecustomize.PLACES``).

    Args:
        folder: an empty folder of this object's own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._delays: set[str] = set()

    def environment(self) -> dict[str, str]:
        """Return the variables that a process needs, in addition to ``os.environ``."""
        path = [HERE, *filter(None, [os.environ.get("PYTHONPATH")])]
        return {FOLDER: str(self._folder), "PYTHONPATH": os.pathsep.join(path)}

    def crash(self, place: str) -> None:
        """Let the next process that comes to this place die at once, as by ``kill -9``."""
        self._file("crash", place).touch()

    def crashed(self, place: str) -> bool:
        """Whether a process has died at this place."""
        return not self._file("crash", place).exists()

    def delay(self, place: str, seconds: float) -> None:
        """Let each process wait at this place, each time."""
        self._delays.add(place)
        self._file("delayed", place).unlink(missing_ok=True)
        self._file("delay", place).write_text(str(seconds))

    def end(self) -> None:
        """Let processes go on as usual.

        Raises:
            AssertionError: no process has come to one of the places.
        """
        unreached = [path.name for path in self._folder.glob("crash-*")]
        unreached += [f"delay-{place}" for place in self._delays if not self._file("delayed", place).exists()]
        self._delays.clear()
        for left in self._folder.iterdir():
            left.unlink()
        assert not unreached, f"no process came to these places: {unreached}"

    def _file(self, kind: str, place: str) -> Path:
        assert place in PLACES, f"{place!r} is none of the places {[*PLACES]}"
        return self._folder / f"{kind}-{place}"


def call_at(patch: pytest.MonkeyPatch, place: str, call: Callable[[], object]) -> None:
    """Call a function whenever this process comes to a place; ``patch`` undoes it."""
    for step in PLACES[place]:
        owner, name = step.owner(importlib.import_module(f"{PRODUCT}.{step.module}"))
        patch.setattr(owner, name, wrapped(step, getattr(owner, name), call))
