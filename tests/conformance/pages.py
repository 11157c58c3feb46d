"""Which pages there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import amqp_10_3, amqp_fast, conformance, draft_2010, features, rules
from .rst import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["PAGES"]

_REFERENCE = ROOT / "docs" / "reference"

PAGES: dict[Path, Callable[[], str]] = {
    _REFERENCE / "amqp_fast_conformance.rst": amqp_fast.page,
    _REFERENCE / "amqp_10_3_conformance.rst": amqp_10_3.page,
    _REFERENCE / "conformance.rst": conformance.page,
    _REFERENCE / "draft_2010_conformance.rst": draft_2010.page,
    _REFERENCE / "features.rst": features.page,
    _REFERENCE / "rules.rst": rules.page,
}
