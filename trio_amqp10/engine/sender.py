"""The sending end of a link: credit, transfers, drain (2.6.7, 2.7.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trio_amqp10.errors import Condition, LocalProtocolError, MessageSizeError
from trio_amqp10.frames import FRAME_HEADER_SIZE
from trio_amqp10.spec.messaging import Received
from trio_amqp10.spec.transactions import TransactionalState
from trio_amqp10.spec.transport import Attach, Flow, Role, SenderSettleMode, Transfer
from trio_amqp10.wire.composite import plan_of
from trio_amqp10.wire.encode import encode

from .fast_codec import WHOLE_OVERHEAD, transfer_head, write_transfer
from .link import FAR, Link
from .outcomes import OUTCOMES, RELEASED
from .outgoing_transfers import Outgoing
from .sender_resume import resume_sender
from .serial_numbers import MASK, add, distance
from .states import LinkState
from .tag_uniqueness import MADE_SIZE, ChosenTags, check_tag

if TYPE_CHECKING:
    from .delivery import OutgoingDelivery
    from .sender_resume import Resending
    from .session_core import SessionCore
    from .unsettled_state import SenderTerminus

__all__ = ["SenderLink"]

_ATTACHED = LinkState.ATTACHED


class SenderLink(Link):
    """The end that sends: it waits for credit, and counts what it has sent.

    Attributes:
        accepted: deliveries with a watcher that the receiver has accepted and settled, as ranges of them are read:
            for an owner that looks at all of them when it is woken, and empties the list. None: each watcher is woken.
        available: messages waiting for credit, told to the receiver in each flow; or None.
        unsettled: deliveries sent and not settled.
        in_doubt: deliveries that were unsettled when the link went: their outcome will not be known.
        txn_id: the transaction that what is sent from now on is acquired in, as the receiver asked (4.4.3).
        watch_unsettled: wake the owner when ``unsettled`` falls to zero.
        outcomes: names of those that our source permits; None for all (3.5.3).
        confirms: a receiver that settles second has its outcome looked at first: whoever watches the delivery
            settles it, with that outcome or another.
        partial: the delivery that has begun to go out and is not complete.
        resending: what is said again, after the link was taken up (2.6.13), before anything new is.
        size_limit: octets of the largest message that the peer takes (2.7.3); None for any.
        terminus: what is remembered beyond this endpoint, or None.
    """

    __slots__ = (
        "_always_settled",
        "_chosen",
        "_first_count",
        "_head",
        "_next_tag",
        "_whole_limit",
        "accepted",
        "available",
        "confirms",
        "in_doubt",
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
        self.confirms: bool = False
        self._always_settled: bool | None = None
        self._first_count = 0
        self.size_limit: int | None = None
        self._whole_limit = 0
        self._chosen: ChosenTags | None = None
        self._next_tag = 0
        self._head = b""
        self.partial: Outgoing | None = None
        self.resending: Resending | None = None
        self.terminus: SenderTerminus | None = None
        self.txn_id: Any = None

    def _available(self) -> int | None:
        return self.available

    def _on_bound(self, attach: Attach) -> None:  # noqa: ARG002 - a receiver reads it
        self._head = transfer_head(self.session.channel, self.handle)
        self._first_count = self.delivery_count or 0
        self.outcomes = frozenset(getattr(self.source, "outcomes", ())) or None
        if self.terminus is not None:
            self._next_tag = self.terminus.next_tag
        if self.snd_settle_mode != SenderSettleMode.MIXED:
            self._always_settled = self.snd_settle_mode == SenderSettleMode.SETTLED

    def on_attach(self, attach: Attach) -> None:
        super().on_attach(attach)
        frame_size = self.context.write_buffer.frame_size
        self.size_limit = attach.max_message_size or None  # 0 says as much as nothing (2.7.3)
        self._whole_limit = (
            frame_size if self.size_limit is None else min(frame_size, WHOLE_OVERHEAD + self.size_limit)
        )

    def permitted(self, state: Any) -> Any:
        """``state``, or what stands in for an outcome that our source does not permit (3.5.3)."""
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
        """What counts for a delivery that is settled without an outcome: our source says it, or it is released (3.5.3).

        What the peer's attach says of our source is its wish: the sender has authority over the source (2.6.3).
        """
        return getattr(self.source, "default_outcome", None) or RELEASED

    def on_flow(self, flow: Flow) -> None:
        self.tally()
        # A receiver that has not read our attach yet counts from our first delivery.
        base = self._first_count if flow.delivery_count is None else flow.delivery_count
        if flow.link_credit is not None:
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
        """Whether ``send`` would put a message on its way now."""
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
        """Have the owner woken when ``sendable`` may have become true."""
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
        """Put one message on its way, or None where it is not ``sendable``: then nothing has happened.

        What does not fit the window now follows as it opens.

        Args:
            payload: the encoded sections, whole.
            settled: forget it at once; overridden by a settle mode that leaves no choice.
            tag: at most 32 octets, unique among the link's unsettled ones; made here if None.
            message_format: 0 for the sections of Part 3.
            state: sent with every transfer, e.g. a transactional state (4.4.1).

        Raises:
            LocalProtocolError: a tag that is too long, or a state too large for a frame.
            MessageSizeError: a message larger than the peer takes.
        """
        if not self.sendable():
            return None
        if self._always_settled is not None:
            settled = self._always_settled
        session, context = self.session, self.context
        write_buffer = context.write_buffer
        delivery_id = session.next_delivery_id
        size = WHOLE_OVERHEAD + len(payload)
        if tag is None and size <= self._whole_limit and not message_format and state is None:
            number = self._next_tag
            self._next_tag = (number + 1) & MASK
            delivery: OutgoingDelivery = context.outgoing_class(
                self, delivery_id, number.to_bytes(4, "big"), settled
            )
            write_buffer.write_frame(write_transfer(self._head, size, delivery_id, number, settled), payload)
            windows = session.windows  # as ``sent``
            windows.next_outgoing_id = (windows.next_outgoing_id + 1) & MASK
            windows.remote_incoming_window -= 1
        else:
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
        """A delivery of this id is on its way."""
        self.session.next_delivery_id = (delivery_id + 1) & MASK
        self.credit -= 1
        self.delivery_count = ((self.delivery_count or 0) + 1) & MASK

    def keep(self, delivery: OutgoingDelivery) -> None:
        """Remember a delivery that is on its way until it is settled."""
        self.unsettled += 1
        self.session.settlement.outgoing[delivery.delivery_id] = delivery

    def adopt(self, delivery: OutgoingDelivery) -> None:
        """A delivery of an older endpoint goes on here, under an id of this session (2.6.13)."""
        delivery.link = self
        delivery.delivery_id = self.session.next_delivery_id
        self._count(delivery.delivery_id)

    def _check(self, payload: bytes, tag: bytes | None) -> None:
        if tag is not None and len(tag) == MADE_SIZE:
            chosen = self._choose()
            if not chosen.has_all:
                outgoing = self.session.settlement.outgoing.values()
                chosen.add_all(each for each in outgoing if each.link is self)
        if tag is not None:
            check_tag(tag, () if self.terminus is None else self.terminus.unsettled, self._chosen or ())
        self.check_size(len(payload))

    def _tag(self, chosen: bytes | None) -> bytes:
        """The tag of the next delivery: ``chosen``, or one of ours that is free."""
        if self._chosen is not None and chosen is None:
            self._next_tag = self._chosen.free(self._next_tag)
        return self._next_tag.to_bytes(MADE_SIZE, "big") if chosen is None else chosen

    def _take_tag(self, chosen: bytes | None, delivery: OutgoingDelivery) -> None:
        if chosen is None:
            self._next_tag = (self._next_tag + 1) & MASK
            if self._chosen is not None and self._chosen.has_all and not delivery.sent_settled:
                self._chosen.add(delivery)
        elif not delivery.sent_settled:
            self._choose().add(delivery)

    def _choose(self) -> ChosenTags:
        """Somebody chooses a tag: from now on, look before one of ours is taken."""
        if self._chosen is None:
            self._chosen = ChosenTags()
            self._whole_limit = -1
        return self._chosen

    def check_size(self, size: int) -> None:
        """Refuse a message of ``size`` octets that the peer would not take.

        Raises:
            MessageSizeError: it takes less (2.7.3).
        """
        if not self.takes(size):
            assert self.size_limit is not None
            raise MessageSizeError(size, self.size_limit)

    def takes(self, size: int) -> bool:
        """Whether the peer takes a message of ``size`` octets (2.7.3)."""
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
        """All transfers of a delivery, or as many as window and room allow now.

        Raises:
            LocalProtocolError: ``state`` is too large for a frame.
        """
        room = self.context.write_buffer.frame_size - FRAME_HEADER_SIZE
        head = self._first_head(delivery, message_format, state, more=False, resume=resume)
        if len(head) + len(payload) <= room:
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
        """The first of several transfers."""
        room = self.context.write_buffer.frame_size - FRAME_HEADER_SIZE
        head = self._first_head(delivery, message_format, state, more=True, resume=resume)
        if len(head) >= room:
            raise LocalProtocolError(
                f"{Condition.FRAME_SIZE_TOO_SMALL}: the transfer alone takes {len(head)} octets of the peer's {room + 8}"
            )
        if isinstance(state, Received):
            state = None  # where the payload goes on is for the first transfer to say (3.4.1)
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
        """Begin a message of which more is to follow, or None where nothing is ``sendable``.

        Until it is finished or aborted nothing else is sendable on this link.

        Args:
            octets: how it begins; the first transfer goes out at once, whatever they are.
            settled, tag, message_format, state: as for ``send``. Raises as that.
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
        """One more frame of what is in progress; the caller has checked window and room."""
        if self.partial is not None:
            self.partial.send_part()
        else:
            assert self.resending is not None
            self.resending.send_next()

    def resume(self) -> None:
        assert self.terminus is not None
        resume_sender(self, self.terminus)

    def _abort(self) -> None:
        # Without room for a transfer the detach has to do: it ends the delivery just as well (2.6.6).
        # A link that will be taken up again goes on with it then.
        if (
            self.terminus is None
            and self.partial is not None
            and self.session.windows.remote_incoming_window > 0
        ):
            self.session.write_body(encode(Transfer(handle=self.handle, more=False, aborted=True)))
            self.session.windows.sent()

    @property
    def in_progress(self) -> bool:
        """Whether a message has begun and not yet wholly gone out."""
        return self.partial is not None

    def drop_partial(self) -> None:
        """No delivery is in progress any more: it is complete, or the link is gone."""
        self.partial = None
        if self.resending is None:
            self.session.partials.pop(self, None)

    def stop(self) -> None:
        """The link is detaching or gone: what was in progress waits for the next, if there is to be one."""
        self.resending = None
        self.drop_partial()
        if self.terminus is not None:
            self.terminus.next_tag = self._next_tag

    def drained(self) -> None:
        """Nothing more to send: use up the credit that the receiver wants back (2.6.7)."""
        if self.drain:
            self.count_from(add(self.delivery_count or 0, self.credit))
            self.credit = 0
            self.session.owe_flow(self)
