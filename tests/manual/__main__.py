"""``python -m tests.manual``: a picture of every page at 390 and at 1280 pixels, whether anything is wider than the page, and what the search finds.

The manual has to be built (``make docs``). Pictures go to ``docs/_build/screenshots``; ends with 1 where a page is too wide, or a word is
not found.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from tests.browser import open_page

if TYPE_CHECKING:
    from tests.browser import Page

BUILT: Final = Path(__file__).resolve().parents[2] / "docs/_build"
WIDTHS: Final = (390, 1280)
HEIGHT: Final = 4000
"""Pixels of a picture at most."""

WIDER: Final = """
[document.documentElement.scrollWidth, [...document.querySelectorAll('[role=main] *')].filter((each) => {
  if (each.getBoundingClientRect().right <= document.documentElement.clientWidth + 1) return false;
  for (let up = each.parentElement; !up.matches('[role=main]'); up = up.parentElement)
    if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(up).overflowX)) return false;
  return true;
}).slice(0, 3).map((each) => each.tagName.toLowerCase() + ': ' + each.textContent.trim().slice(0, 60))]
"""
"""How wide the page is, and what in it runs out of the window and does not scroll by itself."""

SEARCHES: Final = {
    "prefetch": "how-to/from-rabbitmq",
    "confirm": "programs/rabbitmq",
    "retry": "programs/work-queue",
    "nack": "how-to/from-rabbitmq",
    "dead letter": "programs/work-queue",
    "routing key": "how-to/from-rabbitmq",
    "fastapi": "how-to/find",
    "jupyter": "how-to/find",
    "prometheus": "how-to/find",
    "healthcheck": "how-to/find",
    "graceful shutdown": "how-to/find",
    "purge": "how-to/find",
    "permissions": "how-to/authorise",
}
"""Words of other projects, and a page that the search has to find by them."""

FIRST: Final = 5

FOUND: Final = """
new Promise((done) => {
  const began = Date.now();
  const look = () => {
    const links = [...document.querySelectorAll('#search-results ul.search a')];
    const title = document.querySelector('#search-results h2');
    if ((title && title.textContent !== 'Searching') || Date.now() - began > 10000)
      done(links.map((each) => each.getAttribute('href').split('?')[0].split('#')[0]));
    else setTimeout(look, 50);
  };
  look();
})
"""
"""The pages that the search shows, once it has ended."""


def main() -> int:
    """Look at all pages, or at those that the arguments name; the number of faults."""
    html = BUILT / "html"
    pages = sorted(
        path
        for path in html.rglob("*.html")
        if not path.name.startswith(("genindex", "search", "py-modindex"))
    )
    if chosen := sys.argv[1:]:
        pages = [path for path in pages if path.relative_to(html).with_suffix("").as_posix() in chosen]
    if not pages:
        print(f"no pages in {html}: run `make docs` first", file=sys.stderr)
        return 1
    faults = 0
    with TemporaryDirectory() as profile, open_page(Path(profile)) as browser:
        for path in pages:
            name = path.relative_to(html).with_suffix("").as_posix()
            for width in WIDTHS:
                browser.go(path.as_uri(), width=width, height=900)
                wide, culprits = browser.run(WIDER)
                picture = BUILT / "screenshots" / str(width) / f"{name}.png"
                picture.parent.mkdir(parents=True, exist_ok=True)
                browser.picture(picture, most=HEIGHT)
                if wide > width or culprits:
                    faults += 1
                    print(f"{name}: {wide} pixels wide in a window of {width}", *culprits, sep="\n    ")
        if not chosen:
            faults += search(browser)
    print(
        f"{len(pages)} pages at {' and '.join(map(str, WIDTHS))} pixels, {faults} faults: {BUILT / 'screenshots'}"
    )
    return min(faults, 1)


def search(browser: Page) -> int:
    """Look each word up as a reader does; how many were not found where they have to be."""
    faults = 0
    for words, page in SEARCHES.items():
        url = (BUILT / "html/search.html").as_uri()
        browser.go(f"{url}?{urlencode({'q': words})}")
        found = browser.run(FOUND)
        if f"{page}.html" not in found[:FIRST]:
            faults += 1
            print(f"the search for {words!r} does not show {page} among the first {FIRST}: {found[:FIRST]}")
    return faults


sys.exit(main())
