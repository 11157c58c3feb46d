"""A session as its links see it: windows, unsettled deliveries, turns (2.5.6).

``Session`` adds what links never ask for: begin, end, and how links come and go.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, Protocol

from trio_amqp10.wire.encode import encode

from .fast_codec import TransferReader
from .session_windows import INITIAL_ID, SessionWindows
from .settlement import Settlement
from .states import Lifecycle, LinkState, SessionState

if TYPE_CHECKING:
    from enum import Enum

    from trio_amqp10.errors import RemoteProtocolError
    from trio_amqp10.spec.transport import Error

    from .connection_context import Context
    from .link import Link
    from .octet_bound import OctetBound

__all__ = ["WITH_HANDLE", "SendsInTurn", "SessionCore"]

WITH_HANDLE = (LinkState.ATTACH_SENT, LinkState.ATTACHED)
"""States of a link that frames may name by our handle."""


class SendsInTurn(Protocol):
    """A sender, as far as the session lets it send."""

    waiting: bool

    def send_part(self) -> None:
        """Write one more frame of the delivery in progress."""
        ...

    def wake(self) -> None:
        """Have the owner look at the link."""
        ...


class SessionCore(Lifecycle, ABC):
    """The part of a session that its links see.

    Attributes:
        context: what all parts of the connection share.
        connection: the connection that it is on, for adapters; no part of the engine looks there.
        channel: ours, in every frame that we send.
        by_remote_handle: the links, by the peer's handles.
        transfers: reads the usual transfers.
        owner: woken when the session is over.
        windows: how many transfers may be in flight, each way.
        settlement: the unsettled deliveries, and the dispositions that we owe.
        next_delivery_id: of the next delivery that we send.
        next_incoming_delivery_id: of the next one that the peer sends; None before the first.
        partials: senders in the middle of a delivery, oldest first.
        hungry: senders to be woken when there may be room.
        unread: transfers of streamed deliveries that wait to be read; each takes a place in our window.
        hold: what bounds our window, on a session of one link; or None.
    """

    __slots__ = (
        "__weakref__",
        "_flow_links",
        "_is_dirty",
        "_later_flows",
        "_owes_flow",
        "by_remote_handle",
        "channel",
        "connection",
        "context",
        "hold",
        "hungry",
        "next_delivery_id",
        "next_incoming_delivery_id",
        "owner",
        "partials",
        "settlement",
        "transfers",
        "unread",
        "windows",
    )

    def __init__(self, context: Context, channel: int) -> None:
        self.state: Enum = SessionState.UNMAPPED
        self.context: Context = context
        self.connection: Any = None
        self.channel: int = channel
        self.owner: Any = None
        self.by_remote_handle: dict[int, Link] = {}
        self.transfers: Final = TransferReader()
        self.windows: SessionWindows = SessionWindows(context.limits.incoming_window)
        self.settlement: Final = Settlement(self)
        self.next_delivery_id: int = INITIAL_ID
        self.next_incoming_delivery_id: int | None = None
        self.partials: dict[SendsInTurn, None] = {}
        self.hungry: list[SendsInTurn] = []
        self.unread: int = 0
        self.hold: OctetBound | None = None
        self._flow_links: dict[Link, None] = {}
        self._later_flows: dict[Link, None] = {}  # of links that are to be attached first
        self._owes_flow = False
        self._is_dirty = False

    # -- what links ask of the session as a whole -------------------------------------------

    @abstractmethod
    def begin(self, *, properties: dict[Any, Any] | None = None) -> None:
        """Begin, as the first or as the answer (2.5.1)."""

    @abstractmethod
    def fail(self, fault: RemoteProtocolError) -> None:
        """The peer broke a rule of this session: end it with the error, and report it."""

    @abstractmethod
    def require_begun(self) -> None:
        """Raise unless links may attach."""

    @abstractmethod
    def free_handle(self) -> int:
        """The lowest handle not in use."""

    @abstractmethod
    def bind(self, link: Link) -> None:
        """``link.handle`` is taken."""

    @abstractmethod
    def unbind(self, link: Link, *, errant: bool = False) -> None:
        """Free what a link that is detaching or gone no longer needs."""

    @abstractmethod
    def note_failed(self, link: Link) -> None:
        """We detached a link with an error and did not close it: its peer has to resume it (2.6.5)."""

    @abstractmethod
    def close_anew(self, link: Link) -> None:
        """The peer closed what we had only detached: attach once more, to close it too (2.6.6)."""

    @abstractmethod
    def emit_detached(self, link: Link, closed: bool, error: Error | None) -> None:
        """Report a link that is over, once."""

    # -- what we owe ------------------------------------------------------------------------

    def write_body(self, body: bytes, payload: bytes | memoryview = b"") -> None:
        """One frame on our channel."""
        self.context.write_buffer.write_body(self.channel, body, payload)

    def dirty(self) -> None:
        """Have ``flush`` called before octets are next taken."""
        if not self._is_dirty:
            self._is_dirty = True
            self.context.owe(self)

    def owe_flow(self, link: Link | None = None) -> None:
        """A flow is due; however many are asked for until then, one is written."""
        if link is None:
            self._owes_flow = True
        elif link.state not in WITH_HANDLE:
            self._later_flows[link] = None
            return
        else:
            self._flow_links[link] = None
        self.dirty()

    def flush(self) -> None:
        """Write the dispositions and flows that are due."""
        self._is_dirty = False
        if self.state is not SessionState.MAPPED and self.state is not SessionState.BEGIN_SENT:
            return
        self.settlement.flush()
        if not self._flow_links and not self._owes_flow:
            return
        links = [link for link in self._flow_links if link.state in WITH_HANDLE]  # others detach since
        self._flow_links.clear()
        windows = self.windows
        self.settlement.tally()
        windows.refill(self._window_room())  # and never without a flow that tells the peer
        for link in links:
            link.write_flow()
        self._owes_flow = False
        if not links:
            self.write_body(encode(windows.flow()))

    # -- room for what the peer sends -------------------------------------------------------

    def _window_room(self) -> int | None:
        """Transfers that there is room for; None for any number."""
        room = self.context.window_room()
        if self.unread:
            own = max(0, self.windows.incoming_max - self.unread)
            room = own if room is None else min(own, room)
        if self.hold is not None:
            own = self.hold.frames(self.context.limits.max_frame_size)
            room = own if room is None else min(own, room)
        return room

    def refill_if_due(self) -> None:
        """Something was read, or has come: tell the peer, once half of the window is to be had again."""
        windows = self.windows
        if windows.incoming_window <= windows.low and (
            not self.unread
            or 2 * (windows.incoming_max - self.unread - windows.incoming_window) >= windows.incoming_max
        ):
            self.owe_flow()

    def count_unread(self, octets: int, transfers: int) -> None:
        """So much more of streamed deliveries waits to be read; or less, if it is none or negative."""
        self.context.partial_octets += octets
        self.unread += transfers
        if transfers <= 0:
            self.refill_if_due()

    # -- turns to send ----------------------------------------------------------------------

    def await_window(self, link: SendsInTurn) -> None:
        """A delivery of this link is in progress: go on with it as window and room allow."""
        self.partials[link] = None
        self.context.feeding[self] = None

    def feed_partials(self) -> None:
        """Go on with deliveries in progress, link by link in turn, while window and room last."""
        while (
            self.partials and self.windows.remote_incoming_window > 0 and self.context.write_buffer.has_room()
        ):
            link = next(iter(self.partials))
            del self.partials[link]  # to the end of the line: one frame each
            self.partials[link] = None
            link.send_part()
        if self.partials and self.windows.remote_incoming_window > 0:
            self.context.feeding[self] = None  # room is short; of the window a flow will tell

    def wake_hungry(self) -> None:
        """There may be room again: let the senders that wait for it look."""
        if not self.hungry or self.windows.remote_incoming_window <= 0:
            return  # a flow will tell
        if not self.context.write_buffer.has_room():
            self.context.hungry[self] = None
        else:
            hungry, self.hungry = self.hungry, []
            for link in hungry:
                link.waiting = False
                link.wake()
