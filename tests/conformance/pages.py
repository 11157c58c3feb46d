"""Which pages there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import conformance, features, rules
from .rst import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["PAGES"]

_REFERENCE = ROOT / "docs" / "reference"

PAGES: dict[Path, Callable[[], str]] = {
    _REFERENCE / "conformance.rst": conformance.page,
    _REFERENCE / "features.rst": features.page,
    _REFERENCE / "rules.rst": rules.page,
}
