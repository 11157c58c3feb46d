"""The sending end of a link: credit, transfers, drain (2.6.7, 2.7.5).

Knows nothing of how a message is encoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp10.spec.messaging import RELEASED, Received
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.amqp10.spec.transport import Attach, Flow, Role, SenderSettleMode, Transfer
from trio_amqp10.amqp10.wire.composite import plan_of
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.frames import FRAME_HEADER_SIZE
from trio_amqp10.core.arguments import check_type
from trio_amqp10.core.errors import Condition, LocalProtocolError, MessageSizeError

from .codec_shortcut import WHOLE_OVERHEAD, transfer_head, transfer_tail, write_transfer
from .link import FAR, Link
from .outcomes import OUTCOMES
from .outgoing_transfers import Outgoing
from .sender_resume import resume_sender
from .serial_numbers import MASK, add, distance
from .states import LinkState
from .tag_uniqueness import MADE_SIZE, ChosenTags, check_tag

if TYPE_CHECKING:
    from collections.abc import Callable

    from .delivery import OutgoingDelivery
    from .sender_resume import Resending
    from .session_core import SessionCore
    from .unsettled_state import OutcomeStore, SenderTerminus

_ATTACHED = LinkState.ATTACHED


class SenderLink(Link):
    """A sender link: it waits for credit, and counts the deliveries that it sent.

    Attributes:
        accepted: the deliveries with a watcher that the receiver has accepted and settled, for an owner that
            looks at all of them when it is woken, and empties the list. None: each watcher is woken instead.
        available: how many messages wait for credit, reported to the receiver in each flow; or None.
        unsettled: the number of deliveries that were sent and are not settled.
        in_doubt: the number of deliveries that were unsettled when the link ended: their outcome remains
            unknown.
        txn_id: the transaction that acquires the deliveries sent from now on, as the receiver requested
            (4.4.3).
        watch_unsettled: whether to wake the owner when ``unsettled`` falls to zero.
        waiting: whether the owner waits until the link is sendable.
        outcomes: the names of the outcomes that our source permits; None for all (3.5.3).
        outcome_store: stores the effect of outcomes before the deliveries are settled, for a terminus that has no
            ``unsettled_store``, or for none; or None.
        confirms: whether the watcher of a delivery, and not this link, settles it after the outcome of a receiver
            that settles second. The watcher may settle with another outcome.
        partial: the delivery in progress, or None.
        resending: the deliveries to send again after the link has resumed (2.6.13), before any new one; or
            None.
        size_limit: octets of the largest message that the peer accepts (2.7.3); None for any.
        terminus: the unsettled state that outlives this endpoint, or None.
    """

    __slots__ = (
        "_always_settled",
        "_chosen",
        "_first_count",
        "_head",
        "_next_tag",
        "_state",
        "_tail",
        "_whole_limit",
        "accepted",
        "available",
        "confirms",
        "in_doubt",
        "outcome_store",
        "outcomes",
        "partial",
        "resending",
        "size_limit",
        "terminus",
        "txn_id",
        "unsettled",
        "waiting",
        "watch_unsettled",
    )

    role = Role.SENDER

    def __init__(self, session: SessionCore, name: str) -> None:
        super().__init__(session, name)
        self.delivery_count: int | None = 0
        self.accepted: list[OutgoingDelivery] | None = None
        self.available: int | None = None
        self.unsettled: int = 0
        self.in_doubt: int = 0
        self.watch_unsettled: bool = False
        self.waiting: bool = False
        self.outcomes: frozenset[str] | None = None
        self.outcome_store: OutcomeStore | None = None
        self.confirms: bool = False
        self._always_settled: bool | None = None
        self._first_count = 0
        self.size_limit: int | None = None
        self._whole_limit = 0
        self._chosen: ChosenTags | None = None
        self._next_tag = 0
        self._head = b""
        self._tail: bytes | None = b""
        self._state: Any = None
        self.partial: Outgoing | None = None
        self.resending: Resending | None = None
        self.terminus: SenderTerminus | None = None
        self.txn_id: Any = None

    def _available(self) -> int | None:
        return self.available

    def _on_bound(self, attach: Attach) -> None:  # noqa: ARG002 - a receiver reads it
        self._shape_transfers(None)
        self._first_count = self.delivery_count or 0
        self.outcomes = frozenset(getattr(self.source, "outcomes", ())) or None
        if self.terminus is not None:
            self._next_tag = self.terminus.next_tag
        if self.snd_settle_mode != SenderSettleMode.MIXED:
            self._always_settled = self.snd_settle_mode == SenderSettleMode.SETTLED

    def on_attach(self, attach: Attach) -> None:
        super().on_attach(attach)
        frame_size = self.context.write_buffer.frame_size
        self.size_limit = attach.max_message_size or None  # 0 means no limit (2.7.3)
        self._whole_limit = (
            frame_size if self.size_limit is None else min(frame_size, WHOLE_OVERHEAD + self.size_limit)
        )

    def _shape_transfers(self, state: Any) -> None:
        """Make the octets that all whole messages with this state share.

        The tail is None if the generic codec must write them.
        """
        self._state, self._tail = state, transfer_tail(state)
        self._head = transfer_head(self.session.channel, self.handle, self._tail or b"")

    def permitted(self, state: Any) -> Any:
        """Return ``state``, or the outcome that replaces one our source forbids (3.5.3)."""
        if isinstance(state, TransactionalState) and state.outcome is not None:
            return TransactionalState(txn_id=state.txn_id, outcome=self.permitted(state.outcome))
        if (
            self.outcomes is None
            or not isinstance(state, OUTCOMES)
            or plan_of(type(state)).name in self.outcomes
        ):
            return state
        return self.default_outcome

    @property
    def default_outcome(self) -> Any:
        """The outcome of a delivery that is settled without an outcome (3.5.3).

        It is the default outcome of our source, or released.

        The source of the peer's attach is only its wish: the sender has authority over the source (2.6.3).
        """
        return getattr(self.source, "default_outcome", None) or RELEASED

    def record_outcome(self, delivery: OutgoingDelivery, then: Callable[[], object]) -> None:
        """Store the outcome of a delivery, or its effect; then call ``then``.

        ``then`` settles. After our settlement the receiver forgets the delivery, and cannot send its outcome again (2.6.12).
        """
        terminus = self.terminus
        if terminus is not None and terminus.unsettled_store is not None:
            terminus.record_outcome(delivery.tag, delivery.word, then)
        elif self.outcome_store is not None:
            self.outcome_store.record_outcome(delivery, then)
        else:
            then()

    def after_outcomes(self, then: Callable[[], object]) -> None:
        """Call ``then`` once all outcomes so far are stored."""
        store = None if self.terminus is None else self.terminus.unsettled_store
        waited_for = self.outcome_store if store is None else store
        if waited_for is None:
            then()
        else:
            waited_for.after(then)

    def on_flow(self, flow: Flow) -> None:
        self.tally()
        # A receiver that has not read our attach leaves out the delivery-count, and means our first one (2.6.7).
        base = self._first_count if flow.delivery_count is None else flow.delivery_count
        if flow.link_credit is not None:
            # The receiver granted credit from its own delivery-count on; deliveries in flight have used a
            # part of it (2.6.7).
            limit = add(base, min(flow.link_credit, FAR))
            self.credit: int = max(0, distance(limit, self.delivery_count or 0))
        self.drain: bool = flow.drain
        if flow.properties:
            self.txn_id = flow.properties.get("txn-id", self.txn_id)
        if self.resending is not None:
            self.session.await_window(self)
            self.session.feed_partials()
        self.wake()

    def sendable(self) -> bool:
        """Whether ``send`` would write a message now."""
        write_buffer = self.context.write_buffer
        return (
            self.credit > 0
            and self.partial is None
            and self.resending is None
            and not self.incomplete
            and self.session.windows.remote_incoming_window > 0
            and write_buffer.size < write_buffer.soft  # as ``has_room``
            and self.state is _ATTACHED
        )

    def await_sendable(self) -> None:
        """Wake the owner when ``sendable`` may have become true."""
        if not self.waiting:
            self.waiting = True
            self.session.hungry.append(self)
            self.context.hungry[self.session] = None

    def send(
        self,
        payload: bytes,
        settled: bool = False,
        tag: bytes | None = None,
        message_format: int = 0,
        state: Any = None,
    ) -> OutgoingDelivery | None:
        """Send one message, or do nothing and return None if not ``sendable``.

        Transfers that do not fit the window now follow when it opens.

        Args:
            payload: the encoded sections, complete.
            settled: send it settled, so that it is forgotten at once; overridden by the link's settle mode,
                unless mixed.
            tag: at most 32 octets, unique among the unsettled deliveries of the link; made here if None.
            message_format: 0 for the sections of Part 3.
            state: sent with every transfer, e.g. a transactional state (4.4.1).

        Raises:
            LocalProtocolError: the tag is too long or in use, or the state does not fit a frame.
            MessageSizeError: the message is larger than the peer accepts.
        """
        if not self.sendable():
            return None
        if self._always_settled is not None:
            settled = self._always_settled
        session, context = self.session, self.context
        write_buffer = context.write_buffer
        delivery_id = session.next_delivery_id
        if state is not self._state:
            self._shape_transfers(state)
        end = self._tail
        size = WHOLE_OVERHEAD + len(end or b"") + len(payload)
        if tag is None and size <= self._whole_limit and not message_format and end is not None:
            # The usual case, a whole message in one frame: the performative is written without the codec.
            # After a caller has chosen a tag, the limit is -1, because then our own tags must be checked.
            number = self._next_tag
            self._next_tag = (number + 1) & MASK
            delivery: OutgoingDelivery = context.outgoing_class(
                self, delivery_id, number.to_bytes(4, "big"), settled
            )
            head = write_transfer(self._head, size, delivery_id, number, settled)
            write_buffer.write_frame(head + end if end else head, payload)
            windows = session.windows  # as ``sent``
            windows.next_outgoing_id = (windows.next_outgoing_id + 1) & MASK
            windows.remote_incoming_window -= 1
        else:
            # A tag, a format or an unusual state was given, or the message is too large for one frame.
            self._check(payload, tag)
            delivery = context.outgoing_class(self, delivery_id, self._tag(tag), settled)
            self.send_parts(delivery, payload, message_format, state)
            self._take_tag(tag, delivery)
        session.next_delivery_id = (delivery_id + 1) & MASK
        self.credit -= 1
        self.delivery_count = ((self.delivery_count or 0) + 1) & MASK
        if not settled:
            self.unsettled += 1
            session.settlement.outgoing[delivery_id] = delivery
            if self.terminus is not None and state is None:
                self.terminus.add(delivery, payload, message_format)
        return delivery

    def _count(self, delivery_id: int) -> None:
        """Count a delivery of this id, which is being sent."""
        self.session.next_delivery_id = (delivery_id + 1) & MASK
        self.credit -= 1
        self.delivery_count = ((self.delivery_count or 0) + 1) & MASK

    def keep(self, delivery: OutgoingDelivery) -> None:
        """Register an unsettled delivery until it is settled."""
        self.unsettled += 1
        self.session.settlement.outgoing[delivery.delivery_id] = delivery

    def adopt(self, delivery: OutgoingDelivery) -> None:
        """Move a delivery of an older endpoint here, under a new delivery-id (2.6.13)."""
        delivery.link = self
        delivery.delivery_id = self.session.next_delivery_id
        self._count(delivery.delivery_id)

    def _check(self, payload: bytes, tag: bytes | None) -> None:
        """Raise if the tag is in use or too long, or the message is too large."""
        if tag is not None:
            check_type("tag", tag, bytes, "bytes, or None")
            if len(tag) == MADE_SIZE:
                # The tag may be equal to one that we made, so those are registered from now on, too.
                chosen = self._choose()
                if not chosen.has_all:
                    outgoing = self.session.settlement.outgoing.values()
                    chosen.add_all(each for each in outgoing if each.link is self)
            check_tag(tag, () if self.terminus is None else self.terminus.unsettled, self._chosen or ())
        self.check_size(len(payload))

    def _tag(self, chosen: bytes | None) -> bytes:
        """Return the tag of the next delivery: ``chosen``, or a free one of our own."""
        if self._chosen is not None and chosen is None:
            self._next_tag = self._chosen.free(self._next_tag)
        return self._next_tag.to_bytes(MADE_SIZE, "big") if chosen is None else chosen

    def _take_tag(self, chosen: bytes | None, delivery: OutgoingDelivery) -> None:
        """Register the tag of a delivery that was sent."""
        if chosen is None:
            self._next_tag = (self._next_tag + 1) & MASK
            if self._chosen is not None and self._chosen.has_all and not delivery.sent_settled:
                self._chosen.add(delivery)
        elif not delivery.sent_settled:
            self._choose().add(delivery)

    def _choose(self) -> ChosenTags:
        """Return the register of chosen tags; from now on our own tags are checked."""
        if self._chosen is None:
            self._chosen = ChosenTags()
            self._whole_limit = -1
        return self._chosen

    def check_size(self, size: int) -> None:
        """Raise if the peer does not accept a message of ``size`` octets.

        Raises:
            MessageSizeError: the message is too large (2.7.3).
        """
        if self.size_limit is not None and size > self.size_limit:
            raise MessageSizeError(size, self.size_limit)

    def takes(self, size: int) -> bool:
        """Whether the peer accepts a message of ``size`` octets (2.7.3)."""
        return self.size_limit is None or size <= self.size_limit

    def send_parts(
        self,
        delivery: OutgoingDelivery,
        payload: bytes,
        message_format: int,
        state: Any,
        *,
        resume: bool = False,
    ) -> None:
        """Write all transfers of a delivery, or as many as window and room allow now.

        Raises:
            LocalProtocolError: ``state`` does not fit a frame.
        """
        room = self.context.write_buffer.frame_size - FRAME_HEADER_SIZE
        head = self._first_head(delivery, message_format, state, more=False, resume=resume)
        if len(head) + len(payload) <= room:
            # It fits one frame.
            self.session.write_body(head, payload)
            self.session.windows.sent()
            return
        self._send_first(delivery, payload, message_format, state, ended=True, resume=resume)

    def _first_head(
        self, delivery: OutgoingDelivery, message_format: int, state: Any, *, more: bool, resume: bool = False
    ) -> bytes:
        return encode(
            Transfer(
                handle=self.handle,
                delivery_id=delivery.delivery_id,
                delivery_tag=delivery.tag,
                message_format=message_format,
                settled=delivery.settled,
                more=more,
                state=state,
                resume=resume,
            )
        )

    def _send_first(
        self,
        delivery: OutgoingDelivery,
        octets: bytes,
        message_format: int,
        state: Any,
        *,
        ended: bool,
        resume: bool = False,
    ) -> Outgoing:
        """Write the first of several transfers."""
        room = self.context.write_buffer.frame_size - FRAME_HEADER_SIZE
        head = self._first_head(delivery, message_format, state, more=True, resume=resume)
        if len(head) >= room:
            raise LocalProtocolError(
                f"{Condition.FRAME_SIZE_TOO_SMALL}: the transfer has {len(head)} octets without its payload, and the peer's frames at most {room + 8}"
            )
        if isinstance(state, Received):
            state = None  # only the first transfer names the place where the payload begins (3.4.1)
        self.partial = partial = Outgoing(self, delivery, head, octets, state, ended=ended)
        self.session.await_window(self)
        partial.send_part()
        return partial

    def begin(
        self,
        octets: bytes = b"",
        settled: bool = False,
        tag: bytes | None = None,
        message_format: int = 0,
        state: Any = None,
    ) -> Outgoing | None:
        """Begin a message in blocks, or do nothing and return None if not ``sendable``.

        Until it is finished or aborted, the link is not sendable.

        Args:
            octets: the first block; the first transfer is written at once, even if it is empty.
            settled, tag, message_format, state: as for ``send``, and with the same errors.
        """
        if not self.sendable():
            return None
        self._check(octets, tag)
        delivery_id = self.session.next_delivery_id
        if self._always_settled is not None:
            settled = self._always_settled
        delivery = self.context.outgoing_class(self, delivery_id, self._tag(tag), settled)
        partial = self._send_first(delivery, octets, message_format, state, ended=False)
        self._take_tag(tag, delivery)
        self._count(delivery_id)
        if not settled:
            self.keep(delivery)
        return partial

    def send_part(self) -> None:
        """Write one more transfer. The caller has checked window and room."""
        if self.partial is not None:
            self.partial.send_part()
        else:
            assert self.resending is not None
            self.resending.send_next()

    def resume(self) -> None:
        assert self.terminus is not None
        resume_sender(self, self.terminus)

    def _abort(self) -> None:
        # Abort the delivery in progress (2.7.5). If the window is closed, no transfer is possible, and the detach
        # ends the delivery as well (2.6.6). A link with a terminus continues it after it has resumed.
        if (
            self.terminus is None
            and self.partial is not None
            and self.session.windows.remote_incoming_window > 0
        ):
            self.session.write_body(encode(Transfer(handle=self.handle, more=False, aborted=True)))
            self.session.windows.sent()

    @property
    def in_progress(self) -> bool:
        """Whether a message has begun and was not sent completely."""
        return self.partial is not None

    def drop_partial(self) -> None:
        """Note that no delivery is in progress: it is complete, or the link is gone."""
        self.partial = None
        if self.resending is None:
            self.session.partials.pop(self, None)

    def stop(self) -> None:
        """Stop sending, because the link is detaching or gone.

        The terminus, if there is one, keeps what was in progress.
        """
        self.resending = None
        self.drop_partial()
        if self.terminus is not None:
            self.terminus.next_tag = self._next_tag

    def drained(self) -> None:
        """Give up the credit if the receiver drains, because nothing waits (2.6.7)."""
        if self.drain:
            self.count_from(add(self.delivery_count or 0, self.credit))
            self.credit = 0
            self.session.owe_flow(self)
