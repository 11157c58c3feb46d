"""What decoding may cost, and the faults that it can end in (2.8.14, 2.8.15).

Knows no octets: ``decode`` and ``composite`` charge what they make here, before they make it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from trio_amqp10.protocol_rules import ENCODING, NESTING, VALUES, ProtocolRule

if TYPE_CHECKING:
    from trio_amqp10.errors import RemoteProtocolError

__all__ = [
    "MAX_DEPTH",
    "MAX_NODES",
    "NO_BUDGET",
    "Budget",
    "Types",
    "check_compound",
    "enter",
    "malformed",
    "read_fault",
    "size_fault",
    "spend",
]

MAX_NODES: Final = 65_536
"""Values that one call makes before it refuses: a node can cost 64 times its octets in memory."""

MAX_DEPTH: Final = 32
"""Lists, maps, arrays and described values inside each other; one octet can open a level."""


class Types(Protocol):
    """What knows some descriptors: see ``composite.Registry``."""

    def decode_described(self, buf: bytes, pos: int, budget: Budget) -> tuple[Any, int] | None:
        """The value whose descriptor is at ``pos``, or None for a descriptor that is not known."""


class Budget:
    """What decoding may still cost; charged cumulatively, over several calls if it is passed on.

    A budget that was exceeded is spent: its depth is not restored by an error.

    Args:
        nodes: how many values may be made.
        depth: how many levels of compound and described values.
        types: what to make of described values; without it they are ``Described``.
        allow_duplicate_keys: let the last of identical map keys win, where the standard calls such a map
            invalid (1.6.23).
        symbol_keys: refuse a map of ``fields`` with a key that is no symbol (2.8.13).
    """

    __slots__ = ("allow_duplicate_keys", "depth", "nodes", "symbol_keys", "types")

    def __init__(
        self,
        nodes: int = MAX_NODES,
        depth: int = MAX_DEPTH,
        *,
        types: Types | None = None,
        allow_duplicate_keys: bool = False,
        symbol_keys: bool = False,
    ) -> None:
        self.nodes: int = nodes
        self.depth: int = depth
        self.types: Types | None = types
        self.allow_duplicate_keys: Final = allow_duplicate_keys
        self.symbol_keys: Final = symbol_keys


NO_BUDGET: Final = Budget()
"""For readers of scalars, which spend nothing."""


def read_fault(error: Exception) -> RemoteProtocolError:
    """What a reader's own exception means: text in the wrong encoding, or an end too early."""
    if isinstance(error, UnicodeDecodeError):
        what = "string" if error.encoding == "utf-8" else "symbol"
        return ENCODING.broken(f"octets of a {what} are not {error.encoding}: {error.reason}")
    return ENCODING.broken("the octets end inside a value")


def malformed(text: str, rule: ProtocolRule = ENCODING) -> RemoteProtocolError:
    """A decode-error (2.8.15)."""
    return rule.broken(text)


def spend(budget: Budget, nodes: int) -> None:
    """Charge ``nodes``.

    Raises:
        RemoteProtocolError: ``amqp:resource-limit-exceeded``.
    """
    budget.nodes -= nodes
    if budget.nodes < 0:
        raise VALUES.broken("more values than this may hold")


def enter(budget: Budget, nodes: int, levels: int = 1) -> None:
    """Open ``levels`` that hold ``nodes`` values between them; who closes them gives the depth back.

    Raises:
        RemoteProtocolError: ``amqp:decode-error`` when too deep; as for ``spend``.
    """
    budget.depth -= levels
    if budget.depth < 0:
        raise NESTING.broken("values are nested too deeply")
    spend(budget, nodes)


def check_compound(buf: bytes, pos: int, end: int, count: int) -> None:
    """Refuse a size or count that the octets cannot hold, before anything is made (1.6.22 to 1.6.24)."""
    if end > len(buf):
        raise malformed("the octets end inside a value")
    if count > end - pos:
        raise malformed(f"{count} elements in {max(end - pos, 0)} octets")


def size_fault(pos: int, end: int) -> RemoteProtocolError:
    """The elements ended elsewhere than their size says."""
    return malformed(f"elements end {abs(end - pos)} octets {'before' if pos < end else 'after'} their size")
