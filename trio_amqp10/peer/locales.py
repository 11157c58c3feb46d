"""In which language the two ends of a connection tell each other what went wrong (2.7.1).

Knows tags and their order; writes nothing in any language.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["DEFAULT_LOCALE", "choose_locale"]

DEFAULT_LOCALE: Final = "en-US"
"""What everybody can write, whether it says so or not."""


def choose_locale(wanted: Iterable[str], written: Iterable[str]) -> str:
    """The first that the reader wants and the writer can, spelled as the writer does; ``en-US`` if there is none."""
    known = {tag.lower(): str(tag) for tag in (DEFAULT_LOCALE, *written)}
    return next((known[tag.lower()] for tag in wanted if tag.lower() in known), DEFAULT_LOCALE)
