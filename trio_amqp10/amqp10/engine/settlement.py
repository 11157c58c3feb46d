"""Settlement of deliveries: the states that both ends exchange (2.6.12, 3.4).

Settle modes and the last state
-------------------------------

======================  ==========================  ==================================================
sender's settle mode    receiver's settle mode      the exchange
======================  ==========================  ==================================================
settled                 either                      transfer(settled). Nothing follows: at most once.
unsettled (or mixed)    first                       transfer; disposition(receiver, settled, state).
                                                    The receiver forgets first, the sender on reading
                                                    it: at least once.
unsettled (or mixed)    second                      transfer; disposition(receiver, state);
                                                    disposition(sender, settled). The sender forgets
                                                    first, the receiver on reading it. After a lost
                                                    connection the states that both ends still hold
                                                    show how far the exchange came: exactly once, if
                                                    the link is resumed.
======================  ==========================  ==================================================

An end that settles a delivery forgets it: it has dropped its state, and sends no more state of that
delivery. A sender may settle at any time, even before an outcome. A second outcome of a receiver has no
effect: outcomes are final.

Two maps, one for each direction, hold the unsettled deliveries of the whole session by delivery-id, because a
disposition names a range of ids and no link. Ranges make settlement cheap. Our own states are collected while
the ids are consecutive and the state is the same; the range is written when octets are next taken, or before
any frame that must not overtake it. A range of the peer costs as much as it changes; see ``delivery_ranges``.
If it changes very many deliveries, only the first are changed at once. The others wait for the next slices of
input (``Context.put_off``), before any other frame.

A link that ends must find its own deliveries in the maps. A receiver has them by tag. A sender notes nothing
while it sends: when the first link with unsettled deliveries ends, all deliveries sent since the last time
are sorted by link, each of them once.

Knows no payload, and no store: a terminus stores outcomes.
"""

from __future__ import annotations

import weakref
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10.amqp10.spec.messaging import ACCEPTED, RELEASED, Received
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.amqp10.spec.transport import Disposition, ReceiverSettleMode, Role
from trio_amqp10.amqp10.wire.values import Described
from trio_amqp10.core import peer_rules as rules
from trio_amqp10.core.errors import LocalProtocolError

from .codec_shortcut import write_disposition
from .delivery import IncomingDelivery, OutgoingDelivery
from .delivery_ranges import FEW, DeliveryRanges, Rank
from .outcomes import OUTCOMES, is_refusal, is_terminal
from .serial_numbers import MASK, distance
from .states import LinkState

if TYPE_CHECKING:
    from .delivery import ReceivingLink, SendingLink
    from .link import Link
    from .session_core import SessionCore

REMEMBERED: Final = 512
"""Octets that an unsettled delivery is charged in addition to its payload."""

_FIRST = ReceiverSettleMode.FIRST

_AT_ONCE = 256
"""Deliveries that a disposition changes at once: about half a millisecond of work."""

_CHEAP = 1_000
"""Changed outcomes in a transaction that cost the peer one unit of ``churn``."""


