"""The limits of decoding, and the errors that it can end in (2.8.14, 2.8.15).

``decode`` and ``composite`` charge the budget for values before they create them. This module does not know octets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from trio_amqp10.core.peer_rules import ENCODING, NESTING, VALUES, ProtocolRule

if TYPE_CHECKING:
    from trio_amqp10.core.errors import RemoteProtocolError
    from trio_amqp10.core.tolerances import Tolerances

MAX_NODES: Final = 65_536
"""Values that one call may create: a value can take 64 times its octets in memory."""

MAX_DEPTH: Final = 32
"""Nested lists, maps, arrays and described values; one octet can open a level."""


class Types(Protocol):
    """A set of known descriptors; see ``composite.Registry``."""

    def decode_described(self, buf: bytes, pos: int, budget: Budget) -> tuple[Any, int] | None:
        """Decode the value whose descriptor is at ``pos``; None for an unknown descriptor."""


class Budget:
    """The remaining limits of decoding, which may cover several calls.

    A budget that was exceeded cannot be reused: an error does not restore its depth.

    Args:
        nodes: how many values may be created.
        depth: how many levels of compound and described values may be open.
        types: decodes described values; without it they become ``Described``.
        allow_duplicate_keys: let the last of identical map keys win, although the standard calls such a map invalid (1.6.23).
        symbol_keys: refuse a map of ``fields`` with a key that is not a symbol (2.8.13).
        tolerances: counts the maps that these two rules would refuse and do not; None for no count.
    """

    __slots__ = ("allow_duplicate_keys", "depth", "nodes", "symbol_keys", "tolerances", "types")

    def __init__(
        self,
        nodes: int = MAX_NODES,
        depth: int = MAX_DEPTH,
        *,
        types: Types | None = None,
        allow_duplicate_keys: bool = False,
        symbol_keys: bool = False,
        tolerances: Tolerances | None = None,
    ) -> None:
        self.nodes: int = nodes
        self.depth: int = depth
        self.types: Types | None = types
        self.allow_duplicate_keys: Final = allow_duplicate_keys
        self.symbol_keys: Final = symbol_keys
        self.tolerances: Final = tolerances

    def tolerate(self, rule: ProtocolRule) -> None:
        """Count a map that ``rule`` would refuse."""
        if self.tolerances is not None:
            self.tolerances.note(rule)


NO_BUDGET: Final = Budget()
"""A budget for readers of scalars, which do not charge it."""


def read_fault(error: Exception) -> RemoteProtocolError:
    """Convert an exception of a reader: text in a wrong encoding, or missing octets."""
    if isinstance(error, UnicodeDecodeError):
        what = "string" if error.encoding == "utf-8" else "symbol"
        return ENCODING.broken(f"octets of a {what} are not {error.encoding}: {error.reason}")
    return ENCODING.broken("the octets end inside a value")


def malformed(text: str, rule: ProtocolRule = ENCODING) -> RemoteProtocolError:
    """Return a decode-error (2.8.15)."""
    return rule.broken(text)


def spend(budget: Budget, nodes: int) -> None:
    """Charge ``nodes`` values.

    Raises:
        RemoteProtocolError: ``amqp:resource-limit-exceeded``.
    """
    budget.nodes -= nodes
    if budget.nodes < 0:
        raise VALUES.broken("more values than the limit allows")


def enter(budget: Budget, nodes: int, levels: int = 1) -> None:
    """Open levels that hold ``nodes`` values in all; the caller restores the depth.

    Raises:
        RemoteProtocolError: ``amqp:decode-error`` if the nesting is too deep; otherwise as ``spend``.
    """
    budget.depth -= levels
    if budget.depth < 0:
        raise NESTING.broken("values are nested too deeply")
    spend(budget, nodes)


def check_compound(buf: bytes, pos: int, end: int, count: int) -> None:
    """Refuse a size or count that exceeds the octets (1.6.22 to 1.6.24)."""
    if end > len(buf):
        raise malformed("the octets end inside a value")
    if count > end - pos:
        raise malformed(f"{count} elements in {max(end - pos, 0)} octets")


def size_fault(pos: int, end: int) -> RemoteProtocolError:
    """Return the error for elements that do not end where their size states."""
    return malformed(
        f"elements end {abs(end - pos)} octets {'before' if pos < end else 'after'} the stated size"
    )
