"""Definitions: durable exchanges, queues and bindings in a store.

They exist again after a restart. Each has one row, with its arguments as JSON. The default exchange and those whose names begin
with ``amq.`` always exist, so they have no row; a binding has one if both of its ends are durable. A definition that could not be
written is undone, so that clients and the store have the same definitions.

Knows names and rows; makes no nodes itself.
"""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.broker.stores.base import StoreTable
from trio_amqp10.broker.stores.column_kinds import TEXT
from trio_amqp10.core.errors import AmqpError

from .argument_equality import from_json, to_json
from .bindings import Binding, Destination
from .faults import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.broker.stores.base import StoreError
    from trio_amqp10.broker.stores.group_commit import Journal

    from .broker_queue import BrokerQueue
    from .exchanges import Exchange
    from .topology import Topology

_log = logging.getLogger("trio_amqp10.container")

EXCHANGES: Final = StoreTable("exchanges", ("name", "row"), str, (TEXT, TEXT))
QUEUES: Final = StoreTable("queue_arguments", ("name", "row"), str, (TEXT, TEXT))
BINDINGS: Final = StoreTable("bindings", ("key", "row"), str, (TEXT, TEXT))


class Definitions:
    """The stored definitions of a broker.

    Args:
        journal: writes the changes to the store.

    Raises:
        StoreError: the store cannot be read.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._written: dict[tuple[StoreTable, str], object] = {}
        self._exchanges = list(journal.rows(EXCHANGES))
        self._queues = list(journal.rows(QUEUES))
        self._bindings = list(journal.rows(BINDINGS))

    # -- after a restart --------------------------------------------------------------------

    def restore(self, broker: Topology) -> None:
        """Make the stored exchanges, then queues, then bindings, once.

        A definition that cannot be made, for example because the program has added a node under the same address, is logged, and its
        row stays in the store.
        """
        for table, rows, make in (
            (EXCHANGES, self._exchanges, _make_exchange),
            (QUEUES, self._queues, _make_queue),
            (BINDINGS, self._bindings, _make_binding),
        ):
            for cells in rows:
                key, row = cast("tuple[str, str]", cells)
                with self._journal.reading(table, key):
                    self._make(table, key, partial(make, broker, key, **_read(row)))
            rows.clear()

    def _make(self, table: StoreTable, key: str, make: Callable[[], object]) -> None:
        try:
            make()
        except AmqpError as fault:
            _log.error("%s %r of the store cannot be made again: %s", table.name, key, fault)
        else:
            self._written[table, key] = None

    # -- changes ----------------------------------------------------------------------------

    def add_exchange(self, exchange: Exchange, undo: Callable[[], object]) -> None:
        """Write an exchange; ``undo`` is called if that fails."""
        row = {
            "kind": exchange.kind,
            "durable": exchange.durable,
            "auto_delete": exchange.auto_delete,
            "internal": exchange.internal,
            "arguments": exchange.arguments,
            **({"grace": exchange.grace} if exchange.grace else {}),
        }
        self._add(EXCHANGES, exchange.name, row, undo)

    def drop_exchange(self, name: str) -> None:
        """Delete an exchange from the store."""
        self._drop(EXCHANGES, name)

    def add_queue(self, queue: BrokerQueue, undo: Callable[[], object]) -> None:
        """Write a queue; ``undo`` is called if that fails."""
        self._add(QUEUES, queue.name, {"auto_delete": queue.auto_delete, "arguments": queue.arguments}, undo)

    def drop_queue(self, name: str) -> None:
        """Delete a queue from the store."""
        self._drop(QUEUES, name)

    def add_binding(self, binding: Binding, undo: Callable[[], object]) -> None:
        """Write a binding; ``undo`` is called if that fails."""
        self._add(BINDINGS, _key(binding), _row(binding), undo)

    def drop_binding(self, binding: Binding) -> None:
        """Delete a binding from the store: the object that was added, not an equal one."""
        self._drop(BINDINGS, _key(binding))

    def _add(self, table: StoreTable, key: str, row: dict[str, Any], undo: Callable[[], object]) -> None:
        def after(failure: StoreError | None) -> None:
            if failure is not None:
                if self._written.get((table, key)) is undo:
                    del self._written[table, key]
                undo()

        text = json.dumps(to_json(row))
        self._written[table, key] = undo
        self._journal.note(table, key, (key, text), len(text))
        self._journal.after(after)

    def _drop(self, table: StoreTable, key: str) -> None:
        if (table, key) in self._written:
            del self._written[table, key]
            self._journal.drop(table, key)


def _read(text: str) -> dict[str, Any]:
    return cast("dict[str, Any]", from_json(json.loads(text)))


def _row(binding: Binding) -> dict[str, Any]:
    kind, destination = binding.destination
    return {
        "source": binding.source,
        "kind": kind,
        "destination": destination,
        "key": binding.key,
        "arguments": binding.arguments,
    }


def _key(binding: Binding) -> str:
    """Return the key of a binding."""
    return json.dumps(to_json(_row(binding)), sort_keys=True)


def _make_exchange(broker: Topology, name: str, **row: Any) -> None:
    broker.build_exchange(name, **row)


def _make_queue(broker: Topology, name: str, **row: Any) -> None:
    broker.build_queue(name, durable=True, **row)


def _make_binding(
    broker: Topology,
    _: str,
    *,
    source: str,
    kind: Any,
    destination: str,
    key: str,
    arguments: Mapping[str, Any],
) -> None:
    leads_to = Destination(kind, destination)
    if source not in broker.exchanges or not broker.is_lasting(leads_to):
        raise NotFoundError(f"exchange {source!r} or {kind} {destination!r} of the binding is not there")
    binding = Binding(source, leads_to, key, arguments)
    broker.bindings.check(binding)
    broker.bindings.add(binding)
