"""The files of the drawings."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.plots import THEMES

from .overview import draw as draw_overview
from .rooms import draw as draw_rooms
from .sequences import SEQUENCES
from .states import DIAGRAMS

__all__ = ["IMAGES", "drawn", "write"]

IMAGES: Final = Path(__file__).resolve().parents[1] / "images"


def drawn() -> dict[str, str]:
    """Every file by its name."""
    found: dict[str, str] = {}
    for theme in THEMES:
        found[f"overview-{theme}.svg"] = draw_overview(theme)
        found[f"rooms-{theme}.svg"] = draw_rooms(theme)
        found |= {f"{name}-{theme}.svg": one.draw(theme) for name, one in (DIAGRAMS | SEQUENCES).items()}
    return found


def write() -> None:
    """Write the files of all drawings, and delete files without a drawing."""
    IMAGES.mkdir(exist_ok=True)
    files = drawn()
    for old in IMAGES.glob("*.svg"):
        if old.name not in files:
            old.unlink()
    for name, text in files.items():
        (IMAGES / name).write_text(text)
