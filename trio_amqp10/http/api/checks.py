"""The state of the container as a whole: overview, node, health, whoami.

Knows calls and shapes; changes nothing but for the test of aliveness, which sends a message of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.message import Message
from trio_amqp10.http.errors import RequestError

from . import shapes
from .call import Call, not_found
from .paging import Columns, json_response

if TYPE_CHECKING:
    from starlette.responses import Response

_ALIVE: Final = "aliveness-test"
_OK: Final = {"status": "ok"}


async def overview(call: Call) -> Response:
    """Return names, totals and listeners."""
    found = shapes.overview(await call.management.survey())
    return await json_response(found, Columns(call.request.query_params.get("columns")))


async def cluster_name(call: Call) -> Response:
    """Return the name of the container."""
    return await json_response({"name": call.shapes.node})


async def global_parameters(call: Call) -> Response:
    """Return the name of the container as the only parameter."""
    return await json_response([{"name": "cluster_name", "value": call.shapes.node}])


async def version(_call: Call) -> Response:
    """Return the version of RabbitMQ whose API this is."""
    return await json_response(shapes.VERSION)


async def auth(_call: Call) -> Response:
    """Return that users log in with a password."""
    return await json_response({"oauth_enabled": False})


async def whoami(call: Call) -> Response:
    """Return the name of the client, and what it may do here."""
    if not call.management.limited:
        tags = ["administrator"]
    elif await call.may_watch("container"):
        tags = ["monitoring"]
    else:
        tags = ["management"]
    name = "none" if call.identity is None else call.identity.name
    return await json_response({"is_internal_user": True, "name": name, "tags": tags})


async def nodes(call: Call) -> Response:
    """Return the container as the only node."""
    return await json_response([shapes.node(await call.container())])


async def node(call: Call) -> Response:
    """Return the container as a node, by its name."""
    status = await call.container()
    if call.name("name") != status.name:
        raise not_found()
    return await json_response(shapes.node(status), Columns(call.request.query_params.get("columns")))


async def memory(call: Call) -> Response:
    """Return that the memory of a node is not divided into parts here."""
    await node(call)
    return await json_response({"memory": "not_available"})


# -- health ---------------------------------------------------------------------------------


async def good(call: Call) -> Response:
    """Return that all is well: this server would not answer otherwise."""
    await call.container()
    return await json_response(_OK)


async def single_node(call: Call) -> Response:
    """Return that no other node needs this one."""
    await call.container()
    return await json_response({**_OK, "reason": "single node cluster"})


async def alarms(call: Call) -> Response:
    """Check that the memory is below its limit; 503 otherwise."""
    status = await call.container()
    if not status.throttled:
        return await json_response(_OK)
    return await _failed(
        "There are alarms in effect in the cluster",
        alarms=[{"node": status.name, "resource": "memory"}],
    )


async def port_listener(call: Call) -> Response:
    """Check that the container listens at a port; 503 otherwise."""
    port = call.name("port")
    if not (port.isascii() and port.isdecimal() and len(port) < 6):
        raise RequestError(400, "bad_request", f"port {port[:64]!r}: expected a number from 0 to 65535")
    ports = [each["port"] for each in shapes.listeners(await call.container())]
    if int(port) in ports:
        return await json_response({**_OK, "port": int(port)})
    return await _failed("No active listener", missing=int(port), ports=ports)


async def protocol_listener(call: Call) -> Response:
    """Check that the container listens for a protocol; 503 otherwise."""
    asked = call.name("protocol")
    protocol = {"amqp091": "amqp", "amqp0.9.1": "amqp", "amqp10": "amqp", "amqps": "amqp/ssl"}.get(
        asked, asked
    )
    found = [each["protocol"] for each in shapes.listeners(await call.container())]
    if protocol in found:
        return await json_response({**_OK, "protocol": protocol})
    return await _failed("No active listener", missing=protocol, protocols=found)


async def _failed(reason: str, **more: Any) -> Response:
    return await json_response({"status": "failed", "reason": reason, **more}, status=503)


async def aliveness(call: Call) -> Response:
    """Declare a queue, send a message to it, and take it again.

    Cancelled: the message may still be there.
    """
    model = call.management
    status = await model.declare_queue(_ALIVE, durable=False)
    await model.publish(status.address, Message(b"test_message"))
    if not await model.get(status.address, 1):
        return await _failed("the message did not come back")
    return await json_response(_OK)
