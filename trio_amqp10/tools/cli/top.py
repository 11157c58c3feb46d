"""``amqp10 top``: show the nodes, connections and links of a container, refreshed.

If the peer has no ``$management`` node, show what its ``open`` frame contains and what our connection counts, and report
the missing node on stderr. Knows the replies of management.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

import trio_amqp10 as amqp
from trio_amqp10.amqp10.wire.json_values import to_json

from .command_runner import Interrupts, say
from .dial_management import dial_management
from .dial_options import DialOptions
from .open_management import PATIENCE, RABBITMQ, list_entities, operation_errors
from .screen import Screen, number, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from trio_amqp10.container.management.remote_management import RemoteManagement

    from .open_management import Entity


@dataclass(frozen=True, kw_only=True)
class TopOptions:
    """The options of ``amqp10 top``."""

    url: str
    interval: float = 1.0
    once: bool = False
    json: bool = False
    dial: DialOptions = field(default_factory=DialOptions)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The figures of a container at one time.

    Attributes:
        time: seconds of trio's clock.
        peer: the contents of the peer's ``open`` frame.
        managed: whether the lists come from the peer's management; otherwise they are empty.
        ours: the counters of our connection.
    """

    time: float
    peer: Entity
    managed: bool
    ours: Entity
    nodes: tuple[Entity, ...] = ()
    connections: tuple[Entity, ...] = ()
    links: tuple[Entity, ...] = ()
    containers: tuple[Entity, ...] = ()

    def as_json(self, before: Sample | None) -> bytes:
        """Return one line of JSON, with rates if there is an earlier sample."""
        shown: Entity = {"management": self.managed, "peer": self.peer}
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
        """Return the messages (for connections: octets) a second, by identity."""
        if before is None or self.time <= before.time:
            return {}
        earlier = {each["identity"]: _moved(each) for each in getattr(before, kind)}
        found: dict[str, float] = {}
        for each in getattr(self, kind):
            now, then = _moved(each), earlier.get(each["identity"])
            if now is not None and then is not None:
                found[each["identity"]] = round((now - then) / (self.time - before.time), 1)
        return found


def _moved(entity: Entity) -> int | None:
    """Return the total traffic of an entity: messages, arrivals, calls or octets."""
    if entity["type"] == "link":
        return int(entity["messages"] or 0)
    if entity["type"] == "connection":
        return int(entity["octets-in"]) + int(entity["octets-out"])
    moved = next((entity[name] for name in ("arrived", "handled") if entity.get(name) is not None), None)
    return None if moved is None else int(moved)


async def top(options: TopOptions, interrupts: Interrupts) -> None:
    """Show one sample, or samples until interrupted.

    Raises:
        CommandError: the peer does not answer, or its management is of another kind.
    """
    async with dial_management(options.url, options.dial) as connection:
        try:
            with operation_errors():
                async with connection.open_management(timeout=PATIENCE) as management:
                    await _watch(options, interrupts, connection, management)
                    return
        except amqp.LinkRefusedError as refused:
            if connection.remote.properties.get("product") == RABBITMQ:
                say(
                    "amqp10: the peer is RabbitMQ, so its open frame is shown instead; use rabbitmqadmin or rabbitmqctl to see its queues"
                )
            else:
                say(
                    f"amqp10: the peer refuses $management ({refused}), so its open frame is shown instead; "
                    'start a container with "amqp10 serve --management" to see its nodes and connections'
                )
        await _watch(options, interrupts, connection, None)


async def _watch(
    options: TopOptions,
    interrupts: Interrupts,
    connection: amqp.Connection,
    management: RemoteManagement | None,
) -> None:
    screen = Screen(once=options.once, json=options.json)
    with interrupts.here(), screen:
        before: Sample | None = None
        while True:
            sample = await _sample(connection, management)
            await screen.show(partial(sample.as_json, before), partial(_drawn, sample, before))
            if options.once:
                return
            before = sample
            await trio.sleep(options.interval)


# -- asking -------------------------------------------------------------------------------------


async def _sample(connection: amqp.Connection, management: RemoteManagement | None) -> Sample:
    remote = connection.remote
    peer = {
        "container-id": remote.container_id,
        "properties": remote.properties or {},
        "capabilities": [str(each) for each in remote.offered_capabilities],
        "max-frame-size": remote.max_frame_size,
        "channel-max": remote.channel_max,
    }
    lists: dict[str, tuple[Entity, ...]] = {}
    if management is not None:
        for kind in ("node", "connection", "link", "container"):
            lists[f"{kind}s"] = tuple(await list_entities(management, kind))
    return Sample(
        time=trio.current_time(),
        peer=peer,
        managed=management is not None,
        ours=dict(connection.statistics()),
        **lists,
    )


# -- showing ------------------------------------------------------------------------------------


_OF_PEERS: Final = (
    *("no.", "peer", "user", "protocol", "state"),
    *("senders", "receivers", "in", "out", "waiting", "octets/s"),
)


def _drawn(sample: Sample, before: Sample | None) -> RenderableType:
    from rich.console import Group

    if not sample.managed:
        rows = [*sample.peer.items(), *((f"our {name}", value) for name, value in sample.ours.items())]
        return table("peer", ("", ""), [(name, _text(value)) for name, value in rows])
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


def _text(value: Any) -> str:
    """Return a value as a text or as JSON, or an empty text for None."""
    if value is None:
        return ""
    return str(value) if isinstance(value, str) else json.dumps(to_json(value))


def _memory(sample: Sample) -> RenderableType:
    rows = [
        (
            each["name"],
            number(each["held-octets"]),
            number(each["memory-limit"]) or "none",
            "senders must wait" if each["throttled"] else "",
            number(each["refused-for-memory"]),
        )
        for each in sample.containers
    ]
    return table("memory of messages", ("container", "octets", "limit", "state", "refused"), rows)
