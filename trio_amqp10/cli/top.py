"""``amqp10 top``: nodes, connections and links of a container, refreshed.

Of a peer without it there is to be had what its ``open`` says, and what our own connection counts: that is
shown in its stead, and said. Knows what management answers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import trio

import trio_amqp10 as amqp
from trio_amqp10.json_values import to_json
from trio_amqp10.wire.values import Int

from .command_runner import CommandError, Interrupts, say
from .dial_management import dial_management
from .dial_options import DialOptions
from .screen import Screen, number, table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["Sample", "TopOptions", "top"]

_PAGE: Final = 500
"""Entities for each request: a reply is a message, and has bounds."""
_PATIENCE: Final = 10.0
"""Seconds that an answer may take."""

_Entity = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class TopOptions:
    """What the command line said."""

    url: str
    interval: float = 1.0
    once: bool = False
    json: bool = False
    dial: DialOptions = field(default_factory=DialOptions)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What there was to see at one time.

    Attributes:
        time: when, in seconds of some clock.
        peer: what the peer says of itself.
        managed: whether the lists come from its management; else they are empty.
        ours: what our connection has counted.
    """

    time: float
    peer: _Entity
    managed: bool
    ours: _Entity
    nodes: tuple[_Entity, ...] = ()
    connections: tuple[_Entity, ...] = ()
    links: tuple[_Entity, ...] = ()
    containers: tuple[_Entity, ...] = ()

    def as_json(self, before: Sample | None) -> bytes:
        """One line; rates are in it where there was a sample before."""
        shown: _Entity = {"management": self.managed, "peer": self.peer}
        if self.managed:
            for kind in ("nodes", "connections", "links"):
                rates = self.rates(kind, before)
                shown[kind] = [
                    each | ({"rate": rates[each["identity"]]} if each["identity"] in rates else {})
                    for each in getattr(self, kind)
                ]
            if self.containers:
                shown["container"] = self.containers[0]
        else:
            shown["connection"] = self.ours
        return json.dumps(to_json(shown)).encode() + b"\n"

    def rates(self, kind: str, before: Sample | None) -> dict[str, float]:
        """Messages a second since then, by identity; of connections, octets both ways."""
        if before is None or self.time <= before.time:
            return {}
        earlier = {each["identity"]: _moved(each) for each in getattr(before, kind)}
        found: dict[str, float] = {}
        for each in getattr(self, kind):
            now, then = _moved(each), earlier.get(each["identity"])
            if now is not None and then is not None:
                found[each["identity"]] = round((now - then) / (self.time - before.time), 1)
        return found


def _moved(entity: _Entity) -> int | None:
    """What grows with the traffic: messages of a link, arrivals of a queue or topic, calls of a handler."""
    if entity["type"] == "link":
        return int(entity["messages"] or 0)
    if entity["type"] == "connection":
        return int(entity["octets-in"]) + int(entity["octets-out"])
    moved = next((entity[name] for name in ("arrived", "handled") if entity.get(name) is not None), None)
    return None if moved is None else int(moved)


async def top(options: TopOptions, interrupts: Interrupts) -> None:
    """Show samples until interrupted, or one.

    Raises:
        CommandError: the peer does not answer, or not as management does.
    """
    async with dial_management(options.url, options.dial) as connection:
        try:
            async with connection.open_requester("$management") as requester:
                await _watch(options, interrupts, connection, requester)
                return
        except amqp.LinkRefusedError as refused:
            say(
                f"amqp10: the peer has no $management for us ({refused}): here is what it says of itself; "
                "ours has it with amqp10 serve --management"
            )
        await _watch(options, interrupts, connection, None)


async def _watch(
    options: TopOptions, interrupts: Interrupts, connection: amqp.Connection, requester: amqp.Requester | None
) -> None:
    screen = Screen(options)
    with interrupts.here(), screen:
        before: Sample | None = None
        while True:
            sample = await _sample(connection, requester)
            await screen.show(partial(sample.as_json, before), partial(_drawn, sample, before))
            if options.once:
                return
            before = sample
            await trio.sleep(options.interval)


# -- asking -------------------------------------------------------------------------------------


