"""The permissions that each operation of a broker needs: as RabbitMQ has them, with the addresses of nodes.

=============================  =======================================================================================
operation                      permissions
=============================  =======================================================================================
declare a queue                ``create``; for one with ``x-dead-letter-exchange`` also ``receive`` from the queue and ``send``
                               to where its dead letters go
declare an exchange            ``create``; for one with ``alternate-exchange`` also ``receive`` from it and ``send`` to
                               the alternate
look whether it exists         one of ``receive``, ``send``, ``create`` and ``delete``
delete                         ``delete``
purge                          ``receive``
bind or unbind                 ``send`` to the destination and ``receive`` from the source, with the key of the binding
publish                        ``send``, with each routing key
=============================  =======================================================================================

A queue that is exclusive to the connection needs none of the permissions for itself. Nothing here depends on what exists: a peer
without the permissions gets one answer.

Knows names and addresses; asks nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from .broker.addresses import binding_address, exchange_address
from .broker.arguments import ALTERNATE
from .broker.routing import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .broker.topology import Topology
    from .rights.guard import Need

__all__ = [
    "address_of",
    "to_bind",
    "to_bind_any_key",
    "to_declare_exchange",
    "to_declare_queue",
    "to_delete_exchange",
    "to_delete_queue",
    "to_find_exchange",
    "to_find_queue",
    "to_publish",
    "to_receive",
]

_FILTERING: Final = frozenset({"direct", "topic"})
"""Types of exchanges that compare the key of a binding."""


# -- queues ---------------------------------------------------------------------------------


def to_find_queue(broker: Topology, name: str) -> list[Need]:
    """To look whether a queue exists."""
    address = broker.queue_address(broker.plain(name))
    return [(("receive", address), ("send", address), ("create", address), ("delete", address))]


def to_declare_queue(
    broker: Topology, name: str, arguments: Mapping[str, Any], *, exclusive: bool
) -> list[Need]:
    """To declare a queue; an empty name is made up by the broker."""
    name = broker.plain(name)
    address = broker.queue_address(name) if name else None
    needs: list[Need] = [(("create", address),)]
    exchange = arguments.get("x-dead-letter-exchange")
    if isinstance(exchange, str):
        if address is not None and not exclusive:
            needs.append((("receive", address),))
        key = arguments.get("x-dead-letter-routing-key")
        needs.append((("send", _letters_to(broker, exchange, key if isinstance(key, str) else None)),))
    return needs


def _letters_to(broker: Topology, exchange: str, key: str | None) -> str:
    """Where dead letters go: without a key of their own, by the keys that publishers choose."""
    return binding_address(exchange) if key is None else address_of(broker, exchange, key)


def to_receive(broker: Topology, name: str) -> list[Need]:
    """To consume, get a message, or purge: a peer that may take the messages may throw them away."""
    return [(("receive", broker.queue_address(name)),)]


def to_delete_queue(broker: Topology, name: str) -> list[Need]:
    """To delete a queue."""
    return [(("delete", broker.queue_address(broker.plain(name))),)]


# -- exchanges ------------------------------------------------------------------------------


def to_find_exchange(broker: Topology, name: str) -> list[Need]:
    """To look whether an exchange exists."""
    address, keys = exchange_address(broker.plain(name)), binding_address(broker.plain(name))
    return [
        (
            ("receive", address),
            ("receive", keys),
            ("send", address),
            ("send", keys),
            ("create", address),
            ("delete", address),
        )
    ]


def to_declare_exchange(broker: Topology, name: str, arguments: Mapping[str, Any]) -> list[Need]:
    """To declare an exchange."""
    name = broker.plain(name)
    needs: list[Need] = [(("create", exchange_address(name)),)]
    alternate = arguments.get(ALTERNATE)
    if isinstance(alternate, str):
        needs.append((("receive", binding_address(name)),))
        needs.append((("send", binding_address(alternate)),))
    return needs


def to_delete_exchange(broker: Topology, name: str) -> list[Need]:
    """To delete an exchange."""
    return [(("delete", exchange_address(broker.plain(name))),)]


# -- bindings and publishes -----------------------------------------------------------------


def to_bind(
    broker: Topology, source: str, kind: Literal["queue", "exchange"], destination: str, key: str
) -> list[Need]:
    """To bind or unbind; ``to_bind_any_key`` says what is needed besides."""
    leads_to = broker.queue_address(destination) if kind == "queue" else binding_address(destination)
    all_keys, one_key = binding_address(source), binding_address(source, key)
    reads: Need = (
        (("receive", all_keys),) if all_keys == one_key else (("receive", all_keys), ("receive", one_key))
    )
    return [(("send", leads_to),), reads]


def to_bind_any_key(broker: Topology, source: str) -> list[Need]:
    """What is needed besides, once ``to_bind`` is permitted: everything, from an exchange whose keys filter nothing."""
    exchange = broker.exchanges.get(source)
    if exchange is None or exchange.kind in _FILTERING:
        return []
    return [(("receive", binding_address(source)),)]


def to_publish(broker: Topology, exchange: str, keys: Iterable[str]) -> list[Need]:
    """To publish with these routing keys."""
    return [(("send", address_of(broker, exchange, key)),) for key in dict.fromkeys(keys)]


def address_of(broker: Topology, exchange: str, key: str) -> str:
    """The address that a message is sent to by publishing it."""
    return broker.queue_address(key) if exchange == DEFAULT else exchange_address(exchange, key)
