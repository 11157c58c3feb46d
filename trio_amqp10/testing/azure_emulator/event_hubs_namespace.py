"""EventHubs: the emulator of an Event Hubs namespace, in this process.

Knows the hubs; knows nothing of links or octets.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import LocalProtocolError

from .constants import CONSUMER_GROUPS, OUT_OF_RANGE, PARTITIONS
from .entity_options import HubOptions
from .event_hub_connection import EventHubConnection
from .event_hub_nodes import DEFAULT_GROUP, Hub, nodes_of
from .event_hub_requests import HubManagement
from .namespace import Namespace, NamespaceContainer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.broker.nodes.node import Node


class EventHubs(Namespace):
    """An emulator of Azure Event Hubs: hubs with partitions and consumer groups.

    Clients use it like the development emulator: ``hubs.container.serve("amqp://127.0.0.1:5672")``, with a connection
    string that contains ``UseDevelopmentEmulator=true``; or from trio, in memory, by ``hubs.container.connect()``. A hub
    must be added before it is used; the case of addresses does not matter.

    Args:
        name: the container id.
        keys: by name, each a key and its rights, ``send``, ``receive`` or both; the emulator's one key if None.
        wall_clock: a clock that returns seconds since 1970.

    Attributes:
        container: the container that serves it.
        hubs: the hubs by name. ``hubs["clicks"].partitions["0"].messages`` has the messages of one partition.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        keys: Mapping[str, tuple[str, str]] | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.hubs: dict[str, Hub] = {}
        self._namespace = _HubContainer(name, wall_clock, EventHubConnection)
        super().__init__(self._namespace, keys)
        self._namespace.add_node(
            HubManagement(self._namespace.resolve, self._namespace.find, self._namespace.post)
        )

    def add_hub(self, name: str, options: HubOptions | None = None) -> None:
        """Add an event hub.

        Args:
            name: its address.
            options: its rules.

        Raises:
            LocalProtocolError: a hub of this name exists, or two consumer groups have one name.
        """
        options = options or HubOptions()
        groups = [each.casefold() for each in (DEFAULT_GROUP, *options.consumer_groups)]
        if len(set(groups)) < len(groups):
            raise LocalProtocolError(
                f"consumer_groups={options.consumer_groups!r}: expected different names, and not {DEFAULT_GROUP}, which always exists"
            )
        clock = self._namespace.clock
        hub = Hub(name, options, clock)
        nodes_of(hub, clock, self._namespace.add_node)
        for group in (DEFAULT_GROUP, *options.consumer_groups):
            self._namespace.spell(f"{name}{CONSUMER_GROUPS}{group}")  # the address is the audience of tokens
        self.hubs[name] = hub


class _HubContainer(NamespaceContainer):
    """The container, which reports an unknown partition with its own condition."""

    def find(self, address: str) -> Node:
        try:
            return super().find(address)
        except RefusedError as refusal:
            hub, found, partition = self.resolve(address).rpartition(PARTITIONS)
            if found and hub.casefold() in self._spellings:
                raise RefusedError(OUT_OF_RANGE, f"{hub!r} has no partition {partition!r}") from refusal
            raise
