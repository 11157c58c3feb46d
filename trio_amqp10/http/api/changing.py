"""Declare, delete, bind, purge, close: what a PUT, a POST or a DELETE changes.

Knows calls; the management does the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from starlette.responses import Response

from trio_amqp10.broker.exchanges.argument_equality import to_json

from .bodies import bad, check_text, field
from .call import Call, optional
from .reading import find_binding, number_of
from .shapes import properties_key

if TYPE_CHECKING:
    from collections.abc import Mapping

_CREATED: Final = 201
_DONE: Final = 204
_LONGEST_KEY: Final = 255


def _arguments(body: Mapping[str, Any]) -> dict[str, Any]:
    found = cast("dict[str, Any]", field(body, "arguments", dict, {}))
    for name in found:
        if len(name.encode()) > _LONGEST_KEY:
            raise bad(f"arguments: the name {name[:64]!r} has more than {_LONGEST_KEY} octets")
    return found


async def declare_queue(call: Call) -> Response:
    """Declare a queue: 201 if it is new, 204 if an equal one exists."""
    body = await call.body()
    name = call.name("name")
    arguments = _arguments(body)
    durable, auto_delete = field(body, "durable", bool, False), field(body, "auto_delete", bool, False)
    there = await optional(call.management.queue(call.management.queue_address(name)))
    await call.management.declare_queue(name, arguments, durable=durable, auto_delete=auto_delete)
    return Response(status_code=_CREATED if there is None else _DONE)


async def delete_queue(call: Call) -> Response:
    """Delete a queue."""
    await call.management.delete(
        call.management.queue_address(call.name("name")),
        kind="queue",
        if_empty=call.flag("if-empty"),
        if_unused=call.flag("if-unused"),
    )
    return Response(status_code=_DONE)


async def purge(call: Call) -> Response:
    """Delete the ready messages of a queue."""
    await call.management.purge(call.management.queue_address(call.name("name")))
    return Response(status_code=_DONE)


async def declare_exchange(call: Call) -> Response:
    """Declare an exchange: 201 if it is new, 204 if an equal one exists."""
    body = await call.body()
    name = call.exchange("name")
    properties: dict[str, Any] = {
        "durable": field(body, "durable", bool, False),
        "auto_delete": field(body, "auto_delete", bool, False),
        "internal": field(body, "internal", bool, False),
    }
    kind, arguments = field(body, "type", str, "direct"), _arguments(body)
    there = await optional(call.management.exchange(name))
    await call.management.declare_exchange(name, kind, arguments, **properties)
    return Response(status_code=_CREATED if there is None else _DONE)


async def delete_exchange(call: Call) -> Response:
    """Delete an exchange."""
    await call.management.delete_exchange(call.exchange("name"), if_unused=call.flag("if-unused"))
    return Response(status_code=_DONE)


async def bind(call: Call) -> Response:
    """Bind a queue or an exchange: 201, with the place of the binding."""
    body = await call.body()
    key, arguments = field(body, "routing_key", str, ""), _arguments(body)
    if len(key.encode()) > _LONGEST_KEY:
        raise bad(f"routing_key: {len(key.encode())} octets: expected at most {_LONGEST_KEY}")
    kind, name = call.destination()
    await call.management.bind(call.exchange("source"), name, key, arguments, destination_kind=kind)
    last = call.request.url.path.rpartition("/")[2]
    return Response(status_code=_CREATED, headers={"Location": f"{last}/{properties_key(key, arguments)}"})


async def unbind(call: Call) -> Response:
    """Remove the binding that the path names."""
    found = await find_binding(call)
    kind, name = call.destination()
    exact = [
        each
        async for each in call.management.bindings()
        if (each.source, each.destination_kind, each.destination, each.key)
        == (found["source"], kind, name, found["routing_key"])
    ]
    for each in exact:
        if properties_key(each.key, to_json(each.arguments)) == found["properties_key"]:
            await call.management.unbind(each.source, name, each.key, each.arguments, destination_kind=kind)
            return Response(status_code=_DONE)
    # The binding to the default exchange stays: the management refuses to remove it, with its own words.
    await call.management.unbind(found["source"], name, found["routing_key"], destination_kind=kind)
    return Response(status_code=_DONE)


async def close_connection(call: Call) -> Response:
    """Close a connection; the header ``X-Reason`` is what its peer gets to read."""
    reason = call.request.headers.get("x-reason", "Closed via management plugin")[:255]
    check_text(reason)
    await call.management.close_connection(number_of(call), reason)
    return Response(status_code=_DONE)
