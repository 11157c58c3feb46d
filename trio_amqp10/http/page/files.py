"""The files of the page: HTML, style and scripts, as they are in the package.

The policy of the page permits only scripts and styles of this server. Text of peers is written as text; ``require-trusted-types-for``
makes a browser refuse to read it as HTML.

Knows files; knows no container.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

PAGE: Final = "/"
"""The path of the page."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types"
)
_TYPES: Final = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
SCRIPTS: Final = (
    "api",
    "charts",
    "connections",
    "dialogs",
    "elements",
    "frames",
    "main",
    "messages",
    "overview",
    "picture",
    "queue",
    "queues",
    "tables",
    "topology",
)
"""The scripts, which are modules of JavaScript."""
FILES: Final = {
    PAGE: "page.html",
    "/page/page.css": "page.css",
    **{f"/page/{name}.js": f"{name}.js" for name in SCRIPTS},
}
"""The files by their path."""


def routes() -> list[Route]:
    """Return the route of each file."""
    return [Route(path, _answer, methods=["GET"]) for path in FILES]


async def _answer(request: Request) -> Response:
    name = FILES[request.url.path]
    kind = _TYPES[name.rpartition(".")[2]]
    headers = {"Content-Security-Policy": POLICY, "Content-Type": f"{kind}; charset=utf-8"}
    return Response(_packaged(name), headers=headers)


@cache
def _packaged(name: str) -> bytes:
    return files("trio_amqp10.http.page").joinpath(name).read_bytes()
