"""HubManagement: the requests to ``$management`` of Event Hubs.

=============================  =====================================================================================
``READ`` of the type           the body of the reply
=============================  =====================================================================================
``com.microsoft:eventhub``     ``name``, ``created_at``, ``partition_count``, ``partition_ids``
``com.microsoft:partition``    ``name``, ``partition``, ``begin_sequence_number``, ``last_enqueued_sequence_number``,
                               ``last_enqueued_offset``, ``last_enqueued_time_utc``, ``is_partition_empty``
=============================  =====================================================================================

The application-properties ``name`` and ``partition`` name the hub and the partition. Knows hubs; knows no links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.wire.values import Array, Int, Timestamp
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.core.errors import Condition

from .constants import MANAGEMENT, OUT_OF_RANGE
from .namespace import may_ask
from .request_response import Fields, RequestResponseNode

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.message import Message
    from trio_amqp10.amqp10.server.connection import Amqp10Connection
    from trio_amqp10.broker.nodes.node import Node
    from trio_amqp10.container.handlers import Post

from .event_hub_nodes import Hub

_FIELDS: Final = Fields("status-code", "status-description", "error-condition")
_HUB: Final = "com.microsoft:eventhub"
_PARTITION: Final = "com.microsoft:partition"


class HubManagement(RequestResponseNode):
    """The node for requests about all hubs.

    Args:
        resolve: returns the first spelling of an address.
        find: returns the node of an address, or raises ``RefusedError``.
        post: sends a reply to a node.
    """

    def __init__(self, resolve: Callable[[str], str], find: Callable[[str], Node], post: Post) -> None:
        super().__init__(MANAGEMENT[1:], post, _FIELDS)
        self._resolve = resolve
        self._find = find

    async def _operate(self, request: Message, peer: Amqp10Connection) -> Any:
        asked = request.application_properties
        operation, kind = asked.get("operation"), asked.get("type")
        if operation != "READ" or kind not in (_HUB, _PARTITION):
            raise RefusedError(
                Condition.NOT_IMPLEMENTED,
                f"{operation!r} of {kind!r}: expected READ of {_HUB} and {_PARTITION}",
            )
        name = str(asked.get("name"))
        # The right is checked before the hub is looked up, so a refusal is the same whether it exists or not.
        if not may_ask(peer.guard.claims, self._resolve(name) + MANAGEMENT):
            raise RefusedError(
                Condition.UNAUTHORIZED_ACCESS, f"no token is valid for {name!r}: put a token first"
            )
        hub = self._find(name)
        if not isinstance(hub, Hub):
            raise RefusedError(Condition.NOT_FOUND, f"no event hub {name!r}")
        return _partition(hub, asked.get("partition")) if kind == _PARTITION else _hub(hub)


def _hub(hub: Hub) -> dict[str, Any]:
    return {
        "type": _HUB,
        "name": hub.address,
        "created_at": Timestamp(hub.created),
        "partition_count": Int(len(hub.partitions)),
        "partition_ids": Array(list(hub.partitions), "string"),
    }


def _partition(hub: Hub, number: object) -> dict[str, Any]:
    partition = hub.partitions.get(str(number))
    if partition is None:
        raise RefusedError(
            OUT_OF_RANGE,
            f"{hub.address!r} has no partition {number!r}: expected 0 to {len(hub.partitions) - 1}",
        )
    return {
        "type": _PARTITION,
        "name": hub.address,
        "partition": partition.id,
        "begin_sequence_number": partition.begin,
        "last_enqueued_sequence_number": partition.end - 1,
        "last_enqueued_offset": str(partition.last_offset),
        "last_enqueued_time_utc": Timestamp(partition.last_enqueued),
        "is_partition_empty": len(partition) == 0,
    }
