"""Write the pages anew."""

from __future__ import annotations

from .pages import PAGES

for path, make in PAGES.items():
    path.write_text(make())
