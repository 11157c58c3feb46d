"""Link endpoints: attach, credit, transfers out and in, detach (2.6).

A link knows its session and its deliveries. It does not know what a message says, nor which
node stands behind its address; an ``owner`` is woken when there is something to look at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10 import protocol_rules as rules
from trio_amqp10.errors import Condition, LocalProtocolError
from trio_amqp10.spec.transport import (
    Attach,
    Detach,
    Error,
    Flow,
    ReceiverSettleMode,
    Role,
    SenderSettleMode,
)
from trio_amqp10.wire.encode import encode

from .error_encoding import error_of, fit
from .serial_numbers import MASK
from .states import LINK, Lifecycle, LinkState, SessionState, Step
from .unsettled_map import unsettled_fields

if TYPE_CHECKING:
    from enum import Enum

    from trio_amqp10.errors import RemoteProtocolError

    from .connection_context import Context, Touchable
    from .session_core import SessionCore

__all__ = ["FAR", "Link"]

FAR: Final = 0x7FFFFFFF
"""The largest credit that serial arithmetic can tell from a small debt (RFC 1982)."""


class Link(Lifecycle):
    """What both ends of a link have in common.

    Attributes:
        name: unique for this pair of containers and direction (2.6.1).
        role: ``Role.SENDER`` or ``Role.RECEIVER``: ours.
        remote: the peer's attach, once read.
        source, target: what our attach said.
        answered: whether our attach came second (False: the peer began this link, or nobody yet).
        closed: whether it was ended for good, by whichever end, and the peer knows.
        closing: whether our detach ended the link for good.
        credit: deliveries that may still be sent.
        delivery_count: deliveries sent so far, wrapped; None until the sender has said it.
        snd_settle_mode, rcv_settle_mode: as negotiated, once both have attached (2.7.3).
        flow_properties: what our flows say beside the numbers, e.g. a ``txn-id`` (4.4.3).
        owner: woken when credit, deliveries or settlements came.
        error: why the link is gone, where an error ended it.
        incomplete: the unsettled map of one end did not fit its attach: only what is resumed may be sent,
            and then the link has to be attached anew (2.7.3).
        incomplete_here: it was ours.
    """

    __slots__ = (
        "_count_mark",
        "_counted",
        "_failed_at",
        "answered",
        "closed",
        "closing",
        "context",
        "credit",
        "delivery_count",
        "drain",
        "error",
        "flow_properties",
        "handle",
        "incomplete",
        "incomplete_here",
        "name",
        "owner",
        "rcv_settle_mode",
        "remote",
        "remote_handle",
        "session",
        "snd_settle_mode",
        "source",
        "target",
        "told",
    )

    _table = LINK
    _scope = "link"

    role: bool
    terminus: Any

    def __init__(self, session: SessionCore, name: str) -> None:
        self.state: Enum = LinkState.DETACHED
        self.session: SessionCore = session
        self.context: Context = session.context
        self.name: str = name
        self.handle: int = -1
        self.remote_handle: int | None = None
        self.remote: Attach | None = None
        self.source: Any = None
        self.target: Any = None
        self.answered: bool = False
        self.closed: bool = False
        self.closing: bool = False
        self.credit: int = 0
        self.delivery_count: int | None = None
        self._counted = 0
        self._count_mark = 0
        self.drain: bool = False
        self.flow_properties: dict[Any, Any] | None = None
        self.snd_settle_mode: int = SenderSettleMode.MIXED
        self.rcv_settle_mode: int = ReceiverSettleMode.FIRST
        self.owner: Touchable | None = None
        self.error: Error | None = None
        self.told: bool = False
        self.incomplete: bool = False
        self.incomplete_here: bool = False
        self._failed_at: tuple[int, int] | None = None

    def __repr__(self) -> str:
        role = "receiver" if self.role is Role.RECEIVER else "sender"
        return f"<{role} {self.name!r} {self.state.name} credit={self.credit}>"

    # -- attach -----------------------------------------------------------------------------

    def attach(
        self,
        *,
        source: Any = None,
        target: Any = None,
        snd_settle_mode: int = SenderSettleMode.MIXED,
        rcv_settle_mode: int = ReceiverSettleMode.FIRST,
        max_message_size: int | None = None,
        properties: dict[Any, Any] | None = None,
        offered_capabilities: tuple[str, ...] = (),
        desired_capabilities: tuple[str, ...] = (),
    ) -> None:
        """Attach this end, as the first or as the answer (2.6.3).

        With a ``terminus`` that is known it resumes, and says what is unsettled: as much of it as fits. Where the peer
        attaches again without a map, on the session on which that is still live, it says none either, and the deliveries
        go on under their delivery-ids (2.6.4, 2.7.3).

        Raises:
            LocalProtocolError: it is attached already, or the attach does not fit a frame, or the
                session is not begun or over.
        """
        self.require(Step.SEND_ATTACH)
        self.session.require_begun()
        handle = self.session.free_handle() if self.handle < 0 else self.handle
        fields: dict[str, Any] = {
            "name": self.name,
            "handle": handle,
            "role": self.role,
            "snd_settle_mode": SenderSettleMode(snd_settle_mode),
            "rcv_settle_mode": ReceiverSettleMode(rcv_settle_mode),
            "source": source,
            "target": target,
            "initial_delivery_count": self.delivery_count,
            "max_message_size": self._announce(max_message_size),
            "properties": properties,
            "offered_capabilities": offered_capabilities,
            "desired_capabilities": desired_capabilities,
        }
        reattaches = self._is_reattached()
        if self.terminus is not None and self.terminus.known and not reattaches:
            frame_size = self.context.write_buffer.frame_size
            fields |= unsettled_fields(fields, self.terminus.states(), frame_size)
        attach = Attach(**fields)
        body = encode(attach)
        if self.session.state is SessionState.BEGIN_RCVD:
            self.session.begin()  # a detach or a fault wants the attach before anyone has begun
        self.session.settlement.flush()  # of deliveries that have another id, or none, from now on
        self.session.write_body(body)
        self.step(Step.SEND_ATTACH)
        self.handle = handle
        self.source, self.target = source, target
        self.answered = self.remote is not None
        if not self.answered:
            self.context.answers.expect(self, f"the attach of link {self.name!r}")
        self.session.bind(self)
        if self.role is Role.SENDER:
            self.snd_settle_mode = snd_settle_mode
        else:
            self.rcv_settle_mode = rcv_settle_mode
        self.incomplete_here = attach.incomplete_unsettled
        self.incomplete = self.incomplete or attach.incomplete_unsettled
        self._on_bound(attach)
        if self.terminus is not None and reattaches:
            self.terminus.rebind(self)
        elif self.terminus is not None:
            if self.answered:
                self.context.resumed += len(self.terminus.unsettled)
            self.terminus.bind(self)
            if self.remote is not None and self.has_terminus():
                self.resume()

    def _is_reattached(self) -> bool:
        """Whether the peer attaches the link again, rather than resume it, while its deliveries are live (2.6.4)."""
        return (
            self.terminus is not None
            and self.remote is not None
            and self.remote.unsettled is None
            and self.terminus.is_live_on(self.session)
        )

    def on_attach(self, attach: Attach) -> None:
        """The peer's attach, first or second."""
        self.step(Step.RECV_ATTACH)
        self.remote = attach
        self.remote_handle = attach.handle
        self.context.answers.answered(self)
        if self.state is LinkState.ATTACHED and not self.has_terminus():
            self.context.detaches.expect(self, self.name)
        # Each end's own word is the actual mode; the other end's is what it would like (2.7.3).
        if self.role is Role.SENDER:
            self.rcv_settle_mode = attach.rcv_settle_mode
        else:
            self.snd_settle_mode = attach.snd_settle_mode
        self.incomplete = self.incomplete or attach.incomplete_unsettled

    def resume(self) -> None:
        """Both ends are attached: take up what is unsettled (2.6.13)."""

    def refuse(self, error: Error) -> None:
        """Answer an attach that cannot be had: attach without a terminus of ours, then detach (2.6.3).

        The peer's own terminus is echoed where a frame has room for it.

        Raises:
            LocalProtocolError: there was no attach to answer, or ``error`` fits no frame.
        """
        if self.state is not LinkState.ATTACH_RCVD:
            raise LocalProtocolError(f"cannot refuse: this link is {self.state.name}")
        fitting = fit(error, self.context.write_buffer.frame_size)
        assert self.remote is not None
        try:
            if self.role is Role.SENDER:
                self.attach(target=self.remote.target)
            else:
                self.attach(source=self.remote.source)
        except LocalProtocolError:
            self.attach()
        self.detach(error=fitting)

    # -- detach -----------------------------------------------------------------------------

    def detach(self, *, closed: bool = True, error: Error | None = None) -> None:
        """Detach; ``closed`` ends the link for good (2.6.6). Nothing happens where it is over already.

        What was queued and not yet sent on this link is dropped, but for what its terminus keeps; and
        what is closed keeps nothing. A description is shortened to what a
        frame of the peer's has room for.

        Raises:
            LocalProtocolError: ``error`` is too long even so.
        """
        error = fit(error, self.context.write_buffer.frame_size)
        if self.state is LinkState.ATTACH_RCVD:
            self.attach()
        if not self.allows(Step.SEND_DETACH):
            return
        self.session.flush()
        self._abort()
        self.session.write_body(encode(Detach(handle=self.handle, closed=closed, error=error)))
        self.step(Step.SEND_DETACH)
        self._stop_awaiting()
        self.closing = closed
        if error is not None:
            self._failed_at = self.session.windows.mark()
        if closed:
            self._discard_terminus()
        elif error is not None:
            if error.condition != Condition.STOLEN:  # else its peer has attached it again already (2.6.1)
                self.session.note_failed(self)
            if self.terminus is not None:
                # What comes now for its deliveries is dropped (2.6.5), for they may be on the next link already.
                self.session.settlement.forget(self)
        if self.error is None:
            self.error = error
        self.session.unbind(self)

    def fail(self, fault: RemoteProtocolError, *, closed: bool = True) -> None:
        """The peer broke a rule on this link: detach with the error, and tell the adapter.

        A link that is detaching already has nothing left to end. One that was stolen is not ``closed``:
        it lives on elsewhere (2.6.1).
        """
        if self.state is not LinkState.DETACH_SENT:
            error = error_of(fault, f"{self.name!r}: ")
            self.detach(closed=closed, error=error)
            self.session.emit_detached(self, closed, error)

    def check_errant(self) -> bool:
        """Whether the peer wrote on this link although it had read that an error ended it: that ends the session (2.6.5).

        What it wrote before it read that is dropped, like everything behind a detach (2.6.6). To tell one from
        the other takes a sign that it has read on. Dispositions give none, and are no fault: their
        ranges name no link. Nor does an attach of the same name, which may be there to close the link (2.6.6).
        """
        in_window = self.context.strict.incoming_window
        if self._failed_at is None or not self.session.windows.is_behind(
            self._failed_at, in_window=in_window
        ):
            return False
        text = f"frames for link {self.name!r}, which the peer knows to be detached with an error"
        self.session.fail(rules.ERRANT_LINK.broken(text))
        return True

    def on_detach(self, detach: Detach) -> None:
        """The peer's detach: answered at once, unless it is the answer."""
        if self.state is LinkState.ATTACH_RCVD:
            self.attach()
        crossed = self.state is LinkState.DETACH_SENT
        self.step(Step.RECV_DETACH)
        if detach.closed:
            self._discard_terminus()
        self.closed = detach.closed or self.closing
        if self.error is None:
            self.error = detach.error
        self.detach(closed=detach.closed)
        self.session.unbind(self, errant=crossed)
        if crossed and detach.closed and not self.closing:
            self.session.close_anew(self)

    def _discard_terminus(self) -> None:
        """The link is closed: nothing is kept of it (2.6.6).

        The settlement does not find its deliveries if they were not resumed, or if we had detached before.
        """
        terminus, self.terminus = self.terminus, None
        for delivery in () if terminus is None else terminus.deliveries():
            if delivery.link is self:
                self.context.touch(delivery.watcher)

    def lost(self) -> None:
        """The session or the connection is gone."""
        self.step(Step.LOST)
        self._stop_awaiting()
        self.wake()

    def _stop_awaiting(self) -> None:
        """Nothing that the peer owes is awaited any more."""
        self.context.answers.answered(self)
        self.context.detaches.answered(self)

    def wake(self) -> None:
        """Have the owner look at this link once the present octets are read."""
        if self.owner is not None:
            self.context.touch(self.owner)

    # -- flow -------------------------------------------------------------------------------

    @property
    def deliveries(self) -> int:
        """Deliveries that began on this link so far: what the count tells, beyond where it wraps.

        Credit that was given up counts as used in ``delivery_count`` (2.6.7), and not here.
        """
        return self._counted + (((self.delivery_count or 0) - self._count_mark) & MASK)

    def tally(self) -> None:
        """Note how far the count has come, because it may jump or, some flows later, wrap."""
        self._counted = self.deliveries
        self._count_mark = self.delivery_count or 0

    def count_from(self, delivery_count: int) -> None:
        """The count goes on from here, without deliveries for what it leaps over."""
        self.tally()
        self.delivery_count = self._count_mark = delivery_count

    def write_flow(self, *, echo: bool = False) -> None:
        """Write where this link stands, now."""
        flow = self.session.windows.flow(
            handle=self.handle,
            delivery_count=self.delivery_count,
            link_credit=self.credit,
            available=self._available(),
            drain=self.drain,
            echo=echo,
            properties=self.flow_properties,
        )
        self.session.write_body(encode(flow))

    def has_terminus(self) -> bool:
        """Whether the peer's attach has a terminus at its end: none there is a refusal, and a detach follows (2.6.3)."""
        assert self.remote is not None
        return (self.remote.target if self.role is Role.SENDER else self.remote.source) is not None

    def _available(self) -> int | None:
        """Messages that wait for credit at the sender, as far as this end knows (2.6.7)."""
        raise NotImplementedError

    def _announce(self, max_message_size: int | None) -> int | None:
        return max_message_size

    def _on_bound(self, attach: Attach) -> None:
        """It is bound to its session, and this is its attach."""

    def _abort(self) -> None:
        pass

    def on_flow(self, flow: Flow) -> None:
        """The peer's view of this link (2.6.7)."""
        raise NotImplementedError
