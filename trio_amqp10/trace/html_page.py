"""The page of a capture: one HTML file that needs no network and no build step.

The data is JSON in the page, the script and the style stand beside this module. What peers wrote cannot become script: JSON
has no ``<`` in it, the script writes text only, and the policy of the page permits this one script and this one style.
Knows no browser.
"""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .page_model import PageModel

__all__ = ["html_page"]

_PLACE: Final = re.compile(r"\{(policy|title|style|script|data)\}")


def html_page(model: PageModel, *, title: str, notes: Sequence[str] = ()) -> str:
    """The whole page. Secrets of the SASL layer are not on it.

    Args:
        model: what is on it.
        title: of the page.
        notes: lines for people, such as who talks to whom.
    """
    style, script = _packaged("page.css"), _packaged("page.js")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "title": escape(title.encode(errors="replace").decode()),  # a name of a file may be no text
        "style": style,
        "script": script,
        "data": _embedded({**model.as_json(), "notes": list(notes)}),
    }
    # In one pass: what is put in may have such names in it.
    return _PLACE.sub(lambda found: parts[found[1]], _packaged("page.html"))


def _embedded(data: object) -> str:
    """JSON that ends no element and begins none, whatever is in it."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _packaged(name: str) -> str:
    return files("trio_amqp10.trace").joinpath(name).read_text(encoding="utf-8")
