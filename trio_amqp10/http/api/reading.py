"""Lists and single things: all that a GET returns without doing anything.

Knows calls and shapes; changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from .call import Call, not_found
from .paging import Columns, Query, json_response, list_response
from .shapes import FIELDS_OF_QUEUES, default_binding, number_of_connection
from .shapes import binding as binding_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.responses import Response

    from trio_amqp10.container.management import Listing, QueueStatus

T = TypeVar("T")

_NO_FIELDS: Final[Mapping[str, str]] = {}


async def _listed(
    call: Call,
    listing: Listing[T],
    to_json: Callable[[T], Mapping[str, Any]],
    fields: Mapping[str, str] = _NO_FIELDS,
) -> Response:
    """Return a list; ``fields`` has the field of the description that a column is."""

    def reader(column: str) -> Callable[[Any], Any] | None:
        field = fields.get(column)
        return None if field is None else listing.reader(field)

    query = Query.of(call.request.query_params)
    return await list_response(
        query, await listing.collect(), lambda thing: to_json(listing.describe(thing)), reader
    )


async def _made(call: Call, entries: list[dict[str, Any]]) -> Response:
    """Return a list that is made already, as the query asks for it."""
    return await list_response(Query.of(call.request.query_params), entries, lambda entry: entry)


async def _one(call: Call, found: Mapping[str, Any]) -> Response:
    return await json_response(found, Columns(call.request.query_params.get("columns")))


async def nothing(call: Call) -> Response:
    """Return an empty list: there are no such things here, e.g. policies."""
    return await _made(call, [])


# -- queues, exchanges, bindings ------------------------------------------------------------


async def queues(call: Call) -> Response:
    """Return all queues."""
    return await _listed(call, call.management.queues(), call.shapes.queue, FIELDS_OF_QUEUES)


async def queues_in_detail(call: Call) -> Response:
    """Return all queues with the fields of a single one, but for their consumers."""
    return await _listed(
        call, call.management.queues(), lambda status: call.shapes.one_queue(status, []), FIELDS_OF_QUEUES
    )


async def queue(call: Call) -> Response:
    """Return one queue, with its consumers as far as the client may see them."""
    status = await call.management.queue(call.management.queue_address(call.name("name")))
    found: list[dict[str, Any]] = []
    if status.consumers and await call.may_watch("link"):
        hosts = await _hosts(call)
        found = [
            call.shapes.consumer(each, status.name, hosts.get(each.connection))
            async for each in call.management.links(role="sender")
            if each.address == status.address
        ]
    return await _one(call, call.shapes.one_queue(status, found))


async def exchanges(call: Call) -> Response:
    """Return all exchanges."""
    return await _listed(call, call.management.exchanges(), call.shapes.exchange)


async def exchange(call: Call) -> Response:
    """Return one exchange."""
    return await _one(call, call.shapes.one_exchange(await call.management.exchange(call.exchange("name"))))


async def bindings(call: Call) -> Response:
    """Return all bindings, those to the default exchange included."""
    return await _made(call, await _default(call) + await _bound(call))


async def _default(call: Call) -> list[dict[str, Any]]:
    """Return the binding of each declared queue to the default exchange."""
    queues = call.management.queues()
    name, declared = queues.reader("name"), queues.reader("declared")
    return [default_binding(name(thing), call.vhost) async for thing in queues.things() if declared(thing)]


async def _bound(call: Call) -> list[dict[str, Any]]:
    """Return the bindings to all other exchanges."""
    return [binding_shape(each, call.vhost) async for each in call.management.bindings()]


def _default_of(status: QueueStatus, call: Call) -> list[dict[str, Any]]:
    return [default_binding(status.name, call.vhost)] if status.declared else []


async def bindings_from(call: Call) -> Response:
    """Return the bindings that an exchange is the source of."""
    source = (await call.management.exchange(call.exchange("name"))).name
    found = await _bound(call) if source else await _default(call)
    return await _made(call, [each for each in found if each["source"] == source])


async def bindings_to(call: Call) -> Response:
    """Return the bindings that lead to an exchange."""
    name = (await call.management.exchange(call.exchange("name"))).name
    return await _made(call, [each for each in await _bound(call) if _leads_to(each, "exchange", name)])


async def bindings_of_queue(call: Call) -> Response:
    """Return the bindings that lead to a queue."""
    status = await call.management.queue(call.management.queue_address(call.name("name")))
    bound = [each for each in await _bound(call) if _leads_to(each, "queue", status.name)]
    return await _made(call, _default_of(status, call) + bound)


def _leads_to(found: dict[str, Any], kind: str, name: str) -> bool:
    return (found["destination_type"], found["destination"]) == (kind, name)


async def bindings_between(call: Call) -> Response:
    """Return the bindings between two ends."""
    return await _made(call, await _between(call))


async def binding(call: Call) -> Response:
    """Return one binding."""
    return await _one(call, await find_binding(call))


async def find_binding(call: Call) -> dict[str, Any]:
    """Return the binding that the path names.

    Raises:
        RequestError: 404, there is none.

    Cancelled: nothing has changed.
    """
    wanted = call.request.path_params["properties"], call.name("properties")
    for each in await _between(call):
        if each["properties_key"] in wanted:
            return each
    raise not_found()


async def _between(call: Call) -> list[dict[str, Any]]:
    source = (await call.management.exchange(call.exchange("source"))).name
    kind, name = call.destination()
    found = list[dict[str, Any]]()
    if kind == "exchange":
        await call.management.exchange(name)
    else:
        found = _default_of(await call.management.queue(call.management.queue_address(name)), call)
    if source:
        found = await _bound(call)
    return [each for each in found if each["source"] == source and _leads_to(each, kind, name)]


# -- connections ----------------------------------------------------------------------------


async def connections(call: Call) -> Response:
    """Return all connections."""
    return await _listed(call, call.management.connections(), call.shapes.connection)


async def connections_of_user(call: Call) -> Response:
    """Return the connections of one user, in short."""
    user = call.name("user")
    return await _made(
        call,
        [
            {name: shown[name] for name in ("name", "node", "user", "vhost")}
            async for each in call.management.connections()
            if (shown := call.shapes.connection(each))["user"] == user
        ],
    )


async def connection(call: Call) -> Response:
    """Return one connection."""
    status = await call.management.connection(number_of(call))
    return await _one(call, call.shapes.connection(status))


def number_of(call: Call) -> int:
    """Return the number of the connection that the path names.

    Raises:
        RequestError: 404, it is no name of a connection.
    """
    number = number_of_connection(call.name("connection"))
    if number is None:
        raise not_found()
    return number


async def _hosts(call: Call) -> dict[int, str | None]:
    """Return the host of each connection, as far as the client may see connections."""
    if not await call.may_watch("connection"):
        return {}
    connections = call.management.connections()
    number, host = connections.reader("number"), connections.reader("host")
    return {number(thing): host(thing) async for thing in connections.things()}


async def channels(call: Call) -> Response:
    """Return all channels and sessions."""
    hosts = await _hosts(call)
    return await _listed(
        call,
        call.management.channels(),
        lambda status: call.shapes.channel(status, hosts.get(status.connection)),
    )


async def channels_of_connection(call: Call) -> Response:
    """Return the channels of one connection."""
    status = await call.management.connection(number_of(call))
    return await _made(
        call,
        [
            call.shapes.channel(each, status.host)
            async for each in call.management.channels()
            if each.connection == status.number
        ],
    )


async def channel(call: Call) -> Response:
    """Return one channel."""
    wanted = call.name("channel")
    hosts = await _hosts(call)
    async for each in call.management.channels():
        shown = call.shapes.channel(each, hosts.get(each.connection))
        if shown["name"] == wanted:
            return await _one(call, {**shown, "consumer_details": []})
    raise not_found()


async def consumers(call: Call) -> Response:
    """Return all consumers of queues."""
    hosts = await _hosts(call)
    queues = call.management.queues()
    address, name = queues.reader("address"), queues.reader("name")
    names = {address(thing): name(thing) async for thing in queues.things()}
    return await _made(
        call,
        [
            call.shapes.consumer(each, names[each.address], hosts.get(each.connection))
            async for each in call.management.links(role="sender")
            if each.address in names
        ],
    )


# -- virtual hosts, users, permissions ------------------------------------------------------


async def virtual_hosts(call: Call) -> Response:
    """Return the names by which peers ask for the container."""
    names = [each.name async for each in call.management.virtual_hosts()]
    survey = await call.survey()
    return await _made(call, [call.shapes_of(name).virtual_host(survey) for name in names])


async def virtual_host(call: Call) -> Response:
    """Return one of these names."""
    async for each in call.management.virtual_hosts():
        if each.name == call.vhost:
            return await _one(call, call.shapes.virtual_host(await call.survey()))
    raise not_found()


async def users(call: Call) -> Response:
    """Return the users that are connected or known."""
    tags = call.tags_of_all()
    return await _listed(call, call.management.users(), lambda status: call.shapes.user(status.name, tags))


async def user(call: Call) -> Response:
    """Return one user."""
    return await _one(call, call.shapes.user(await _known_user(call), call.tags_of_all()))


async def _known_user(call: Call) -> str:
    async for each in call.management.users():
        if each.name == call.name("user"):
            return each.name
    raise not_found()


async def permissions(call: Call) -> Response:
    """Return the permissions of all users, or of the one that the path names.

    A container without ``authorise`` permits everything. Otherwise the list is empty: patterns cannot express the rules of a
    program.
    """
    wanted = await _known_user(call) if "user" in call.request.path_params else None
    names = [each.name async for each in call.management.users() if wanted in (None, each.name)]
    found = [] if call.management.limited else [call.shapes.permission(name) for name in names]
    return await _made(call, found)


async def permission(call: Call) -> Response:
    """Return the permissions of one user; see ``permissions``."""
    name = await _known_user(call)
    if call.management.limited:
        raise not_found()
    return await _one(call, call.shapes.permission(name))
