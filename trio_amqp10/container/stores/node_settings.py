"""Nodes that were made through ``$management``, for after a restart.

One row for each: its address, its kind, and the rules that it was given, as JSON. What the program itself adds under
the same address is the program's: then the row goes, and the log says so.

Knows names and rules; does not know how nodes are made of them.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import trio

from .base import StoreTable
from .cells import NAME, TEXT, one_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .base import StoreError
    from .group_commit import Journal

__all__ = ["NODES", "NodeSetting", "NodeSettings"]

_log = logging.getLogger("trio_amqp10.container")

NODES: Final = StoreTable("nodes", ("address", "kind", "rules"), str, (NAME, one_of("queue", "topic"), TEXT))


class NodeSetting(NamedTuple):
    """How a node was made.

    Attributes:
        kind: ``"queue"`` or ``"topic"``.
        rules: the arguments of ``add_queue`` or ``add_topic``.
    """

    kind: str
    rules: dict[str, Any]


class NodeSettings:
    """What a store has of nodes.

    Args:
        journal: through which all goes to the store.

    Raises:
        StoreError: what the store has cannot be read.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[str, NodeSetting] = {}
        for address, kind, rules in cast("Iterator[tuple[str, str, str]]", journal.rows(NODES)):
            with journal.reading(NODES, address):
                read: Any = json.loads(rules)
                if not isinstance(read, dict):
                    raise ValueError(f"rules is {rules[:60]!r}: expected an object of JSON")
                self._known[address] = NodeSetting(kind, cast("dict[str, Any]", read))

    def get(self, address: str) -> NodeSetting | None:
        """How the node of this address was made; None for one that was not made through management."""
        return self._known.get(address)

    def absent(self, present: Mapping[str, object]) -> list[tuple[str, NodeSetting]]:
        """Nodes that the program has not added itself; those that it has are its own from now on."""
        for address in [address for address in self._known if address in present]:
            _log.warning(
                "%r was made through management, and now the program adds it: its rules are the program's",
                address,
            )
            self.drop(address)
        return list(self._known.items())

    async def keep(self, address: str, setting: NodeSetting) -> None:
        """Keep how a node is made, and wait until that is safe.

        Raises:
            StoreError: it could not be written, and is as it was.

        Cancelled: it is kept all the same, unless the store fails.
        """
        before = self._known.get(address)
        self._known[address] = setting
        done = trio.Event()
        failures: list[StoreError] = []

        def after(failure: StoreError | None) -> None:
            if failure is not None:
                failures.append(failure)
                if before is None:
                    self._known.pop(address, None)
                else:
                    self._known[address] = before
            done.set()

        self._journal.note(NODES, address, (address, setting.kind, json.dumps(setting.rules)))
        self._journal.after(after)
        await done.wait()
        if failures:
            raise failures[0]

    def drop(self, address: str) -> None:
        """The node is gone, or not management's any more."""
        if self._known.pop(address, None) is not None:
            self._journal.drop(NODES, address)
