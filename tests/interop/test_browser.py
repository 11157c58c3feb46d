"""The hands of the tests of pages: a press that misses its element, because rows come in above it, presses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.browser import open_page

from .conftest import need

if TYPE_CHECKING:
    from pathlib import Path

MOVES = """
document.body.innerHTML = "<div id=gap></div><button>wanted</button><div id=below><button>unwanted</button></div>";
window.pressed = [];
for (const each of document.querySelectorAll("button")) each.onclick = () => window.pressed.push(each.textContent);
addEventListener("%s", () => { document.getElementById("gap").style.height = "100px"; }, { capture: true, once: true });
"""


def test_click_presses_what_has_moved_away_in_its_new_place_and_nothing_else(tmp_path: Path) -> None:
    need("chromium")
    with open_page(tmp_path) as page:
        for moment in ("mousemove", "mousedown", "mouseup"):
            page.go("about:blank")
            page.run(MOVES % moment)
            page.click("document.querySelector('button')")
            assert page.run("window.pressed") == ["wanted"], moment
