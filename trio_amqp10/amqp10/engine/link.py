"""Link endpoints: attach, credit, transfers out and in, detach (2.6).

A link knows its session and its deliveries. It does not know the content of messages, nor the node behind its
address. Its ``owner`` is woken when the link has changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.spec.transport import (
    Attach,
    Detach,
    Error,
    Flow,
    ReceiverSettleMode,
    Role,
    SenderSettleMode,
)
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.core import peer_rules as rules
from trio_amqp10.core.errors import Condition, LocalProtocolError

from .error_encoding import error_of, fit
from .serial_numbers import MASK
from .states import LINK, Lifecycle, LinkState, SessionState, Step
from .unsettled_map import unsettled_fields

if TYPE_CHECKING:
    from enum import Enum

    from trio_amqp10.core.errors import RemoteProtocolError

    from .connection_context import Context, Touchable
    from .session_core import SessionCore

FAR: Final = 0x7FFFFFFF
"""The largest credit that serial arithmetic distinguishes from a debt (RFC 1982)."""


class Link(Lifecycle):
    """The common part of senders and receivers.

    Attributes:
        name: unique for this pair of containers and direction (2.6.1).
        role: the role of this end, ``Role.SENDER`` or ``Role.RECEIVER``.
        remote: the peer's attach, once read.
        source, target: the termini of our attach.
        answered: whether our attach answered the peer's; False also before any attach was sent.
        closed: whether either end has closed the link, and the peer knows it.
        closing: whether our detach closed the link.
        credit: the number of deliveries that may still be sent.
        delivery_count: the number of deliveries sent so far, modulo 2**32; None before the sender has
            announced it.
        snd_settle_mode, rcv_settle_mode: as negotiated, once both ends have attached (2.7.3).
        flow_properties: the properties of our flows, e.g. a ``txn-id`` (4.4.3).
        owner: woken after credit, deliveries or settlements arrived.
        error: the error that ended the link, or None.
        reported: whether the end of the link was reported.
        incomplete: whether the unsettled map of one end did not fit its attach. Then only resumed deliveries
            may be sent, and the link must be attached again after that (2.7.3).
        incomplete_here: whether that was our map.
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
        "reported",
        "session",
        "snd_settle_mode",
        "source",
        "target",
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
        self.reported: bool = False
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
        """Send our attach, as a request or as an answer (2.6.3).

        With a known ``terminus`` the link resumes: the attach has an unsettled map with as many deliveries as
        fit. There is no map if the peer attaches again without a map while the deliveries are still live on
        the same session: then they continue under their delivery-ids (2.6.4, 2.7.3).

        Raises:
            LocalProtocolError: the link is attached already, the attach does not fit a frame, or the session
                is not begun or over.
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
            # The terminus has been attached before: offer its unsettled deliveries for resumption (2.6.13).
            frame_size = self.context.write_buffer.frame_size
            fields |= unsettled_fields(fields, self.terminus.states(), frame_size)
        attach = Attach(**fields)
        body = encode(attach)
        if self.session.state is SessionState.BEGIN_RCVD:
            self.session.begin()  # the peer began first, and a detach or a fault needs our attach at once
        # Dispositions that wait must be sent first, because the deliveries get other ids, or none, from now on.
        self.session.settlement.flush()
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
            # The deliveries stay live under their ids, on this endpoint (2.6.4).
            self.terminus.rebind(self)
        elif self.terminus is not None:
            # The deliveries have no id on this session before they are resumed (2.6.13).
            if self.answered:
                self.context.resumed += len(self.terminus.unsettled)
            self.terminus.bind(self)
            if self.remote is not None and self.has_terminus():
                # The peer's attach came first, so both maps are known.
                self.resume()

    def _is_reattached(self) -> bool:
        """Whether the peer attaches again, without resuming, while deliveries are live.

        Dispositions still apply to them then (2.6.4).
        """
        return (
            self.terminus is not None
            and self.remote is not None
            and self.remote.unsettled is None
            and self.terminus.is_live_on(self.session)
        )

    def on_attach(self, attach: Attach) -> None:
        """Process the peer's attach, the request or the answer."""
        self.step(Step.RECV_ATTACH)
        self.remote = attach
        self.remote_handle = attach.handle
        self.context.answers.answered(self)
        if self.state is LinkState.ATTACHED and not self.has_terminus():
            # The peer refuses our attach: it attached without a terminus, and must detach now (2.6.3).
            self.context.detaches.expect(self, self.name)
        # Each end decides its own settle mode; the field of the other end's attach is only a wish (2.7.3).
        if self.role is Role.SENDER:
            self.rcv_settle_mode = attach.rcv_settle_mode
        else:
            self.snd_settle_mode = attach.snd_settle_mode
        self.incomplete = self.incomplete or attach.incomplete_unsettled

    def resume(self) -> None:
        """Resume the unsettled deliveries, after both ends have attached (2.6.13)."""

    def refuse(self, error: Error) -> None:
        """Refuse the peer's attach: attach without our terminus, then detach (2.6.3).

        The peer's own terminus is echoed if a frame has room for it.

        Raises:
            LocalProtocolError: there is no attach to answer, or ``error`` does not fit a frame.
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
        """Detach, and end the link for good if ``closed`` (2.6.6).

        Nothing happens if the link is over already. Deliveries that are queued and not yet sent are dropped,
        except for those that the terminus keeps; a closed link keeps none. The description of ``error`` is
        shortened to fit the peer's frame size.

        Raises:
            LocalProtocolError: ``error`` is too long even without its description.
        """
        error = fit(error, self.context.write_buffer.frame_size)
        if self.state is LinkState.ATTACH_RCVD:
            # The standard has no detach without an attach before it.
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
            # A later frame shows whether the peer knew of this error: see ``check_errant``.
            self._failed_at = self.session.windows.mark()
        if closed:
            self._discard_terminus()
        elif error is not None:
            # The link is not closed, so its terminus survives, and the peer must resume the link (2.6.5).
            if (
                error.condition != Condition.STOLEN
            ):  # a peer that stole its link has attached it already (2.6.1)
                self.session.note_failed(self)
            if self.terminus is not None:
                # Dispositions for its deliveries are dropped from now on (2.6.5), because the deliveries may
                # already be on the next link.
                self.session.settlement.forget(self)
        if self.error is None:
            self.error = error
        self.session.unbind(self)

    def fail(self, fault: RemoteProtocolError, *, closed: bool = True) -> None:
        """Detach with ``fault``, because the peer broke a rule, and report it.

        A link that is detaching already has nothing left to end. A stolen link is not ``closed``: it lives on
        elsewhere (2.6.1).
        """
        if self.state is not LinkState.DETACH_SENT:
            error = error_of(fault, f"{self.name!r}: ")
            self.detach(closed=closed, error=error)
            self.session.emit_detached(self, closed, error)

    def check_errant(self) -> bool:
        """Whether the peer used a link that it knows to have ended with an error.

        This ends the session (2.6.5). Frames that the peer sent before it read our detach are dropped instead
        (2.6.6): so a later frame is an error only if the peer has shown that it read on. Dispositions do not
        show it and are no fault, because their ranges name no link. An attach of the same name is no fault
        either: it may be there to close the link (2.6.6).
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
        """Process the peer's detach, and answer it unless it is the answer to ours."""
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
            # Our detach did not close the link, but the peer closed it: close it here, too (2.6.6).
            self.session.close_detached(self)

    def _discard_terminus(self) -> None:
        """Forget the terminus, because the link is closed (2.6.6).

        The settlement does not find deliveries that were not resumed, or whose link we had detached before:
        they are woken here.
        """
        terminus, self.terminus = self.terminus, None
        for delivery in () if terminus is None else terminus.deliveries():
            if delivery.link is self:
                self.context.touch(delivery.watcher)

    def lost(self) -> None:
        """End the link, because its session or connection is gone."""
        self.step(Step.LOST)
        self._stop_awaiting()
        self.wake()

    def _stop_awaiting(self) -> None:
        """Stop waiting for the peer's attach and detach."""
        self.context.answers.answered(self)
        self.context.detaches.answered(self)

    def wake(self) -> None:
        """List the owner as touched, so that it looks at this link after the read."""
        if self.owner is not None:
            self.context.touch(self.owner)

    # -- flow -------------------------------------------------------------------------------

    @property
    def deliveries(self) -> int:
        """The number of deliveries that began on this link, which does not wrap.

        Credit that was given up is counted in ``delivery_count`` (2.6.7), but not here.
        """
        return self._counted + (((self.delivery_count or 0) - self._count_mark) & MASK)

    def tally(self) -> None:
        """Add the deliveries so far to the total, before the count jumps or wraps."""
        self._counted = self.deliveries
        self._count_mark = self.delivery_count or 0

    def count_from(self, delivery_count: int) -> None:
        """Set ``delivery_count``, without counting deliveries for the difference."""
        self.tally()
        self.delivery_count = self._count_mark = delivery_count

    def write_flow(self, *, echo: bool = False) -> None:
        """Write a flow with the state of this link."""
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
        """Whether the peer has a terminus for the link; without one it refuses (2.6.3)."""
        assert self.remote is not None
        return (self.remote.target if self.role is Role.SENDER else self.remote.source) is not None

    def _available(self) -> int | None:
        """Return how many messages wait for credit at the sender, or None (2.6.7)."""
        raise NotImplementedError

    def _announce(self, max_message_size: int | None) -> int | None:
        return max_message_size

    def _on_bound(self, attach: Attach) -> None:
        """Take over the fields of our own attach, which was just sent."""

    def _abort(self) -> None:
        pass

    def on_flow(self, flow: Flow) -> None:
        """Process the peer's flow for this link (2.6.7)."""
        raise NotImplementedError
