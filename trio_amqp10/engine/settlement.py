"""Who says what of a delivery, and who says it last (2.6.12, 3.4).

Modes x who speaks last
-----------------------

======================  ==========================  ==================================================
sender's settle mode    receiver's settle mode      the exchange
======================  ==========================  ==================================================
settled                 either                      transfer(settled). Nothing follows: at most once.
unsettled (or mixed)    first                       transfer; disposition(receiver, settled, state).
                                                    The receiver forgets first, the sender on reading
                                                    it: at least once.
unsettled (or mixed)    second                      transfer; disposition(receiver, state);
                                                    disposition(sender, settled). The sender forgets
                                                    first, the receiver on reading it. What either
                                                    still holds after a cut tells how far it came:
                                                    exactly once, given a link that is resumed.
======================  ==========================  ==================================================

"Forget" is the word for settling: an end that has settled has dropped its state, and never
speaks of that delivery again. A sender may settle at any time, even before it heard an outcome.
A receiver's second word on a delivery changes nothing: outcomes are terminal.

Two maps hold what is not settled, keyed by delivery-id, one each way, for the whole session: a
disposition names a range of ids and no link. Ranges are what makes settlement cheap. What we
have to say is gathered while ids are consecutive and the state is the same, and written when
the writer next asks for octets, or before anything that must not overtake it. What the peer says
of a range costs what it changes; see ``delivery_ranges``. Of very many deliveries only the first are changed at once: the others wait
for the next slices of what is read (``Context.put_off``), before any other frame.

A link that goes has to find its own among them. A receiver has them by tag. Of a sender nothing is
noted while it sends: when the first link with unsettled deliveries goes, all that were sent since
the last time are filed by link, each of them once.
"""

from __future__ import annotations

import weakref
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, cast

from trio_amqp10 import protocol_rules as rules
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spec.messaging import Received
from trio_amqp10.spec.transactions import TransactionalState
from trio_amqp10.spec.transport import Disposition, ReceiverSettleMode, Role
from trio_amqp10.wire.values import Described

from .delivery import IncomingDelivery, OutgoingDelivery
from .delivery_ranges import FEW, DeliveryRanges, Rank
from .fast_codec import write_disposition
from .outcomes import ACCEPTED, OUTCOMES, RELEASED, is_refusal, is_terminal
from .serial_numbers import MASK, distance
from .states import LinkState

if TYPE_CHECKING:
    from .delivery import ReceivingLink, SendingLink
    from .link import Link
    from .session_core import SessionCore

__all__ = ["REMEMBERED", "Settlement"]

REMEMBERED: Final = 512
"""Octets that a delivery counts beyond its payload: what is kept to remember it."""

_FIRST = ReceiverSettleMode.FIRST

_AT_ONCE = 256
"""Deliveries that one word changes before others may have their turn: about half a millisecond."""

_CHEAP = 1_000
"""Deliveries to which the peer may give another outcome again and again, at the price of ending one session unanswered."""


