"""How a peer that reads nothing makes us write, and how it makes us hold what is not complete: for ``test_memory``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.core.endpoint_role import EndpointRole

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    import trio

    from trio_amqp10.container import Container
    from trio_amqp10.net.dialect import Dialect

QUEUE: Final = "q"
"""A queue with a message."""

ROOM: Final = 16 * 1024
"""Octets that may wait to be written, and as many answers."""

PART: Final = b"x" * 4_000
"""A body, or a part of one."""


@dataclass(frozen=True, kw_only=True)
class MemoryScript:
    """What a peer of one protocol sends.

    Attributes:
        names: the methods that a client may send, as the tables of the protocol have them.
        dialect: makes the dialect, with ``ROOM``.
        open: the handshake, and what the methods need: a channel, or a session with links. It may read.
        repeated: the octets of each method, to be sent over and over.
        partial: kinds of messages that never become whole: octets without end.
        refusal: octets that are sent to a connection whose messages in progress are dropped, as all together take too much.
    """

    names: frozenset[str]
    dialect: Callable[[Container], Dialect]
    open: Callable[[trio.abc.Stream], Awaitable[None]]
    repeated: Mapping[str, bytes]
    partial: Mapping[str, Callable[[], Iterator[bytes]]]
    refusal: bytes


def sent_by_clients(table: Any) -> frozenset[str]:
    """The names of the methods in a table that a client may send."""
    return frozenset(name for name, plan in table.by_name.items() if plan.sender.permits(EndpointRole.CLIENT))


def plain(table: Any, written: Callable[[Any, int], bytes], name: str) -> bytes:
    """A method with the defaults of its fields, on channel 0 or 1."""
    on_channel_0 = name.startswith(("connection.", "cluster."))
    return written(table.make(name), 0 if on_channel_0 else 1)
