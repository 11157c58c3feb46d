"""Termini that are written down: nobody hears that an outcome is known before it is (2.6.12, 2.6.13)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.delivery import ACCEPTED as ACCEPT
from trio_amqp10.amqp10.engine.delivery import IncomingDelivery, OutgoingDelivery
from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus, SenderTerminus
from trio_amqp10.amqp10.spec.messaging import Accepted, Received, Source, Target
from trio_amqp10.amqp10.spec.transport import ReceiverSettleMode, SenderSettleMode

from .helpers import begun, flow
from .links import ACCEPTED, attach, disposition, remembered, transfer

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio_amqp10.amqp10.engine.receiver import ReceiverLink
    from trio_amqp10.amqp10.engine.sender import SenderLink

TAG = (7).to_bytes(4, "big")


class Book:
    """A store that writes when it is told to."""

    def __init__(self) -> None:
        self.lines: list[Any] = []
        self.waiting: list[Callable[[], object]] = []

    def sent(self, delivery: OutgoingDelivery, payload: bytes, message_format: int) -> None:
        self.lines.append(("sent", delivery.tag, payload, message_format))

    def record_outcome(self, tag: bytes, state: Any, then: Callable[[], object]) -> None:
        self.lines.append(("outcome", tag, state))
        self.waiting.append(then)

    def record_acceptance(self, tag: bytes) -> None:
        self.lines.append(("acceptance", tag))

    def drop(self, tag: bytes) -> None:
        self.lines.append(("dropped", tag))

    def after(self, then: Callable[[], object]) -> None:
        self.waiting.append(then)

    def write(self) -> None:
        """All that was said is on the disk."""
        waiting, self.waiting = self.waiting, []
        for then in waiting:
            then()


class Effects:
    """Stores what outcomes do, for deliveries that end with the process; in the same way as its book."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self.after = book.after

    def record_outcome(self, delivery: OutgoingDelivery, then: Callable[[], object]) -> None:
        self._book.record_outcome(delivery.tag, delivery.state, then)


def forgetful(
    book: Book, *deliveries: tuple[bytes, Any], theirs: dict[bytes, Any] | None = None
) -> tuple[SenderLink, Script]:
    """As ``sender``, but its deliveries end with the process: the book has what their outcomes do."""
    session, script = begun()
    link = session.sender("x")
    link.outcome_store = Effects(book)
    if deliveries:
        link.terminus = remembered(link, *deliveries)
    return open_to_second(link, script, theirs)


def sender(
    book: Book, *deliveries: tuple[bytes, Any], theirs: dict[bytes, Any] | None = None
) -> tuple[SenderLink, Script]:
    """Our sender with a book, attached to a receiver that settles second."""
    session, script = begun()
    link = session.sender("x")
    terminus = remembered(link, *deliveries) if deliveries else SenderTerminus()
    terminus.unsettled_store = book
    link.terminus = terminus
    return open_to_second(link, script, theirs)


def open_to_second(
    link: SenderLink, script: Script, theirs: dict[bytes, Any] | None
) -> tuple[SenderLink, Script]:
    """Attach to a receiver that settles second, which gives credit."""
    link.attach(source=Source(), target=Target(address="q"), snd_settle_mode=SenderSettleMode.UNSETTLED)
    script.expect("attach")
    script << attach("x", 0, role=True, unsettled=theirs, rcv_settle_mode=1)
    script.collect()
    script << flow(handle=0, delivery_count=0, link_credit=10)
    return link, script


def receiver(
    book: Book | None, mode: ReceiverSettleMode = ReceiverSettleMode.SECOND
) -> tuple[ReceiverLink, Script, IncomingDelivery]:
    """Our receiver with a book, that has got one delivery."""
    session, script = begun()
    link = session.receiver("x")
    link.terminus = ReceiverTerminus()
    link.terminus.unsettled_store = book
    link.attach(source=Source(address="q"), target=Target(), rcv_settle_mode=mode)
    script.expect("attach")
    script << attach("x", 0, role=False)
    script.collect()
    link.set_credit(10)
    script.expect("flow")
    script << transfer(0, 7, b"payload")
    return link, script, link.queue.popleft()


# -- a sender -----------------------------------------------------------------------------------


def test_sender_writes_down_what_it_sends_and_forgets_what_is_settled() -> None:
    book = Book()
    link, script = sender(book)
    link.send(b"one", message_format=3)
    script.collect()
    assert book.lines == [("sent", bytes(4), b"one", 3)]
    script << disposition(True, 0)
    assert book.lines[1:] == [("dropped", bytes(4))]


def test_sender_settles_when_the_outcome_is_written() -> None:
    book = Book()
    link, script = sender(book)
    delivery = link.send(b"one")
    assert delivery is not None
    script.expect("transfer")
    script << disposition(True, 0, settled=False)
    script.expect_nothing()
    assert delivery.state == Accepted()
    assert not delivery.settled
    book.write()
    script >> expected("disposition", role=False, first=0, settled=True)
    assert book.lines[-1] == ("dropped", bytes(4))


def test_sender_without_a_terminus_settles_when_the_effect_of_the_outcome_is_written() -> None:
    book = Book()
    link, script = forgetful(book)
    delivery = link.send(b"one")
    assert delivery is not None
    script.expect("transfer")
    script << disposition(True, 0, settled=False)
    script.expect_nothing()
    assert book.lines == [("outcome", bytes(4), Accepted())]
    book.write()
    script >> expected("disposition", role=False, first=0, settled=True)
    assert delivery.settled


