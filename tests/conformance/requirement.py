"""One row of the conformance page."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MAY", "MUST", "MUST_NOT", "RULE", "SHOULD", "SHOULD_NOT", "Requirement", "need"]

MUST, MUST_NOT = "MUST", "MUST NOT"
SHOULD, SHOULD_NOT = "SHOULD", "SHOULD NOT"
MAY = "MAY"
RULE = "is"
"""Without one of those words in the standard: the definition itself."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """What the standard asks of an implementation, and what shows that we do it.

    Attributes:
        section: of the standard.
        level: its word for it.
        text: what is asked, in our words.
        tests: what shows it, as ``rst.find_test`` takes it.
        gap: what limits it; "" where nothing does. Without tests it begins with "not yet: ", or with
            "nothing to show: " where there is nothing that a test could see.
    """

    section: str
    level: str
    text: str
    tests: tuple[str, ...] = ()
    gap: str = ""


def need(section: str, level: str, text: str, *tests: str, gap: str = "") -> Requirement:
    return Requirement(section, level, text, tests, gap)
