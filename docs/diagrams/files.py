"""Which drawing is in which file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.plots import THEMES

from .overview import draw as draw_overview
from .sequences import SEQUENCES
from .states import DIAGRAMS

__all__ = ["IMAGES", "drawn", "write"]

IMAGES: Final = Path(__file__).resolve().parents[1] / "images"


def drawn() -> dict[str, str]:
    """Every file by its name."""
    found: dict[str, str] = {}
    for theme in THEMES:
        found[f"overview-{theme}.svg"] = draw_overview(theme)
        found |= {f"{name}-{theme}.svg": one.draw(theme) for name, one in (DIAGRAMS | SEQUENCES).items()}
    return found


def write() -> None:
    """Have the files say what the drawings do, and no file that is none."""
    IMAGES.mkdir(exist_ok=True)
    files = drawn()
    for old in IMAGES.glob("*.svg"):
        if old.name not in files:
            old.unlink()
    for name, text in files.items():
        (IMAGES / name).write_text(text)
