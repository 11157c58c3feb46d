"""The base of senders and receivers: attach, detach, resume, and why a link ended.

Knows nothing of credit or messages; see ``sender`` and ``receiver``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio

from trio_amqp10.amqp10.engine.events import LinkDetached
from trio_amqp10.amqp10.engine.link import Link as EngineLink
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.spec.transport import Attach, Error, ReceiverSettleMode, Role, SenderSettleMode
from trio_amqp10.core.errors import AmqpError, LocalProtocolError
from trio_amqp10.core.peer_rules import UNSETTLED_MAP_SIZE
from trio_amqp10.net.errors import fresh_copy
from trio_amqp10.net.waiters import Waiter

from .errors import (
    ConnectionClosedError,
    FilterNotSupportedError,
    GuaranteeNotSupportedError,
    LinkDetachedError,
    LinkRefusedError,
    SessionEndedError,
    describe,
    is_final,
    link_error,
    link_title,
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

E = TypeVar("E", bound=EngineLink)


class Link(Waiter, trio.abc.AsyncResource, Generic[E]):
    """One end of an attached link.

    Attributes:
        session: the session of the link.
    """

    __slots__ = ("_conn", "_detached", "_lifecycle", "_link", "_past", "_resumable_state", "session")

    def __init__(self, session: LinkSession, link: E) -> None:
        super().__init__()
        self._resumable_state: ResumableLinkState | None = None
        self._past = 0
        self._lifecycle = LinkPhase.OPENING
        self._bind(session, link)

    def _bind(self, session: LinkSession, link: E) -> None:
        """Use ``link``, which is not attached yet, as the engine's end."""
        self._link = link
        link.owner = self
        self.session: LinkSession = session
        self._conn: LinkConnection = session.connection
        self._detached: LinkDetached | None = None

    # -- its life ---------------------------------------------------------------------------

    @property
    def life(self) -> LinkPhase:
        """The phase of the link, after noting an end of its session or connection."""
        life = self._lifecycle
        if life in CARRIED:
            if self._link.state is LinkState.GONE:
                self.turn(PhaseChange.SUSPEND if self._covered else PhaseChange.LOSE)
        elif life in AWAITED and not self._covered:
            self.turn(PhaseChange.LOSE)
        return self._lifecycle

    def turn(self, turn: PhaseChange) -> None:
        """Change the phase by ``PHASE_CHANGES``."""
        self._lifecycle = PHASE_CHANGES[self._lifecycle].get(turn, self._lifecycle)

    @property
    def closed(self) -> bool:
        """Whether the link is over, by either end.

        A link that its connection will attach again is not over.
        """
        return self.life in ENDED

    @property
    def is_suspended(self) -> bool:
        """Whether the link was lost, and will be attached again."""
        return self.life in AWAITED

    def why_suspended(self) -> str:
        """Return why the link is suspended, as the end of a message.

        Empty if it is not.
        """
        if not self.is_suspended:
            return ""
        loss = self.loss()
        return ": the link was lost, and is not restored yet" + ("" if loss is None else f" ({loss})")

    def why(self) -> Exception | None:
        """Return the exception that a call must raise in the present phase.

        None while the link lives or will be attached again.
        """
        life = self.life
        if life not in ENDED:
            return None
        if life is LinkPhase.CLOSED:
            return trio.ClosedResourceError(f"the link {self.title} was closed here")
        if self._detached is None and self.session.closed_here:
            return trio.ClosedResourceError(f"the link {self.title} was closed here, with its session")
        return self.cause() or self._gone()

    def check_alive(self) -> None:
        """Raise the error that ended the link, if it has ended.

        Raises:
            trio.ClosedResourceError: this end closed the link.
            LinkDetachedError, SessionEndedError, ConnectionClosedError: the peer or a loss ended it.
        """
        failure = self.why()
        if failure is not None:
            raise failure

    def cause(self) -> Exception | None:
        """Return the reason why the link, its session or its connection ended.

        None while the link lives, or if it ended without an error.
        """
        life = self.life
        if life is LinkPhase.FAILED:
            assert self._resumable_state is not None
            assert self._resumable_state.failure is not None
            return fresh_copy(self._resumable_state.failure)
        if self._detached is not None:
            # A detach by the peer gives a better reason than the end of the session or connection after it.
            if life is LinkPhase.REFUSED:
                return self._gone(LinkRefusedError)
            return None if self._detached.error is None else self._gone()
        cause = self.session.cause(opening=life is LinkPhase.UNANSWERED)
        lost = self._link.state is LinkState.GONE and not self.session.was_ended
        if cause is None and lost and self._conn.recovering:
            # The connection is restored and so has no error, but this link is not restored with it.
            return lost_with(self.loss(), f"the link {self.title} was lost")
        return cause

    @property
    def name(self) -> str:
        """The link's name, unique between these two containers in this direction (2.6.1)."""
        return self._link.name

    @property
    def role(self) -> bool:
        """The end of the link that is ours: ``Role.SENDER`` or ``Role.RECEIVER``."""
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
        """Return ``outcome``; see ``LinkOwner.permitted``.

        A program chooses outcomes itself; only a container checks the outcomes of the source (3.5.3).
        """
        return outcome

    @property
    def credit(self) -> int:
        """The number of messages that may still be sent without more credit (2.6.7)."""
        return self._link.credit

    @property
    def state(self) -> str:
        """``"ATTACHED"``, ``"GONE"``, or the name of a state between."""
        return self._link.state.name

    @property
    def terminus(self) -> Any:
        """The source or target with the node (3.5).

        The node is at the peer, or here if the peer has opened the link.
        """
        link = self._link
        unanswered = link.remote is None and (
            self._resumable_state is None or self._resumable_state.remote is None
        )
        ends = link if link.answered or unanswered else self.remote  # before the peer's attach, our own
        return ends.source if (link.role is Role.SENDER) is link.answered else ends.target

    @property
    def node(self) -> str | None:
        """The address of the node, at whichever end the node is.

        ``address`` is always the address at the peer's end.
        """
        return getattr(self.terminus, "address", None)

    def _any_address(self) -> str | None:
        """Return the address of the node, also of a link that was refused.

        Then it is the address that this end has asked for.
        """
        link = self._link
        asked = link.target if link.role is Role.SENDER else link.source
        return self.node or getattr(asked, "address", None)

    @property
    def title(self) -> str:
        """The link in a message, after "the link": its address and name."""
        return link_title(self.name, self._any_address())

    @property
    def deliveries(self) -> int:
        """The number of deliveries, those of former attachments included (2.6.7)."""
        return self._past + self._link.deliveries

    def statistics(self) -> SenderStatistics | ReceiverStatistics:
        """Return figures of the link: its state, and totals since it was opened."""
        raise NotImplementedError

    @property
    def _resumable_terminus(self) -> Any:
        """The terminus that outlasts an attachment, or None."""
        return None if self._resumable_state is None else self._resumable_state.terminus

    # -- why it is gone ---------------------------------------------------------------------

    def on_detached(self, event: LinkDetached) -> None:
        """Note that the engine's end of the link is over."""
        if event.link is not self._link:
            return  # the late answer to the detach of a former attachment
        passes = event.error is not None and not is_final(event.error)
        if passes and self._covered and self._lifecycle not in NEW:
            # The cause of the error may pass, so the connection attaches the link again.
            self._suspend(link_error(self.name, event.error, event.closed, address=self._any_address()))
            self.wake()
        else:
            self._detached = event
            if self._was_attached():
                # The peer attached and detached at once, without an error: this is no refusal (2.6.3).
                self.opened()
            self.turn(PhaseChange.DETACH)
            self.uncover()
            self.wake_all()

    def missed(self) -> None:
        """Note the end of a link that was over before it had an owner."""
        link = self._link
        if link.reported:
            self._detached = LinkDetached(link, True, link.error)
            self.turn(PhaseChange.DETACH)

    def loss(self) -> Exception | None:
        """Return the reason why the last attachment or transport of the link was lost."""
        resumable, recovery = self._resumable_state, self._conn.recovery
        damage = None if resumable is None else resumable.damage
        return self._conn.loss() or damage or (None if recovery is None else recovery.loss)

    def _gone(self, kind: type[LinkDetachedError] = LinkDetachedError) -> LinkDetachedError:
        event, address = self._detached, self._any_address()
        if event is None:
            return link_error(self.name, None, True, kind, address)
        return link_error(self.name, event.error, event.closed, kind, address)

    def reading(self, delivery: Any) -> None:
        """Note that the calling task reads ``delivery`` in chunks, or has finished (None)."""

    # -- attach and close -------------------------------------------------------------------

    def start(self, options: LinkOptions) -> None:
        """Write the attach."""
        if self._resumable_state is not None:
            self._link.terminus = self._resumable_state.terminus
        options.attach_to(self._link)

    def abandon(self) -> None:
        """Detach a link that was not opened or is not wanted, without waiting."""
        self.turn(PhaseChange.CLOSE)
        self.uncover()
        link = self._link
        if link.state is LinkState.DETACHED:
            link.session.connection.names.release(link)
        link.detach()

    def opened(self) -> None:
        """Note that both ends are attached: a later detach is not a refusal."""
        self.turn(PhaseChange.OPEN)

    def on_attached(self) -> None:
        """Note that the peer has answered the attach."""
        if self._conn.recovery is not None and self._has_terminus():
            self._conn.recovery.answered(self)
        resumable = self._resumable_state
        if resumable is not None and self._has_terminus():
            if not self._link.incomplete:
                # Both unsettled maps were complete, so no further attach is needed for them (2.7.3).
                resumable.left = None
            if self._covered and self._lifecycle not in NEW:
                try:
                    self.check_answer(resumable.options)
                except (FilterNotSupportedError, GuaranteeNotSupportedError) as weaker:
                    # The peer on the new transport supports less than the peer before, so the link has failed.
                    self._link.detach()
                    self.stop_recovery(weaker)
                    return
            if resumable.terminus is not None:
                self._take_up()
            if self._lifecycle not in NEW:
                self.turn(PhaseChange.OPEN)
                resumable.damage = None
                if resumable.on_restored is not None:
                    resumable.on_restored()
        self.wake()

    def _take_up(self) -> None:
        """Continue with the unsettled deliveries of a former attachment."""

    async def attached(self) -> None:
        """Wait until the peer has attached too; it may have detached since.

        Raises:
            LinkRefusedError: the peer refused the link.
            SessionEndedError, ConnectionClosedError: the session or connection of the link ended.

        Cancelled: nothing has happened.
        """
        while not self._was_attached():
            self.check_alive()
            await self.wait()
        self.opened()

    def _was_attached(self) -> bool:
        """Whether the peer has attached the link.

        The peer may have detached it again without an error, if it has nothing to send (2.6.3). A detach with
        an error is a refusal.
        """
        detached = self._detached
        left = detached is not None and detached.error is None
        return self._has_terminus() and (left or self._link.state is LinkState.ATTACHED)

    def _has_terminus(self) -> bool:
        """Whether the peer's last attach is no refusal (2.6.3)."""
        return self._link.remote is not None and self._link.has_terminus()

    def check_answer(self, options: LinkOptions) -> None:
        """Compare the negotiated settle modes with the requested ones (2.7.3).

        Raises:
            GuaranteeNotSupportedError: the negotiated modes are weaker.
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
                f"the link {self.title}: the peer settles weaker than guarantee={options.guarantee!r} needs: "
                f"snd-settle-mode {self._link.snd_settle_mode}, rcv-settle-mode {self.remote.rcv_settle_mode}"
            )

    async def aclose(self, error: Error | None = None) -> None:
        """Close the link; wait at most ``close_timeout`` seconds for the answer (2.6.6).

        A store forgets the link only after the peer's answer, because the peer may keep the link until then.

        Cancelled: the detach is written anyway, only the answer is not awaited.
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

    # -- detach and resume ------------------------------------------------------------------

    def bind_state(self, resumable: ResumableLinkState) -> None:
        """Keep the unsettled state in ``resumable``; only before the link is attached."""
        self._resumable_state = resumable

    async def detach(self, error: Error | None = None) -> None:
        """Detach without closing, to ``resume`` the link later (2.6.6).

        Waits for the peer's answer as ``aclose`` does. Until it is resumed, the link behaves as if it were
        closed.

        Deliveries stay unsettled if the link was opened with a ``store`` or an expiry policy that outlasts a
        detach: here, and at the peer as far as it agreed. Without ``error``, deliveries can be settled as
        before until the session ends, by either end (2.7.6).

        Cancelled: the detach is written anyway, only the answer is not awaited.
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
        """Attach this link again, with its unsettled deliveries (2.6.5, 2.6.13).

        Existing delivery objects go on: outcomes arrive, and can be given. A message that the peer did not
        receive is sent again; one that it received is not. A message that the peer has forgotten is sent
        again if the guarantee allows it; otherwise its ``outcome`` raises ``DeliveryInDoubtError``.

        Args:
            connection: the connection to attach on; the same as before if None.

        Raises:
            LocalProtocolError: the link is attached, or its state was not kept.
            LinkRefusedError, GuaranteeNotSupportedError, FilterNotSupportedError: as on opening.
            SessionEndedError, ConnectionClosedError: the session or connection of the link ended. A
                connection with ``reconnect`` is waited for.

        Cancelled: the link is detached again, and can be resumed.
        """
        resumable = self._resumable_state
        if resumable is None or self._link.closing or (self._detached is not None and self._detached.closed):
            raise LocalProtocolError(
                f"the link {self.title} cannot be resumed: open it with store= or an expiry_policy, and do not close it"
            )
        if not self.closed:
            raise LocalProtocolError(f"the link {self.title} is attached: detach it first")
        await trio.lowlevel.checkpoint()
        conn = self._conn if connection is None else connection
        while True:
            await conn.wait_recovered()
            session = await conn.session_to_attach(None, own=bool(resumable.options.own_session))
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
        """Write the attach of a link whose state was kept, on any session."""
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
        """Whether the link must be detached and attached again (2.7.3).

        True if the peer's unsettled map was incomplete, and nothing is unsettled at this end.
        """
        return self._link.incomplete and self._resumable_state is None

    def attach_again(self, options: LinkOptions) -> None:
        """Detach, and attach as before.

        The peer has learned from our first attach that nothing is unsettled here, and has settled its
        deliveries.
        """
        self._link.owner = None
        self._link.detach(closed=False)
        self._bind(self.session, self._new_end(self.session))
        self.turn(PhaseChange.ATTACH)
        self.start(options)

    def check_complete(self) -> None:
        """Detach the link if its unsettled maps are still incomplete (2.7.3).

        New deliveries would never be possible on it.

        Raises:
            LinkDetachedError: the peer's unsettled map is incomplete again.
        """
        if self._link.incomplete:
            fault = UNSETTLED_MAP_SIZE.broken(
                "the peer sent an incomplete unsettled map, and nothing is unsettled at this end"
            )
            self._link.fail(fault)
            raise link_error(self.name, self._link.error, True, address=self._any_address())

    def wake(self) -> None:
        if self._link.incomplete and self._resumable_state is not None and self._is_reduced():
            self._attach_with_shorter_map()
        super().wake()

    def _is_reduced(self) -> bool:
        """Whether all deliveries of both unsettled maps are settled."""
        raise NotImplementedError

    def _attach_with_shorter_map(self) -> None:
        """Attach again after an incomplete unsettled map, when the map is shorter (2.7.3)."""
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

    # -- restored connections ---------------------------------------------------------------

    @property
    def _covered(self) -> bool:
        """Whether the connection attaches this link again after a loss."""
        recovery = self._conn.recovery
        return recovery is not None and not recovery.stopped and self in recovery.links

    def cover(self) -> None:
        """Let the connection attach this link again after a loss, if it has ``reconnect``."""
        if self._conn.recovery is not None:
            self._conn.recovery.links[self] = None

    def uncover(self) -> None:
        """Stop the connection from attaching this link again: it is over."""
        if self._conn.recovery is not None:
            self._conn.recovery.forget_link(self)

    def wake_all(self) -> None:
        """Wake all tasks that wait for this link or one of its deliveries."""
        terminus = self._resumable_terminus
        for delivery in () if terminus is None else terminus.deliveries():
            if delivery.watcher is not None:
                delivery.watcher.wake()
        self.wake()

    @property
    def own_session(self) -> bool:
        """Whether the link must have a session of its own."""
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
        """Note that the peer ended the session of this link.

        ``blamed``: whether a link that was being attached may be the reason.
        """
        innocent = blamed and self.is_answered
        if self._lifecycle in NEW or error is None or (is_final(error) and not innocent):
            self.uncover()
            self.wake_all()
            return
        assert self._resumable_state is not None
        self._resumable_state.apart = self._resumable_state.apart or not self.is_answered
        self._suspend(SessionEndedError(f"the session was ended, {describe(error)}", error))

    def on_lost(self) -> None:
        """Note that the link or its connection was lost and will be restored."""
        if self._resumable_state is not None and self._resumable_state.on_lost is not None:
            self._resumable_state.on_lost()

    def watch_lost(self, call: Callable[[], object]) -> None:
        """Call ``call`` each time that the link was lost and will be attached again.

        It is called synchronously, and never on a connection without ``reconnect``.
        """
        if self._resumable_state is not None:
            self._resumable_state.on_lost = call

    def watch_restored(self, call: Callable[[], object]) -> None:
        """Call ``call`` each time that the link was attached again, synchronously."""
        if self._resumable_state is not None:
            self._resumable_state.on_restored = call

    def stop_recovery(self, failure: AmqpError | None) -> None:
        """Note that the link cannot be attached again.

        ``failure`` is the reason; if None, the reason is the last error by which the peer ended the link.
        """
        resumable = self._resumable_state
        assert resumable is not None
        resumable.failure = failure or resumable.damage
        self.turn(PhaseChange.STOP_RECOVERY)
        self.uncover()
        self.wake_all()

    def raise_if_outcome_lost(self, delivery: Any) -> None:
        """Raise if no outcome of this delivery can arrive any more.

        Raises:
            ConnectionClosedError: the transport of the delivery is lost, though its link may have been
                restored. Others as ``check_alive``.
        """
        self.check_alive()
        if self._conn.recovery is not None and delivery.link.state is LinkState.GONE:
            terminus = self._resumable_terminus
            if terminus is None or delivery.tag not in terminus.unsettled:
                raise lost_with(self.loss(), f"the outcome of delivery {delivery.tag!r} is not known")

    def has_lapsed(self, delivery: Any) -> bool:
        """Whether the transport of ``delivery`` is lost, while its link is restored.

        An outcome of the delivery cannot be sent any more.
        """
        return self._covered and delivery.link.state is LinkState.GONE

    async def settle_up(self) -> None:
        """Wait for outcomes, before a block is left without an exception.

        Cancelled: nothing has happened; the link can be used on.
        """

    async def _before_detach(self) -> None:
        await trio.lowlevel.checkpoint()

    def _give_back(self) -> None:
        """Release received deliveries and credit, just before the detach."""
