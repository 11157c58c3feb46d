"""The choice of a peer's dialect by its first octets, on any layers (2.2).

A listener has a table of dialects. Each in turn checks whether the octets received so far are the beginning of its header.
The last one is not asked and serves every other peer: it answers an unknown header with its own.

Knows no header of any dialect.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from .transport_layers import Transport, handshake_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trio_amqp10.core.partial_pool import Pool

    from .login_failures import HostLoginFailures

HEADER_SIZE: Final = 8
"""Octets of the longest header by which a dialect is recognized."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedConnection:
    """A peer that has passed the layers and sent the header of a dialect.

    Attributes:
        stream: as it was accepted, below all layers. It is closed when ``Dialect.serve`` returns.
        transport: the stream to use, above all layers, with the data of the layers: TLS, the peer's certificate, the host
            name that the peer asked for. ``transport.head`` has the octets that were read already: at most 8, and perhaps none.
        name: the peer's description in the log.
        host: the peer's IP address; None for a Unix socket or memory.
        private: whether no third party can read the octets: TLS, loopback, a Unix socket, or memory.
        answered: whether the peer's header has been answered with the same header.
        began: when it was accepted, on trio's clock.
        deadline: when ``opened`` must have been called, on trio's clock; infinite for never. A dialect that has not
            called it some seconds later is cancelled.
        opened: the dialect must call it once, when the peer is authenticated and let in. Until then the connection counts as
            one of ``max_handshakes``, and may be closed to make room for others.
        failures: counts failed authentications from this host; call ``permits`` before each attempt.
        sasl: the users that may log in, as given to ``serve``; each dialect defines its type.
        allow_plaintext_password: whether passwords are accepted although ``private`` is False.
        pool: counts the octets of incomplete messages on all connections of the listener; a dialect adds its engine to it, and
            removes it at the end. None for no such limit.
    """

    stream: trio.abc.Stream
    transport: Transport
    name: str
    host: str | None
    private: bool
    answered: bool = False
    began: float
    deadline: float = inf
    opened: Callable[[], object]
    failures: HostLoginFailures
    sasl: Any = field(default=None, repr=False)
    allow_plaintext_password: bool = False
    pool: Pool | None = None


class Dialect(Protocol):
    """A protocol that a listener serves; see ``serve(dialects=...)``."""

    @property
    def name(self) -> str:
        """The name for the log."""
        ...

    def claims(self, head: bytes) -> bool | None:
        """Whether a peer that began with these 1 to 8 octets speaks this dialect.

        None: more octets are needed. After 8 octets None counts as False.

        A dialect that answers other versions of itself must claim these too. If several dialects claim a peer, the first one in
        the table serves it.
        """
        ...

    async def serve(self, accepted: AcceptedConnection) -> None:
        """Serve one connection to its end.

        An exception is logged, and ends only this connection.

        Cancelled: the connection must end soon, because the listener ends or the peer gives way to others. The stream
        is closed afterwards.
        """
        ...


async def choose(
    transport: Transport, dialects: Sequence[Dialect], seconds: float | None
) -> tuple[Dialect, Transport]:
    """Return the peer's dialect, and the transport with all octets read so far.

    Nothing is read if there is only one dialect.

    Args:
        transport: the topmost layer.
        dialects: at least one; the last serves each peer that the others do not claim.
        seconds: until the deciding octets have arrived; None for any time.

    Raises:
        ConnectionClosedError: they did not arrive.

    Cancelled: the stream can no longer be used.
    """
    *undecided, last = dialects
    head = transport.head
    with handshake_errors(seconds, None):
        while undecided:
            if head:
                claim = undecided[0].claims(head)
                if claim:
                    return undecided[0], replace(transport, head=head)
                if claim is False or len(head) == HEADER_SIZE:
                    del undecided[0]
                    continue
            data = await transport.stream.receive_some(HEADER_SIZE - len(head))
            if not data:
                raise trio.BrokenResourceError("the peer ended the transport before its protocol header")
            head += bytes(data)
    return last, replace(transport, head=head)
