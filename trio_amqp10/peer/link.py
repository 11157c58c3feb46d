"""What senders and receivers share: attach, detach, resume, why a link is gone.

Knows nothing of credit or messages; see ``sender`` and ``receiver``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio

from trio_amqp10.engine.events import LinkDetached
from trio_amqp10.engine.link import Link as EngineLink
from trio_amqp10.engine.states import LinkState
from trio_amqp10.errors import AmqpError, LocalProtocolError
from trio_amqp10.net.waiters import Waiter
from trio_amqp10.protocol_rules import UNSETTLED_MAP_SIZE
from trio_amqp10.spec.transport import Attach, Error, ReceiverSettleMode, Role, SenderSettleMode

from .errors import (
    ConnectionClosedError,
    FilterNotSupportedError,
    GuaranteeNotSupportedError,
    LinkDetachedError,
    LinkRefusedError,
    SessionEndedError,
    anew,
    describe,
    is_final,
    link_error,
    lost_with,
)
from .link_lifecycle import AWAITED, CARRIED, ENDED, NEW, PHASE_CHANGES, LinkPhase, PhaseChange

if TYPE_CHECKING:
    from collections.abc import Callable

    from .delivery import Delivery, Outcome
    from .link_carriers import LinkConnection, LinkSession
    from .link_options import LinkOptions
    from .statistics import ReceiverStatistics, SenderStatistics
    from .terminus_store import ResumableLinkState

__all__ = ["Link"]

E = TypeVar("E", bound=EngineLink)


class Link(Waiter, trio.abc.AsyncResource, Generic[E]):
    """One end of a link, attached.

    Attributes:
        session: the session that it is on.
    """

    __slots__ = ("_conn", "_detached", "_lifecycle", "_link", "_past", "_resumable_state", "session")

    def __init__(self, session: LinkSession, link: E) -> None:
        super().__init__()
        self._resumable_state: ResumableLinkState | None = None
        self._past = 0
        self._lifecycle = LinkPhase.OPENING
        self._bind(session, link)

    def _bind(self, session: LinkSession, link: E) -> None:
        """From now on this is about ``link``, which is yet to be attached."""
        self._link = link
        link.owner = self
        self.session: LinkSession = session
        self._conn: LinkConnection = session.connection
        self._detached: LinkDetached | None = None

    # -- its life ---------------------------------------------------------------------------

    @property
    def life(self) -> LinkPhase:
        """The state that the link is in, after what its engine's end and its connection have come to since."""
        life = self._lifecycle
        if life in CARRIED:
            if self._link.state is LinkState.GONE:
                self.turn(PhaseChange.SUSPEND if self._covered else PhaseChange.LOSE)
        elif life in AWAITED and not self._covered:
            self.turn(PhaseChange.LOSE)
        return self._lifecycle

    def turn(self, turn: PhaseChange) -> None:
        """Change the state by the table of ``link_lifecycle``."""
        self._lifecycle = PHASE_CHANGES[self._lifecycle].get(turn, self._lifecycle)

    @property
    def closed(self) -> bool:
        """Whether this link is over, by either end; one that its connection brings back is not."""
        return self.life in ENDED

    @property
    def is_suspended(self) -> bool:
        """Whether the link is gone for now, and is to be attached again."""
        return self.life in AWAITED

    def why(self) -> Exception | None:
        """What a call raises in the state that the link is in; None while the link lives, or comes back."""
        life = self.life
        if life not in ENDED:
            return None
        if life is LinkPhase.CLOSED:
            return trio.ClosedResourceError(f"link {self.name!r} was closed here")
        if self._detached is None and self.session.closed_here:
            return trio.ClosedResourceError(f"link {self.name!r} was closed here, with its session")
        return self.cause() or self._gone()

    def check_alive(self) -> None:
        """Raise what ended the link, if something did.

        Raises:
            trio.ClosedResourceError: we closed it.
            LinkDetachedError, SessionEndedError, ConnectionClosedError: somebody else ended it.
        """
        failure = self.why()
        if failure is not None:
            raise failure

    def cause(self) -> Exception | None:
        """Why the peer, or what carried us, ended this link; None while it lives or was ended without an error."""
        life = self.life
        if life is LinkPhase.FAILED:
            assert self._resumable_state is not None
            assert self._resumable_state.failure is not None
            return anew(self._resumable_state.failure)
        if self._detached is not None:
            if life is LinkPhase.REFUSED:
                return self._gone(LinkRefusedError)
            return None if self._detached.error is None else self._gone()
        cause = self.session.cause(opening=life is LinkPhase.UNANSWERED)
        lost = self._link.state is LinkState.GONE and not self.session.was_ended
        if cause is None and lost and self._conn.recovering:
            return lost_with(self._loss(), f"link {self.name!r} was lost")
        return cause

    @property
    def name(self) -> str:
        """The link's name, unique between these two containers in this direction (2.6.1)."""
        return self._link.name

    @property
    def role(self) -> bool:
        """Which end is ours: ``Role.SENDER`` or ``Role.RECEIVER``."""
        return self._link.role

    @property
    def remote(self) -> Attach:
        """The peer's attach."""
        remote = self._link.remote
        if (remote is None or not self._link.has_terminus()) and self._resumable_state is not None:
            remote = self._resumable_state.remote or remote
        assert remote is not None
        return remote

    def permitted(self, delivery: Delivery, outcome: Outcome) -> Outcome | None:  # noqa: ARG002
        """As ``LinkOwner.permitted``. What the source of a sender permits (3.5.3), a program knows; a container looks."""
        return outcome

    @property
    def credit(self) -> int:
        """Messages that may still be sent without more credit (2.6.7)."""
        return self._link.credit

    @property
    def state(self) -> str:
        """``"ATTACHED"``, ``"GONE"``, or what lies between."""
        return self._link.state.name

    @property
    def terminus(self) -> Any:
        """Where messages go to or come from: at the peer, or here where the peer has opened the link (3.5)."""
        link = self._link
        unanswered = link.remote is None and (
            self._resumable_state is None or self._resumable_state.remote is None
        )
        ends = link if link.answered or unanswered else self.remote  # until then, what we have asked for
        return ends.source if (link.role is Role.SENDER) is link.answered else ends.target

    @property
    def node(self) -> str | None:
        """The address of the node, at whichever end it is; ``address`` is always what the peer calls its own."""
        return getattr(self.terminus, "address", None)

    @property
    def deliveries(self) -> int:
        """Deliveries that began on it so far, also where it was attached before (2.6.7)."""
        return self._past + self._link.deliveries

    def statistics(self) -> SenderStatistics | ReceiverStatistics:
        """What it has done so far, and where it stands: live figures by name."""
        raise NotImplementedError

    @property
    def _resumable_terminus(self) -> Any:
        """The terminus that outlasts an attachment, or None."""
        return None if self._resumable_state is None else self._resumable_state.terminus

    # -- why it is gone ---------------------------------------------------------------------

    def on_detached(self, event: LinkDetached) -> None:
        """The engine reports that the link is over."""
        if event.link is not self._link:
            return  # an attachment before this one, whose detach is answered late
        passes = event.error is not None and not is_final(event.error)
        if passes and self._covered and self._lifecycle not in NEW:
            self._suspend(link_error(self.name, event.error, event.closed))
            self.wake()
        else:
            self._detached = event
            if self._was_attached():
                self.opened()
            self.turn(PhaseChange.DETACH)
            self.uncover()
            self.wake_all()

    def missed(self) -> None:
        """The link was over before it had an owner."""
        link = self._link
        if link.told:
            self._detached = LinkDetached(link, True, link.error)
            self.turn(PhaseChange.DETACH)

    def _loss(self) -> Exception | None:
        """Why the transport was lost that carried this last."""
        recovery = self._conn.recovery
        return self._conn.loss() or (None if recovery is None else recovery.loss)

    def _gone(self, kind: type[LinkDetachedError] = LinkDetachedError) -> LinkDetachedError:
        link, event = self._link, self._detached
        terminus = link.target if link.role is Role.SENDER else link.source
        address = getattr(terminus, "address", None)
        if event is None:
            return link_error(self.name, None, True, kind, address)
        return link_error(self.name, event.error, event.closed, kind, address)

    def reading(self, delivery: Any) -> None:
        """The calling task reads ``delivery`` in chunks; None: it is done with it."""

    # -- attach and close -------------------------------------------------------------------

    def start(self, options: LinkOptions) -> None:
        """Write the attach."""
        if self._resumable_state is not None:
            self._link.terminus = self._resumable_state.terminus
        options.attach_to(self._link)

    def abandon(self) -> None:
        """The link did not come to be, or is not wanted: detach it, whatever the peer says."""
        self.turn(PhaseChange.CLOSE)
        self.uncover()
        link = self._link
        if link.state is LinkState.DETACHED:
            link.session.connection.names.release(link)
        link.detach()

    def opened(self) -> None:
        """Both ends are attached: from now on a detach is no refusal."""
        self.turn(PhaseChange.OPEN)

    def on_attached(self) -> None:
        """The peer has answered our attach."""
        if self._conn.recovery is not None and self._has_terminus():
            self._conn.recovery.answered(self)
        resumable = self._resumable_state
        if resumable is not None and self._has_terminus():
            if not self._link.incomplete:
                resumable.left = None
            if self._covered and self._lifecycle not in NEW:
                try:
                    self.check_answer(resumable.options)
                except (
                    FilterNotSupportedError,
                    GuaranteeNotSupportedError,
                ) as weaker:  # another peer answers than the one before
                    self._link.detach()
                    self.stop_recovery(weaker)
                    return
            if resumable.terminus is not None:
                self._take_up()
            if self._lifecycle not in NEW:
                self.turn(PhaseChange.OPEN)
                if resumable.on_restored is not None:
                    resumable.on_restored()
        self.wake()

    def _take_up(self) -> None:
        """The link goes on where it was left."""

    async def attached(self) -> None:
        """Wait until the peer has attached too; it may have detached since.

        Raises:
            LinkRefusedError: it would not.
            SessionEndedError, ConnectionClosedError: what was to carry the link is gone.

        Cancelled: nothing has happened.
        """
        while not self._was_attached():
            self.check_alive()
            await self.wait()
        self.opened()

    def _was_attached(self) -> bool:
        """Whether the peer has attached, be it that it has detached again, as one that has nothing to send (2.6.3).

        A detach with an error is a refusal all the same.
        """
        detached = self._detached
        left = detached is not None and detached.error is None
        return self._has_terminus() and (left or self._link.state is LinkState.ATTACHED)

    def _has_terminus(self) -> bool:
        """Whether the peer's last attach is no refusal (2.6.3)."""
        return self._link.remote is not None and self._link.has_terminus()

    def check_answer(self, options: LinkOptions) -> None:
        """Compare the negotiated settle modes with those that were asked for (2.7.3).

        Raises:
            GuaranteeNotSupportedError: they are weaker.
        """
        sender, receiver = options.modes()
        weaker = (
            sender is SenderSettleMode.UNSETTLED and self._link.snd_settle_mode == SenderSettleMode.SETTLED
        )
        if receiver is ReceiverSettleMode.SECOND:
            modes = (self._link.rcv_settle_mode, self.remote.rcv_settle_mode)
            weaker = weaker or any(mode != ReceiverSettleMode.SECOND for mode in modes)
        if weaker:
            raise GuaranteeNotSupportedError(
                f"link {self.name!r} was to be {options.guarantee}, and the peer settles weaker: "
                f"snd-settle-mode {self._link.snd_settle_mode}, rcv-settle-mode {self.remote.rcv_settle_mode}"
            )

    async def aclose(self, error: Error | None = None) -> None:
        """Detach for good; waits for the peer's answer at most ``close_timeout`` seconds (2.6.6).

        A store forgets the link when the peer has answered; until then the peer may know of it, and so does the store.

        Cancelled: the detach is on its way all the same, only the answer is not awaited.
        """
        if self._lifecycle is LinkPhase.CLOSED:
            await trio.lowlevel.checkpoint()
            return
        try:
            with trio.move_on_after(self._conn.close_timeout):
                await self._before_detach()
        finally:
            self.uncover()
            self._give_back()
            self._link.detach(closed=True, error=error)
            self.turn(PhaseChange.CLOSE)
            self.wake_all()
        await self._gone_there()
        if self._resumable_state is not None and self._link.closed:
            await self._resumable_state.discard()

    async def _gone_there(self) -> None:
        """Wait for the peer's detach, at most ``close_timeout`` seconds."""
        with trio.move_on_after(self._conn.close_timeout):
            await trio.lowlevel.checkpoint()
            while self._link.state is not LinkState.GONE:
                await self.wait()

    # -- detach and come back ---------------------------------------------------------------

    def bind_state(self, resumable: ResumableLinkState) -> None:
        """Keep what is unsettled in ``resumable``; only before the link is attached."""
        self._resumable_state = resumable

    async def detach(self, error: Error | None = None) -> None:
        """Detach without closing, to ``resume`` the link later (2.6.6); waits for the answer as ``aclose`` does.

        Until then it is as if it were closed. What is unsettled stays so, if the link was opened with a
        ``store`` or an expiry policy that outlasts a detach, here and, as far as it agreed, at the peer. Without
        ``error``, deliveries can be settled as before until the session ends, by either end (2.7.6).

        Cancelled: the detach is on its way all the same, only the answer is not awaited.
        """
        if self._lifecycle is LinkPhase.CLOSED:
            await trio.lowlevel.checkpoint()
            return
        self.uncover()
        if self._resumable_state is None:
            self._give_back()
        self._link.detach(closed=False, error=error)
        self.turn(PhaseChange.CLOSE)
        self.wake_all()
        await self._gone_there()

    async def resume(self, connection: LinkConnection | None = None) -> None:
        """Attach this link again, and take up what is unsettled on it (2.6.5, 2.6.13).

        Deliveries that you hold go on: outcomes arrive, and can be given. What the peer did not get is
        sent again, what it got is not; what it forgot is sent again where the guarantee allows that,
        else its ``outcome`` raises ``DeliveryInDoubtError``.

        Args:
            connection: where to; the same if None.

        Raises:
            LocalProtocolError: the link is attached, or nothing of it is remembered.
            LinkRefusedError, GuaranteeNotSupportedError, FilterNotSupportedError: as on opening.
            SessionEndedError, ConnectionClosedError: what was to carry the link is gone. A connection that comes back is waited
                for.

        Cancelled: the link is detached again, and can be resumed.
        """
        resumable = self._resumable_state
        if resumable is None or self._link.closing or (self._detached is not None and self._detached.closed):
            raise LocalProtocolError(
                f"nothing is remembered of link {self.name!r}: open it with store= or an expiry_policy, and do not close it"
            )
        if not self.closed:
            raise LocalProtocolError(f"link {self.name!r} is attached: detach it first")
        await trio.lowlevel.checkpoint()
        conn = self._conn if connection is None else connection
        while True:
            await conn.wait_recovered()
            session = conn.session_for(None, own=bool(resumable.options.own_session))
            self.attach_to(session)
            try:
                await self.attached()
                self.check_answer(resumable.options)
            except BaseException as failure:
                self._link.detach(closed=False)
                self.turn(PhaseChange.CLOSE)
                lost = isinstance(failure, (ConnectionClosedError, SessionEndedError))
                if not (lost and conn.recovering and conn.loss() is not None):
                    raise
            else:
                return

    def attach_to(self, session: LinkSession) -> None:
        """Write the attach of a link that is remembered, on a session that may be another."""
        resumable = self._resumable_state
        assert resumable is not None
        if self._link.remote is not None and self._has_terminus():
            resumable.remote = self._link.remote
        resumable.failure = None
        self._past = self.deliveries
        self._bind(session, self._new_end(session))
        self.turn(PhaseChange.ATTACH)
        self.start(resumable.options)

    def _new_end(self, session: LinkSession) -> E:
        raise NotImplementedError

    @property
    def needs_new_attach(self) -> bool:
        """Whether the peer's unsettled map was incomplete, of a link of which nothing is remembered here (2.7.3)."""
        return self._link.incomplete and self._resumable_state is None

    def attach_again(self, options: LinkOptions) -> None:
        """Detach, and attach as before: the peer, which has heard that nothing is unsettled here, has settled all."""
        self._link.owner = None
        self._link.detach(closed=False)
        self._bind(self.session, self._new_end(self.session))
        self.turn(PhaseChange.ATTACH)
        self.start(options)

    def check_complete(self) -> None:
        """Detach a link on which no new delivery is possible for ever.

        Raises:
            LinkDetachedError: the peer's unsettled map is incomplete again.
        """
        if self._link.incomplete:
            fault = UNSETTLED_MAP_SIZE.broken("an incomplete unsettled map, where nothing is unsettled here")
            self._link.fail(fault)
            raise link_error(self.name, self._link.error, True)

    def wake(self) -> None:
        if self._link.incomplete and self._resumable_state is not None and self._is_reduced():
            self._attach_anew()
        super().wake()

    def _is_reduced(self) -> bool:
        """Whether all that both unsettled maps name is settled."""
        raise NotImplementedError

    def _attach_anew(self) -> None:
        """An unsettled map was incomplete, and is shorter now (2.7.3)."""
        link, resumable = self._link, self._resumable_state
        assert resumable is not None
        left = 0 if resumable.terminus is None else len(resumable.terminus.unsettled)
        if link.state is not LinkState.ATTACHED:
            return
        if resumable.left is not None and left >= resumable.left:
            link.fail(
                UNSETTLED_MAP_SIZE.broken(
                    f"{left} unsettled deliveries fit no frame, and none can be settled"
                )
            )
            return
        resumable.left = left
        link.owner = None
        link.detach(closed=False)
        self.attach_to(self.session)

    # -- a connection that comes back -------------------------------------------------------

    @property
    def _covered(self) -> bool:
        """Whether the connection attaches this link again, where somebody else ended it."""
        recovery = self._conn.recovery
        return recovery is not None and not recovery.stopped and self in recovery.links

    def cover(self) -> None:
        """Have the connection attach this link again, if it comes back itself."""
        if self._conn.recovery is not None:
            self._conn.recovery.links[self] = None

    def uncover(self) -> None:
        """It is over: the connection does not attach it again."""
        if self._conn.recovery is not None:
            self._conn.recovery.forget_link(self)

    def wake_all(self) -> None:
        """Let all look again that wait for this link, or for what becomes of a delivery that it holds."""
        terminus = self._resumable_terminus
        for delivery in () if terminus is None else terminus.deliveries():
            if delivery.watcher is not None:
                delivery.watcher.wake()
        self.wake()

    @property
    def own_session(self) -> bool:
        """Whether it is to have a session of its own."""
        return self._resumable_state is not None and bool(
            self._resumable_state.options.own_session or self._resumable_state.apart
        )

    @property
    def is_answered(self) -> bool:
        """Whether the peer has answered the last attach."""
        return self._link.remote is not None

    def _suspend(self, damage: AmqpError) -> None:
        recovery, resumable = self._conn.recovery, self._resumable_state
        assert recovery is not None
        assert resumable is not None
        self.turn(PhaseChange.SUSPEND)
        resumable.damage = damage
        recovery.damaged(self)
        self.on_lost()

    def on_session_ended(self, error: Error | None, *, blamed: bool) -> None:
        """The peer ended the session that this link was on; ``blamed``: maybe over one that was being attached."""
        innocent = blamed and self.is_answered
        if self._lifecycle in NEW or error is None or (is_final(error) and not innocent):
            self.uncover()
            self.wake_all()
            return
        assert self._resumable_state is not None
        self._resumable_state.apart = self._resumable_state.apart or not self.is_answered
        self._suspend(SessionEndedError(f"the session was ended, {describe(error)}", error))

    def on_lost(self) -> None:
        """The link, or the connection, was lost, and comes back."""
        if self._resumable_state is not None and self._resumable_state.on_lost is not None:
            self._resumable_state.on_lost()

    def watch_lost(self, call: Callable[[], object]) -> None:
        """Have ``call`` called, synchronously, each time that the link was lost, to be attached again.

        Nothing is called on a connection without ``reconnect``.
        """
        if self._resumable_state is not None:
            self._resumable_state.on_lost = call

    def watch_restored(self, call: Callable[[], object]) -> None:
        """Have ``call`` called, synchronously, each time that the link was attached again."""
        if self._resumable_state is not None:
            self._resumable_state.on_restored = call

    def stop_recovery(self, failure: AmqpError | None) -> None:
        """It cannot be attached again: by this failure, or by what ended it so often that it is not tried again."""
        resumable = self._resumable_state
        assert resumable is not None
        resumable.failure = failure or resumable.damage
        self.turn(PhaseChange.STOP_RECOVERY)
        self.uncover()
        self.wake_all()

    def raise_if_outcome_lost(self, delivery: Any) -> None:
        """Raise where nothing will be heard of this delivery any more.

        Raises:
            ConnectionClosedError: it went with a transport that has gone, though its link may have come back.
            Others as ``check_alive``.
        """
        self.check_alive()
        if self._conn.recovery is not None and delivery.link.state is LinkState.GONE:
            terminus = self._resumable_terminus
            if terminus is None or delivery.tag not in terminus.unsettled:
                raise lost_with(self._loss(), f"what became of delivery {delivery.tag!r} is not known")

    def has_lapsed(self, delivery: Any) -> bool:
        """Whether ``delivery`` went with a transport, and nobody is left to tell, though its link comes back."""
        return self._covered and delivery.link.state is LinkState.GONE

    async def settle_up(self) -> None:
        """Give the peer its time with what it has of ours, before a block is left without an exception.

        Cancelled: nothing has happened; the link can be used on.
        """

    async def _before_detach(self) -> None:
        await trio.lowlevel.checkpoint()

    def _give_back(self) -> None:
        """The last thing before the detach, whatever happens."""
