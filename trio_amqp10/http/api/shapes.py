"""Statuses of management as objects of JSON, with the names of RabbitMQ's API.

Figures that only Erlang has are left out: reductions, garbage collection, memory of processes. Rates are left out too, as RabbitMQ
itself does with ``rates_mode`` ``none``: nothing here is sampled. The name of a connection ends in its number, so that
``number_of_connection`` finds it.

Knows statuses; knows no request.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from trio_amqp10.broker.exchanges.argument_equality import to_json
from trio_amqp10.core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.container.management import (
        BindingStatus,
        ChannelStatus,
        ConnectionStatus,
        ContainerStatus,
        ExchangeStatus,
        LinkStatus,
        QueueStatus,
    )
    from trio_amqp10.container.management.status import MessageTotals, QueueTotals, Survey

PRODUCT: Final = "trio-amqp10"
VERSION: Final = "4.0.5"
"""The version of RabbitMQ whose API this is.

Clients choose by it what they may ask for.
"""

FIELDS_OF_QUEUES: Final[Mapping[str, str]] = {
    "auto_delete": "auto_delete",
    "consumers": "consumers",
    "durable": "durable",
    "exclusive": "exclusive",
    "message_bytes": "octets",
    "message_bytes_ram": "octets",
    "message_bytes_ready": "ready_octets",
    "messages": "depth",
    "messages_ram": "depth",
    "messages_ready": "ready",
    "messages_ready_ram": "ready",
    "messages_unacknowledged": "unacked",
    "messages_unacknowledged_ram": "unacked",
    "name": "name",
}
"""The field of ``QueueStatus`` for each column of a queue that has the same value."""

_TYPES: Final = ("direct", "fanout", "headers", "topic")


class Shapes:
    """The objects of one container, seen as one virtual host.

    Args:
        node: the name of the container.
        vhost: the name of the virtual host.
    """

    __slots__ = ("node", "vhost")

    def __init__(self, node: str, vhost: str) -> None:
        self.node: Final = node
        self.vhost: Final = vhost

    def queue(self, status: QueueStatus) -> dict[str, Any]:
        """Return a queue as it is in lists."""
        return {
            **{column: getattr(status, field) for column, field in FIELDS_OF_QUEUES.items()},
            "arguments": to_json(status.arguments),
            "consumer_capacity": 0,
            "consumer_utilisation": 0,
            "effective_policy_definition": {},
            "message_bytes_paged_out": 0,
            "message_bytes_unacknowledged": max(0, status.octets - status.ready_octets),
            "message_stats": _message_stats(status),
            "messages_paged_out": 0,
            "node": self.node,
            "state": "running",
            "storage_version": 2,
            "type": str(status.arguments.get("x-queue-type", "classic")),
            "vhost": self.vhost,
        }

    def one_queue(self, status: QueueStatus, consumers: list[dict[str, Any]]) -> dict[str, Any]:
        """Return a queue with its consumers, as it is alone."""
        return {
            **self.queue(status),
            "consumer_details": consumers,
            "deliveries": [],
            "exclusive_consumer_tag": None,
            "head_message_timestamp": None,
            "incoming": [],
            "operator_policy": None,
            "policy": None,
            "single_active_consumer_tag": None,
        }

    def exchange(self, status: ExchangeStatus) -> dict[str, Any]:
        """Return an exchange as it is in lists."""
        return {
            "arguments": to_json(status.arguments),
            "auto_delete": status.auto_delete,
            "durable": status.durable,
            "internal": status.internal,
            "message_stats": {
                "publish_in": status.arrived,
                "publish_out": status.arrived - status.unroutable,
            },
            "name": status.name,
            "type": status.type,
            "vhost": self.vhost,
        }

    def one_exchange(self, status: ExchangeStatus) -> dict[str, Any]:
        """Return an exchange as it is alone."""
        return {**self.exchange(status), "incoming": [], "outgoing": []}

    def connection(self, status: ConnectionStatus) -> dict[str, Any]:
        """Return a connection."""
        return {
            "channels": status.channels,
            "client_properties": {"product": status.container_id},
            "connected_at": int(status.since * 1000),
            "container_id": status.container_id,
            "name": self.connection_name(status.number, status.host),
            "node": self.node,
            "peer_host": status.host,
            "protocol": status.protocol,
            "recv_cnt": status.figures.get("reads", 0),
            "recv_oct": status.octets_in,
            "send_cnt": status.figures.get("writes", 0),
            "send_oct": status.octets_out,
            "send_pend": status.waiting,
            "state": "running" if status.state == "OPENED" else status.state.lower(),
            "type": "network",
            "user": status.user or "none",
            "user_who_performed_action": status.user or "none",
            "vhost": self.vhost,
        }

    def connection_name(self, number: int, host: str | None) -> str:
        """Return the name of a connection, from which its number can be read."""
        return f"{host or 'local'} -> {self.node} #{number}"

    def channel(self, status: ChannelStatus, host: str | None) -> dict[str, Any]:
        """Return a channel, or a session; ``host`` is that of its connection."""
        connection = self.connection_name(status.connection, host)
        return {
            "acks_uncommitted": 0,
            "confirm": status.confirms,
            "connection_details": {"name": connection, "peer_host": host},
            "consumer_count": status.consumers,
            "messages_unacknowledged": status.unsettled_out,
            "messages_uncommitted": 0,
            "messages_unconfirmed": status.unsettled_in,
            "name": f"{connection} ({status.number})",
            "node": self.node,
            "number": status.number,
            "prefetch_count": status.prefetch or 0,
            "state": "running" if status.state in ("OPEN", "MAPPED") else status.state.lower(),
            "transactional": status.transactional,
            "user": status.user or "none",
            "user_who_performed_action": status.user or "none",
            "vhost": self.vhost,
        }

    def consumer(self, status: LinkStatus, queue: str, host: str | None) -> dict[str, Any]:
        """Return a consumer of a queue; ``host`` is that of its connection."""
        connection = self.connection_name(status.connection, host)
        channel, slash, tag = status.name.partition("/")
        number = int(channel) if slash and channel.isdecimal() else 0
        return {
            "ack_required": True,
            "active": True,
            "activity_status": "up",
            "arguments": {},
            "channel_details": {
                "connection_name": connection,
                "name": f"{connection} ({number})",
                "node": self.node,
                "number": number,
                "peer_host": host,
                "user": status.user or "none",
            },
            "consumer_tag": tag if slash and channel.isdecimal() else status.name,
            "exclusive": False,
            "prefetch_count": 0 if status.credit is None else status.credit + status.unsettled,
            "queue": {"name": queue, "vhost": self.vhost},
        }

    def virtual_host(self, survey: Survey | None = None) -> dict[str, Any]:
        """Return the virtual host; with a survey, its messages too."""
        found: dict[str, Any] = {
            "cluster_state": {self.node: "running"},
            "default_queue_type": "classic",
            "description": "",
            "metadata": {"default_queue_type": "classic", "description": "", "tags": []},
            "name": self.vhost,
            "tags": [],
            "tracing": False,
        }
        return (
            found
            if survey is None
            else found | queue_totals(survey.rest) | {"message_stats": totals_stats(survey.messages)}
        )

    def user(self, name: str, tags: list[str]) -> dict[str, Any]:
        """Return a user. Nothing of a password is ever shown."""
        return {"hashing_algorithm": None, "limits": {}, "name": name, "password_hash": "", "tags": tags}

    def permission(self, user: str) -> dict[str, Any]:
        """Return the permissions of a user that may do everything."""
        return {"configure": ".*", "read": ".*", "user": user, "vhost": self.vhost, "write": ".*"}


def number_of_connection(name: str) -> int | None:
    """Return the number in the name of a connection, or None."""
    number = name.rpartition("#")[2]
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 19 else None


def binding(status: BindingStatus, vhost: str) -> dict[str, Any]:
    """Return a binding."""
    arguments = to_json(status.arguments)
    return {
        "arguments": arguments,
        "destination": status.destination,
        "destination_type": status.destination_kind,
        "properties_key": properties_key(status.key, arguments),
        "routing_key": status.key,
        "source": status.source,
        "vhost": vhost,
    }


def default_binding(queue: str, vhost: str) -> dict[str, Any]:
    """Return the binding of a queue to the default exchange."""
    return {
        "arguments": {},
        "destination": queue,
        "destination_type": "queue",
        "properties_key": properties_key(queue, {}),
        "routing_key": queue,
        "source": "",
        "vhost": vhost,
    }


def properties_key(key: str, arguments: Mapping[str, Any]) -> str:
    """Return the name of a binding among those of the same two ends.

    It is the routing key, ``~`` if that is empty, and with arguments a hash of them behind ``~``.
    """
    shown = quote(key, safe="", errors="surrogateescape")
    if not arguments:
        return shown or "~"
    text = json.dumps(arguments, sort_keys=True).encode()
    return f"{shown}~{urlsafe_b64encode(sha256(text).digest()[:4]).decode().rstrip('=')}"


def _message_stats(status: QueueStatus) -> dict[str, int]:
    return {
        "ack": status.acknowledged,
        "deliver": status.delivered,
        "deliver_get": status.delivered,
        "publish": status.arrived,
        "redeliver": status.redelivered,
    }


def queue_totals(totals: QueueTotals) -> dict[str, int]:
    """Return the messages of all queues."""
    return {
        "messages": totals.depth,
        "messages_ready": totals.ready,
        "messages_unacknowledged": totals.unacked,
    }


def totals_stats(totals: MessageTotals) -> dict[str, int]:
    """Return what all queues have taken in and given out."""
    return {
        "ack": totals.acknowledged,
        "deliver": totals.delivered,
        "deliver_get": totals.delivered,
        "drop_unroutable": totals.unroutable,
        "publish": totals.arrived,
        "redeliver": totals.redelivered,
    }


def listeners(status: ContainerStatus) -> list[dict[str, Any]]:
    """Return the listeners of a container, with RabbitMQ's protocol names."""
    found: list[dict[str, Any]] = []
    for url in status.listeners:
        parts = urlsplit(url)
        found.append(
            {
                "ip_address": parts.hostname or parts.path,
                "node": status.name,
                "port": parts.port or 0,
                "protocol": _PROTOCOLS.get(parts.scheme, parts.scheme),
                "socket_opts": {},
            }
        )
    return found