async def _sample(connection: amqp.Connection, requester: amqp.Requester | None) -> Sample:
    remote = connection.remote
    peer = {
        "container-id": remote.container_id,
        "properties": remote.properties or {},
        "capabilities": [str(each) for each in remote.offered_capabilities],
        "max-frame-size": remote.max_frame_size,
        "channel-max": remote.channel_max,
    }
    lists: dict[str, tuple[_Entity, ...]] = {}
    if requester is not None:
        for kind in ("node", "connection", "link", "container"):
            lists[f"{kind}s"] = tuple(await _query(requester, kind))
    return Sample(
        time=trio.current_time(),
        peer=peer,
        managed=requester is not None,
        ours=dict(connection.statistics()),
        **lists,
    )


async def _query(requester: amqp.Requester, kind: str) -> list[_Entity]:
    found: list[_Entity] = []
    while True:
        asked = {
            "operation": "QUERY",
            "type": "org.amqp.management",
            "name": "self",
            "entityType": kind,
            "offset": Int(len(found)),
            "count": Int(_PAGE),
        }
        try:
            reply = await requester.request(
                amqp.Message({"attributeNames": []}, application_properties=asked), timeout=_PATIENCE
            )
        except trio.TooSlowError:
            raise CommandError(f"$management does not answer within {_PATIENCE:g} s") from None
        told, body = reply.application_properties, reply.body
        if told.get("statusCode") != 200 or not isinstance(body, dict):
            raise CommandError(
                f"$management does not list a {kind}: {told.get('statusCode')} {told.get('statusDescription')}; "
                "it is another kind of management"
            )
        table = cast("dict[str, list[Any]]", body)
        names, rows = table["attributeNames"], table["results"]
        found += [dict(zip(map(str, names), row, strict=True)) for row in rows]
        if not rows or not told.get("more", len(rows) >= _PAGE):
            return found


# -- showing ------------------------------------------------------------------------------------


_OF_PEERS: Final = (
    *("no.", "peer", "user", "protocol", "state"),
    *("senders", "receivers", "in", "out", "waiting", "octets/s"),
)


def _drawn(sample: Sample, before: Sample | None) -> RenderableType:
    from rich.console import Group

    if not sample.managed:
        rows = [*sample.peer.items(), *((f"our {name}", value) for name, value in sample.ours.items())]
        return table("peer", ("", ""), [(name, str(value)) for name, value in rows])
    node_rates = sample.rates("nodes", before)
    link_rates = sample.rates("links", before)
    octet_rates = sample.rates("connections", before)
    nodes = [
        (
            each["name"],
            each["type"],
            *(number(each.get(name)) for name in ("messages", "octets", "senders", "receivers")),
            number(node_rates.get(each["identity"])),
        )
        for each in sorted(sample.nodes, key=lambda each: -(each.get("messages") or 0))
    ]
    peers = [
        (
            each["identity"],
            each["name"],
            each["user"] or "",
            each.get("protocol") or "",
            each["state"],
            *(number(each[name]) for name in ("senders", "receivers", "octets-in", "octets-out", "waiting")),
            number(octet_rates.get(each["identity"])),
        )
        for each in sample.connections
    ]
    links = [
        (
            each["connection"],
            "from peer" if each["role"] == "receiver" else "to peer",
            each["address"] or "",
            each["state"],
            *(number(each.get(name)) for name in ("messages", "credit", "unsettled")),
            number(link_rates.get(each["identity"])),
        )
        for each in sample.links
    ]
    return Group(
        _memory(sample),
        table("nodes", ("address", "type", "messages", "octets", "senders", "receivers", "arrive/s"), nodes),
        table("connections", _OF_PEERS, peers),
        table("links", ("no.", "way", "address", "state", "messages", "credit", "unsettled", "msg/s"), links),
    )


def _memory(sample: Sample) -> RenderableType:
    rows = [
        (
            each["name"],
            number(each["held-octets"]),
            number(each["memory-limit"]) or "none",
            "no more is taken" if each["throttled"] else "",
            number(each["refused-for-memory"]),
        )
        for each in sample.containers
    ]
    return table("memory of messages", ("container", "octets", "limit", "state", "refused"), rows)
