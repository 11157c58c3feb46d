"""``python -m docs.diagrams``: draw all diagrams, into ``docs/images``."""

from __future__ import annotations

from .files import write

write()
