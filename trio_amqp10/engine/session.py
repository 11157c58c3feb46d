"""Session endpoints: begin, flow, the links of a session and its unsettled deliveries, end (2.5).

A session owns its links, its windows and its settlement. Upwards it only enqueues frames,
and tells events, through its connection. What the peer sends on it is read in ``dispatch``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spec.transport import Begin, End, Error
from trio_amqp10.wire.encode import encode

from .annotations import CheckedReceiverLink
from .fast import TransferReader
from .faults import error_of, fit
from .incoming import drop_incoming
from .numbers import Numbers
from .outgoing import drop_outgoing
from .receiver import ReceiverLink
from .sender import SenderLink
from .settlement import Settlement
from .states import SESSION, ConnectionState, Lifecycle, LinkState, SessionState, Step
from .windows import INITIAL_ID, SessionWindows

if TYPE_CHECKING:
    from trio_amqp10.errors import RemoteProtocolError

    from .connection import Connection
    from .hold import Hold
    from .link import Link

__all__ = ["Session"]

_WITH_HANDLE = (LinkState.ATTACH_SENT, LinkState.ATTACHED)
_FAILED: Final = 1000
"""So many links that failed are remembered."""
_BEGUN = (SessionState.BEGIN_SENT, SessionState.BEGIN_RCVD, SessionState.MAPPED)


class Session(Lifecycle):
    """One session: a pair of channels, and what flows on them in order.

    Attributes:
        channel: ours, in every frame that we send.
        remote: the peer's begin, once read.
        answered: whether our begin came second.
        partials: senders in the middle of a delivery, oldest first.
        hungry: senders to be woken when there may be room.
        owner: woken when the session is over.
        by_remote_handle: the links, by the peer's handles.
        errant: the peer's handles on which it has answered our detach: what it still sends there is a fault.
        failed: names and roles of links that we detached with an error and did not close, as far as that is to be known.
        transfers: reads the usual transfers.
        unread: transfers of streamed deliveries that wait to be read; each takes a place in our window.
        hold: what bounds our window, on a session of one link; or None.
    """

    __slots__ = (
        "_by_handle",
        "_flow_links",
        "_handles",
        "_is_dirty",
        "_later_flows",
        "_owes_flow",
        "answered",
        "by_remote_handle",
        "channel",
        "connection",
        "errant",
        "error",
        "failed",
        "hold",
        "hungry",
        "next_delivery_id",
        "next_incoming_delivery_id",
        "owner",
        "partials",
        "remote",
        "remote_channel",
        "settlement",
        "told",
        "transfers",
        "unread",
        "windows",
    )

    _table = SESSION
    _scope = "session"

    def __init__(self, connection: Connection, channel: int) -> None:
        self.state = SessionState.UNMAPPED
        self.connection = connection
        self.channel = channel
        self.remote_channel: int | None = None
        self.remote: Begin | None = None
        self.answered = False
        self.error: Error | None = None
        self.owner: Any = None
        self.told = False
        self.windows = SessionWindows(connection.limits.incoming_window)
        self.settlement = Settlement(self)
        self.next_delivery_id = INITIAL_ID
        self.next_incoming_delivery_id: int | None = None
        self.partials: dict[SenderLink, None] = {}
        self.hungry: list[SenderLink] = []
        self._by_handle: dict[int, Link] = {}
        self._handles = Numbers()
        self.by_remote_handle: dict[int, Link] = {}
        self.errant: dict[int, None] = {}
        self.failed: dict[tuple[str, bool], None] = {}
        self._flow_links: dict[Link, None] = {}
        self._later_flows: dict[Link, None] = {}  # of links that are to be attached first
        self._owes_flow = False
        self._is_dirty = False
        self.transfers = TransferReader()
        self.unread = 0
        self.hold: Hold | None = None

    def __repr__(self) -> str:
        return f"<session {self.channel} {self.state.name} links={len(self._by_handle)}>"

    @property
    def links(self) -> list[Link]:
        """Every link with a handle, ours or the peer's."""
        return list(dict.fromkeys((*self._by_handle.values(), *self.by_remote_handle.values())))

    # -- begin and end ----------------------------------------------------------------------

    def begin(self, *, properties: dict[Any, Any] | None = None) -> None:
        """Begin, as the first or as the answer (2.5.1).

        Raises:
            LocalProtocolError: it was begun before.
        """
        self.require(Step.SEND_BEGIN)
        if self.connection.state is ConnectionState.OPEN_RCVD:
            self.connection.open()  # an end or a fault wants the begin before anyone has opened
        body = encode(
            Begin(
                remote_channel=self.remote_channel,
                next_outgoing_id=self.windows.next_outgoing_id,
                incoming_window=self.windows.incoming_window,
                outgoing_window=self.windows.outgoing_window,
                handle_max=self.connection.limits.handle_max,
                properties=properties,
            )
        )
        self.write_body(body)
        self.step(Step.SEND_BEGIN)
        self.answered = self.remote is not None
        self.dirty()  # flows that were asked for before we could write any

    def on_begin(self, begin: Begin, remote_channel: int) -> None:
        """The peer's begin, first or second."""
        self.step(Step.RECV_BEGIN)
        self.remote = begin
        self.remote_channel = remote_channel
        self.windows.begun(begin.next_outgoing_id, begin.incoming_window, begin.outgoing_window)

    def end(self, error: Error | None = None) -> None:
        """End the session and every link on it (2.5.2). Nothing happens where it is over already.

        A description is shortened to what a frame of the peer's has room for.

        Raises:
            LocalProtocolError: ``error`` is too long even so.
        """
        error = fit(error, self.connection.outbox.frame_size)
        if self.state is SessionState.BEGIN_RCVD:
            self.begin()
        step = Step.SEND_END if error is None else Step.SEND_ERROR_END
        if not self.allows(step):
            return
        self.flush()
        self.write_body(encode(End(error=error)))
        self.step(step)
        if self.error is None:
            self.error = error
        self._drop_links()
        self.connection.channels.release(self)

    def fail(self, fault: RemoteProtocolError) -> None:
        """The peer broke a rule of this session: end it with the error, and tell the adapter."""
        error = error_of(fault)
        self.end(error)
        self.connection.emit_ended(self, error)

    def on_end(self, end: End) -> None:
        """The peer's end: answered at once, unless it is the answer."""
        if self.state is SessionState.BEGIN_RCVD:
            self.begin()
        self.step(Step.RECV_END)
        if self.error is None:
            self.error = end.error
        self.end()
        self._drop_links()
        self.connection.channels.release(self)
        self.connection.touch(self.owner)

    def lost(self) -> None:
        """The connection is gone."""
        self.step(Step.LOST)
        self._drop_links()
        self.connection.touch(self.owner)

    def _drop_links(self) -> None:
        self.settlement.forget_all()
        for link in self.links:
            link.lost()
            self._flow_links.pop(link, None)
            self._later_flows.pop(link, None)
            self._drop_begun(link)
            self.connection.names.release(link)
        self._by_handle.clear()
        self.by_remote_handle.clear()

    def require_begun(self) -> None:
        """Raise unless links may attach.

        Raises:
            LocalProtocolError: not begun, or over.
        """
        if self.state not in _BEGUN:
            raise LocalProtocolError(f"cannot attach: this session is {self.state.name}")

    # -- links ------------------------------------------------------------------------------

    def sender(self, name: str) -> SenderLink:
        """A new link to send on; nothing is written until it attaches."""
        link = SenderLink(self, name)
        self.connection.names.claim(link)
        return link

    def receiver(self, name: str) -> ReceiverLink:
        """A new link to receive on; nothing is written until it attaches."""
        kind = CheckedReceiverLink if self.connection.strict.annotation_keys else ReceiverLink
        link = kind(self, name)
        self.connection.names.claim(link)
        return link

    def free_handle(self) -> int:
        """The lowest handle not in use.

        Raises:
            LocalProtocolError: no more links are possible on this session: each needs a handle of both ends.
        """
        handle = self._handles.lowest()
        limit = self.connection.limits.handle_max
        if self.remote is not None:
            limit = min(limit, self.remote.handle_max)
        if handle > limit:
            raise LocalProtocolError(
                f"{handle} links are all that handle-max allows (2.7.2): open another session for more"
            )
        return handle

    def link_at(self, remote_handle: object) -> Link | None:
        """The link that the peer calls by this handle."""
        return self.by_remote_handle.get(remote_handle) if isinstance(remote_handle, int) else None

    def bind(self, link: Link) -> None:
        """``link.handle`` is taken: the link has attached, or is to answer an attach."""
        if link.handle not in self._by_handle:
            self._handles.take()
            self._by_handle[link.handle] = link
        if link.state in _WITH_HANDLE and link in self._later_flows:
            del self._later_flows[link]
            self.owe_flow(link)

    def note_failed(self, link: Link) -> None:
        """We detached a link with an error and did not close it: its peer has to resume it (2.6.5)."""
        if self.connection.strict.attach_after_error:
            self.failed[link.name, link.role] = None
            if len(self.failed) > _FAILED:
                del self.failed[next(iter(self.failed))]

    def unbind(self, link: Link, *, errant: bool = False) -> None:
        """Free what a link that is detaching or gone no longer needs.

        ``errant``: we detached first, and the peer has answered: what it still sends there is a fault.
        """
        self._drop_begun(link)
        if link.state is LinkState.GONE:
            if self._by_handle.pop(link.handle, None) is not None:
                self._handles.free(link.handle)
            assert link.remote_handle is not None
            self.by_remote_handle.pop(link.remote_handle, None)
            if errant:
                self.errant[link.remote_handle] = None
            self._flow_links.pop(link, None)
            if link.closed or link.error is not None:
                self.settlement.forget(link)
            else:
                self.settlement.wake(link)
            self.connection.names.release(link)
            link.wake()

    @staticmethod
    def _drop_begun(link: Link) -> None:
        """A delivery that was begun on ``link`` will not be complete."""
        if isinstance(link, ReceiverLink):
            drop_incoming(link)
        else:
            assert isinstance(link, SenderLink)
            drop_outgoing(link)

    # -- what we owe ------------------------------------------------------------------------

    def write_body(self, body: bytes, payload: bytes = b"") -> None:
        """One frame on our channel."""
        self.connection.outbox.write_body(self.channel, body, payload)

    def dirty(self) -> None:
        """Have ``flush`` called before octets are next taken."""
        if not self._is_dirty:
            self._is_dirty = True
            self.connection.owe(self)

    def owe_flow(self, link: Link | None = None) -> None:
        """A flow is due; however many are asked for until then, one is written."""
        if link is None:
            self._owes_flow = True
        elif link.state not in _WITH_HANDLE:
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
        links = [link for link in self._flow_links if link.state in _WITH_HANDLE]  # others detach since
        self._flow_links.clear()
        windows = self.windows
        self.settlement.tally()
        windows.refill(self._window_room())  # and never without a flow that tells the peer
        for link in links:
            link.write_flow()
        self._owes_flow = False
        if not links:
            self.write_body(encode(windows.flow()))

    def _window_room(self) -> int | None:
        """Transfers that there is room for; None for any number."""
        room = self.connection.window_room()
        if self.unread:
            own = max(0, self.windows.incoming_max - self.unread)
            room = own if room is None else min(own, room)
        if self.hold is not None:
            own = self.hold.frames(self.connection.limits.max_frame_size)
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

    def await_window(self, link: SenderLink) -> None:
        """A delivery of this link is in progress: go on with it as window and room allow."""
        self.partials[link] = None
        self.connection.feeding[self] = None

    def feed_partials(self) -> None:
        """Go on with deliveries in progress, link by link in turn, while window and room last."""
        while self.partials and self.windows.remote_incoming_window > 0 and self.connection.outbox.has_room():
            link = next(iter(self.partials))
            del self.partials[link]  # to the end of the line: one frame each
            self.partials[link] = None
            link.send_part()
        if self.partials and self.windows.remote_incoming_window > 0:
            self.connection.feeding[self] = None  # room is short; of the window a flow will tell

    def wake_hungry(self) -> None:
        """There may be room again: let the senders that wait for it look."""
        if not self.hungry or self.windows.remote_incoming_window <= 0:
            return  # a flow will tell
        if not self.connection.outbox.has_room():
            self.connection.hungry[self] = None
        else:
            hungry, self.hungry = self.hungry, []
            for link in hungry:
                link.waiting = False
                link.wake()
