"""The overview, the history and the lists: all that the page reads by a GET.

Knows calls and shapes; the management does the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.container.management.errors import ManagementError
from trio_amqp10.http.api.bodies import bad
from trio_amqp10.http.api.paging import Query, json_response, list_response

from . import shapes
from .history import MOST_QUEUES, SPANS

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response

    from trio_amqp10.container.management import Survey
    from trio_amqp10.http.api.call import Call

    from .history import History

_MOST_GROWING: Final = 8
_MOST_NODES: Final = 200
"""The most nodes in the picture; more are shown in tables."""
_MOST_BINDINGS: Final = 1000


async def overview(call: Call, history: History) -> Response:
    """Return the figures of the container, what grows, and what is blocked."""
    found = await call.management.survey()
    growing: list[dict[str, Any]] = []
    for address in history.growing(_MOST_GROWING):
        try:
            seen = await call.management.queue(address)
        except ManagementError:  # It may not be seen, or is deleted.
            continue
        growing.append({**_with_depths(shapes.queue(seen), history), "growth": history.growth(address)})
    full = [address for address in history.full if await _may_see(call, address)]
    return await json_response(
        {
            "container": {**shapes.status(found.container, "totals"), "store": _store(found)},
            "messages": shapes.status(found.messages),
            "queues": shapes.status(found.rest),
            "topics": found.topics,
            "subscriptions": found.subscriptions,
            "backlog": found.backlog,
            "exchanges": found.exchanges,
            "protocols": {name: shapes.status(each) for name, each in found.protocols.items()},
            "entered": found.entered,
            "growing": growing,
            "full": full,
            "sampled": {"step": history.step, "queues": history.queues, "most_queues": MOST_QUEUES},
        }
    )


def _store(found: Survey) -> dict[str, Any] | None:
    store = found.container.store
    return None if store is None else shapes.status(store)


async def _may_see(call: Call, address: str) -> bool:
    try:
        await call.management.queue(address)
    except ManagementError:
        return False
    return True


async def history(call: Call, history: History) -> Response:
    """Return the samples of the container over a span."""
    await call.container()
    text = call.request.query_params.get("span", "60")
    if text not in map(str, SPANS):
        raise bad(f"span={text[:16]!r}: expected one of {', '.join(map(str, SPANS))} seconds")
    return await json_response(history.series(int(text)))


def _with_depths(shown: dict[str, Any], history: History) -> dict[str, Any]:
    return {**shown, "depths": history.depths(shown["address"])}


async def queues(call: Call, history: History) -> Response:
    """Return all queues, with their kept depths."""
    listing = call.management.queues()

    def reader(column: str) -> Callable[[Any], Any] | None:
        if column not in shapes.FIELDS_OF_QUEUES:
            return None
        read = listing.reader(column)
        return lambda thing: shapes.plain(read(thing))

    return await list_response(
        Query.of(call.request.query_params),
        await listing.collect(),
        lambda thing: _with_depths(shapes.queue(listing.describe(thing)), history),
        reader,
    )


async def connections(call: Call, _history: History) -> Response:
    """Return all connections, by the names of their peers."""
    query, listing = Query.of(call.request.query_params), call.management.connections()

    def shown(thing: Any) -> dict[str, Any]:
        found = shapes.status(listing.describe(thing))
        return {
            **found,
            "name": " ".join(filter(None, [found["container_id"], found["user"], found["host"]])),
        }

    return await list_response(query, await listing.collect(), shown)


async def bindings(call: Call, _history: History) -> Response:
    """Return all bindings, by the names of both ends and their key."""
    query, listing = Query.of(call.request.query_params), call.management.bindings()

    def shown(thing: Any) -> dict[str, Any]:
        found = shapes.status(listing.describe(thing))
        return {**found, "name": f"{found['source']} {found['destination']} {found['key']}"}

    return await list_response(query, await listing.collect(), shown)


async def topology(call: Call, _history: History) -> Response:
    """Return exchanges, topics and what is bound, as much as a picture can show."""
    model = call.management
    exchanges = await model.exchanges().page(count=_MOST_NODES)
    topics = await model.topics().page(count=_MOST_NODES)
    bound = await model.bindings().page(count=_MOST_BINDINGS)
    subscribed = await model.subscriptions().page(count=_MOST_NODES)
    return await json_response(
        {
            "exchanges": [shapes.status(each) for each in exchanges.items],
            "topics": [shapes.status(each) for each in topics.items],
            "bindings": [shapes.status(each) for each in bound.items],
            "subscriptions": [shapes.status(each) for each in subscribed.items],
            "most_nodes": _MOST_NODES,
            "more": exchanges.more or topics.more or bound.more or subscribed.more,
        }
    )
