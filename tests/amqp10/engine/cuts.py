"""Exactly once across a cut: two engines, twenty deliveries, and a transport that goes at a given octet.

``Conversation`` plays both programs: one sends, one writes each message into its ledger and accepts it.
Whatever happens to the octets, at the end the ledger holds each message once, and the sender knows it.
What the two ends keep while there is no transport is in their termini, and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.engine_pairs import octets_of
from tests.naive.performatives import sections
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.delivery import ACCEPTED, OutgoingDelivery
from trio_amqp10.amqp10.engine.events import LinkAttached
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.receiver import ReceiverLink
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus, SenderTerminus
from trio_amqp10.amqp10.spec.messaging import Accepted, Source, Target
from trio_amqp10.amqp10.spec.transport import ReceiverSettleMode, SenderSettleMode

from .helpers import answer

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.sender import SenderLink

DELIVERIES: Final = 20
CREDIT: Final = 6
LIMITS: Final = Limits(max_frame_size=512)


def payloads() -> list[bytes]:
    """Messages of up to four frames, each of one section or of two."""
    made: list[bytes] = []
    for number in range(DELIVERIES):
        size = 600 * (number % 4) if number % 5 == 2 else 10
        body = ("data", b"%03d" % number + bytes(size))
        made.append(sections(("properties", {"subject": "s"}), body) if number % 2 else sections(body))
    return made


@dataclass
class Cut:
    """Where the transport goes: in which direction, before which octet of it, and how the ends learn of it."""

    to_receiver: bool
    offset: int
    reset: bool


class Conversation:
    """Two programs and what they remember; ``run`` for one transport after another, until all is done."""

    def __init__(self, *, mode: ReceiverSettleMode = ReceiverSettleMode.SECOND, resend: bool = False) -> None:
        self.mode = mode
        self.messages = payloads()
        self.sending = SenderTerminus(resend=resend)
        self.receiving = ReceiverTerminus()
        self.sent: list[OutgoingDelivery] = []
        self.ledger: list[bytes] = []
        self.receiver: ReceiverLink | None = None
        self.octets = {True: 0, False: 0}

    @property
    def done(self) -> bool:
        """Whether both programs have nothing more to do or to wait for."""
        return (
            len(self.sent) == DELIVERIES
            and all(delivery.settled for delivery in self.sent)
            and not self.receiving.unsettled
        )

    @property
    def accepted(self) -> int:
        return sum(isinstance(delivery.state, Accepted) for delivery in self.sent)

    def run(self, cut: Cut | None = None) -> None:
        """Connect, attach, and go on until all is done or the transport is cut."""
        self.octets = {True: 0, False: 0}
        a, b = Connection("a", limits=LIMITS), Connection("b", limits=LIMITS)
        a.open()
        session = a.session()
        session.begin()
        self._events(a, b, None)
        link: SenderLink | None = None
        for _ in range(1000):
            moved = False
            for to_receiver, source, drain in ((True, a, b), (False, b, a)):
                octets = octets_of(source) or b""
                moved = moved or bool(octets)
                if cut is not None and cut.to_receiver is to_receiver:
                    octets = octets[: cut.offset - self.octets[to_receiver]]
                drain.receive_data(octets, 0.0)
                self.octets[to_receiver] += len(octets)
                self._events(a, b, self.mode)
                if cut is not None and self.octets[cut.to_receiver] == cut.offset:
                    self._lose(a, b, cut)
                    return
            if link is None and a.remote is not None:  # not before it is known how large a map may be
                link = session.sender("x")
                link.terminus = self.sending
                link.attach(
                    source=Source(),
                    target=Target(address="q"),
                    snd_settle_mode=SenderSettleMode.UNSETTLED,
                    rcv_settle_mode=self.mode,
                )
                moved = True
            self._programs(link)
            if not moved:
                return
        raise AssertionError("still talking")

    def forget_receiver(self) -> None:
        """The receiving end dies, and its program lives: what was taken from the link is in the ledger."""
        self.receiver = None
        self.receiving = ReceiverTerminus()

    def _programs(self, link: SenderLink | None) -> None:
        """What the two programs do with what they have."""
        if link is not None:
            while len(self.sent) < DELIVERIES:
                delivery = link.send(self.messages[len(self.sent)])
                if delivery is None:
                    break
                self.sent.append(delivery)
        receiver = self.receiver
        if receiver is not None:
            while receiver.queue:
                delivery_ = receiver.queue.popleft()
                self.ledger.append(delivery_.payload)
                receiver.session.settlement.dispose(delivery_, ACCEPTED)
            if receiver.state is LinkState.ATTACHED and receiver.credit < CREDIT // 2:
                receiver.set_credit(CREDIT)

    def _events(self, a: Connection, b: Connection, mode: ReceiverSettleMode | None) -> None:
        for connection in (a, b):
            while (event := connection.next_event()) is not None:
                if isinstance(event, LinkAttached) and isinstance(event.link, ReceiverLink):
                    self._accept(event.link)
                else:
                    answer(connection, event)
            connection.take_touched()

    def _accept(self, link: ReceiverLink) -> None:
        remote: Any = link.remote
        link.terminus = self.receiving
        link.attach(source=remote.source, target=remote.target, rcv_settle_mode=self.mode)
        self.receiver = link
        link.set_credit(CREDIT)

    def _lose(self, a: Connection, b: Connection, cut: Cut) -> None:
        for connection in (a, b):
            if cut.reset:
                connection.transport_lost()
            else:
                connection.receive_eof(0.0)
                connection.data_to_send()
                connection.transport_lost()
        self._events(a, b, self.mode)
