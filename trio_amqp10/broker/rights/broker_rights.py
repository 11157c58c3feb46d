"""The permissions that each operation of a broker needs, as in RabbitMQ.

Addresses of nodes stand for the resources of RabbitMQ.

=============================  =======================================================================================
operation                      permissions
=============================  =======================================================================================
declare a queue                ``create``; with ``x-dead-letter-exchange`` also ``receive`` from the queue and ``send`` to
                               the address of its dead letters
declare an exchange            ``create``; with ``alternate-exchange`` also ``receive`` from it and ``send`` to the
                               alternate exchange
find out whether it exists     one of ``receive``, ``send``, ``create`` and ``delete``
delete                         ``delete``
purge                          ``receive``
bind or unbind                 ``send`` to the destination and ``receive`` from the source, with the key of the binding
publish                        ``send``, with each routing key
=============================  =======================================================================================

A queue that is exclusive to the connection needs none of these permissions for itself. The permissions do not depend on the
existence of a node, so a peer without them always gets the same answer.

Knows names and addresses; asks no question itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from trio_amqp10.broker.exchanges.addresses import binding_address, exchange_address
from trio_amqp10.broker.exchanges.arguments import ALTERNATE
from trio_amqp10.broker.exchanges.routing import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trio_amqp10.broker.exchanges.topology import Topology

    from .guard import Need

_FILTERING: Final = frozenset({"direct", "topic"})
"""The types of exchanges that compare the key of a binding."""


# -- queues ---------------------------------------------------------------------------------


def to_find_queue(broker: Topology, name: str) -> list[Need]:
    """Return the needs for finding out whether a queue exists."""
    address = broker.queue_address(broker.plain(name))
    return [(("receive", address), ("send", address), ("create", address), ("delete", address))]


def to_declare_queue(
    broker: Topology, name: str, arguments: Mapping[str, Any], *, exclusive: bool
) -> list[Need]:
    """Return the needs for declaring a queue; the broker generates an empty name."""
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
    """Return the address of dead letters; without a key, that of all keys."""
    return binding_address(exchange) if key is None else address_of(broker, exchange, key)


def to_receive(broker: Topology, name: str) -> list[Need]:
    """Return the needs for consuming, getting or purging messages.

    A peer that may take the messages may remove them, too.
    """
    return [(("receive", broker.queue_address(name)),)]


def to_delete_queue(broker: Topology, name: str) -> list[Need]:
    """Return the needs for deleting a queue."""
    return [(("delete", broker.queue_address(broker.plain(name))),)]


# -- exchanges ------------------------------------------------------------------------------


def to_find_exchange(broker: Topology, name: str) -> list[Need]:
    """Return the needs for finding out whether an exchange exists."""
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
    """Return the needs for declaring an exchange."""
    name = broker.plain(name)
    needs: list[Need] = [(("create", exchange_address(name)),)]
    alternate = arguments.get(ALTERNATE)
    if isinstance(alternate, str):
        needs.append((("receive", binding_address(name)),))
        needs.append((("send", binding_address(alternate)),))
    return needs


def to_delete_exchange(broker: Topology, name: str) -> list[Need]:
    """Return the needs for deleting an exchange."""
    return [(("delete", exchange_address(broker.plain(name))),)]


# -- bindings and publishes -----------------------------------------------------------------


def to_bind(
    broker: Topology, source: str, kind: Literal["queue", "exchange"], destination: str, key: str
) -> list[Need]:
    """Return the needs for binding or unbinding; see also ``to_bind_any_key``."""
    leads_to = broker.queue_address(destination) if kind == "queue" else binding_address(destination)
    all_keys, one_key = binding_address(source), binding_address(source, key)
    reads: Need = (
        (("receive", all_keys),) if all_keys == one_key else (("receive", all_keys), ("receive", one_key))
    )
    return [(("send", leads_to),), reads]


def to_bind_any_key(broker: Topology, source: str) -> list[Need]:
    """Return the additional needs for binding, once ``to_bind`` is permitted.

    If the type of the exchange ignores keys, a binding gets all messages, so the peer needs the permission for all keys.
    """
    exchange = broker.exchanges.get(source)
    if exchange is None or exchange.kind in _FILTERING:
        return []
    return [(("receive", binding_address(source)),)]


def to_publish(broker: Topology, exchange: str, keys: Iterable[str]) -> list[Need]:
    """Return the needs for publishing with these routing keys."""
    return [(("send", address_of(broker, exchange, key)),) for key in dict.fromkeys(keys)]


def address_of(broker: Topology, exchange: str, key: str) -> str:
    """Return the address of messages that are published with this routing key."""
    return broker.queue_address(key) if exchange == DEFAULT else exchange_address(exchange, key)