class Settlement:
    """The unsettled deliveries of one session, and the dispositions to write.

    Attributes:
        incoming, outgoing: the unsettled deliveries by id, received and sent.
        received, sent: the ranges that dispositions of the peer have named, in the same directions.
        modes: the receiver settle mode of each delivery whose mode differs from its link's (2.7.5).
        awaiting_settlement: received deliveries that have an outcome and wait for their sender to settle, by
            id, with the octets that each is charged. None before the first.
        pending: whether a range waits to be written.
    """

    __slots__ = (
        "_context",
        "_filed",
        "_filed_to",
        "_first",
        "_last",
        "_role",
        "_session",
        "_settled",
        "_state",
        "awaiting_settlement",
        "incoming",
        "modes",
        "outgoing",
        "pending",
        "received",
        "sent",
    )

    def __init__(self, session: SessionCore) -> None:
        self._session: SessionCore = weakref.proxy(session)  # the session owns this: avoid a reference cycle
        self._context = session.context
        self.incoming: dict[int, IncomingDelivery] = {}
        self.outgoing: dict[int, OutgoingDelivery] = {}
        self.received: DeliveryRanges[IncomingDelivery] = DeliveryRanges(self.incoming)
        self.sent: DeliveryRanges[OutgoingDelivery] = DeliveryRanges(self.outgoing)
        self.modes: dict[int, int] = {}
        self.awaiting_settlement: dict[int, int] | None = None
        self.pending: bool = False
        self._role = Role.RECEIVER
        self._first = self._last = 0
        self._settled = True
        self._state: Any = None
        self._filed: dict[SendingLink, list[int]] | None = None
        self._filed_to = -2 * MASK  # the position of the last delivery in ``_filed``

    # -- states that we send ----------------------------------------------------------------

    def dispose(self, delivery: IncomingDelivery, state: Any, *, settle: bool = True) -> None:
        """Give a received delivery its state; settle it if the receiver settles first.

        Args:
            delivery: the delivery.
            state: its outcome, or how far it has been received.
            settle: if False, it stays unsettled in either mode, e.g. until a transaction is discharged
                (4.4.2).

        Raises:
            LocalProtocolError: it has an outcome already, its link is gone, or the state does not fit a
                frame.
        """
        if delivery.state is not None and is_terminal(delivery.state):
            raise LocalProtocolError(
                f"delivery {delivery.tag!r} was already given the outcome {delivery.state!r}"
            )
        if delivery.settled:
            # The sender has settled it and would not read an outcome (2.6.12): note it locally.
            _set_state(delivery, state)
            return
        delivery_id = delivery.delivery_id
        link = delivery.link
        if delivery_id not in self.incoming:
            # Its link has ended. The outcome is possible only if a terminus keeps the delivery (2.6.13).
            if link.terminus is None or delivery.tag not in link.terminus.unsettled:
                raise LocalProtocolError(f"cannot settle delivery {delivery.tag!r}: its link is gone")
            # The unsettled map of the next attach reports it (2.7.3).
            delivery.state = state
            if is_terminal(state):
                link.terminus.record_outcome(delivery.tag, state, lambda: None)
            return
        if state is not ACCEPTED:
            self._check(state)
        _set_state(delivery, state)
        mode = link.rcv_settle_mode
        if self.modes:
            mode = self.modes.get(delivery_id, mode)
        settles = settle and mode == _FIRST and (state is ACCEPTED or is_terminal(state))
        if settles:
            # Mode first: this end forgets the delivery as it sends the outcome.
            delivery.settled = True
            del self.incoming[delivery_id]
            link.tags.pop(delivery.tag, None)
            if link.terminus is not None:
                link.terminus.forget(delivery.tag)
            if self.modes:
                self.modes.pop(delivery_id, None)
        elif is_terminal(state):
            # Mode second, or an outcome in a transaction: the delivery stays until its sender has settled
            # it.
            if isinstance(state, OUTCOMES):
                self._await_settlement(delivery)
            if link.terminus is not None:
                # Our state must outlive the process before the sender reads the outcome, for exactly once.
                link.terminus.record_outcome(delivery.tag, state, partial(self._send_if_held, delivery))
                return
        self._add_to_range(Role.RECEIVER, delivery_id, settles, state)

    def accept(self, delivery: IncomingDelivery) -> None:
        """Do as ``dispose`` with ``ACCEPTED``: a fast path for the usual outcome."""
        delivery_id, link = delivery.delivery_id, delivery.link
        if (
            delivery.state is not None
            or link.terminus is not None
            or link.rcv_settle_mode != _FIRST
            or self.modes
            or delivery_id not in self.incoming
        ):
            self.dispose(delivery, ACCEPTED)
            return
        delivery.state = ACCEPTED
        delivery.settled = True
        del self.incoming[delivery_id]
        link.tags.pop(delivery.tag, None)
        self._add_to_range(Role.RECEIVER, delivery_id, True, ACCEPTED)

    def _await_settlement(self, delivery: IncomingDelivery) -> None:
        """Charge a delivery that has its outcome and waits for its sender to settle."""
        if delivery.link.sheds:
            delivery.payload = b""
            delivery.memo = None
        self._stop_awaiting(delivery.delivery_id)
        if self.awaiting_settlement is None:
            self.awaiting_settlement = {}
        octets = self.awaiting_settlement[delivery.delivery_id] = len(delivery.payload) + REMEMBERED
        self._context.awaiting_settlement_octets += octets

    def _stop_awaiting(self, delivery_id: int) -> bool:
        """Stop charging a delivery; return False if it was not charged."""
        octets = self.awaiting_settlement.pop(delivery_id, None) if self.awaiting_settlement else None
        if octets is None:
            return False
        self._context.awaiting_settlement_octets -= octets
        return True

    def _send_if_held(self, delivery: IncomingDelivery) -> None:
        """Send the outcome after it was stored, unless the link has ended meanwhile."""
        if self.incoming.get(delivery.delivery_id) is delivery:
            self._add_to_range(Role.RECEIVER, delivery.delivery_id, False, delivery.state)

    def settle_incoming(self, delivery: IncomingDelivery, state: Any) -> None:
        """Settle a received delivery with ``state``, even if it has another one.

        For deliveries that a transaction left unsettled, once it is discharged (4.4.4). Nothing happens if it
        is settled.

        Raises:
            LocalProtocolError: its link is gone, or the state does not fit a frame.
        """
        if delivery.settled:
            return
        if delivery.delivery_id not in self.incoming:
            raise LocalProtocolError(f"cannot settle delivery {delivery.tag!r}: its link is gone")
        self._check(state)
        delivery.state = state
        self.drop(delivery)
        delivery.settled = True
        self._add_to_range(Role.RECEIVER, delivery.delivery_id, True, state)

    def drop(self, delivery: IncomingDelivery) -> None:
        """Forget a received delivery, because it is settled or aborted."""
        if delivery.delivery_id in self.incoming:
            if self.received.words is not None:
                delivery.word = (
                    delivery.remote_state
                )  # the state in ``received`` is lost with the id: keep it
            del self.incoming[delivery.delivery_id]
            link = delivery.link
            link.tags.pop(delivery.tag, None)
            if self.awaiting_settlement and self._stop_awaiting(delivery.delivery_id):
                self._context.touch(link.owner)  # the octets no longer count, so the owner may give credit
            if link.terminus is not None:
                link.terminus.forget(delivery.tag)
        if self.modes:
            self.modes.pop(delivery.delivery_id, None)

    def settle_outgoing(self, delivery: OutgoingDelivery) -> None:
        """Settle a sent delivery, and send a disposition to the receiver.

        Raises:
            LocalProtocolError: its link is gone.
        """
        if delivery.delivery_id not in self.outgoing:
            # Its link has ended. It can be settled only in a terminus, until that is attached again.
            terminus = delivery.link.terminus if delivery.link.state is LinkState.GONE else None
            if terminus is None or delivery.tag not in terminus.unsettled:
                raise LocalProtocolError(f"cannot settle delivery {delivery.tag!r}: its link is gone")
            terminus.drop(delivery.tag)
            # The next attach leaves it out of the unsettled map, so the receiver settles it as well (2.6.13).
            delivery.settled = True
            return
        self._let_go(delivery)
        state = delivery.word
        if isinstance(state, Received):
            state = None  # a sender must not send the state ``received`` of its receiver back (3.4.1)
        try:
            self._check(state)
        except LocalProtocolError:
            state = None  # the receiver sent it in larger frames than it accepts itself: leave it out
        in_progress = delivery.link.partial
        if in_progress is not None and in_progress.delivery is delivery:
            # Its transfers are not complete: the next one settles it (2.7.5).
            in_progress.settle(state)
        else:
            self._add_to_range(Role.SENDER, delivery.delivery_id, True, state)

    def forget_outgoing(self, delivery: OutgoingDelivery) -> None:
        """Forget a sent delivery that is aborted: the abort settles it (2.7.5)."""
        if delivery.delivery_id in self.outgoing:
            self._let_go(delivery)
            self._context.touch(delivery.watcher)

    def _let_go(self, delivery: OutgoingDelivery) -> None:
        """Forget a sent delivery."""
        if self.sent.words is not None:
            delivery.word = delivery.state  # the state in ``sent`` is lost with the id: keep it
        del self.outgoing[delivery.delivery_id]
        delivery.settled = True
        link = delivery.link
        link.unsettled -= 1
        if link.terminus is not None:
            link.terminus.drop(delivery.tag)
        if link.watch_unsettled and not link.unsettled:
            self._context.touch(link.owner)

    def reopen(self, delivery: OutgoingDelivery) -> None:
        """Let a sent delivery get another outcome, because the first did not take effect."""
        if self.outgoing.get(delivery.delivery_id) is delivery:
            self.sent.forget_word(delivery.delivery_id)

    def _check(self, state: Any) -> None:
        """Raise now if a state does not fit a frame, while it can be refused.

        The state of the last range has been found to fit.
        """
        if state is not None and state is not ACCEPTED and state is not RELEASED and state is not self._state:
            body = write_disposition(Role.SENDER, MASK - 1, MASK, True, state)
            self._context.write_buffer.check(len(body))

    def _add_to_range(self, role: bool, delivery_id: int, settled: bool, state: Any) -> None:
        """Add a state to the range that waits, or begin a new range."""
        if self.pending:
            # The next id with the same state extends the range.
            if (
                delivery_id == (self._last + 1) & MASK
                and role is self._role
                and settled is self._settled
                and (state is self._state or state == self._state)
            ):
                self._last = delivery_id
                return
            self.flush()
        else:
            self._session.mark_dirty()
        self.pending = True
        self._role = role
        self._first = self._last = delivery_id
        self._settled = settled
        self._state = state

    def flush(self) -> None:
        """Write the range that waits, as one disposition (2.7.6)."""
        if self.pending:
            self.pending = False
            body = write_disposition(self._role, self._first, self._last, self._settled, self._state)
            self._session.write_body(body)

    # -- states that the peer sends ---------------------------------------------------------

    def tally(self) -> None:
        """Note how far the ids of both directions have come, because they wrap.

        Called with every flow, so long before half of the ids are used.
        """
        self.sent.reach(self._session.next_delivery_id)
        self.received.reach(self._session.next_incoming_delivery_id or 0)

    def on_disposition(self, disposition: Disposition) -> None:
        """Process a disposition of the peer in its general form."""
        first, state = disposition.first, disposition.state
        last = first if disposition.last is None else disposition.last
        ahead = distance(last, first)
        if isinstance(state, Described) and ahead >= 0:
            # The type of the state is unknown, which ends every link that it concerns.
            self.tally()
            disposed: DeliveryRanges[Any] = self.sent if disposition.role is Role.RECEIVER else self.received
            for link in {each.link: None for each in disposed.due(first, ahead, Rank.UNKNOWN)}:
                link.fail(
                    rules.DELIVERY_STATE.broken(f"delivery state {state.descriptor!r} is not known here")
                )
        else:
            self.on_range(disposition.role, first, last, disposition.settled, state)

    def on_range(self, role: bool, first: int, last: int, settled: bool, state: Any) -> None:
        """Apply a state of the peer to the unsettled deliveries of a range.

        ``role`` is the peer's: a receiver disposes of deliveries that we sent, a sender of those that we
        received.
        """
        ahead = distance(last, first)
        if ahead < 0:
            # ``last`` is before ``first`` in the order of serial numbers (2.8.10).
            self._session.fail(
                rules.DISPOSITION_RANGE.broken(f"disposition runs backwards, from {first} to {last}")
            )
            return
        if ahead >= FEW or not settled:
            # Spans are needed, and they need up-to-date positions of the ids.
            self.tally()
        if role is Role.RECEIVER:
            # The receiver's state for deliveries that we sent. ``rank`` is how final it is: settled, an
            # outcome, an outcome in a transaction, or no outcome (3.4).
            rank = Rank.SETTLED if settled else _rank(state)
            if rank is not Rank.NONE:
                # It has an effect on each delivery that no state of this rank has changed before. Within a
                # transaction the state itself is compared, because another outcome may replace it until the
                # discharge (4.4).
                in_transaction = rank is Rank.IN_TRANSACTION
                due = self.sent.due(first, ahead, rank, state if in_transaction else True)
                if in_transaction and len(due) > FEW and due[0].word is not None:
                    # The receiver changes many outcomes again: each time costs a step for each delivery, so
                    # it is charged.
                    self._context.charge_churn("outcomes in a transaction changed", len(due) / _CHEAP)
                self._apply(due, rank, state)
            elif state is not None:
                # A state that is no outcome, i.e. ``received`` (3.4.1): noted for the whole range without a
                # step for each delivery.
                self.sent.note(first, ahead, state)
        elif settled:
            # The sender settles deliveries that we received: forget them (2.6.12). This is the last step of
            # mode second.
            self._forget_all(self.received.due(first, ahead, Rank.SETTLED), state)
        elif state is not None:
            # The sender's state without settlement: an outcome that it would like, or how far it has sent.
            # Noted likewise.
            self.received.note(first, ahead, state)

    def _apply(self, due: list[OutgoingDelivery], rank: Rank, state: Any) -> None:
        """Apply the receiver's state to these deliveries, or to the first of them."""
        some = due[:_AT_ONCE]
        self._context.changed += len(some)
        plain = state is ACCEPTED and rank is Rank.SETTLED
        for sent in some:
            link = sent.link
            if (
                plain
                and link.terminus is None
                and link.outcomes is None
                and (sent.watcher is None or link.accepted is not None)
            ):
                # Accepted and settled, without a terminus or a restriction of outcomes: the usual answer. This
                # is ``_on_outgoing`` without its calls and checks.
                sent.word = state
                sent.settled = True
                del self.outgoing[sent.delivery_id]
                link.unsettled -= 1
                if sent.watcher is not None and link.accepted is not None:
                    if not link.accepted:
                        self._context.touch(link.owner)
                    link.accepted.append(sent)
                if link.watch_unsettled and not link.unsettled:
                    self._context.touch(link.owner)
            else:
                self._on_outgoing(sent, rank, state)
        if len(due) > _AT_ONCE:
            # The rest is changed in the next slices, so that other connections are served in between.
            self._context.put_off(partial(self._apply_rest, due[_AT_ONCE:], rank, state))

    def _apply_rest(self, due: list[OutgoingDelivery], rank: Rank, state: Any) -> None:
        """Apply the state to the rest, except deliveries that were settled meanwhile."""
        self._apply([each for each in due if self.outgoing.get(each.delivery_id) is each], rank, state)

    def _forget_all(self, gone: list[IncomingDelivery], state: Any) -> None:
        """Forget these received deliveries, or the first of them: their sender settled."""
        some = gone[:_AT_ONCE]
        self._context.changed += len(some)
        for received in some:
            if not received.settled:  # this end may have settled it meanwhile
                self._on_incoming(received, state)
        if len(gone) > _AT_ONCE:
            self._context.put_off(partial(self._forget_all, gone[_AT_ONCE:], state))

    def _on_outgoing(self, delivery: OutgoingDelivery, rank: Rank, state: Any) -> None:
        """Apply the receiver's state to one delivery."""
        link = delivery.link
        if rank is not Rank.SETTLED and delivery.word is not None:
            before = _rank(delivery.word)
            if before > rank or (before is rank and (rank is Rank.OUTCOME or delivery.word == state)):
                return  # an outcome is final (3.4), but within a transaction only at the discharge (4.4)
        if state is not None:
            taken = state if link.outcomes is None else link.permitted(state)
            if taken is not state and taken != state:
                # The outcome is not in the list of the source (3.5.3).
                if self._context.strict.permitted_outcome:
                    text = f"delivery {delivery.tag!r} has the outcome {state!r}, which the source does not permit"
                    link.fail(rules.PERMITTED_OUTCOME.broken(text))
                    return
                self._context.tolerances.note(rules.PERMITTED_OUTCOME)
            delivery.word = taken
        if rank is Rank.SETTLED:
            # The receiver has forgotten the delivery, so this end does, too.
            self._let_go(delivery)
        elif rank is Rank.OUTCOME and not link.confirms:
            # The receiver settles second and waits for our settlement. (An outcome in a transaction is not final
            # before the discharge: the coordinator settles it then, 4.4.2.)
            link.record_outcome(delivery, partial(self._settle_if_held, delivery))
        if delivery.watcher is not None:
            self._context.touch(delivery.watcher)

    def _settle_if_held(self, delivery: OutgoingDelivery) -> None:
        """Settle after the outcome was stored, unless the delivery is settled already."""
        if self.outgoing.get(delivery.delivery_id) is delivery:
            self.settle_outgoing(delivery)

    def _on_incoming(self, delivery: IncomingDelivery, state: Any) -> None:
        """Apply the sender's settlement to one delivery."""
        self.drop(delivery)
        delivery.on_remote_state(state)
        delivery.settled = True
        if delivery.watcher is not None:
            self._context.touch(delivery.watcher)

    # -- the end of a link ------------------------------------------------------------------

    def is_live(self, delivery: IncomingDelivery | OutgoingDelivery) -> bool:
        """Whether dispositions still apply to a delivery, even after a detach (2.7.6)."""
        if isinstance(delivery, OutgoingDelivery):
            return self.outgoing.get(delivery.delivery_id) is delivery
        return self.incoming.get(delivery.delivery_id) is delivery

    def move(self, delivery: IncomingDelivery | OutgoingDelivery, link: Link) -> None:
        """Move a live delivery, under its id, to the link that replaces its own (2.6.4)."""
        if isinstance(delivery, OutgoingDelivery):
            sender = cast("SendingLink", link)
            self._file().setdefault(sender, []).append(delivery.delivery_id)
            delivery.link.unsettled -= 1
            sender.unsettled += 1
            delivery.link = sender
        else:
            receiver = cast("ReceivingLink", link)
            del delivery.link.tags[delivery.tag]
            receiver.tags[delivery.tag] = delivery
            delivery.link = receiver

    def release(self, delivery: IncomingDelivery | OutgoingDelivery) -> bool:
        """Free the id of an unsettled delivery; return False if it has none here.

        It continues under another id, or not at all.
        """
        delivery_id = delivery.delivery_id
        if isinstance(delivery, OutgoingDelivery):
            if self.outgoing.get(delivery_id) is not delivery:
                return False
            del self.outgoing[delivery_id]
            delivery.link.unsettled -= 1
        else:
            if self.incoming.get(delivery_id) is not delivery:
                return False
            del self.incoming[delivery_id]
            self._stop_awaiting(delivery_id)
            delivery.link.tags.pop(delivery.tag, None)
            self.modes.pop(delivery_id, None)
        return True

    def wake(self, link: Link) -> None:
        """Wake the watchers of a link that was detached, neither closed nor with an error.

        The deliveries are live until the session ends: dispositions of both ends apply (2.7.6).
        """
        for delivery in self._unsettled_of(link):
            self._context.touch(delivery.watcher)

    def _unsettled_of(self, link: Link) -> list[IncomingDelivery | OutgoingDelivery]:
        """Return the unsettled deliveries of a link, without a search through the others."""
        if link.role is Role.RECEIVER:
            tags = cast("ReceivingLink", link).tags
            return [each for each in tags.values() if self.incoming.get(each.delivery_id) is each]
        sender = cast("SendingLink", link)
        filed = self._file() if sender.unsettled else self._filed or {}
        held = (self.outgoing[each] for each in filed.get(sender, ()) if each in self.outgoing)
        return [each for each in held if each.link is sender]  # ``move`` may have given some to another link

    def forget_all(self) -> None:
        """Drop the unsettled deliveries of all links, because the session is over.

        This includes links that were detached before.
        """
        held: tuple[Any, ...] = (*self.incoming.values(), *self.outgoing.values())
        for link in dict.fromkeys(delivery.link for delivery in held):
            self.forget(link)

    def forget(self, link: Link) -> None:
        """Drop the unsettled deliveries of a link that is gone, and wake their watchers.

        Deliveries of its terminus stay there, without an id.
        """
        if link.role is Role.RECEIVER:
            self._forget_received(cast("ReceivingLink", link))
        else:
            self._forget_sent(cast("SendingLink", link))

    def _forget_received(self, link: ReceivingLink) -> None:
        for delivery in self._unsettled_of(cast("Link", link)):
            del self.incoming[delivery.delivery_id]
            self._stop_awaiting(delivery.delivery_id)
            self.modes.pop(delivery.delivery_id, None)
            self._context.touch(delivery.watcher)
        link.tags.clear()

    def _forget_sent(self, link: SendingLink) -> None:
        for delivery in self._unsettled_of(cast("Link", link)):
            del self.outgoing[delivery.delivery_id]
            if link.terminus is None or delivery.tag not in link.terminus.unsettled:
                link.in_doubt += 1
            self._context.touch(delivery.watcher)
        if self._filed:
            self._filed.pop(link, None)
        link.unsettled = 0

    def _file(self) -> dict[SendingLink, list[int]]:
        """File the deliveries sent since the last call; return the ids of each link.

        Settled ones are removed from a list when they may be half of it.
        """
        self.tally()
        if self._filed is None:
            self._filed = {}
        position, filed = self.sent.position, self._filed
        new = list(takewhile(lambda each: position(each) > self._filed_to, reversed(self.outgoing)))
        links: dict[SendingLink, None] = {}
        for delivery_id in reversed(new):
            link = self.outgoing[delivery_id].link
            filed.setdefault(link, []).append(delivery_id)
            links[link] = None
            self._filed_to = position(delivery_id)
        for link in links:
            if len(filed[link]) > 2 * link.unsettled:
                filed[link] = [each for each in filed[link] if each in self.outgoing]
        return filed


def _rank(state: Any) -> Rank:
    """Return how final a state is."""
    if not is_terminal(state):
        return Rank.NONE
    return Rank.IN_TRANSACTION if isinstance(state, TransactionalState) else Rank.OUTCOME


def _set_state(delivery: IncomingDelivery, state: Any) -> None:
    delivery.state = state
    if delivery.inflow is not None and is_refusal(state):
        delivery.inflow.discard()  # what is left of it will not be read
