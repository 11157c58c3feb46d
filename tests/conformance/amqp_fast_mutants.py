"""The mutants of the page of AMQP/Fast, by the number of the statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .requirement import Mutant

__all__ = ["MUTANTS"]

MUTANTS: Final[Mapping[str, tuple[Mutant, ...]]] = {}
