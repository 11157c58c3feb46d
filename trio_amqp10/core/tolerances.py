"""Counts of broken rules that were tolerated, for one connection.

``Strict`` selects the rules that are enforced. Where a rule is not, the code that accepts the breach notes the rule here.
Knows no frame, and no endpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .peer_rules import ProtocolRule


class Tolerances:
    """How often a peer broke each rule of ``Strict``, and was not refused."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str, int] | None = None  # most peers break none: an empty dict is 64 octets

    def note(self, rule: ProtocolRule) -> None:
        """Count a breach of ``rule`` that is accepted."""
        if self._counts is None:
            self._counts = {}
        name = rule.name.replace("-", "_")
        self._counts[name] = self._counts.get(name, 0) + 1

    def figures(self) -> dict[str, int]:
        """Return the counts by the names of ``Strict``.

        Rules that were never broken are absent.
        """
        return dict(self._counts or ())
