"""The mutants of the page of AMQP 0-9-1, by the number of the row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .requirement import Mutant

__all__ = ["MUTANTS"]

MUTANTS: Final[Mapping[str, tuple[Mutant, ...]]] = {}
