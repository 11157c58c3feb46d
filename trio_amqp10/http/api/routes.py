"""The routes of the API: one line for each operation.

Knows paths and functions; does no work.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.routing import Route

from trio_amqp10.container.management.errors import ManagementError
from trio_amqp10.http.errors import from_management

from . import changing, checks, definitions, messages, reading
from .call import Call, not_found

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    Operation = Callable[[Call], Awaitable[Response]]

_QUEUE: Final = "queues/{vhost}/{name}"
_EXCHANGE: Final = "exchanges/{vhost}/{name}"
_BOUND: Final = "bindings/{vhost}/e/{source}/{kind}/{destination}"

OPERATIONS: Final[tuple[tuple[str, str, Operation], ...]] = (
    ("GET", "overview", checks.overview),
    ("GET", "cluster-name", checks.cluster_name),
    ("GET", "whoami", checks.whoami),
    ("GET", "auth", checks.auth),
    ("GET", "version", checks.version),
    ("GET", "nodes", checks.nodes),
    ("GET", "nodes/{name}", checks.node),
    ("GET", "nodes/{name}/memory", checks.memory),
    ("GET", "aliveness-test/{vhost}", checks.aliveness),
    ("GET", "health/checks/alarms", checks.alarms),
    ("GET", "health/checks/local-alarms", checks.alarms),
    ("GET", "health/checks/virtual-hosts", checks.good),
    ("GET", "health/checks/node-is-quorum-critical", checks.single_node),
    ("GET", "health/checks/port-listener/{port}", checks.port_listener),
    ("GET", "health/checks/protocol-listener/{protocol}", checks.protocol_listener),
    ("GET", "vhosts", reading.virtual_hosts),
    ("GET", "vhosts/{vhost}", reading.virtual_host),
    ("GET", "vhosts/{vhost}/permissions", reading.permissions),
    ("GET", "vhosts/{vhost}/connections", reading.connections),
    ("GET", "vhosts/{vhost}/channels", reading.channels),
    ("GET", "vhosts/{vhost}/topic-permissions", reading.nothing),
    ("GET", "users", reading.users),
    ("GET", "users/{user}", reading.user),
    ("GET", "users/{user}/permissions", reading.permissions),
    ("GET", "users/{user}/topic-permissions", reading.nothing),
    ("GET", "permissions", reading.permissions),
    ("GET", "permissions/{vhost}/{user}", reading.permission),
    ("GET", "topic-permissions", reading.nothing),
    ("GET", "connections", reading.connections),
    ("GET", "connections/username/{user}", reading.connections_of_user),
    ("GET", "connections/{connection}", reading.connection),
    ("DELETE", "connections/{connection}", changing.close_connection),
    ("GET", "connections/{connection}/channels", reading.channels_of_connection),
    ("GET", "channels", reading.channels),
    ("GET", "channels/{channel}", reading.channel),
    ("GET", "consumers", reading.consumers),
    ("GET", "consumers/{vhost}", reading.consumers),
    ("GET", "exchanges", reading.exchanges),
    ("GET", "exchanges/{vhost}", reading.exchanges),
    ("GET", _EXCHANGE, reading.exchange),
    ("PUT", _EXCHANGE, changing.declare_exchange),
    ("DELETE", _EXCHANGE, changing.delete_exchange),
    ("GET", f"{_EXCHANGE}/bindings/source", reading.bindings_from),
    ("GET", f"{_EXCHANGE}/bindings/destination", reading.bindings_to),
    ("POST", f"{_EXCHANGE}/publish", messages.publish),
    ("GET", "queues", reading.queues),
    ("GET", "queues/detailed", reading.queues_in_detail),
    ("GET", "queues/{vhost}", reading.queues),
    ("GET", _QUEUE, reading.queue),
    ("PUT", _QUEUE, changing.declare_queue),
    ("DELETE", _QUEUE, changing.delete_queue),
    ("GET", f"{_QUEUE}/bindings", reading.bindings_of_queue),
    ("DELETE", f"{_QUEUE}/contents", changing.purge),
    ("POST", f"{_QUEUE}/get", messages.get),
    ("GET", "bindings", reading.bindings),
    ("GET", "bindings/{vhost}", reading.bindings),
    ("GET", _BOUND, reading.bindings_between),
    ("POST", _BOUND, changing.bind),
    ("GET", f"{_BOUND}/{{properties}}", reading.binding),
    ("DELETE", f"{_BOUND}/{{properties}}", changing.unbind),
    ("GET", "policies", reading.nothing),
    ("GET", "policies/{vhost}", reading.nothing),
    ("GET", "operator-policies", reading.nothing),
    ("GET", "operator-policies/{vhost}", reading.nothing),
    ("GET", "parameters", reading.nothing),
    ("GET", "global-parameters", checks.global_parameters),
    ("GET", "vhost-limits", reading.nothing),
    ("GET", "user-limits", reading.nothing),
    ("GET", "feature-flags", reading.nothing),
    ("GET", "deprecated-features", reading.nothing),
    ("GET", "extensions", reading.nothing),
    ("GET", "definitions", definitions.exported),
    ("POST", "definitions", definitions.imported),
    ("GET", "definitions/{vhost}", definitions.exported),
    ("POST", "definitions/{vhost}", definitions.imported),
)
"""The method, the path below ``/api/``, and the function of each operation."""


def routes(most: int) -> list[Route]:
    """Return the routes.

    Args:
        most: octets of a body at most.
    """
    paths: dict[str, dict[str, Operation]] = {}
    for method, path, operation in OPERATIONS:
        paths.setdefault(path, {})[method] = operation
    return [
        Route(f"/api/{path}", partial(_answer, operations, most), methods=list(operations))
        for path, operations in paths.items()
    ]


async def _answer(operations: Mapping[str, Operation], most: int, request: Request) -> Response:
    """Do the operation of a request. Cancelled: as the operation."""
    call = Call(request, most)
    method = "GET" if request.method == "HEAD" else request.method
    try:
        await call.begin()
        return await operations[method](call)
    except ManagementError as fault:
        if fault.reason == "not-found" and method != "POST":
            raise not_found() from fault
        raise from_management(fault) from fault
