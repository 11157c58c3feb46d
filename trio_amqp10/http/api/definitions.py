"""Definitions, in the form of RabbitMQ.

Knows calls; the management makes the definitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from trio_amqp10.broker.exchanges.argument_equality import to_json
from trio_amqp10.core.version import __version__

from .paging import json_response
from .shapes import PRODUCT, VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .call import Call

_BUILT_IN: Final = "amq."


async def exported(call: Call) -> Response:
    """Return the queues, exchanges and bindings that the client may see.

    Those of one virtual host do not name it.
    """
    model, whole = call.management, "vhost" not in call.request.path_params
    place: dict[str, Any] = {"vhost": call.vhost} if whole else {}
    queues = [each async for each in model.queues() if not each.exclusive and each.declared]
    names = {each.name for each in queues}
    found = _head(call, whole)
    found["queues"] = [
        {
            "arguments": to_json(each.arguments),
            "auto_delete": each.auto_delete,
            "durable": each.durable,
            "name": each.name,
            **place,
        }
        for each in queues
    ]
    found["exchanges"] = [
        {
            "arguments": to_json(each.arguments),
            "auto_delete": each.auto_delete,
            "durable": each.durable,
            "internal": each.internal,
            "name": each.name,
            "type": each.type,
            **place,
        }
        async for each in model.exchanges()
        if each.name and not each.name.startswith(_BUILT_IN)
    ]
    found["bindings"] = [
        {
            "arguments": to_json(each.arguments),
            "destination": each.destination,
            "destination_type": each.destination_kind,
            "routing_key": each.key,
            "source": each.source,
            **place,
        }
        async for each in model.bindings()
        if each.destination_kind == "exchange" or each.destination in names
    ]
    return await json_response(found)


def _head(call: Call, whole: bool) -> dict[str, Any]:
    """Return all but the queues, exchanges and bindings."""
    found: dict[str, Any] = {
        "rabbit_version": VERSION,
        "rabbitmq_version": VERSION,
        "product_name": PRODUCT,
        "product_version": __version__,
        "rabbitmq_definition_format": "cluster" if whole else "single_virtual_host",
        "parameters": [],
        "policies": [],
    }
    host = _host(call)
    if not whole:
        return found | {
            "original_vhost_name": call.vhost,
            "explanation": f"Definitions of virtual host '{call.vhost}'",
            "default_queue_type": "classic",
            "metadata": host["metadata"],
        }
    return found | {
        "original_cluster_name": call.shapes.node,
        "explanation": f"Definitions of cluster '{call.shapes.node}'",
        "global_parameters": [],
        "permissions": [],
        "topic_permissions": [],
        "users": [],
        "vhosts": [host],
    }


def _host(call: Call) -> dict[str, Any]:
    host = call.shapes.virtual_host()
    return {name: host[name] for name in ("name", "description", "metadata", "tags", "default_queue_type")}


async def imported(call: Call) -> Response:
    """Make the queues, exchanges and bindings of definitions.

    204 if all of them are there afterwards. What could not be made is named in an answer of status 200, with the reason; the others
    are made.

    Cancelled: some may be made; import them again.
    """
    body = await call.body()
    whole = "vhost" not in call.request.path_params
    result = await call.management.import_definitions(
        _as_rabbitmq(body), virtual_host=None if whole else call.vhost
    )
    if not result.left_out:
        return Response(status_code=204)
    return await json_response(
        {
            "made": dict(result.made),
            "left_out": [
                {"kind": each.kind, "name": each.name, "reason": each.reason} for each in result.left_out
            ],
        }
    )


def _as_rabbitmq(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return definitions of RabbitMQ, which need no version in a request."""
    return dict(body) if PRODUCT in body else {"rabbitmq_version": VERSION, **body}
