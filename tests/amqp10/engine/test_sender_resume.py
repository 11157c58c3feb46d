"""A sender that takes up its link: every pair of unsettled states, by what goes out for it (2.6.13, 3.4.6)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import Any

import pytest

from tests.naive.performatives import frame, sections
from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.delivery import OutgoingDelivery
from trio_amqp10.amqp10.engine.sender import SenderLink
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.engine.unsettled_state import SenderTerminus, Sent
from trio_amqp10.amqp10.spec.messaging import RELEASED, Accepted, Received, Rejected, Source, Target
from trio_amqp10.amqp10.spec.transactions import TransactionalState
from trio_amqp10.amqp10.spec.transport import SenderSettleMode
from trio_amqp10.core.errors import LocalProtocolError

from .helpers import begun, flow
from .links import ACCEPTED, PAYLOAD, Owner, attach, attached, disposition, remembered, session_of

RECEIVED = ("received", {"section_number": 1, "section_offset": 0})
REJECTED: tuple[str, dict[str, Any]] = ("rejected", {})
SECOND = PAYLOAD.index(b"\x00\x53\x75")  # where the data section begins
BEGINNING = ("received", {"section_number": 0, "section_offset": 0})


def taken_up(
    *deliveries: tuple[bytes, Any],
    theirs: dict[bytes, Any] | None,
    credit: int = 10,
    resend: bool = False,
    source: Source | None = None,
    snd: SenderSettleMode = SenderSettleMode.UNSETTLED,
    **fields: Any,
) -> tuple[SenderLink, Script, SenderTerminus, list[OutgoingDelivery]]:
    """Our sender, attached anew with what it remembers; the peer answers with its own map."""
    session, script = begun()
    link = session.sender("x")
    terminus = remembered(link, *deliveries, resend=resend)
    held = [sent.delivery for sent in terminus.unsettled.values()]
    link.terminus = terminus
    link.attach(source=source or Source(), target=Target(address="q"), snd_settle_mode=snd)
    script.expect("attach", name="x", incomplete_unsettled=None)
    script << attach("x", 0, role=True, unsettled=theirs, **fields)
    script.collect()
    if credit:
        script << flow(handle=0, delivery_count=0, link_credit=credit)
    return link, script, terminus, held


# -- what the attach says -----------------------------------------------------------------------


def test_attach_says_no_map_when_the_link_is_new() -> None:
    session, script = begun()
    link = session.sender("x")
    link.terminus = SenderTerminus()
    link.attach(source=Source(), target=Target())
    script >> expected("attach", unsettled=None)
    assert link.terminus.known


def test_attach_says_which_deliveries_have_an_outcome_when_the_link_is_taken_up() -> None:
    session, script = begun()
    link = session.sender("x")
    link.terminus = remembered(
        link,
        (b"a", None),
        (b"b", Received(section_number=1, section_offset=2)),
        (b"c", Accepted()),
        (b"d", TransactionalState(txn_id=b"t", outcome=Accepted())),
    )
    link.attach(source=Source(), target=Target())
    script >> expected("attach", unsettled={b"a": None, b"b": None, b"c": ACCEPTED, b"d": None})


def test_resume_begins_with_our_attach_when_the_peer_has_attached_first() -> None:
    session, script = begun()
    script << attach("x", 0, role=True, unsettled={b"a": ACCEPTED})
    link = session.links[0]
    assert isinstance(link, SenderLink)
    link.terminus = remembered(link, (b"a", None), (b"b", None), resend=True)
    link.attach(source=Source(), target=Target(address="q"), snd_settle_mode=SenderSettleMode.UNSETTLED)
    script << flow(handle=0, delivery_count=0, link_credit=10)
    script >> expected("attach", unsettled={b"a": None, b"b": None})
    script >> expected("transfer", delivery_tag=b"a", settled=False, resume=True)
    script >> expected("transfer", delivery_tag=b"b", resume=None)
    script >> expected("disposition", role=False, first=0, settled=True, state=ACCEPTED)


# -- every pair of states -----------------------------------------------------------------------


@pytest.mark.parametrize("credit", [1, 10])
@pytest.mark.parametrize("theirs", [{}, {b"other": None}])
@pytest.mark.parametrize("here", [None, Received(section_number=0, section_offset=3)])
def test_resending_sends_as_new_what_the_receiver_does_not_have(
    here: Any, theirs: dict[bytes, Any], credit: int
) -> None:
    link, script, terminus, [delivery] = taken_up((b"a", here), theirs=theirs, credit=credit)
    script >> expected(
        "transfer", delivery_tag=b"a", delivery_id=0, resume=None, settled=False, state=None, payload=PAYLOAD
    )
    assert delivery.link is link
    assert not delivery.settled
    assert list(terminus.unsettled) == [b"a"]
    script << disposition(True, 0)
    assert delivery.settled
    assert delivery.state == Accepted()
    assert not terminus.unsettled
    assert not link.unsettled


@pytest.mark.parametrize(
    ("theirs", "offset", "said"),
    [
        (None, 0, None),
        (RECEIVED, SECOND, RECEIVED),
        (("received", {"section_number": 1, "section_offset": 7}), SECOND + 7, None),
        (("received", {"section_number": 2, "section_offset": 0}), len(PAYLOAD), None),
        (("received", {"section_number": 0, "section_offset": 0}), 0, BEGINNING),
        (("received", {"section_number": 9, "section_offset": 9}), 0, BEGINNING),
        (("received", {"section_number": 1, "section_offset": 999}), 0, BEGINNING),
        (("transactional_state", {"txn_id": b"t", "outcome": ACCEPTED}), 0, None),
    ],
)
@pytest.mark.parametrize("here", [None, Received(section_number=0, section_offset=3)])
def test_resending_resumes_from_where_the_receiver_wants_it(
    here: Any, theirs: Any, offset: int, said: Any
) -> None:
    link, script, terminus, [delivery] = taken_up((b"a", here), theirs={b"a": theirs})
    got = script.expect("transfer", delivery_tag=b"a", resume=True, settled=False, payload=PAYLOAD[offset:])
    if said is not None:
        assert got["state"] == said
    assert delivery.link is link
    script << disposition(True, 0)
    assert delivery.settled
    assert not terminus.unsettled


def test_resending_takes_the_outcome_when_the_receiver_has_one() -> None:
    _link, script, terminus, [delivery] = taken_up((b"a", None), theirs={b"a": REJECTED})
    script >> expected("transfer", delivery_tag=b"a", resume=True, settled=False, state=REJECTED, payload=b"")
    script >> expected("disposition", role=False, first=0, settled=True, state=REJECTED)
    assert delivery.settled
    assert not _link.unsettled
    assert delivery.state == Rejected()
    assert not terminus.unsettled


def test_resending_takes_the_default_outcome_when_the_source_does_not_permit_the_receivers() -> None:
    source = Source(outcomes=("amqp:accepted:list",), default_outcome=RELEASED)
    _link, script, _terminus, [delivery] = taken_up((b"a", None), theirs={b"a": REJECTED}, source=source)
    script >> expected("transfer", settled=False, state=("released", {}))
    script >> expected("disposition", settled=True, state=("released", {}))
    assert delivery.state == RELEASED


@pytest.mark.parametrize("here", [None, Accepted()])
def test_resending_settles_by_the_transfer_when_the_link_leaves_the_choice(here: Any) -> None:
    link, script, terminus, [delivery] = taken_up(
        (b"a", here), theirs={b"a": ACCEPTED}, snd=SenderSettleMode.MIXED
    )
    script >> expected("transfer", delivery_tag=b"a", resume=True, settled=True, state=ACCEPTED)
    script.expect_nothing()
    assert delivery.settled
    assert not link.unsettled
    assert not terminus.unsettled


def test_resending_settles_without_a_word_when_only_the_sender_holds_an_outcome() -> None:
    link, script, terminus, [delivery] = taken_up((b"a", Accepted()), theirs={})
    script.expect_nothing()
    assert delivery.settled
    assert not terminus.unsettled
    assert link.sendable()


@pytest.mark.parametrize("theirs", [None, RECEIVED])
def test_resending_aborts_what_the_receiver_has_when_the_sender_holds_the_outcome(theirs: Any) -> None:
    _link, script, terminus, [delivery] = taken_up((b"a", Accepted()), theirs={b"a": theirs})
    script >> expected("transfer", delivery_tag=b"a", resume=True, aborted=True, settled=True, payload=b"")
    assert delivery.settled
    assert delivery.state == Accepted()
    assert not terminus.unsettled


@pytest.mark.parametrize("theirs", [ACCEPTED, REJECTED])
def test_resending_settles_with_its_own_outcome_when_both_hold_one(theirs: Any) -> None:
    _link, script, terminus, [delivery] = taken_up((b"a", Accepted()), theirs={b"a": theirs})
    script >> expected("transfer", resume=True, settled=False, state=ACCEPTED, aborted=None)
    script >> expected("disposition", role=False, settled=True, state=ACCEPTED)
    assert delivery.settled
    assert delivery.state == Accepted()
    assert not terminus.unsettled


@pytest.mark.parametrize("theirs", [None, RECEIVED, ACCEPTED])
def test_resending_says_nothing_of_what_only_the_receiver_holds(theirs: Any) -> None:
    link, script, _terminus, _held = taken_up(theirs={b"theirs": theirs})
    script.expect_nothing()
    assert link.sendable()


# -- a receiver that has forgotten the link -----------------------------------------------------


def test_resending_sends_all_as_new_when_the_receiver_forgot_the_link_and_repeats_are_allowed() -> None:
    _link, script, terminus, held = taken_up((b"a", None), (b"b", None), theirs=None, resend=True)
    script >> expected("transfer", delivery_tag=b"a", resume=None)
    script >> expected("transfer", delivery_tag=b"b", resume=None)
    assert [d.settled for d in held] == [False, False]
    assert not terminus.in_doubt


def test_resending_leaves_in_doubt_what_has_no_outcome_when_the_receiver_forgot_the_link() -> None:
    link, script, terminus, held = taken_up((b"a", None), (b"b", Accepted()), theirs=None)
    script.expect_nothing()
    assert [sent.delivery for sent in terminus.in_doubt] == held[:1]
    assert [d.settled for d in held] == [False, True]
    assert not terminus.unsettled
    assert link.sendable()


def test_resending_does_nothing_when_the_receiver_refuses_the_link() -> None:
    _link, script, terminus, [delivery] = taken_up((b"a", None), theirs=None, target=None, credit=0)
    script.expect_nothing()
    assert not delivery.settled
    assert list(terminus.unsettled) == [b"a"]


# -- in order, and as credit and window allow ---------------------------------------------------


def test_resending_goes_before_anything_new_and_waits_for_credit() -> None:
    link, script, _terminus, _held = taken_up((b"a", None), (b"b", None), theirs={b"b": ACCEPTED}, credit=0)
    owner = link.owner = Owner()
    script << flow(handle=0, delivery_count=0, link_credit=1)
    script >> expected("transfer", delivery_tag=b"a")
    assert link.send(b"new") is None
    script << flow(handle=0, delivery_count=1, link_credit=2)
    script >> expected("transfer", delivery_tag=b"b", delivery_id=1, settled=False)
    script >> expected("disposition", role=False, first=1, settled=True)
    assert link.resending is None
    assert link.credit == 1
    assert owner.touched or owner in script.touched
    assert link.send(b"new") is not None
    script >> expected("transfer", delivery_id=2, delivery_tag=(2).to_bytes(4, "big"))


def test_resending_cuts_into_frames_and_names_its_place_once() -> None:
    session, script = begun(remote={"max_frame_size": 512}, incoming_window=2)
    link = session.sender("x")
    terminus = link.terminus = SenderTerminus()
    terminus.known = True
    payload = sections(("data", bytes(2000)))
    delivery = OutgoingDelivery(link, 0, b"a", settled=False)
    terminus.unsettled[b"a"] = Sent(delivery, payload, 0)
    link.attach(source=Source(), target=Target())
    script.expect("attach")
    state = ("received", {"section_number": 0, "section_offset": 300})
    script << attach("x", 0, role=True, unsettled={b"a": state})
    script.collect()
    script << flow(handle=0, delivery_count=0, link_credit=5, incoming_window=2)
    first = script.expect("transfer", resume=True, more=True, delivery_tag=b"a")
    assert first["state"] == state
    got = first.payload + script.expect("transfer", more=True, state=None).payload
    script.expect_nothing()  # the window is used up
    assert link.send(b"new") is None
    script << flow(next_incoming_id=2, incoming_window=100)
    while True:
        part = script.expect("transfer", state=None)
        got += part.payload
        if not part["more"]:
            break
    assert got == payload[300:]
    assert link.resending is None
    assert link.sendable()


def test_resending_goes_on_after_a_second_cut() -> None:
    session, script = begun(incoming_window=1, remote={"max_frame_size": 512})
    link = session.sender("x")
    terminus = link.terminus = SenderTerminus()
    terminus.known = True
    delivery = OutgoingDelivery(link, 0, b"a", settled=False)
    terminus.unsettled[b"a"] = Sent(delivery, bytes(2000), 7)
    link.attach(source=Source(), target=Target())
    script.expect("attach")
    script << attach("x", 0, role=True, unsettled={b"a": None})
    script.collect()
    script << flow(handle=0, delivery_count=0, link_credit=5, incoming_window=1)
    script.expect("transfer", resume=True, more=True, message_format=7)
    script.lose()
    assert link.state is LinkState.GONE
    assert not link.in_doubt
    assert list(terminus.unsettled) == [b"a"]
    assert not delivery.settled


# -- maps that are not whole --------------------------------------------------------------------


def test_resending_says_nothing_of_what_an_incomplete_map_does_not_name_and_sends_nothing_new() -> None:
    link, script, terminus, held = taken_up(
        (b"a", Accepted()), (b"b", None), (b"c", None), theirs={b"b": ACCEPTED}, incomplete_unsettled=True
    )
    script >> expected("transfer", delivery_tag=b"b", settled=False)
    script >> expected("disposition", role=False, first=0, settled=True)
    script.expect_nothing()
    assert [d.settled for d in held] == [False, True, False]
    assert list(terminus.unsettled) == [b"a", b"c"]
    assert link.incomplete
    assert link.resending is not None
    assert link.resending.done
    assert link.credit == 9
    assert link.send(b"new") is None
    script << flow(handle=0, delivery_count=1, link_credit=9)
    script.expect_nothing()


def test_nothing_new_is_sent_when_the_receivers_map_is_incomplete_and_we_remember_nothing() -> None:
    session, script = begun()
    link = session.sender("x")
    attached(script, session, link, 0, unsettled={b"a": None}, incomplete_unsettled=True)
    script << flow(handle=0, delivery_count=0, link_credit=10)
    assert link.send(b"new") is None
    assert link.begin(b"new") is None
    script.expect_nothing()


# -- the memory of a link that lives ------------------------------------------------------------


def test_terminus_holds_a_delivery_until_it_is_settled() -> None:
    link, script, terminus, _held = taken_up(theirs={})
    first = link.send(b"one")
    second = link.send(b"two", tag=b"mine")
    third = link.send(b"three", state=TransactionalState(txn_id=b"t"))
    assert first is not None
    assert second is not None
    assert third is not None
    script.collect()
    assert list(terminus.unsettled) == [first.tag, b"mine"]  # a transaction dies with its link
    script << disposition(True, 0)
    assert list(terminus.unsettled) == [b"mine"]
    second.settle()
    assert not terminus.unsettled


def test_send_refuses_a_tag_that_is_unsettled_from_before() -> None:
    link, _script, _terminus, _held = taken_up((b"a", None), theirs={})
    with pytest.raises(LocalProtocolError, match="an unsettled delivery has the delivery-tag b'a'"):
        link.send(b"new", tag=b"a")


def test_tags_go_on_behind_those_of_the_endpoint_before() -> None:
    link, script, terminus, _held = taken_up(theirs={})
    link.send(b"one")
    script.lose()
    assert terminus.next_tag == 1


@pytest.mark.parametrize("closed", [True, False])
def test_detach_ends_the_memory_only_when_it_closes(closed: bool) -> None:
    link, script, terminus, _held = taken_up(theirs={})
    delivery = link.send(b"one")
    assert delivery is not None
    script.collect()
    link.detach(closed=closed)
    script.send(frame("detach", handle=0, closed=closed))
    assert link.state is LinkState.GONE
    assert link.in_doubt == (1 if closed else 0)
    assert list(terminus.unsettled) == [delivery.tag]  # for its store to drop, where it was closed


def test_detach_does_not_abort_what_can_be_resumed() -> None:
    session, script = begun(remote={"max_frame_size": 512}, incoming_window=5)
    link = session.sender("x")
    link.terminus = SenderTerminus()
    link.attach(source=Source(), target=Target())
    script.expect("attach")
    script << attach("x", 0, role=True)
    script.collect()
    script << flow(handle=0, delivery_count=0, link_credit=5, incoming_window=2)
    link.send(bytes(5000))
    script.expect("transfer")
    script.expect("transfer")
    script << flow(next_incoming_id=2, incoming_window=1)
    script.expect("transfer")
    link.detach(closed=False)
    script >> expected("detach", closed=None)
    assert list(link.terminus.unsettled) == [bytes(4)]


def test_delivery_can_be_forgotten_while_its_link_is_gone_and_not_while_it_is_taken_up() -> None:
    link, _, terminus, [held] = taken_up((b"a", None), theirs={b"a": None}, credit=0)
    with pytest.raises(LocalProtocolError, match="its link is gone"):
        held.settle()
    assert list(terminus.unsettled) == [b"a"]
    link.session.connection.transport_lost()
    held.settle()
    assert held.settled
    assert not terminus.unsettled
    with pytest.raises(LocalProtocolError, match="settled already"):
        held.settle()


@pytest.mark.parametrize("ours", [True, False])
def test_deliveries_that_were_not_resumed_are_told_when_the_link_is_closed(ours: bool) -> None:
    link, script, terminus, held = taken_up((b"a", None), (b"b", None), theirs={b"a": None}, credit=0)
    script.touched.clear()
    if ours:
        link.detach()
        script.collect()
    else:
        script << frame("detach", handle=0, closed=True)
    assert [delivery.watcher in script.touched for delivery in held] == [True, True]
    assert link.terminus is None
    assert len(terminus.unsettled) == 2


def test_deliveries_are_told_when_the_peer_closes_what_we_had_only_detached() -> None:
    link, script, _terminus, held = taken_up((b"a", None), theirs={b"a": None})
    link.detach(closed=False)
    script.collect().touched.clear()
    script << frame("detach", handle=0, closed=True)
    assert held[0].watcher in script.touched
    assert link.terminus is None


def test_deliveries_stay_untold_when_they_are_on_another_link_already() -> None:
    link, script, terminus, held = taken_up((b"a", None), theirs={b"a": None})
    link.detach(closed=False)
    terminus.bind(session_of(link).sender("other"))
    script.collect().touched.clear()
    script << frame("detach", handle=0, closed=True)
    assert held[0].watcher not in script.touched


def test_deliveries_that_were_not_resumed_stay_untold_when_the_link_is_only_detached() -> None:
    link, script, terminus, held = taken_up((b"a", None), theirs={b"a": None}, credit=0)
    script.touched.clear()
    script << frame("detach", handle=0)
    assert held[0].watcher not in script.touched
    assert link.terminus is terminus


# -- a message that the link does not take any more ---------------------------------------------


def test_resending_releases_what_is_too_large_for_the_link_now_and_goes_on() -> None:
    link, script, terminus, [large, small] = taken_up(
        (b"a", None), (b"b", None), theirs={}, max_message_size=len(PAYLOAD) - 1
    )
    script.expect_nothing()
    assert large.settled
    assert large.state == RELEASED
    assert small.settled
    assert not terminus.unsettled
    assert not link.unsettled
    assert link.resending is None
    assert link.state is LinkState.ATTACHED
    assert link.send(b"x", tag=b"c") is not None


@pytest.mark.parametrize("theirs", [None, RECEIVED])
def test_resending_aborts_what_the_receiver_has_of_a_message_that_is_too_large_now(theirs: Any) -> None:
    link, script, terminus, [large, known] = taken_up(
        (b"a", None),
        (b"b", None),
        theirs={b"a": theirs, b"b": ACCEPTED},
        max_message_size=len(PAYLOAD) - 1,
    )
    script >> expected("transfer", delivery_tag=b"a", resume=True, aborted=True, settled=True, state=None)
    script >> expected("transfer", delivery_tag=b"b", resume=True, settled=False, state=ACCEPTED)
    script >> expected("disposition", role=False, first=1, settled=True, state=ACCEPTED)
    assert large.settled
    assert large.state == RELEASED
    assert known.state == Accepted()
    assert not terminus.unsettled
    assert not link.unsettled


def test_resending_sends_what_is_as_large_as_the_link_takes() -> None:
    _link, script, _terminus, _held = taken_up((b"a", None), theirs={}, max_message_size=len(PAYLOAD))
    script >> expected("transfer", delivery_tag=b"a", payload=PAYLOAD)