def test_sender_takes_up_its_link_when_the_effects_of_the_outcomes_are_written() -> None:
    book = Book()
    _link, script = forgetful(book, (b"a", None), theirs={b"a": ACCEPTED})
    script.expect_nothing()
    assert book.lines == [("outcome", b"a", Accepted())]
    book.write()
    script >> expected("transfer", delivery_tag=b"a", settled=False, state=ACCEPTED, resume=True)
    script >> expected("disposition", role=False, first=0, last=None, settled=True, state=ACCEPTED)


def test_sender_says_nothing_of_a_delivery_that_its_link_lost_while_it_was_written() -> None:
    book = Book()
    link, script = sender(book)
    link.send(b"one")
    script.expect("transfer")
    script << disposition(True, 0, settled=False)
    script.lose()
    book.write()
    assert ("dropped", bytes(4)) not in book.lines


def test_sender_takes_up_its_link_when_the_outcomes_there_are_written() -> None:
    book = Book()
    _link, script = sender(
        book, (b"a", None), (b"b", None), (b"c", ACCEPT), theirs={b"a": ACCEPTED, b"c": ACCEPTED}
    )
    script.expect_nothing()
    assert book.lines == [("outcome", b"a", Accepted())]
    book.write()
    script >> expected("transfer", delivery_tag=b"a", settled=False, state=ACCEPTED, resume=True)
    script >> expected("transfer", delivery_tag=b"b", resume=None)
    script >> expected("transfer", delivery_tag=b"c", settled=False, state=ACCEPTED, resume=True)
    script >> expected("disposition", role=False, first=0, last=None, settled=True, state=ACCEPTED)
    script >> expected("disposition", role=False, first=2, last=None, settled=True, state=ACCEPTED)


def test_sender_takes_up_nothing_when_its_link_went_while_it_was_written() -> None:
    book = Book()
    link, script = sender(book, (b"a", None), theirs={b"a": ACCEPTED})
    script.lose()
    book.write()
    assert link.resending is None


def test_sender_writes_down_that_it_settled_while_nobody_could_hear() -> None:
    book = Book()
    link, script = sender(book)
    delivery = link.send(b"one")
    assert delivery is not None
    script.lose()
    delivery.settle()
    assert delivery.settled
    assert book.lines[1:] == [("dropped", bytes(4))]


# -- a receiver ---------------------------------------------------------------------------------


def test_receiver_says_its_outcome_when_that_is_written() -> None:
    book = Book()
    link, script, delivery = receiver(book)
    link.session.settlement.dispose(delivery, ACCEPT)
    script.expect_nothing()
    assert book.lines == [("outcome", TAG, ACCEPT)]
    book.write()
    script >> expected("disposition", role=True, first=7, settled=None, state=ACCEPTED)
    script << disposition(False, 7)
    assert book.lines[1:] == [("dropped", TAG)]


def test_receiver_says_how_far_it_has_come_without_writing_it() -> None:
    book = Book()
    link, script, delivery = receiver(book)
    link.session.settlement.dispose(delivery, Received(section_number=0, section_offset=1))
    script >> expected("disposition", first=7)
    assert not book.lines


def test_receiver_writes_down_an_outcome_that_nobody_can_hear() -> None:
    book = Book()
    link, script, delivery = receiver(book)
    script.lose()
    link.session.settlement.dispose(delivery, ACCEPT)
    assert book.lines == [("outcome", TAG, ACCEPT)]
    book.write()


def test_receiver_keeps_in_mind_alone_how_far_it_has_come_while_nobody_can_hear() -> None:
    book = Book()
    link, script, delivery = receiver(book)
    script.lose()
    so_far = Received(section_number=0, section_offset=1)
    link.session.settlement.dispose(delivery, so_far)
    assert not book.lines
    assert link.terminus is not None
    assert link.terminus.unsettled[TAG].state is so_far


def test_receiver_says_nothing_when_its_link_went_while_it_was_written() -> None:
    book = Book()
    link, script, delivery = receiver(book)
    link.session.settlement.dispose(delivery, ACCEPT)
    script.lose()
    book.write()
    assert link.terminus is not None
    assert link.terminus.unsettled[TAG].state is ACCEPT


def test_receiver_records_what_it_will_accept_where_it_settles_second() -> None:
    book = Book()
    _link, _script, delivery = receiver(book)
    delivery.record_acceptance()
    assert book.lines == [("acceptance", delivery.tag)]


def test_receiver_records_nothing_where_its_state_goes_with_its_word_or_nobody_writes_it_down() -> None:
    book = Book()
    receiver(book, ReceiverSettleMode.FIRST)[2].record_acceptance()
    receiver(None)[2].record_acceptance()
    link, _script, delivery = receiver(book)
    link.detach()  # closed: there is no terminus any more
    delivery.record_acceptance()
    assert book.lines == []


def test_receiver_records_nothing_of_what_its_sender_has_settled() -> None:
    book = Book()
    _link, script, delivery = receiver(book)
    script << disposition(False, 7)
    book.lines.clear()
    delivery.record_acceptance()
    assert book.lines == []
