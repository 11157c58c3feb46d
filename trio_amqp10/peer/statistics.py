"""Statistics of connections, sessions and links: live figures, cheap to read.

Nothing here is counted for the sake of being read, one by one: octets and frames come with each read and write,
messages and transfers from the serial numbers that the protocol keeps anyway (2.5.6, 2.6.7).

Knows endpoints of the engine; changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypedDict

from trio_amqp10.net.pump import Traffic
from trio_amqp10.spec.transport import Role

if TYPE_CHECKING:
    from trio_amqp10.engine.connection import Connection as EngineConnection
    from trio_amqp10.engine.receiver import ReceiverLink
    from trio_amqp10.engine.sender import SenderLink
    from trio_amqp10.engine.session import Session as EngineSession

__all__ = [
    "TOTALS",
    "ConnectionCounters",
    "ConnectionStatistics",
    "ReceiverStatistics",
    "SenderStatistics",
    "SessionStatistics",
    "connection_statistics",
    "receiving_figures",
    "sending_figures",
    "session_statistics",
]


class ConnectionStatistics(TypedDict):
    """What ``Connection.statistics`` tells. Totals are since it was opened, whatever transports it had since."""

    state: str
    """``OPENED``, or another state of 2.4.6."""
    transports: int
    """How often it was dialled with success: 1, and one more each time that it came back."""
    octets_in: int
    """Octets read, of all layers above TLS and WebSockets."""
    octets_out: int
    frames_in: int
    """Frames of AMQP, empty ones included."""
    frames_out: int
    messages_in: int
    """Deliveries that began on all links, those that there are no more too; one that comes again counts again."""
    messages_out: int
    reads: int
    """Times that octets came: frames for each read tell how well the peer fills its writes."""
    writes: int
    waiting: int
    """Octets that wait to be written now."""
    sessions: int
    senders: int
    """Links of ours that send."""
    receivers: int


TOTALS: Final = (
    "transports",
    "octets_in",
    "octets_out",
    "frames_in",
    "frames_out",
    "messages_in",
    "messages_out",
    "reads",
    "writes",
)
"""Those of a connection that only grow."""


class SessionStatistics(TypedDict):
    """What ``Session.statistics`` tells. Totals are since it was begun last."""

    state: str
    """``MAPPED``, or another state of 2.5.5."""
    channel: int
    transfers_in: int
    """Transfers, of which a large message takes several (2.5.6)."""
    transfers_out: int
    incoming_window: int
    """Transfers that the peer may send before it hears from us."""
    outgoing_window: int
    """Transfers that we may send before we hear from the peer: its incoming window, as far as we know."""
    unsettled_in: int
    """Deliveries that came in and are not settled, on all links."""
    unsettled_out: int
    senders: int
    receivers: int


class SenderStatistics(TypedDict):
    """What ``Sender.statistics`` tells. Totals are since it was opened, however often it was attached."""

    role: Literal["sender"]
    state: str
    """``ATTACHED``, ``GONE``, or between."""
    name: str
    address: str | None
    """Of the node, at whichever end it is."""
    messages: int
    """Deliveries that began; one that is sent again counts again."""
    credit: int
    unsettled: int
    draining: bool
    waiting: int
    """Tasks that wait for credit or room."""


class ReceiverStatistics(TypedDict):
    """What ``Receiver.statistics`` tells. Totals are since it was opened, however often it was attached."""

    role: Literal["receiver"]
    state: str
    """``ATTACHED``, ``GONE``, or between."""
    name: str
    address: str | None
    """Of the node, at whichever end it is."""
    messages: int
    """Deliveries that began; one that comes again counts again."""
    credit: int
    unsettled: int
    available: int
    """Messages that the sender last said are waiting for credit."""
    buffered: int
    """Deliveries that came and were not handed out yet."""
    missettled: int
    """Deliveries that were sent settled, or unsettled, against the snd-settle-mode of the link (2.7.5)."""


class ConnectionCounters(Traffic):
    """What passed through a connection; the pump counts octets, and engines that are gone leave their frames here.

    Attributes:
        frames_in, frames_out, messages_in, messages_out: by engines before the present one.
        transports: that there were, with the present one.
    """

    __slots__ = (
        "frames_in",
        "frames_out",
        "messages_in",
        "messages_out",
        "transports",
    )

    def __init__(self) -> None:
        super().__init__()
        self.frames_in: int = 0
        self.frames_out: int = 0
        self.messages_in: int = 0
        self.messages_out: int = 0
        self.transports: int = 0

    def leave(self, engine: EngineConnection) -> None:
        """``engine`` is replaced by another: keep what it counted."""
        self.frames_in += engine.frames_in
        self.frames_out += engine.frames_out
        sent, received = engine.names.deliveries()
        self.messages_out += sent
        self.messages_in += received


def connection_statistics(engine: EngineConnection, totals: ConnectionCounters) -> ConnectionStatistics:
    """What a connection has done since it was opened, and where it stands: live figures by name."""
    roles = [link.role for link in engine.names if link.owner is not None]
    sent, received = engine.names.deliveries()
    return {
        "state": engine.state.name,
        "transports": totals.transports,
        "octets_in": totals.octets_in,
        "octets_out": totals.octets_out,
        "frames_in": totals.frames_in + engine.frames_in,
        "frames_out": totals.frames_out + engine.frames_out,
        "messages_in": totals.messages_in + received,
        "messages_out": totals.messages_out + sent,
        "reads": totals.reads,
        "writes": totals.writes,
        "waiting": engine.write_buffer.size,
        "sessions": len(engine.sessions),
        "senders": roles.count(Role.SENDER),
        "receivers": roles.count(Role.RECEIVER),
    }


def session_statistics(engine: EngineSession) -> SessionStatistics:
    """What a session has done since it was begun last, and where it stands: live figures by name."""
    windows = engine.windows
    roles = [link.role for link in engine.links]
    return {
        "state": engine.state.name,
        "channel": engine.channel,
        "transfers_in": windows.transfers_received,
        "transfers_out": windows.transfers_sent,
        "incoming_window": windows.incoming_window,
        "outgoing_window": max(0, windows.remote_incoming_window),
        "unsettled_in": len(engine.settlement.incoming),
        "unsettled_out": len(engine.settlement.outgoing),
        "senders": roles.count(Role.SENDER),
        "receivers": roles.count(Role.RECEIVER),
    }


def sending_figures(link: SenderLink, address: str | None, *, waiting: int = 0) -> SenderStatistics:
    """Where one attachment of a link stands on which we send to or from ``address``; ``waiting``: tasks that cannot send."""
    return {
        "role": "sender",
        "state": link.state.name,
        "name": link.name,
        "address": address,
        "messages": link.deliveries,
        "credit": link.credit,
        "unsettled": link.unsettled,
        "draining": link.drain,
        "waiting": waiting,
    }


def receiving_figures(link: ReceiverLink, address: str | None) -> ReceiverStatistics:
    """Where one attachment of a link stands on which we receive from or at ``address``."""
    return {
        "role": "receiver",
        "state": link.state.name,
        "name": link.name,
        "address": address,
        "messages": link.deliveries,
        "credit": link.credit,
        "unsettled": len(link.tags),
        "available": link.available,
        "buffered": len(link.queue),
        "missettled": link.missettled,
    }
