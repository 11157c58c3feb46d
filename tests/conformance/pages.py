"""Which pages there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import amqp091, amqp_10_3, amqp_fast, conformance, draft_2010, features, rules
from .rst import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from .requirement import Requirement

_REFERENCE = ROOT / "docs" / "reference"

PAGES: dict[Path, Callable[[], str]] = {
    _REFERENCE / "amqp091_conformance.rst": amqp091.page,
    _REFERENCE / "amqp_fast_conformance.rst": amqp_fast.page,
    _REFERENCE / "amqp_10_3_conformance.rst": amqp_10_3.page,
    _REFERENCE / "conformance.rst": conformance.page,
    _REFERENCE / "draft_2010_conformance.rst": draft_2010.page,
    _REFERENCE / "features.rst": features.page,
    _REFERENCE / "rules.rst": rules.page,
}

ROWS: dict[str, Sequence[Requirement]] = {
    "AMQP 1.0": [row for rows in conformance.PARTS.values() for row in rows],
    "AMQP 0-9-1": amqp091.REQUIREMENTS,
    "AMQ Protocol 10.3": amqp_10_3.REQUIREMENTS,
    "AMQP/Fast": amqp_fast.REQUIREMENTS,
    "the draft of 2010": draft_2010.REQUIREMENTS,
}
"""The statements of each protocol; no two rows have the same number."""
