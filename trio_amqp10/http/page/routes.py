"""The requests that the page alone makes: one line for each.

A permission that is missing is 403 here, and not 401 as in RabbitMQ's API: a browser takes 401 for a wrong password.

Knows paths and functions; does no work.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.routing import Route

from trio_amqp10.container.management.errors import ManagementError
from trio_amqp10.http.api.call import Call
from trio_amqp10.http.errors import RequestError, from_management

from . import files, frames, lists, operations

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from .history import History

    Operation = Callable[[Call, History], Awaitable[Response]]

OPERATIONS: Final[tuple[tuple[str, str, Operation], ...]] = (
    ("GET", "overview", lists.overview),
    ("GET", "history", lists.history),
    ("GET", "queues", lists.queues),
    ("GET", "connections", lists.connections),
    ("GET", "bindings", lists.bindings),
    ("GET", "topology", lists.topology),
    ("POST", "queue", operations.queue),
    ("POST", "browse", operations.browse),
    ("POST", "publish", operations.publish),
    ("POST", "purge", operations.purge),
    ("POST", "delete", operations.delete),
    ("POST", "move", operations.move),
    ("POST", "redrive", operations.redrive),
    ("POST", "route", operations.route),
    ("POST", "connection", operations.connection),
    ("POST", "close-connection", operations.close_connection),
    ("POST", "close-link", operations.close_link),
    ("POST", "watch-frames", frames.begin),
    ("POST", "frames", frames.frames),
    ("POST", "end-watch", frames.end),
)
"""The method, the path below ``/api/amqp10/``, and the function of each operation."""


def routes(most: int, history: History) -> list[Route]:
    """Return the routes of the page: its files, and its requests.

    Args:
        most: octets of a body at most.
        history: the history of the container.
    """
    return [
        *files.routes(),
        *(
            Route(f"/api/amqp10/{path}", partial(_answer, operation, most, history), methods=[method])
            for method, path, operation in OPERATIONS
        ),
    ]


async def _answer(operation: Operation, most: int, history: History, request: Request) -> Response:
    """Do the operation of a request. Cancelled: as the operation."""
    call = Call(request, most)
    try:
        await call.begin()
        return await operation(call, history)
    except ManagementError as fault:
        if fault.reason == "forbidden":
            raise RequestError(403, "forbidden", fault.description) from fault
        raise from_management(fault) from fault
