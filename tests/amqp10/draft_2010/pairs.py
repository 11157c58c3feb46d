"""Two connections of the draft back to back, or one with a scripted peer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.engine_pairs import octets_of
from trio_amqp10.amqp10.draft_2010.connection import DraftConnection
from trio_amqp10.amqp10.draft_2010.registries import read, write
from trio_amqp10.amqp10.draft_2010.spec import transport as draft
from trio_amqp10.amqp10.draft_2010.spec.messaging import Source, Target
from trio_amqp10.amqp10.engine.events import LinkAttached, SessionBegun
from trio_amqp10.amqp10.spec import messaging as final
from trio_amqp10.amqp10.wire.frames import encode_frame
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.core.protocol_headers import AMQP_HEADER

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.connection import Connection

NEVER = 1_000.0


def frames_in(octets: bytes) -> list[tuple[int, Any]]:
    """Return channel and body of each frame, None for an empty frame.

    All must be in encodings of the draft.
    """
    found: list[tuple[int, Any]] = []
    pos = 8 if octets.startswith(b"AMQP") else 0
    while pos < len(octets):
        size = int.from_bytes(octets[pos : pos + 4], "big")
        frame = octets[pos : pos + size]
        assert len(frame) == size
        assert frame[4:6] == b"\x02\x00"
        body = None if size == 8 else read(frame[8:], strict=True)
        found.append((int.from_bytes(frame[6:8], "big"), body))
        pos += size
    return found


def events_of(connection: Connection) -> list[Any]:
    """Return all events that the connection has to report."""
    events: list[Any] = []
    while (event := connection.next_event()) is not None:
        events.append(event)
    return events


def talk(*ends: Connection, now: float = 0.0, chunk: int = 0) -> None:
    """Carry octets both ways until neither connection has more.

    They are cut into chunks of a size, unless that is 0.
    """
    one, two = ends
    while True:
        said = False
        for here, there in ((one, two), (two, one)):
            octets = octets_of(here) or b""
            said = said or bool(octets)
            for start in range(0, len(octets), chunk or len(octets) or 1):
                there.receive_data(octets[start : start + (chunk or len(octets))], now)
        if not said:
            return


def opened_pair(**options: Any) -> tuple[DraftConnection, DraftConnection]:
    """Two connections that have opened, with their events read."""
    one, two = DraftConnection("one", **options), DraftConnection("two", **options)
    one.open()
    two.open()
    talk(one, two)
    events_of(one)
    events_of(two)
    return one, two


def linked(
    one: Any, two: Any, name: str = "link", *, credit: int = 10, session: Any = None, **fields: Any
) -> tuple[Any, Any]:
    """A sender on the first of two connections, and its receiver on the second."""
    if session is None:
        session = one.session()
        session.begin()
    sender = session.sender(name)
    fields.setdefault("source", final.Source(address="q"))
    fields.setdefault("target", final.Target(address="q"))
    sender.attach(**fields)
    talk(one, two)
    receiver: Any = None
    for event in events_of(two):
        if isinstance(event, SessionBegun):
            if event.session.remote_channel is not None and event.session.state.name == "BEGIN_RCVD":
                event.session.begin()
        elif isinstance(event, LinkAttached):
            receiver = event.link
    assert receiver is not None
    receiver.attach(source=receiver.remote.source, target=receiver.remote.target)
    if credit:
        receiver.set_credit(credit)
    talk(one, two)
    events_of(one)
    return sender, receiver


def attached_pair(credit: int = 10, **options: Any) -> tuple[Any, Any, Any, Any]:
    """Two connections, a sender on the first and its receiver on the second."""
    one, two = opened_pair(**options)
    return one, two, *linked(one, two, credit=credit)


class Script:
    """A peer that writes frames of a test, with a session on channel 0 of both peers."""

    def __init__(self, begun: bool = True, **options: Any) -> None:
        self.connection: Any = DraftConnection("us", **options)
        self.connection.open()
        self.faults: list[RemoteProtocolError] = []
        self.octets(AMQP_HEADER)
        self << draft.Open(container_id="them", channel_max=10)
        self.session: Any = None
        if begun:
            self << draft.Begin()
            self.session = next(
                event.session for event in events_of(self.connection) if isinstance(event, SessionBegun)
            )
            self.session.begin()
        self.said()

    def octets(self, octets: bytes) -> None:
        """The peer writes these; a fault that ends the connection is noted."""
        try:
            self.connection.receive_data(octets, 0.0)
        except RemoteProtocolError as fault:
            self.faults.append(fault)

    def __lshift__(self, body: Any) -> Script:
        self.on(0, body)
        return self

    def on(self, channel: int, body: Any) -> None:
        """The peer writes a frame."""
        self.octets(encode_frame(channel, write(body)))

    def said(self) -> list[Any]:
        """The frame bodies that we wrote since the last time."""
        return [body for _, body in frames_in(self.connection.data_to_send() or b"")]

    def attach(self, role: bool, name: str = "link", handle: int = 0, **fields: Any) -> Any:
        """The peer attaches a link of this role of its own; returns ours, answered."""
        both = draft.Linkage(source=Source(address="q"), target=Target(address="q"))
        state = draft.FlowState(session_credit=100, transfer_count=None if role else 0, link_credit=0)
        usual: dict[str, Any] = {"name": name, "handle": handle, "role": role, "local": both}
        self << draft.Attach(**{**usual, "flow_state": state, **fields})
        link = next(event.link for event in events_of(self.connection) if isinstance(event, LinkAttached))
        link.attach(source=link.remote.source, target=link.remote.target)
        return link
