"""The application: all routes, behind one gate.

Each part has a function ``routes``, which returns a list of Starlette's routes.

Knows the parts; knows no operation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from . import health, metrics
from .access import MANAGEMENT, Gate, Limits, error_response
from .api.routes import routes as api_routes
from .errors import RequestError
from .page import files
from .page.frames import WATCHES, FrameWatches
from .page.history import History
from .page.routes import routes as page_routes

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from trio_amqp10.container.container import Container
    from trio_amqp10.container.management import Management
    from trio_amqp10.sasl import Identity

__all__ = ["Limits", "application"]

_ERRORS = {
    404: ("Object Not Found", "not found"),
    405: ("method_not_allowed", "the method is not allowed here"),
}
"""The error and the reason for answers of the router."""


def application(
    container: Container,
    limits: Limits,
    hosts: Collection[str] | None = None,
    *,
    metrics_queues: Sequence[str] = (),
    history: History | None = None,
    watches: FrameWatches | None = None,
) -> ASGIApp:
    """Return the application for a container.

    Args:
        container: the container to manage.
        limits: limits on requests.
        hosts: the names that the header Host may have beside those of the loopback; None for any name.
        metrics_queues: patterns of queues with metrics of their own.
        history: what the page shows of the last hour; the caller runs it. None for no samples.
        watches: has the watches of frames; the caller closes it at the end. None for one of its own.
    """

    def management(who: Identity | None, host: str | None) -> Management:
        return container.management.on_behalf_of(who, face="HTTP", host=host)

    probes = health.routes(container.management)
    app = Starlette(
        routes=[
            *api_routes(limits.max_body),
            *metrics.routes(_management_for, queues=metrics_queues),
            *page_routes(limits.max_body, history or History(container.management)),
            *probes,
        ],
        exception_handlers={HTTPException: _on_router_error, RequestError: _on_error},  # type: ignore[dict-item]
    )
    app.router.redirect_slashes = False
    setattr(app.state, WATCHES, watches or FrameWatches())
    return Gate(
        app,
        management,
        limits,
        hosts,
        open_paths=frozenset(route.path for route in probes),
        linked_paths=frozenset({files.PAGE}),
    )


async def _management_for(request: Request) -> Management:
    found: Management = getattr(request.state, MANAGEMENT)
    return found


async def _on_router_error(_request: Request, fault: HTTPException) -> Response:
    error, reason = _ERRORS.get(fault.status_code, ("bad_request", fault.detail))
    return error_response(RequestError(fault.status_code, error, reason, dict(fault.headers or {})))


async def _on_error(_request: Request, fault: RequestError) -> Response:
    return error_response(fault)
