"""The HTML page of a capture: one file, without network access or a build step.

The data is JSON in the page; the script and the style are files next to this module. Text of a peer cannot become script: the
JSON has no ``<``, the script writes only text, and the policy of the page permits only this script and this style.
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

_PLACE: Final = re.compile(r"\{(policy|title|style|script|data)\}")


def html_page(model: PageModel, *, title: str, notes: Sequence[str] = ()) -> str:
    """Return the page. Secrets of the SASL layer are not included.

    Args:
        model: the contents.
        title: the title of the page.
        notes: lines for the reader, such as the hosts of each conversation.
    """
    style, script = _packaged("page.css"), _packaged("page.js")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "title": escape(title.encode(errors="replace").decode()),  # the name of a file may not be text
        "style": style,
        "script": script,
        "data": _embedded({**model.as_json(), "notes": list(notes)}),
    }
    # Replace in one pass, because the inserted parts may contain such names too.
    return _PLACE.sub(lambda found: parts[found[1]], _packaged("page.html"))


def _embedded(data: object) -> str:
    """Return JSON that neither ends nor begins an HTML element."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _packaged(name: str) -> str:
    return files("trio_amqp10.tools.trace").joinpath(name).read_text(encoding="utf-8")
