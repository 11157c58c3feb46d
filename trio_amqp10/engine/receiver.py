"""The receiving end of a link: credit to give, deliveries that have come (2.6.7)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10 import protocol_rules as rules
from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.message.sections import ANNOTATIONS, DELIVERY_ANNOTATIONS, FOOTER, read_section, scan
from trio_amqp10.spec.transport import Attach, Flow, Role, SenderSettleMode
from trio_amqp10.wire.composite import plan_of
from trio_amqp10.wire.values import Symbol

from .link import FAR, Link
from .receiver_resume import resume_receiver
from .serial_numbers import MASK, distance
from .states import LinkState

if TYPE_CHECKING:
    from .delivery import IncomingDelivery
    from .incoming_transfers import Incoming
    from .octet_bound import OctetBound
    from .session_core import SessionCore
    from .streamed_delivery import StreamedDelivery
    from .unsettled_state import ReceiverTerminus

__all__ = ["NOTHING", "CheckedReceiverLink", "ReceiverLink"]

NOTHING: Final[deque[IncomingDelivery]] = deque()
"""The queue of every link on which nothing has come yet: an empty deque of its own takes more than the rest of a link."""

_MISFITS: Final[dict[int, bool]] = {SenderSettleMode.UNSETTLED: True, SenderSettleMode.SETTLED: False}
"""What ``settled`` may not be for each mode of the sender's (2.7.5)."""
_PLACES: Final = (DELIVERY_ANNOTATIONS, ANNOTATIONS, FOOTER)
"""Where a message has annotations."""


