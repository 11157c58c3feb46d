"""The nodes that were made through ``$management``, which a restart makes again.

Each has one row: its address, its kind, and its rules, as JSON. If the program itself adds a node under the same address, the
row is deleted, and the log records that.

Knows names and rules; does not know how nodes are made from them.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import trio

from .base import StoreTable
from .column_kinds import NAME, TEXT, one_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .base import StoreError
    from .group_commit import Journal

_log = logging.getLogger("trio_amqp10.container")

NODES: Final = StoreTable("nodes", ("address", "kind", "rules"), str, (NAME, one_of("queue", "topic"), TEXT))


class NodeSetting(NamedTuple):
    """The kind and the rules of a node.

    Attributes:
        kind: ``"queue"`` or ``"topic"``.
        rules: the arguments of ``add_queue`` or ``add_topic``.
    """

    kind: str
    rules: dict[str, Any]


class NodeSettings:
    """The stored settings of nodes.

    Args:
        journal: writes the changes to the store.

    Raises:
        StoreError: the store cannot be read.
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
        """Return the setting of a node, or None if it was not made through management."""
        return self._known.get(address)

    def absent(self, present: Mapping[str, object]) -> list[tuple[str, NodeSetting]]:
        """Return the stored nodes that are not in ``present``.

        The others were added by the program, which owns them from now on: their rows are deleted.
        """
        for address in [address for address in self._known if address in present]:
            _log.warning(
                "%r was made through management, but now the program adds it: the program's rules replace the stored ones",
                address,
            )
            self.drop(address)
        return list(self._known.items())

    async def keep(self, address: str, setting: NodeSetting) -> None:
        """Store the setting of a node, and wait until that is safe.

        Raises:
            StoreError: it could not be written, and is unchanged.

        Cancelled: it is stored anyway, unless the store fails.
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
        """Delete the setting of a node."""
        if self._known.pop(address, None) is not None:
            self._journal.drop(NODES, address)
