"""Session endpoints: begin, links that come and go, end (2.5).

What links see of their session is in ``session_core``; what the peer sends on it is read in ``session_dispatch``. A session
knows no connection: it writes frames and reports events through the context that it was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spec.transport import Begin, End, Error
from trio_amqp10.wire.encode import encode

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

    from trio_amqp10.errors import RemoteProtocolError

    from .connection_context import Context
    from .link import Link
    from .link_names import LinkNames

__all__ = ["Session"]

_FAILED: Final = 1000
"""So many links that failed are remembered."""
_BEGUN = (SessionState.BEGIN_SENT, SessionState.BEGIN_RCVD, SessionState.MAPPED)


class Session(SessionCore):
    """One session: a pair of channels, and what flows on them in order.

    Args:
        context: what all parts of the connection share.
        names: the links of the connection by name.
        channel: ours.
        released: called when both ends have said end, and the channels are free.
        open_first: writes our open where the peer's has come and ours has not: a begin has to follow it (2.4.1).

    Attributes:
        names: as given.
        remote: the peer's begin, once read.
        answered: whether our begin came second.
        errant: the peer's handles on which it has answered our detach: what it still sends there is a fault.
        failed: names and roles of links that we detached with an error and did not close, as far as that is to be known.
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
        "told",
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
        self.told: bool = False
        self._by_handle: dict[int, Link] = {}
        self._handles = FreeNumbers()
        self.errant: dict[int, None] = {}
        self.failed: dict[tuple[str, bool], None] = {}

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
        self._open_first()  # an end or a fault wants the begin before anyone has opened
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
        self.dirty()  # flows that were asked for before we could write any

    def on_begin(self, begin: Begin, remote_channel: int) -> None:
        """The peer's begin, first or second."""
        self.step(Step.RECV_BEGIN)
        self.context.answers.answered(self)
        self.remote = begin
        self.remote_channel = remote_channel
        self.windows.begun(begin.next_outgoing_id, begin.incoming_window, begin.outgoing_window)

    def end(self, error: Error | None = None) -> None:
        """End the session and every link on it (2.5.2). Nothing happens where it is over already.

        A description is shortened to what a frame of the peer's has room for.

        Raises:
            LocalProtocolError: ``error`` is too long even so.
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
        """The peer broke a rule of this session: end it with the error, and tell the adapter."""
        error = error_of(fault)
        self.end(error)
        self.emit_ended(error)

    def on_end(self, end: End) -> None:
        """The peer's end: answered at once, unless it is the answer."""
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
        """The connection is gone."""
        self.step(Step.LOST)
        self._drop_links()
        self.context.touch(self.owner)

    def _drop_links(self) -> None:
        self.settlement.forget_all()
        for link in self.links:
            link.lost()
            self._flow_links.pop(link, None)
            self._later_flows.pop(link, None)
            self._drop_begun(link)
            self.names.release(link)
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
        self.names.claim(link)
        return link

    def receiver(self, name: str) -> ReceiverLink:
        """A new link to receive on; nothing is written until it attaches."""
        kind = CheckedReceiverLink if self.context.strict.annotation_keys else ReceiverLink
        link = kind(self, name)
        self.names.claim(link)
        return link

    def free_handle(self) -> int:
        """The lowest handle not in use.

        Raises:
            LocalProtocolError: no more links are possible on this session: each needs a handle of both ends.
        """
        handle = self._handles.lowest()
        limit = self.context.limits.handle_max
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
        if link.state in WITH_HANDLE and link in self._later_flows:
            del self._later_flows[link]
            self.owe_flow(link)

    def note_failed(self, link: Link) -> None:
        """We detached a link with an error and did not close it: its peer has to resume it (2.6.5)."""
        if self.context.strict.attach_after_error:
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
            self.names.release(link)
            link.wake()

    @staticmethod
    def _drop_begun(link: Link) -> None:
        """A delivery that was begun on ``link`` will not be complete."""
        if isinstance(link, ReceiverLink):
            drop_incoming(link)
        else:
            assert isinstance(link, SenderLink)
            drop_outgoing(link)

    def close_anew(self, link: Link) -> None:
        """The peer closed what we had only detached: attach once more, to close it too (2.6.6)."""
        if self.names.find(link.name, link.role) is None:
            again = type(link)(self, link.name)
            again.told = True  # whoever held this link knows all there is to know
            self.names.claim(again)
            again.attach(source=link.source, target=link.target)
            again.detach()

    # -- events -----------------------------------------------------------------------------

    def emit_attached(self, link: Link) -> None:
        """Report the peer's attach."""
        self.context.report(LinkAttached(link))

    def emit_detached(self, link: Link, closed: bool, error: Error | None) -> None:
        if not link.told:
            link.told = True
            self.context.report(LinkDetached(link, closed, error))

    def emit_ended(self, error: Error | None) -> None:
        """Report that the session is over, once."""
        if not self.told:
            self.told = True
            self.context.report(SessionEnded(self, error))