class ReceiverLink(Link):
    """The end that receives: it gives credit, and queues whole deliveries.

    Attributes:
        queue: complete deliveries that nobody has taken yet.
        available: what the sender last said is waiting for credit.
        max_message_size: octets of one message that we take, or None.
        incoming: the delivery that has begun to come in and is not complete.
        streaming: deliveries in several transfers are queued at their first, and grow.
        inflows: those that are not both complete and read.
        tags: the unsettled deliveries by their tags.
        missettled: deliveries that were sent settled, or unsettled, against the settle mode of the link (2.7.5).
        misfit: what ``settled`` may not be, by that mode; None if it may be either.
        terminus: what is remembered beyond this endpoint, or None.
        hold: how many octets the queue may hold; None for any number.
        sheds: a delivery that has its outcome, and is remembered until its sender settles it, is remembered
            without its payload: nobody will read it.
    """

    __slots__ = (
        "_forgiven",
        "available",
        "hold",
        "incoming",
        "inflows",
        "max_message_size",
        "misfit",
        "missettled",
        "queue",
        "sheds",
        "streaming",
        "tags",
        "terminus",
    )

    role = Role.RECEIVER

    def __init__(self, session: SessionCore, name: str) -> None:
        super().__init__(session, name)
        self.queue: deque[IncomingDelivery] = NOTHING
        self.available: int = 0
        self.max_message_size: int | None = self.context.limits.max_message_size
        self.incoming: Incoming | None = None
        self.tags: dict[bytes, IncomingDelivery] = {}
        self.misfit: bool | None = None
        self.missettled: int = 0
        self.terminus: ReceiverTerminus | None = None
        self.streaming: bool = False
        self.sheds: bool = False
        self.hold: OctetBound | None = None
        self.inflows: dict[StreamedDelivery, None] = {}
        self._forgiven = 0

    def _available(self) -> int | None:
        return self.available

    def _announce(self, max_message_size: int | None) -> int | None:
        return self.max_message_size if max_message_size is None else max_message_size

    def _on_bound(self, attach: Attach) -> None:
        self.max_message_size = attach.max_message_size  # what is announced is enforced (2.7.3)
        if self.terminus is not None:
            self.queue = self.terminus.queue

    def on_attach(self, attach: Attach) -> None:
        super().on_attach(attach)
        self.count_from(attach.initial_delivery_count or 0)
        self.misfit = _MISFITS.get(attach.snd_settle_mode)

    def permits(self, state: object) -> bool:
        """Whether the source, as the sender says it, has this outcome; one without a list, or with an empty one, has all (3.5.3)."""
        names: Any = None if self.remote is None else getattr(self.remote.source, "outcomes", None)
        return not names or plan_of(type(state)).name in names

    def resume(self) -> None:
        assert self.terminus is not None
        resume_receiver(self, self.terminus)

    def stream(self) -> None:
        """Hand out deliveries before they are complete; for a link that has given no credit yet.

        There is no limit to the size of a message then, but for one set afterwards. What waits to be
        read is bounded by the window of the session instead, which all its links share.
        """
        limits = self.context.limits
        self.streaming = True
        self.max_message_size = None
        self.session.windows.narrow(max(2, limits.stream_octets // limits.max_frame_size))

    def limit(self, hold: OctetBound) -> None:
        """Bound the octets of the queue; for a link that has given no credit yet, alone on its session."""
        session = self.session
        self.hold = session.hold = hold
        hold.held = 0
        session.windows.narrow(hold.frames(self.context.limits.max_frame_size))

    def enqueue(self, delivery: IncomingDelivery) -> None:
        """A delivery is there to be taken."""
        if self.queue is NOTHING:
            made: deque[IncomingDelivery] = deque()
            self.queue = made
        self.queue.append(delivery)
        if self.hold is not None:
            self.hold.came(len(delivery.payload))

    def set_credit(self, credit: int, *, drain: bool = False) -> None:
        """How many deliveries the sender may send from now on; with ``drain``: now or not at all.

        Lowering it cannot stop what is in flight: as many as were taken back still come in.

        Raises:
            LocalProtocolError: not attached, or a credit outside 0 to 2**31 - 1.
        """
        if not 0 <= credit <= FAR:
            raise LocalProtocolError(f"link credit of {credit}: expected 0 to {FAR}")
        if self.state is not LinkState.ATTACHED and self.state is not LinkState.ATTACH_SENT:
            raise LocalProtocolError(f"cannot give credit: this link is {self.state.name}")
        # What the peer may have in flight by any older credit still comes in. A peer that reads every
        # credit as counted from now (RabbitMQ 3's plugin does) sends as many too many, at most a window.
        granted = self._forgiven + self.credit
        self._forgiven = max(granted - credit, min(granted, max(self.credit, credit)))
        self.tally()
        self.credit: int = credit
        self.drain: bool = drain
        self.session.owe_flow(self)

    def on_flow(self, flow: Flow) -> None:
        # The sender's count runs ahead of ours when it gave up credit on our drain.
        if flow.delivery_count is not None:
            ahead = distance(flow.delivery_count, self.delivery_count or 0)
            if ahead > 0:
                self.count_from(flow.delivery_count)
                self._forgiven = max(0, self._forgiven - max(0, ahead - self.credit))
                self.credit = max(0, self.credit - ahead)
        if flow.available is not None:
            self.available = flow.available
        if self.drain and self.credit == 0:
            self.drain = False
        self.wake()

    def _may_overdraw(self) -> bool:
        """Whether to take a delivery that there is no credit for: not by the standard, and never without end."""
        context = self.context
        return not context.strict.link_credit and len(self.queue) < context.limits.incoming_window

    def fits_mode(self, *, settled: bool) -> bool:
        """Whether a delivery may be settled, or not, by the mode of the link (2.7.5); the link fails if the rule is strict."""
        if settled is not self.misfit:
            return True
        self.missettled += 1
        if not self.context.strict.settle_mode:
            return True
        sent = "settled" if settled else "unsettled"
        mode = SenderSettleMode(self.snd_settle_mode).name.lower()
        self.fail(rules.SETTLE_MODE.broken(f"a delivery that is sent {sent}, on a link of mode {mode}"))
        return False

    def take_credit(self) -> bool:
        """Use one credit for a delivery that begins; False where there is none (2.6.7)."""
        if self.credit > 0:
            self.credit -= 1
        elif self._forgiven > 0:
            self._forgiven -= 1
        elif not self._may_overdraw():
            return False
        self.delivery_count: int | None = ((self.delivery_count or 0) + 1) & MASK
        return True


class CheckedReceiverLink(ReceiverLink):
    """Is detached by a message with annotations that are not known and may not be ignored (3.2.10).

    Nothing here understands any other: every ulong is reserved, and so is every symbol that does not begin with
    ``x-``. Without ``Strict.annotation_keys`` there is none of these, and no message is looked into before somebody reads it.

    A message that is handed out while it comes in is not among those: who reads it has a part of it already.
    """

    __slots__ = ()

    def enqueue(self, delivery: IncomingDelivery) -> None:
        if delivery.inflow is None and not delivery.message_format:
            key = _unknown_key(delivery.payload)
            if key is not None:
                fault = f"annotation {key!r} is not known here, and does not begin with x-opt-"
                self.fail(rules.ANNOTATION_KEYS.broken(fault))
                return
        super().enqueue(delivery)


def _unknown_key(payload: bytes) -> Any:
    """The first key of an annotation that may not be ignored; None also for what is no message: its reader will say so."""
    try:
        spans = scan(payload, in_order=False)
        for place in _PLACES:
            if (span := spans[place]) is not None:
                for key in read_section(place, payload, span, allow_duplicates=True):
                    if not isinstance(key, Symbol) or not key.startswith("x-opt-"):
                        return key
    except RemoteProtocolError:
        pass
    return None
