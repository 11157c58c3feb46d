"""The receiving end of a link: credit, and the queue of deliveries (2.6.7).

Knows how to find the annotations of a message, but nothing else of its content.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.message.fields import is_known_annotation
from trio_amqp10.amqp10.message.sections import ANNOTATIONS, DELIVERY_ANNOTATIONS, FOOTER, read_section, scan
from trio_amqp10.amqp10.spec.transport import Attach, Flow, Role, SenderSettleMode
from trio_amqp10.amqp10.wire.composite import plan_of
from trio_amqp10.core import peer_rules as rules
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

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

NOTHING: Final[deque[IncomingDelivery]] = deque()
"""The shared queue of links without deliveries, because an empty deque is large."""

_MISFITS: Final[dict[int, bool]] = {SenderSettleMode.UNSETTLED: True, SenderSettleMode.SETTLED: False}
"""The value of ``settled`` that each settle mode of the sender forbids (2.7.5)."""
_PLACES: Final = (DELIVERY_ANNOTATIONS, ANNOTATIONS, FOOTER)
"""The sections of a message that are annotations."""


class ReceiverLink(Link):
    """A receiver link: it grants credit and queues deliveries.

    Attributes:
        queue: complete deliveries that were not taken yet.
        available: how many messages wait for credit at the sender, by its last flow.
        max_message_size: octets of one message that we accept, or None.
        incoming: the delivery that is not complete yet, or None.
        streaming: whether deliveries in several transfers are queued at the first, and grow.
        inflows: the streamed deliveries that are not both complete and read.
        tags: the unsettled deliveries by their tags.
        missettled: how many deliveries were sent settled, or unsettled, against the settle mode of the link
            (2.7.5).
        misfit: the value of ``settled`` that this mode forbids; None if it allows both.
        terminus: the unsettled state that outlives this endpoint, or None.
        hold: the bound in octets of the queue; None for no bound.
        sheds: whether the payload of a delivery is dropped once it has its outcome, while the delivery waits
            for its sender to settle it. True if the payload will not be read again.
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
        """Whether the sender's source has the outcome ``state``.

        A source without a list of outcomes, or with an empty one, has all (3.5.3).
        """
        names: Any = None if self.remote is None else getattr(self.remote.source, "outcomes", None)
        return not names or plan_of(type(state)).name in names

    def resume(self) -> None:
        assert self.terminus is not None
        resume_receiver(self, self.terminus)

    def stream(self) -> None:
        """Hand out deliveries before they are complete.

        Call this before the link has given credit. The size of a message has no limit then, unless one is set
        afterwards. The octets that wait to be read are bounded by the window of the session, which all its
        links share.
        """
        limits = self.context.limits
        self.streaming = True
        self.max_message_size = None
        self.session.windows.narrow(max(2, limits.stream_octets // limits.max_frame_size))

    def limit(self, hold: OctetBound) -> None:
        """Bound the octets of the queue.

        Call this before the link has given credit, and only if it is alone on its session.
        """
        session = self.session
        self.hold = session.hold = hold
        hold.held = 0
        session.windows.narrow(hold.frames(self.context.limits.max_frame_size))

    def enqueue(self, delivery: IncomingDelivery) -> None:
        """Append a delivery to the queue."""
        if self.queue is NOTHING:
            made: deque[IncomingDelivery] = deque()
            self.queue = made
        self.queue.append(delivery)
        if self.hold is not None:
            self.hold.came(len(delivery.payload))

    def set_credit(self, credit: int, *, drain: bool = False) -> None:
        """Set how many deliveries the sender may send from now on.

        With ``drain`` the sender must use the credit now or give it up (2.6.7). Lowering the credit does not
        stop deliveries in flight: as many as were taken back still arrive.

        Raises:
            LocalProtocolError: the link is not attached, or the credit is outside 0 to 2**31 - 1.
        """
        if not 0 <= credit <= FAR:
            raise LocalProtocolError(f"link credit of {credit}: expected 0 to {FAR}")
        if self.state is not LinkState.ATTACHED and self.state is not LinkState.ATTACH_SENT:
            raise LocalProtocolError(f"cannot give credit: this link is {self.state.name}")
        # Deliveries that the peer sent under older credit still arrive, so they are forgiven later. A peer that
        # counts each new credit from the moment it reads the flow, as the plugin of RabbitMQ 3 does, sends more
        # than was granted: at most the credit granted before.
        granted = self._forgiven + self.credit
        self._forgiven = max(granted - credit, min(granted, max(self.credit, credit)))
        self.tally()
        self.credit: int = credit
        self.drain: bool = drain
        self.session.owe_flow(self)

    def on_flow(self, flow: Flow) -> None:
        # The sender's delivery-count is ahead of this end's if it gave up credit because of our drain (2.6.7).
        if flow.delivery_count is not None:
            ahead = distance(flow.delivery_count, self.delivery_count or 0)
            if ahead > 0:
                self.count_from(flow.delivery_count)
                self._forgiven = max(0, self._forgiven - max(0, ahead - self.credit))
                self.credit = max(0, self.credit - ahead)
        if flow.available is not None:
            self.available = flow.available
        if self.drain and self.credit == 0:
            # The drain is complete: all credit is used or given up.
            self.drain = False
        self.wake()

    def _may_overdraw(self) -> bool:
        """Whether to accept a delivery without credit, if the rule is not enforced.

        The queue bounds how many.
        """
        context = self.context
        return not context.strict.link_credit and len(self.queue) < context.limits.incoming_window

    def fits_mode(self, *, settled: bool) -> bool:
        """Whether the link's settle mode allows a delivery to be ``settled`` (2.7.5).

        If the rule is enforced, the link fails otherwise.
        """
        if settled is not self.misfit:
            return True
        self.missettled += 1
        if not self.context.strict.settle_mode:
            self.context.tolerances.note(rules.SETTLE_MODE)
            return True
        sent = "settled" if settled else "unsettled"
        mode = SenderSettleMode(self.snd_settle_mode).name.lower()
        self.fail(rules.SETTLE_MODE.broken(f"a delivery that is sent {sent}, on a link of mode {mode}"))
        return False

    def take_credit(self) -> bool:
        """Use one credit for a delivery that begins; return False without one (2.6.7)."""
        if self.credit > 0:
            self.credit -= 1
        elif self._forgiven > 0:
            self._forgiven -= 1
        elif self._may_overdraw():
            self.context.tolerances.note(rules.LINK_CREDIT)
        else:
            return False
        self.delivery_count: int | None = ((self.delivery_count or 0) + 1) & MASK
        return True


class CheckedReceiverLink(ReceiverLink):
    """A receiver link that refuses messages with unknown annotations (3.2.10).

    Every annotation is unknown here: ulongs are reserved, and so are symbols that do not begin with ``x-``. A
    message with one is not handed out, and the link fails. Without ``Strict.annotation_keys`` this class is
    not used, and no message is decoded before it is read.

    A message that is handed out while it arrives is not checked, because a part of it was read already.
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
    """Return the first annotation key that must not be ignored, or None.

    None also for octets that are no message: decoding them raises the error later.
    """
    try:
        spans = scan(payload, in_order=False)
        for place in _PLACES:
            if (span := spans[place]) is not None:
                for key in read_section(place, payload, span, allow_duplicates=True):
                    if not is_known_annotation(key):
                        return key
    except RemoteProtocolError:
        pass
    return None
