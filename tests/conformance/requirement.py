"""One row of the conformance page."""

from __future__ import annotations

import re
from dataclasses import dataclass

MUST, MUST_NOT = "MUST", "MUST NOT"
SHOULD, SHOULD_NOT = "SHOULD", "SHOULD NOT"
RECOMMENDED = "RECOMMENDED"
MAY = "MAY"
RULE = "is"
"""A definition that binds without one of those words."""

BINDING = (MUST, MUST_NOT, SHOULD, SHOULD_NOT, RECOMMENDED)
"""A row of these levels has a mutant, unless no test could see the requirement."""

KINDS = ("not yet", "not offered", "shown elsewhere", "nothing to show")
"""How the gap of a row without tests begins."""

_NUMBERED = re.compile(r"(\d|[A-G]-\d+)(\.\d+)*-\d+")


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the product's source.

    Attributes:
        old: the text to replace, which occurs once in all the sources of the package.
        new: what replaces it.
    """

    old: str
    new: str


Mutant = tuple[Change, ...]
"""Changes that are made together and remove what a row says, and as little else as can be."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A statement of the standard, and what shows that the product holds it.

    Attributes:
        number: the section, and after a hyphen which statement of the section it is: "2.6.12-3". That of an
            extension has its letter before the section: "A-2.2.1-2".
        level: the standard's word for it.
        text: what is required, in our words.
        tests: the tests that show it, in the form that ``rst.find_test`` takes.
        mutants: each makes at least one of the tests fail; each test fails for at least one of them.
        gap: the limits of what is shown; "" without one. Without tests it begins with one of ``KINDS`` and a colon:
            "not yet", "not offered" for behaviour that the standard leaves open, "shown elsewhere" for what other rows
            say piece by piece, and "nothing to show" where no test of this product could see the statement.
        role: whom it binds, where the page says so.
    """

    number: str
    level: str
    text: str
    tests: tuple[str, ...] = ()
    mutants: tuple[Mutant, ...] = ()
    gap: str = ""
    role: str = ""

    @property
    def numbered(self) -> bool:
        return _NUMBERED.fullmatch(self.number) is not None


def need(
    number: str,
    level: str,
    text: str,
    *tests: str,
    mutant: Change | Mutant | None = None,
    mutants: tuple[Change | Mutant, ...] = (),
    gap: str = "",
) -> Requirement:
    """A row; ``mutant`` where it has one, ``mutants`` where it has several."""
    every = (*((mutant,) if mutant is not None else ()), *mutants)
    return Requirement(
        number,
        level,
        text,
        tests,
        tuple((each,) if isinstance(each, Change) else each for each in every),
        gap,
    )
