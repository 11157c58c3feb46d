"""A session as its links see it: windows, unsettled deliveries, turns (2.5.6).

``Session`` adds the part that links do not use: begin, end, attach and detach.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, Protocol

from trio_amqp10.amqp10.wire.encode import encode

from .codec_shortcut import TransferReader
from .session_windows import INITIAL_ID, SessionWindows
from .settlement import Settlement
from .states import Lifecycle, LinkState, SessionState

if TYPE_CHECKING:
    from enum import Enum

    from trio_amqp10.amqp10.spec.transport import Error
    from trio_amqp10.core.errors import RemoteProtocolError

    from .connection_context import Context
    from .link import Link
    from .octet_bound import OctetBound

WITH_HANDLE = (LinkState.ATTACH_SENT, LinkState.ATTACHED)
"""The states of a link in which frames may have its handle."""


class SendsInTurn(Protocol):
    """A sender that takes turns with the other senders of its session."""

    waiting: bool

    def send_part(self) -> None:
        """Write one more transfer of the delivery in progress."""
        ...

    def wake(self) -> None:
        """Mark the owner as touched, so that the pump wakes it."""
        ...


class SessionCore(Lifecycle, ABC):
    """The part of a session that its links see.

    Attributes:
        context: the state that all parts of the connection share.
        connection: the connection of this session, for adapters; no part of the engine uses it.
        channel: our channel, in every frame that we send.
        by_remote_handle: the links, by the peer's handles.
        transfers: the reader of usual transfers.
        owner: woken when the session is over.
        windows: the transfer windows, in both directions.
        settlement: the unsettled deliveries, and the dispositions to write.
        next_delivery_id: the id of the next delivery that we send.
        next_incoming_delivery_id: the id of the next delivery that the peer sends; None before the first.
        partials: senders with a delivery in progress, oldest first.
        hungry: senders to wake when window and write buffer have room.
        unread: transfers of streamed deliveries that the program has not read; each narrows our window by one.
        hold: the bound in octets that limits our window, on a session of one link; or None.
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
        self._later_flows: dict[Link, None] | None = None  # of links that are not attached yet
        self._owes_flow = False
        self._is_dirty = False

    # -- the session as a whole --------------------------------------------------------------

    @abstractmethod
    def begin(self, *, properties: dict[Any, Any] | None = None) -> None:
        """Send our begin, as a request or as an answer (2.5.1)."""

    @abstractmethod
    def fail(self, fault: RemoteProtocolError) -> None:
        """End the session with ``fault``, because the peer broke a rule, and report it."""

    @abstractmethod
    def require_begun(self) -> None:
        """Raise unless links may attach."""

    @abstractmethod
    def free_handle(self) -> int:
        """Return the lowest free handle."""

    @abstractmethod
    def bind(self, link: Link) -> None:
        """Reserve ``link.handle``."""

    @abstractmethod
    def unbind(self, link: Link, *, errant: bool = False) -> None:
        """Free what a link that is detaching or gone no longer needs."""

    @abstractmethod
    def note_failed(self, link: Link) -> None:
        """Remember a link that we detached with an error: its peer must resume it (2.6.5)."""

    @abstractmethod
    def close_detached(self, link: Link) -> None:
        """Close a link that the peer closed while we only detached it (2.6.6)."""

    @abstractmethod
    def emit_detached(self, link: Link, closed: bool, error: Error | None) -> None:
        """Report the end of a link, once."""

    # -- frames to write --------------------------------------------------------------------

    def write_body(self, body: bytes, payload: bytes | memoryview = b"") -> None:
        """Write one frame on our channel."""
        self.context.write_buffer.write_body(self.channel, body, payload)

    def mark_dirty(self) -> None:
        """Have ``flush`` called before the next octets are taken."""
        if not self._is_dirty:
            self._is_dirty = True
            self.context.owe(self)

    def owe_flow(self, link: Link | None = None) -> None:
        """Write a flow at the next flush, for a link or the session.

        Several requests until then result in one flow.
        """
        if link is None:
            self._owes_flow = True
        elif link.state not in WITH_HANDLE:
            self._later_flows = self._later_flows or {}
            self._later_flows[link] = None
            return
        else:
            self._flow_links[link] = None
        self.mark_dirty()

    def flush(self) -> None:
        """Write the dispositions and flows that are due."""
        self._is_dirty = False
        if self.state is not SessionState.MAPPED and self.state is not SessionState.BEGIN_SENT:
            return
        self.settlement.flush()
        if not self._flow_links and not self._owes_flow:
            return
        # Links that have detached since have no handle any more.
        links = [link for link in self._flow_links if link.state in WITH_HANDLE]
        self._flow_links.clear()
        windows = self.windows
        self.settlement.tally()
        windows.refill(self._window_room())  # only here, because a flow must announce it to the peer
        for link in links:
            link.write_flow()
        self._owes_flow = False
        if not links:
            self.write_body(encode(windows.flow()))

    # -- room for transfers of the peer -----------------------------------------------------

    def _window_room(self) -> int | None:
        """Return how many transfers there is room for; None for any number."""
        room = self.context.window_room()
        if self.unread:
            own = max(0, self.windows.incoming_max - self.unread)
            room = own if room is None else min(own, room)
        if self.hold is not None:
            own = self.hold.frames(self.context.limits.max_frame_size)
            room = own if room is None else min(own, room)
        return room

    def refill_if_due(self) -> None:
        """Announce our window again, if half of it is used and can be opened.

        Called after a transfer arrived or was read.
        """
        windows = self.windows
        if windows.incoming_window <= windows.low and (
            not self.unread
            or 2 * (windows.incoming_max - self.unread - windows.incoming_window) >= windows.incoming_max
        ):
            self.owe_flow()

    def count_unread(self, octets: int, transfers: int) -> None:
        """Count octets and transfers of streamed deliveries that wait to be read.

        Negative numbers, or no transfers, mean that they were read.
        """
        self.context.partial_octets += octets
        self.unread += transfers
        if transfers <= 0:
            self.refill_if_due()

    # -- turns to send ----------------------------------------------------------------------

    def await_window(self, link: SendsInTurn) -> None:
        """Send the rest of the link's delivery as window and write buffer allow."""
        self.partials[link] = None
        self.context.feeding[self] = None

    def feed_partials(self) -> None:
        """Write transfers of the deliveries in progress, one link after the other."""
        while (
            self.partials and self.windows.remote_incoming_window > 0 and self.context.write_buffer.has_room()
        ):
            link = next(iter(self.partials))
            del self.partials[link]  # move the link to the end, so that each link writes one frame in turn
            self.partials[link] = None
            link.send_part()
        if self.partials and self.windows.remote_incoming_window > 0:
            # Room in the write buffer is short: continue when octets are taken. (A closed window is opened by a
            # flow, which calls this again.)
            self.context.feeding[self] = None

    def wake_hungry(self) -> None:
        """Wake the senders that wait, if window and write buffer have room."""
        if not self.hungry or self.windows.remote_incoming_window <= 0:
            return  # the next flow calls this again
        if not self.context.write_buffer.has_room():
            self.context.hungry[self] = None
        else:
            hungry, self.hungry = self.hungry, []
            for link in hungry:
                link.waiting = False
                link.wake()
