"""Which dialect a peer speaks: the first octets decide, on any layers (2.2).

A listener has a table of dialects. Each is asked in turn whether the octets that came so far are the beginning of its
header; the last is not asked, and takes what none of the others claims: it answers an unknown header with its own.

Knows no header of any dialect.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from .transport_layers import Transport, within

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trio_amqp10.partial_pool import Pool

    from .login_failures import HostLoginFailures

__all__ = ["HEADER_SIZE", "AcceptedConnection", "Dialect", "choose"]

HEADER_SIZE: Final = 8
"""Octets of the longest header that tells a dialect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedConnection:
    """A peer that has come through the layers, and has begun with the header of a dialect.

    Attributes:
        stream: as it was accepted, below all layers. It is closed when ``Dialect.serve`` returns.
        transport: the stream to use, above all layers, and what these know: TLS, the peer's certificate, whom it
            asked for. ``transport.head`` has the octets that were read already: at most 8, and perhaps none.
        name: who the peer is, for the log.
        host: the peer's IP address; None for a Unix socket or memory.
        private: whether nobody on the way can read along: TLS, loopback, a Unix socket, or memory.
        answered: whether the header that the peer began with has been answered with the same.
        began: when it was accepted, on trio's clock.
        deadline: when ``opened`` has to have been called, on trio's clock; infinite for never. A dialect that has not
            done so some seconds later is cancelled.
        opened: to be called once, when the peer has proved who it is and is let in. Until then it counts as one of
            ``max_handshakes``, and may have to go to make room for others.
        failures: counts failed authentications from this host; ``permits`` is to be asked before each attempt.
        sasl: who may log in, as it was given to ``serve``; its type is the dialects' affair.
        allow_plaintext_password: whether passwords are taken where ``private`` is False.
        pool: counts the octets of incomplete messages on all connections of the listener; a dialect has its engine join it, and leave
            it at the end. None for no such limit.
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
        """For the log."""
        ...

    def claims(self, head: bytes) -> bool | None:
        """Whether a peer that began with these octets, 1 to 8, is this dialect's; None: more are needed.

        A dialect that is to answer other versions of itself claims these too. Of several that claim a peer the
        first in the table gets it. After 8 octets None counts as False.
        """
        ...

    async def serve(self, accepted: AcceptedConnection) -> None:
        """One connection to its end. The log has what it raises; only this connection ends.

        Cancelled: the connection has to end soon, as the listener does or as the peer gives way to others. The stream
        is closed afterwards.
        """
        ...


async def choose(
    transport: Transport, dialects: Sequence[Dialect], seconds: float | None
) -> tuple[Dialect, Transport]:
    """The dialect of a peer, and the transport with all octets that were read to find out.

    Nothing is read if there is one dialect only.

    Args:
        transport: the topmost layer.
        dialects: at least one; the last takes what the others do not claim.
        seconds: for the octets that decide; None for any time.

    Raises:
        ConnectionClosedError: they did not come.

    Cancelled: the stream is of no use any more.
    """
    *undecided, last = dialects
    head = transport.head
    with within(seconds, None):
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