_PROTOCOLS: Final = {
    "amqp": "amqp",
    "amqp091": "amqp",
    "amqps": "amqp/ssl",
    "amqp091s": "amqp/ssl",
    "amqp+tls": "amqp/ssl",
    "http": "http",
    "https": "https",
    "amqpws": "http/web-amqp",
    "amqpwss": "https/web-amqp",
}
"""RabbitMQ's names of protocols, by the scheme of a listener."""


def overview(survey: Survey) -> dict[str, Any]:
    """Return the overview of a container, in which no queue was surveyed by name."""
    status, protocols = survey.container, survey.protocols.values()
    return {
        "cluster_name": status.name,
        "cluster_tags": {},
        "default_queue_type": "classic",
        "disable_stats": False,
        "enable_queue_totals": False,
        "exchange_types": exchange_types(),
        "is_op_policy_updating_enabled": False,
        "listeners": listeners(status),
        "management_version": VERSION,
        "message_stats": totals_stats(survey.messages),
        "node": status.name,
        "node_tags": {},
        "object_totals": {
            "channels": sum(each.channels for each in protocols),
            "connections": sum(each.connections for each in protocols),
            "consumers": sum(each.senders for each in protocols),
            "exchanges": survey.exchanges,
            "queues": survey.rest.queues,
        },
        "product_name": PRODUCT,
        "product_version": __version__,
        "queue_totals": queue_totals(survey.rest),
        "rabbitmq_version": VERSION,
        "rates_mode": "none",
        "sample_retention_policies": {"basic": [], "detailed": [], "global": []},
        "statistics_db_event_queue": 0,
    }


def exchange_types() -> list[dict[str, Any]]:
    """Return the types of exchanges."""
    return [
        {"description": f"AMQP {name} exchange, as per the AMQP specification", "enabled": True, "name": name}
        for name in _TYPES
    ]


def node(status: ContainerStatus) -> dict[str, Any]:
    """Return the container as the only node of a cluster."""
    return {
        "auth_mechanisms": [],
        "being_drained": False,
        "cluster_links": [],
        "disk_free_alarm": False,
        "exchange_types": exchange_types(),
        "mem_alarm": status.throttled,
        "mem_limit": status.memory_limit or 0,
        "mem_used": status.octets,
        "name": status.name,
        "partitions": [],
        "rates_mode": "none",
        "running": True,
        "type": "disc",
    }
