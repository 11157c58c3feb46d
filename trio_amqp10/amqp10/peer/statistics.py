"""Statistics of connections, sessions and links: live figures, cheap to read.

Nothing is counted only for these figures, but breaches of rules that are tolerated: octets and frames are counted with each
read and write, messages and transfers come from the sequence numbers of the protocol (2.5.6, 2.6.7).

Knows endpoints of the engine; changes nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

from trio_amqp10.amqp10.spec.transport import Role
from trio_amqp10.net.pump import Traffic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.amqp10.engine.connection import Connection as EngineConnection
    from trio_amqp10.amqp10.engine.receiver import ReceiverLink
    from trio_amqp10.amqp10.engine.sender import SenderLink
    from trio_amqp10.amqp10.engine.session import Session as EngineSession


class ConnectionStatistics(TypedDict):
    """The figures of ``Connection.statistics``.

    Totals count from the opening of the connection, over all its transports.
    """

    state: str
    """``OPENED``, or another state of 2.4.6."""
    transports: int
    """The number of successful dials: 1, and one more for each restore."""
    octets_in: int
    """Octets read, of all layers above TLS and WebSockets."""
    octets_out: int
    frames_in: int
    """Frames of AMQP, empty ones included."""
    frames_out: int
    messages_in: int
    """Deliveries that began on all links, former ones included.

    A delivery that comes again counts again.
    """
    messages_out: int
    reads: int
    """Reads that returned octets.

    The number of frames for each read shows how well the peer fills its writes.
    """
    writes: int
    waiting: int
    """Octets that wait to be written now."""
    sessions: int
    senders: int
    """Links on which this end sends."""
    receivers: int
    tolerated: dict[str, int]
    """Breaches by the peer of the rules of ``Strict`` that are not enforced.

    The keys are the names of the rules there; rules that it never broke are absent. Messages count when this end reads the section at fault.
    """


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
"""The names of the figures that only grow, beside those of ``tolerated``."""


def totals_of(statistics: Mapping[str, Any]) -> dict[str, int]:
    """Return the figures of a connection that only grow.

    Args:
        statistics: of a connection of any protocol.

    Returns:
        Those of ``TOTALS``, and those of ``tolerated`` as ``tolerated_`` with the name of the rule.
    """
    totals: dict[str, int] = {name: statistics[name] for name in TOTALS if name in statistics}
    for rule, count in statistics.get("tolerated", {}).items():
        totals[f"tolerated_{rule}"] = count
    return totals


class SessionStatistics(TypedDict):
    """The figures of ``Session.statistics``.

    Totals count from the last begin of the session.
    """

    state: str
    """``MAPPED``, or another state of 2.5.5."""
    channel: int
    transfers_in: int
    """Transfers; a large message has several (2.5.6)."""
    transfers_out: int
    incoming_window: int
    """Transfers that the peer may send before it gets a flow from this end."""
    outgoing_window: int
    """Transfers that this end may send before it gets a flow from the peer.

    It is the last known incoming window of the peer.
    """
    unsettled_in: int
    """Deliveries that came in and are not settled, on all links."""
    unsettled_out: int
    senders: int
    receivers: int


class SenderStatistics(TypedDict):
    """The figures of ``Sender.statistics``.

    Totals count from the opening of the link, over all its attachments.
    """

    role: Literal["sender"]
    state: str
    """``ATTACHED``, ``GONE``, or a state between."""
    name: str
    address: str | None
    """The address of the node, at whichever end the node is."""
    messages: int
    """Deliveries that began; a delivery that is sent again counts again."""
    credit: int
    unsettled: int
    draining: bool
    waiting: int
    """Tasks that wait for credit or room."""


class ReceiverStatistics(TypedDict):
    """The figures of ``Receiver.statistics``.

    Totals count from the opening of the link, over all its attachments.
    """

    role: Literal["receiver"]
    state: str
    """``ATTACHED``, ``GONE``, or a state between."""
    name: str
    address: str | None
    """The address of the node, at whichever end the node is."""
    messages: int
    """Deliveries that began; a delivery that comes again counts again."""
    credit: int
    unsettled: int
    available: int
    """The messages that wait for credit, as the sender last reported."""
    buffered: int
    """Deliveries that arrived and were not received by the program yet."""
    missettled: int
    """Deliveries sent settled or unsettled against the snd-settle-mode (2.7.5)."""


class ConnectionCounters(Traffic):
    """Counts of the traffic of a connection.

    The pump counts octets; the counts of engines that were replaced are added here.

    Attributes:
        frames_in, frames_out, messages_in, messages_out, tolerated: of the engines before the present one.
    """

    __slots__ = (
        "frames_in",
        "frames_out",
        "messages_in",
        "messages_out",
        "tolerated",
    )

    def __init__(self) -> None:
        super().__init__()
        self.frames_in: int = 0
        self.frames_out: int = 0
        self.messages_in: int = 0
        self.messages_out: int = 0
        self.tolerated: dict[str, int] | None = None

    def leave(self, engine: EngineConnection) -> None:
        """Add the counts of ``engine``, which is being replaced."""
        self.frames_in += engine.frames_in
        self.frames_out += engine.frames_out
        sent, received = engine.names.deliveries()
        self.messages_out += sent
        self.messages_in += received
        self.tolerated = _sum(self.tolerated, engine.context.tolerances.figures())


def _sum(before: dict[str, int] | None, now: dict[str, int]) -> dict[str, int]:
    return dict(Counter(before) + Counter(now)) if before else now


def connection_statistics(engine: EngineConnection, totals: ConnectionCounters) -> ConnectionStatistics:
    """Return the figures of a connection; see ``ConnectionStatistics``."""
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
        "tolerated": _sum(totals.tolerated, engine.context.tolerances.figures()),
    }


def session_statistics(engine: EngineSession) -> SessionStatistics:
    """Return the figures of a session; see ``SessionStatistics``."""
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
    """Return the figures of one attachment of a sending link.

    ``address``: the address of the node; ``waiting``: the number of tasks that wait to send.
    """
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
    """Return the figures of one attachment of a receiving link.

    ``address``: the address of the node.
    """
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
