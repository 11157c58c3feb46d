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
the writer next asks for octets, or before anything that must not overtake it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from trio_amqp10 import rules
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spec.transactions import TransactionalState
from trio_amqp10.spec.transport import Disposition, ReceiverSettleMode, Role
from trio_amqp10.wire.values import Described

from .delivery import ACCEPTED, RELEASED, IncomingDelivery, OutgoingDelivery, is_refusal, is_terminal
from .fast import write_disposition
from .serial import MASK, distance
from .states import LinkState

if TYPE_CHECKING:
    from .link import Link
    from .session import Session

__all__ = ["Settlement"]

_FIRST = ReceiverSettleMode.FIRST


class Settlement:
    """The unsettled deliveries of one session, both ways, and the dispositions we owe."""

    __slots__ = (
        "_first",
        "_last",
        "_role",
        "_settled",
        "_state",
        "incoming",
        "modes",
        "outgoing",
        "pending",
        "session",
    )

    def __init__(self, session: Session) -> None:
        self.session = session
        self.incoming: dict[int, IncomingDelivery] = {}
        self.outgoing: dict[int, OutgoingDelivery] = {}
        self.modes: dict[int, int] = {}  # deliveries that settle otherwise than their link (2.7.5)
        self.pending = False
        self._role = Role.RECEIVER
        self._first = self._last = 0
        self._settled = True
        self._state: Any = None

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
                link.terminus.conclude(delivery.tag, state, lambda: None)
            return
        self._check(state)
        _give(delivery, state)
        mode = link.rcv_settle_mode
        if self.modes:
            mode = self.modes.get(delivery_id, mode)
        settles = settle and mode == _FIRST and (state is ACCEPTED or is_terminal(state))
        if settles:
            delivery.settled = True
            del self.incoming[delivery_id]
            link.tags.discard(delivery.tag)
            if link.terminus is not None:
                link.terminus.forget(delivery.tag)
            if self.modes:
                self.modes.pop(delivery_id, None)
        elif link.terminus is not None and is_terminal(state):
            link.terminus.conclude(delivery.tag, state, partial(self._say_if_held, delivery))
            return
        self._say(Role.RECEIVER, delivery_id, settles, state)

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
        delivery.settled = True
        self.drop(delivery)
        self._say(Role.RECEIVER, delivery.delivery_id, True, state)

    def drop(self, delivery: IncomingDelivery) -> None:
        """A received delivery is settled, or aborted: nothing will be said of it any more."""
        if self.incoming.pop(delivery.delivery_id, None) is not None:
            link = delivery.link
            link.tags.discard(delivery.tag)
            if link.terminus is not None:
                link.terminus.forget(delivery.tag)
        if self.modes:
            self.modes.pop(delivery.delivery_id, None)

    def settle_outgoing(self, delivery: OutgoingDelivery) -> None:
        """Forget a sent delivery, and tell the receiver.

        Raises:
            LocalProtocolError: its link is gone.
        """
        if self.outgoing.pop(delivery.delivery_id, None) is None:
            terminus = delivery.link.terminus if delivery.link.state is LinkState.GONE else None
            if terminus is None or delivery.tag not in terminus.unsettled:
                raise LocalProtocolError(f"cannot settle delivery {delivery.tag!r}: its link is gone")
            terminus.drop(delivery.tag)
            delivery.settled = True  # the receiver will miss it when the link is taken up again (2.6.13)
            return
        self._let_go(delivery)
        state = delivery.state
        try:
            self._check(state)
        except LocalProtocolError:
            state = None  # the receiver's own words, too long for the frames that it takes
        self._say(Role.SENDER, delivery.delivery_id, True, state)

    def forget_outgoing(self, delivery: OutgoingDelivery) -> None:
        """A sent delivery is aborted, which settles it without a word more (2.7.5)."""
        if self.outgoing.pop(delivery.delivery_id, None) is not None:
            self._let_go(delivery)
            self.session.connection.touch(delivery.watcher)

    def _let_go(self, delivery: OutgoingDelivery) -> None:
        """A sent delivery is no longer held."""
        delivery.settled = True
        link = delivery.link
        link.unsettled -= 1
        if link.terminus is not None:
            link.terminus.drop(delivery.tag)
        if link.watch_unsettled and not link.unsettled:
            self.session.connection.touch(link.owner)

    def _check(self, state: Any) -> None:
        """Refuse a state that fits no frame now, while it can be refused."""
        if state is not None and state is not ACCEPTED and state is not RELEASED:
            body = write_disposition(Role.SENDER, MASK - 1, MASK, True, state)
            self.session.connection.outbox.check(len(body))

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
            self.session.dirty()
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
            self.session.write_body(body)

    # -- what the peer says -----------------------------------------------------------------

    def on_disposition(self, disposition: Disposition) -> None:
        """A disposition in its general form."""
        first, state = disposition.first, disposition.state
        last = first if disposition.last is None else disposition.last
        if isinstance(state, Described) and distance(last, first) >= 0:
            held = self.outgoing if disposition.role is Role.RECEIVER else self.incoming
            for link in {held[i].link: None for i in self._held(held, first, distance(last, first))}:
                link.fail(
                    rules.DELIVERY_STATE.broken(f"delivery state {state.descriptor!r} is not known here")
                )
        else:
            self.on_range(disposition.role, first, last, disposition.settled, state)

    def on_range(self, role: bool, first: int, last: int, settled: bool, state: Any) -> None:
        """The peer's word on every delivery from ``first`` to ``last`` that we still hold."""
        ahead = distance(last, first)
        if ahead < 0:
            self.session.fail(
                rules.DISPOSITION_RANGE.broken(f"disposition runs backwards, from {first} to {last}")
            )
            return
        if role is Role.RECEIVER:
            for delivery_id in self._held(self.outgoing, first, ahead):
                self._on_outgoing(self.outgoing[delivery_id], settled, state)
        else:
            for delivery_id in self._held(self.incoming, first, ahead):
                self._on_incoming(self.incoming[delivery_id], settled, state)

    @staticmethod
    def _held(unsettled: dict[int, Any], first: int, ahead: int) -> list[int]:
        """The ids of the range that we hold, at a cost of the smaller of the two."""
        if ahead == 0:
            return [first] if first in unsettled else []
        if ahead < len(unsettled):
            ids = (i & MASK for i in range(first, first + ahead + 1))
            return [i for i in ids if i in unsettled]
        return [i for i in unsettled if (i - first) & MASK <= ahead]

    def _on_outgoing(self, delivery: OutgoingDelivery, settled: bool, state: Any) -> None:
        link = delivery.link
        if state is not None:
            taken = state if link.outcomes is None else link.permitted(state)
            if taken is not state and taken != state and self.session.connection.strict.permitted_outcome:
                text = (
                    f"delivery {delivery.tag!r} has the outcome {state!r}, which the source does not permit"
                )
                link.fail(rules.PERMITTED_OUTCOME.broken(text))
                return
            delivery.state = taken
        if settled:
            del self.outgoing[delivery.delivery_id]
            self._let_go(delivery)
        elif is_terminal(state) and not isinstance(state, TransactionalState) and not link.confirms:
            # (An outcome inside a transaction is none before the discharge: who knows of that settles, 4.4.2.)
            # The receiver settles second: our settlement is what it waits for.
            if link.terminus is None:
                self.settle_outgoing(delivery)
            else:
                link.terminus.conclude(delivery.tag, delivery.state, partial(self._settle_if_held, delivery))
        if delivery.watcher is not None:
            self.session.connection.touch(delivery.watcher)

    def _settle_if_held(self, delivery: OutgoingDelivery) -> None:
        """Its outcome is written down: now the receiver may forget it."""
        if self.outgoing.get(delivery.delivery_id) is delivery:
            self.settle_outgoing(delivery)

    def _on_incoming(self, delivery: IncomingDelivery, settled: bool, state: Any) -> None:
        if state is not None:
            delivery.remote_state = state
        if settled:
            delivery.settled = True
            self.drop(delivery)
        if delivery.watcher is not None:
            self.session.connection.touch(delivery.watcher)

    # -- the end of a link ------------------------------------------------------------------

    def is_live(self, delivery: OutgoingDelivery) -> bool:
        """Whether dispositions still apply to a sent delivery, also after a detach (2.7.6)."""
        return self.outgoing.get(delivery.delivery_id) is delivery

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
            delivery.link.tags.discard(delivery.tag)
            self.modes.pop(delivery_id, None)
        return True

    def wake(self, link: Link) -> None:
        """Wake who waits for deliveries of a link that was detached, neither closed nor with an error.

        The deliveries are live until the session ends: dispositions apply, ours and the peer's (2.7.6).
        """
        held: Any = self.incoming if link.role is Role.RECEIVER else self.outgoing
        for delivery in held.values():
            if delivery.link is link:
                self.session.connection.touch(delivery.watcher)

    def forget(self, link: Link | None = None) -> None:
        """Drop what a link that is gone leaves unsettled, or every link; waiters are woken and find it gone.

        What their termini hold stays there, without an id.
        """
        touch = self.session.connection.touch
        if link is None or link.role is Role.RECEIVER:
            for received in [d for d in self.incoming.values() if link is None or d.link is link]:
                del self.incoming[received.delivery_id]
                received.link.tags.discard(received.tag)
                self.modes.pop(received.delivery_id, None)
                touch(received.watcher)
        if link is None or link.role is Role.SENDER:
            for sent in [d for d in self.outgoing.values() if link is None or d.link is link]:
                del self.outgoing[sent.delivery_id]
                sent.link.unsettled -= 1
                if sent.link.terminus is None or sent.tag not in sent.link.terminus.unsettled:
                    sent.link.in_doubt += 1
                touch(sent.watcher)


def _give(delivery: IncomingDelivery, state: Any) -> None:
    delivery.state = state
    if delivery.inflow is not None and is_refusal(state):
        delivery.inflow.discard()  # what is left of it will not be read
