"""Session endpoints: begin, attach and detach of links, end (2.5).

``session_core`` has the part of a session that links use; ``session_dispatch`` processes the frames of the
peer. A session knows no connection: it writes frames and reports events through its context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.spec.transport import Begin, End, Error
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.core.errors import LocalProtocolError

from .error_encoding import error_of, fit
from .events import LinkAttached, LinkDetached, SessionEnded
from .free_numbers import FreeNumbers
from .incoming_transfers import drop_incoming
from .outgoing_transfers import drop_outgoing
from .receiver import CheckedReceiverLink, ReceiverLink
from .sender import SenderLink
from .session_core import WITH_HANDLE, SessionCore
from .states import SESSION, LinkState, SessionState, Step

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.core.errors import RemoteProtocolError

    from .connection_context import Context
    from .link import Link
    from .link_names import LinkNames

_FAILED: Final = 1000
"""The largest number of failed links that are remembered."""
_BEGUN = (SessionState.BEGIN_SENT, SessionState.BEGIN_RCVD, SessionState.MAPPED)


class Session(SessionCore):
    """One session: a pair of channels, and the ordered frames on them.

    Args:
        context: the state that all parts of the connection share.
        names: the links of the connection by name.
        channel: our channel.
        released: called when both ends have sent end, so that the channels are free.
        open_first: writes our open if the peer's has arrived and ours was not sent, because a begin must
            follow it (2.4.1).

    Attributes:
        names: as given.
        remote: the peer's begin, once read.
        answered: whether our begin answered the peer's.
        reported: whether the end of the session was reported.
        errant: the peer's handles on which it has answered our detach: a later frame on them is an error. None before the
            first.
        failed: names and roles of links that we detached with an error and did not close, if that rule is
            enforced. None before the first.
    """

    __slots__ = (
        "_by_handle",
        "_handles",
        "_open_first",
        "_released",
        "answered",
        "errant",
        "error",
        "failed",
        "names",
        "remote",
        "remote_channel",
        "reported",
    )

    _table = SESSION
    _scope = "session"

    def __init__(
        self,
        context: Context,
        names: LinkNames,
        channel: int,
        released: Callable[[Session], object],
        open_first: Callable[[], object],
    ) -> None:
        super().__init__(context, channel)
        self.names: Final = names
        self._released = released
        self._open_first = open_first
        self.remote_channel: int | None = None
        self.remote: Begin | None = None
        self.answered: bool = False
        self.error: Error | None = None
        self.reported: bool = False
        self._by_handle: dict[int, Link] = {}
        self._handles = FreeNumbers()
        self.errant: dict[int, None] | None = None
        self.failed: dict[tuple[str, bool], None] | None = None

    def __repr__(self) -> str:
        return f"<session {self.channel} {self.state.name} links={len(self._by_handle)}>"

    @property
    def links(self) -> list[Link]:
        """Every link that has a handle of either end."""
        return list(dict.fromkeys((*self._by_handle.values(), *self.by_remote_handle.values())))

    # -- begin and end ----------------------------------------------------------------------

    def begin(self, *, properties: dict[Any, Any] | None = None) -> None:
        """Send our begin, as a request or as an answer (2.5.1).

        Raises:
            LocalProtocolError: the session was begun before.
        """
        self.require(Step.SEND_BEGIN)
        self._open_first()  # an end or a fault may need a begin before the user has opened
        body = encode(
            Begin(
                remote_channel=self.remote_channel,
                next_outgoing_id=self.windows.next_outgoing_id,
                incoming_window=self.windows.incoming_window,
                outgoing_window=self.windows.outgoing_window,
                handle_max=self.context.limits.handle_max,
                properties=properties,
            )
        )
        self.write_body(body)
        self.step(Step.SEND_BEGIN)
        self.answered = self.remote is not None
        if not self.answered:
            self.context.answers.expect(self, "the begin of a session")
        self.mark_dirty()  # flows may have been requested before any could be written

    def on_begin(self, begin: Begin, remote_channel: int) -> None:
        """Process the peer's begin, the request or the answer."""
        self.step(Step.RECV_BEGIN)
        self.context.answers.answered(self)
        self.remote = begin
        self.remote_channel = remote_channel
        self.windows.begun(begin.next_outgoing_id, begin.incoming_window, begin.outgoing_window)

    def end(self, error: Error | None = None) -> None:
        """End the session and every link on it (2.5.2).

        Nothing happens if it is over already. The description of ``error`` is shortened to fit the peer's
        frame size.

        Raises:
            LocalProtocolError: ``error`` is too long even without its description.
        """
        error = fit(error, self.context.write_buffer.frame_size)
        if self.state is SessionState.BEGIN_RCVD:
            self.begin()
        step = Step.SEND_END if error is None else Step.SEND_ERROR_END
        if not self.allows(step):
            return
        self.flush()
        self.write_body(encode(End(error=error)))
        self.step(step)
        self.context.answers.answered(self)
        if self.error is None:
            self.error = error
        self._drop_links()
        self._released(self)

    def fail(self, fault: RemoteProtocolError) -> None:
        """End the session with ``fault``, because the peer broke a rule, and report it."""
        error = error_of(fault)
        self.end(error)
        self.emit_ended(error)

    def on_end(self, end: End) -> None:
        """Process the peer's end, and answer it unless it is the answer to ours."""
        if self.state is SessionState.BEGIN_RCVD:
            self.begin()
        self.step(Step.RECV_END)
        if self.error is None:
            self.error = end.error
        self.end()
        self._drop_links()
        self._released(self)
        self.context.touch(self.owner)

    def lost(self) -> None:
        """End the session, because the connection is gone."""
        self.step(Step.LOST)
        self._drop_links()
        self.context.touch(self.owner)

    def _drop_links(self) -> None:
        self.settlement.forget_all()
        for link in self.links:
            link.lost()
            self._flow_links.pop(link, None)
            self._drop_begun(link)
            self.names.release(link)
        self._by_handle.clear()
        self.by_remote_handle.clear()
        self._later_flows = None

    def require_begun(self) -> None:
        """Raise unless links may attach.

        Raises:
            LocalProtocolError: the session is not begun, or is over.
        """
        if self.state not in _BEGUN:
            raise LocalProtocolError(f"cannot attach: this session is {self.state.name}")

    # -- links ------------------------------------------------------------------------------

    def sender(self, name: str) -> SenderLink:
        """Return a new sender link. Nothing is written until it attaches."""
        link = SenderLink(self, name)
        self.names.claim(link)
        return link

    def receiver(self, name: str) -> ReceiverLink:
        """Return a new receiver link. Nothing is written until it attaches."""
        kind = CheckedReceiverLink if self.context.strict.annotation_keys else ReceiverLink
        link = kind(self, name)
        self.names.claim(link)
        return link

    def free_handle(self) -> int:
        """Return the lowest free handle.

        Raises:
            LocalProtocolError: the session has no free handle: each link needs one at both ends.
        """
        handle = self._handles.lowest()
        if handle > self._handle_limit:
            raise LocalProtocolError(
                f"no handle is free: handle-max allows {handle} links on a session (2.7.2): open another session"
            )
        return handle

    @property
    def has_free_handle(self) -> bool:
        """Whether another link can attach: both ends permit one more handle (2.7.2)."""
        return self._handles.lowest() <= self._handle_limit

    @property
    def is_handle_certain(self) -> bool:
        """Whether the peer is known to permit the next handle, if it is free.

        Every peer permits handle 0; its handle-max is in its begin (2.7.2).
        """
        return self.remote is not None or self._handles.lowest() == 0

    @property
    def _handle_limit(self) -> int:
        """The highest handle of both ends, as far as the peer's begin has arrived."""
        limit = self.context.limits.handle_max
        return limit if self.remote is None else min(limit, self.remote.handle_max)

    def link_at(self, remote_handle: object) -> Link | None:
        """Return the link with this handle of the peer, or None."""
        return self.by_remote_handle.get(remote_handle) if isinstance(remote_handle, int) else None

    def bind(self, link: Link) -> None:
        """Reserve ``link.handle``, because the link has attached or will answer an attach."""
        if link.handle not in self._by_handle:
            self._handles.take()
            self._by_handle[link.handle] = link
        if self._later_flows and link.state in WITH_HANDLE and link in self._later_flows:
            del self._later_flows[link]
            self.owe_flow(link)

    def note_failed(self, link: Link) -> None:
        """Remember a link that we detached with an error: its peer must resume it (2.6.5)."""
        if self.failed is None:
            self.failed = {}
        self.failed[link.name, link.role] = None
        if len(self.failed) > _FAILED:
            del self.failed[next(iter(self.failed))]

    def unbind(self, link: Link, *, errant: bool = False) -> None:
        """Free what a link that is detaching or gone no longer needs.

        ``errant`` means that the peer answered our detach: a later frame on its handle is an error.
        """
        self._drop_begun(link)
        if link.state is LinkState.GONE:
            if self._by_handle.pop(link.handle, None) is not None:
                self._handles.free(link.handle)
            assert link.remote_handle is not None
            self.by_remote_handle.pop(link.remote_handle, None)
            if errant:
                if self.errant is None:
                    self.errant = {}
                self.errant[link.remote_handle] = None
            self._flow_links.pop(link, None)
            # Dispositions no longer apply to the deliveries of a link that was closed or failed (2.6.5, 2.6.6).
            # Otherwise the link may be attached again, and they still apply (2.6.4).
            if link.closed or link.error is not None:
                self.settlement.forget(link)
            else:
                self.settlement.wake(link)
            self.names.release(link)
            link.wake()

    @staticmethod
    def _drop_begun(link: Link) -> None:
        """Drop the delivery in progress on ``link``."""
        if isinstance(link, ReceiverLink):
            drop_incoming(link)
        else:
            assert isinstance(link, SenderLink)
            drop_outgoing(link)

    def close_detached(self, link: Link) -> None:
        """Close a link that the peer closed while we only detached it (2.6.6).

        The link is attached once more, to be closed.
        """
        if self.names.find(link.name, link.role) is None:
            again = type(link)(self, link.name)
            again.reported = True  # the end of the old link was reported already
            self.names.claim(again)
            again.attach(source=link.source, target=link.target)
            again.detach()

    # -- events -----------------------------------------------------------------------------

    def emit_attached(self, link: Link) -> None:
        """Report that the peer attached ``link``."""
        self.context.report(LinkAttached(link))

    def emit_detached(self, link: Link, closed: bool, error: Error | None) -> None:
        if not link.reported:
            link.reported = True
            self.context.report(LinkDetached(link, closed, error))

    def emit_ended(self, error: Error | None) -> None:
        """Report the end of the session, once."""
        if not self.reported:
            self.reported = True
            self.context.report(SessionEnded(self, error))