class Settlement:
    """The unsettled deliveries of one session, both ways, and the dispositions we owe.

    Attributes:
        awaiting_settlement: received deliveries that have their outcome and wait for their sender to settle, by id, with
            the octets that each counts.
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
        self._session: SessionCore = weakref.proxy(session)  # which owns this: no cycle
        self._context = session.context
        self.incoming: dict[int, IncomingDelivery] = {}
        self.outgoing: dict[int, OutgoingDelivery] = {}
        self.received: DeliveryRanges[IncomingDelivery] = DeliveryRanges(self.incoming)
        self.sent: DeliveryRanges[OutgoingDelivery] = DeliveryRanges(self.outgoing)
        self.modes: dict[int, int] = {}  # deliveries that settle otherwise than their link (2.7.5)
        self.awaiting_settlement: dict[int, int] = {}
        self.pending: bool = False
        self._role = Role.RECEIVER
        self._first = self._last = 0
        self._settled = True
        self._state: Any = None
        self._filed: dict[SendingLink, list[int]] = {}
        self._filed_to = -2 * MASK  # the position of the last that was; before any

    # -- what we say ------------------------------------------------------------------------

    def dispose(self, delivery: IncomingDelivery, state: Any, *, settle: bool = True) -> None:
        """Give a received delivery its outcome; settles it, unless the receiver settles second.

        Args:
            delivery: which.
            state: its outcome, or how far it has come.
            settle: False leaves it unsettled in either mode, e.g. until a transaction is discharged (4.4.2).

        Raises:
            LocalProtocolError: it has an outcome already, or its link is gone, or the outcome does not
                fit a frame.
        """
        if delivery.state is not None and is_terminal(delivery.state):
            raise LocalProtocolError(
                f"delivery {delivery.tag!r} was already given the outcome {delivery.state!r}"
            )
        if delivery.settled:
            _give(delivery, state)  # the sender has forgotten it: there is nobody to tell (2.6.12)
            return
        delivery_id = delivery.delivery_id
        link = delivery.link
        if delivery_id not in self.incoming:
            if link.terminus is None or delivery.tag not in link.terminus.unsettled:
                raise LocalProtocolError(f"cannot settle delivery {delivery.tag!r}: its link is gone")
            delivery.state = state  # said when the link is taken up again (2.6.13)
            if is_terminal(state):
                link.terminus.record_outcome(delivery.tag, state, lambda: None)
            return
        if state is not ACCEPTED:
            self._check(state)
        _give(delivery, state)
        mode = link.rcv_settle_mode
        if self.modes:
            mode = self.modes.get(delivery_id, mode)
        settles = settle and mode == _FIRST and (state is ACCEPTED or is_terminal(state))
        if settles:
            delivery.settled = True
            del self.incoming[delivery_id]
            link.tags.pop(delivery.tag, None)
            if link.terminus is not None:
                link.terminus.forget(delivery.tag)
            if self.modes:
                self.modes.pop(delivery_id, None)
        elif is_terminal(state):
            if isinstance(state, OUTCOMES):
                self._await_settlement(delivery)
            if link.terminus is not None:
                link.terminus.record_outcome(delivery.tag, state, partial(self._say_if_held, delivery))
                return
        self._say(Role.RECEIVER, delivery_id, settles, state)

    def accept(self, delivery: IncomingDelivery) -> None:
        """As ``dispose`` with ``ACCEPTED``, the outcome of nearly all deliveries: the usual case in one go."""
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
        self._say(Role.RECEIVER, delivery_id, True, ACCEPTED)

    def _await_settlement(self, delivery: IncomingDelivery) -> None:
        """It has its outcome, and is remembered until its sender settles it."""
        if delivery.link.sheds:
            delivery.payload = b""
            delivery.memo = None
        self._stop_awaiting(delivery.delivery_id)
        octets = self.awaiting_settlement[delivery.delivery_id] = len(delivery.payload) + REMEMBERED
        self._context.awaiting_settlement_octets += octets

    def _stop_awaiting(self, delivery_id: int) -> bool:
        """It is not remembered any more; False if it was not."""
        octets = self.awaiting_settlement.pop(delivery_id, None)
        if octets is None:
            return False
        self._context.awaiting_settlement_octets -= octets
        return True

    def _say_if_held(self, delivery: IncomingDelivery) -> None:
        """Its outcome is written down: now the sender may hear it."""
        if self.incoming.get(delivery.delivery_id) is delivery:
            self._say(Role.RECEIVER, delivery.delivery_id, False, delivery.state)

    def settle_incoming(self, delivery: IncomingDelivery, state: Any) -> None:
        """Settle a received delivery with ``state``, whatever was said of it; nothing happens where it is settled.

        For what a transaction left open, once it is discharged (4.4.4).

        Raises:
            LocalProtocolError: its link is gone, or the state fits no frame.
        """
        if delivery.settled:
            return
        if delivery.delivery_id not in self.incoming:
            raise LocalProtocolError(f"cannot settle delivery {delivery.tag!r}: its link is gone")
        self._check(state)
        delivery.state = state
        self.drop(delivery)
        delivery.settled = True
        self._say(Role.RECEIVER, delivery.delivery_id, True, state)

    def drop(self, delivery: IncomingDelivery) -> None:
        """A received delivery is settled, or aborted: nothing will be said of it any more."""
        if delivery.delivery_id in self.incoming:
            if self.received.words is not None:
                delivery.word = delivery.remote_state  # what was said by ranges, while it is known
            del self.incoming[delivery.delivery_id]
            link = delivery.link
            link.tags.pop(delivery.tag, None)
            if self.awaiting_settlement and self._stop_awaiting(delivery.delivery_id):
                self._context.touch(link.owner)  # it may give credit again
            if link.terminus is not None:
                link.terminus.forget(delivery.tag)
        if self.modes:
            self.modes.pop(delivery.delivery_id, None)

    def settle_outgoing(self, delivery: OutgoingDelivery) -> None:
        """Forget a sent delivery, and tell the receiver.

        Raises:
            LocalProtocolError: its link is gone.
        """
        if delivery.delivery_id not in self.outgoing:
            terminus = delivery.link.terminus if delivery.link.state is LinkState.GONE else None
            if terminus is None or delivery.tag not in terminus.unsettled:
                raise LocalProtocolError(f"cannot settle delivery {delivery.tag!r}: its link is gone")
            terminus.drop(delivery.tag)
            delivery.settled = True  # the receiver will miss it when the link is taken up again (2.6.13)
            return
        self._let_go(delivery)
        state = delivery.word
        if isinstance(state, Received):
            state = None  # how far the receiver has come is not for the sender to say (3.4.1)
        try:
            self._check(state)
        except LocalProtocolError:
            state = None  # the receiver's own words, too long for the frames that it takes
        in_progress = delivery.link.partial
        if in_progress is not None and in_progress.delivery is delivery:
            in_progress.settle(state)
        else:
            self._say(Role.SENDER, delivery.delivery_id, True, state)

    def forget_outgoing(self, delivery: OutgoingDelivery) -> None:
        """A sent delivery is aborted, which settles it without a word more (2.7.5)."""
        if delivery.delivery_id in self.outgoing:
            self._let_go(delivery)
            self._context.touch(delivery.watcher)

    def _let_go(self, delivery: OutgoingDelivery) -> None:
        """A sent delivery is no longer held."""
        if self.sent.words is not None:
            delivery.word = delivery.state  # what was said by ranges, while it is known
        del self.outgoing[delivery.delivery_id]
        delivery.settled = True
        link = delivery.link
        link.unsettled -= 1
        if link.terminus is not None:
            link.terminus.drop(delivery.tag)
        if link.watch_unsettled and not link.unsettled:
            self._context.touch(link.owner)

    def reopen(self, delivery: OutgoingDelivery) -> None:
        """The outcome of a sent delivery did not come to count: the receiver may give it another."""
        if self.outgoing.get(delivery.delivery_id) is delivery:
            self.sent.forget_word(delivery.delivery_id)

    def _check(self, state: Any) -> None:
        """Refuse a state that fits no frame now, while it can be refused."""
        if state is not None and state is not ACCEPTED and state is not RELEASED:
            body = write_disposition(Role.SENDER, MASK - 1, MASK, True, state)
            self._context.write_buffer.check(len(body))

    def _say(self, role: bool, delivery_id: int, settled: bool, state: Any) -> None:
        if self.pending:
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
            self._session.dirty()
        self.pending = True
        self._role = role
        self._first = self._last = delivery_id
        self._settled = settled
        self._state = state

    def flush(self) -> None:
        """Write the range gathered so far."""
        if self.pending:
            self.pending = False
            body = write_disposition(self._role, self._first, self._last, self._settled, self._state)
            self._session.write_body(body)

    # -- what the peer says -----------------------------------------------------------------

    def tally(self) -> None:
        """Note how far the ids of both directions have come; with every flow, so long before half of them are used."""
        self.sent.reach(self._session.next_delivery_id)
        self.received.reach(self._session.next_incoming_delivery_id or 0)

    def on_disposition(self, disposition: Disposition) -> None:
        """A disposition in its general form."""
        first, state = disposition.first, disposition.state
        last = first if disposition.last is None else disposition.last
        ahead = distance(last, first)
        if isinstance(state, Described) and ahead >= 0:
            self.tally()
            said: DeliveryRanges[Any] = self.sent if disposition.role is Role.RECEIVER else self.received
            for link in {each.link: None for each in said.due(first, ahead, Rank.UNKNOWN)}:
                link.fail(
                    rules.DELIVERY_STATE.broken(f"delivery state {state.descriptor!r} is not known here")
                )
        else:
            self.on_range(disposition.role, first, last, disposition.settled, state)

    def on_range(self, role: bool, first: int, last: int, settled: bool, state: Any) -> None:
        """The peer's word on every delivery from ``first`` to ``last`` that we still hold."""
        ahead = distance(last, first)
        if ahead < 0:
            self._session.fail(
                rules.DISPOSITION_RANGE.broken(f"disposition runs backwards, from {first} to {last}")
            )
            return
        if ahead >= FEW or not settled:
            self.tally()
        if role is Role.RECEIVER:
            rank = Rank.SETTLED if settled else _rank(state)
            if rank is not Rank.NONE:
                in_transaction = rank is Rank.IN_TRANSACTION
                due = self.sent.due(first, ahead, rank, state if in_transaction else True)
                if in_transaction and len(due) > FEW and due[0].word is not None:
                    self._context.charge_churn("outcomes in a transaction changed", len(due) / _CHEAP)
                self._hear(due, rank, state)
            elif state is not None:
                self.sent.note(first, ahead, state)
        elif settled:
            self._forget_all(self.received.due(first, ahead, Rank.SETTLED), state)
        elif state is not None:
            self.received.note(first, ahead, state)

    def _hear(self, due: list[OutgoingDelivery], rank: Rank, state: Any) -> None:
        """The peer's word on these deliveries, which we held when it came."""
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
                # As ``_on_outgoing`` does it, for the answer that nearly all deliveries get.
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
            self._context.put_off(partial(self._hear_more, due[_AT_ONCE:], rank, state))

    def _hear_more(self, due: list[OutgoingDelivery], rank: Rank, state: Any) -> None:
        """As ``_hear``, for those that we hold still."""
        self._hear([each for each in due if self.outgoing.get(each.delivery_id) is each], rank, state)

    def _forget_all(self, gone: list[IncomingDelivery], state: Any) -> None:
        """The sender has settled these deliveries, which we held when it said so."""
        some = gone[:_AT_ONCE]
        self._context.changed += len(some)
        for received in some:
            if not received.settled:  # else we have settled it meanwhile
                self._on_incoming(received, state)
        if len(gone) > _AT_ONCE:
            self._context.put_off(partial(self._forget_all, gone[_AT_ONCE:], state))

    def _on_outgoing(self, delivery: OutgoingDelivery, rank: Rank, state: Any) -> None:
        link = delivery.link
        if rank is not Rank.SETTLED and delivery.word is not None:
            before = _rank(delivery.word)
            if before > rank or (before is rank and (rank is Rank.OUTCOME or delivery.word == state)):
                return  # an outcome is terminal; before the discharge it is none yet
        if state is not None:
            taken = state if link.outcomes is None else link.permitted(state)
            if taken is not state and taken != state and self._context.strict.permitted_outcome:
                text = (
                    f"delivery {delivery.tag!r} has the outcome {state!r}, which the source does not permit"
                )
                link.fail(rules.PERMITTED_OUTCOME.broken(text))
                return
            delivery.word = taken
        if rank is Rank.SETTLED:
            self._let_go(delivery)
        elif rank is Rank.OUTCOME and not link.confirms:
            # (An outcome inside a transaction is none before the discharge: who knows of that settles, 4.4.2.)
            # The receiver settles second: our settlement is what it waits for.
            if link.terminus is None:
                self.settle_outgoing(delivery)
            else:
                link.terminus.record_outcome(
                    delivery.tag, delivery.word, partial(self._settle_if_held, delivery)
                )
        if delivery.watcher is not None:
            self._context.touch(delivery.watcher)

    def _settle_if_held(self, delivery: OutgoingDelivery) -> None:
        """Its outcome is written down: now the receiver may forget it."""
        if self.outgoing.get(delivery.delivery_id) is delivery:
            self.settle_outgoing(delivery)

    def _on_incoming(self, delivery: IncomingDelivery, state: Any) -> None:
        """The sender has settled it."""
        self.drop(delivery)
        delivery.on_remote_state(state)
        delivery.settled = True
        if delivery.watcher is not None:
            self._context.touch(delivery.watcher)

    # -- the end of a link ------------------------------------------------------------------

    def is_live(self, delivery: IncomingDelivery | OutgoingDelivery) -> bool:
        """Whether dispositions still apply to a delivery, also after a detach (2.7.6)."""
        if isinstance(delivery, OutgoingDelivery):
            return self.outgoing.get(delivery.delivery_id) is delivery
        return self.incoming.get(delivery.delivery_id) is delivery

    def move(self, delivery: IncomingDelivery | OutgoingDelivery, link: Link) -> None:
        """A live delivery goes on, under its id, on the endpoint that was attached in place of its own (2.6.4)."""
        if isinstance(delivery, OutgoingDelivery):
            sender = cast("SendingLink", link)
            self._file()
            self._filed.setdefault(sender, []).append(delivery.delivery_id)
            delivery.link.unsettled -= 1
            sender.unsettled += 1
            delivery.link = sender
        else:
            receiver = cast("ReceivingLink", link)
            del delivery.link.tags[delivery.tag]
            receiver.tags[delivery.tag] = delivery
            delivery.link = receiver

    def release(self, delivery: IncomingDelivery | OutgoingDelivery) -> bool:
        """Forget the id of an unsettled delivery, which goes on under another, or not at all; False if it has none here."""
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
        """Wake those who wait for deliveries of a link that was detached, neither closed nor with an error.

        The deliveries are live until the session ends: dispositions apply, ours and the peer's (2.7.6).
        """
        for delivery in self._unsettled_of(link):
            self._context.touch(delivery.watcher)

    def _unsettled_of(self, link: Link) -> list[IncomingDelivery | OutgoingDelivery]:
        """What is unsettled of one link, at a cost of just that."""
        if link.role is Role.RECEIVER:
            tags = cast("ReceivingLink", link).tags
            return [each for each in tags.values() if self.incoming.get(each.delivery_id) is each]
        sender = cast("SendingLink", link)
        if sender.unsettled:
            self._file()
        held = (self.outgoing[each] for each in self._filed.get(sender, ()) if each in self.outgoing)
        return [each for each in held if each.link is sender]  # others were moved

    def forget_all(self) -> None:
        """The session is over: drop what its links leave unsettled, those that were detached before included."""
        held: tuple[Any, ...] = (*self.incoming.values(), *self.outgoing.values())
        for link in dict.fromkeys(delivery.link for delivery in held):
            self.forget(link)

    def forget(self, link: Link) -> None:
        """Drop what a link that is gone leaves unsettled; waiters are woken and find it gone.

        What its terminus holds stays there, without an id.
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
        self._filed.pop(link, None)
        link.unsettled = 0

    def _file(self) -> None:
        """File by link what was sent since the last time; settled ones are thrown out where they may be half."""
        self.tally()
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


def _rank(state: Any) -> Rank:
    if not is_terminal(state):
        return Rank.NONE
    return Rank.IN_TRANSACTION if isinstance(state, TransactionalState) else Rank.OUTCOME


def _give(delivery: IncomingDelivery, state: Any) -> None:
    delivery.state = state
    if delivery.inflow is not None and is_refusal(state):
        delivery.inflow.discard()  # what is left of it will not be read
