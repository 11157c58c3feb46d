"""A receiver that takes up its link: what it says it has, and what each resumed transfer does (2.6.13, 3.4.6)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.naive.performatives import frame, sections
from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.delivery import ACCEPTED as ACCEPT
from trio_amqp10.amqp10.engine.delivery import IncomingDelivery
from trio_amqp10.amqp10.engine.events import LinkAttached, LinkDetached, SessionBegun
from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus
from trio_amqp10.amqp10.spec.messaging import Accepted, Rejected, Released, Source, Target
from trio_amqp10.amqp10.spec.transport import ReceiverSettleMode
from trio_amqp10.core.errors import LocalProtocolError

from .helpers import BEGIN, begun, error, opened
from .links import ACCEPTED, Owner, attach, disposition, transfer

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.receiver import ReceiverLink

PAYLOAD = sections(("properties", {"subject": "s"}), ("data", b"0123456789"))
SECOND = PAYLOAD.index(b"\x00\x53\x75")
WHOLE = ("received", {"section_number": 2, "section_offset": 0})


def attached(
    script: Script, link: ReceiverLink, *, second: bool, theirs: dict[bytes, Any] | None = None, **fields: Any
) -> Any:
    """Attach ``link``, answered with the sender's map; what our attach said."""
    mode = ReceiverSettleMode.SECOND if second else ReceiverSettleMode.FIRST
    link.attach(source=Source(address="q"), target=Target(), rcv_settle_mode=mode)
    got = script.expect("attach", name="x", role=True)
    script << attach("x", 0, role=False, unsettled=theirs, **fields)
    script.expect_event(LinkAttached, link=link)
    link.set_credit(10)
    script.expect("flow", link_credit=10)
    return got


def before_the_cut(
    *frames: bytes, second: bool = True, taken: bool = True
) -> tuple[ReceiverTerminus, list[IncomingDelivery], ReceiverLink]:
    """A receiver with a memory gets ``frames``, hands out what is whole, and then its transport goes."""
    session, script = begun()
    link = session.receiver("x")
    terminus = link.terminus = ReceiverTerminus()
    attached(script, link, second=second)
    script << b"".join(frames)
    deliveries = list(link.queue)
    if taken:
        link.queue.clear()
    script.lose()
    return terminus, deliveries, link


def taken_up(
    terminus: ReceiverTerminus,
    theirs: dict[bytes, Any] | None,
    *,
    second: bool = True,
    frame_size: int | None = None,
    **fields: Any,
) -> tuple[ReceiverLink, Script, Any]:
    """The link attached on another connection, where ids begin anew; and what our attach said of it."""
    _connection, script = opened(remote={"max_frame_size": frame_size} if frame_size else None)
    session = _connection.session()
    session.begin()
    script.expect("begin")
    script << frame("begin", **BEGIN, remote_channel=0)
    script.expect_event(SessionBegun)
    link = session.receiver("x")
    link.terminus = terminus
    got = attached(script, link, second=second, theirs=theirs, **fields)
    return link, script, got["unsettled"]


def resumed(tag: bytes, payload: bytes = b"", **fields: Any) -> bytes:
    """A first transfer that resumes."""
    usual: dict[str, Any] = {
        "handle": 0,
        "delivery_id": 0,
        "delivery_tag": tag,
        "resume": True,
        "settled": False,
    }
    return frame("transfer", payload=payload, **{**usual, **fields})


TAG = (7).to_bytes(4, "big")


# -- what the attach says -----------------------------------------------------------------------


def test_attach_says_how_far_each_delivery_has_come() -> None:
    terminus, [whole, done], _link = before_the_cut(
        transfer(0, 1, PAYLOAD),
        transfer(0, 2, PAYLOAD),
        transfer(0, 3, PAYLOAD[: SECOND + 5], more=True),
    )
    done.link.session.settlement.dispose(done, ACCEPT)  # while nobody hears it
    _new, _script, said = taken_up(terminus, {})
    assert said == {
        whole.tag: WHOLE,
        done.tag: ACCEPTED,
        (3).to_bytes(4, "big"): ("received", {"section_number": 1, "section_offset": 5}),
    }


def test_outcome_of_a_former_life_is_said_and_the_delivery_settled() -> None:
    terminus = ReceiverTerminus()
    terminus.known = True
    terminus.restore(TAG, ACCEPT)
    link, script, said = taken_up(terminus, {TAG: None})
    assert said == {TAG: ACCEPTED}
    script << resumed(TAG, state=ACCEPTED, settled=True)
    assert not terminus.unsettled
    assert not link.queue


def test_attach_says_no_map_when_the_link_is_new() -> None:
    session, script = begun()
    link = session.receiver("x")
    link.terminus = ReceiverTerminus()
    link.attach(source=Source(address="q"), target=Target())
    script >> expected("attach", unsettled=None)


# -- what the sender has settled ----------------------------------------------------------------


@pytest.mark.parametrize("theirs", [None, {}, {b"other": None}])
def test_deliveries_that_the_sender_does_not_name_are_settled(theirs: dict[bytes, Any] | None) -> None:
    terminus, [delivery], _link = before_the_cut(
        transfer(0, 7, PAYLOAD), transfer(0, 8, PAYLOAD[:5], more=True)
    )
    watcher = delivery.watcher = Owner()
    link, script, _said = taken_up(terminus, theirs)
    assert delivery.settled
    assert not terminus.unsettled
    assert not terminus.partials
    assert watcher.touched or watcher in script.touched
    link.session.settlement.dispose(delivery, ACCEPT)
    script.expect_nothing()  # there is nobody to tell
    script << transfer(0, 0, PAYLOAD, delivery_tag=TAG)
    assert len(link.queue) == 1  # and its tag is free


def test_deliveries_that_an_incomplete_map_does_not_name_are_kept() -> None:
    terminus, [delivery], _link = before_the_cut(transfer(0, 7, PAYLOAD))
    link, script, _said = taken_up(terminus, {}, incomplete_unsettled=True)
    assert not delivery.settled
    assert list(terminus.unsettled) == [TAG]
    script << transfer(0, 0, PAYLOAD, delivery_tag=b"new")
    script.expect_nothing()  # who sent that map is to judge whether it may send something new
    assert [d.tag for d in link.queue] == [b"new"]


def test_new_delivery_is_refused_when_our_own_map_was_incomplete() -> None:
    terminus = ReceiverTerminus()
    terminus.known = True
    for number in range(100):
        terminus.restore(b"%d" % number, ACCEPT)
    link, script, said = taken_up(terminus, {}, frame_size=512)
    assert 0 < len(said) < 100
    assert link.incomplete
    script << transfer(0, 0, PAYLOAD, delivery_tag=b"new")
    got = script.expect("detach", closed=True)
    assert got["error"][1]["condition"] == "amqp:illegal-state"
    script.expect_event(LinkDetached, link=link)


# -- what is resumed ----------------------------------------------------------------------------


def test_resumed_delivery_that_came_whole_is_not_handed_out_again() -> None:
    terminus, [delivery], _link = before_the_cut(transfer(0, 7, PAYLOAD))
    link, script, _said = taken_up(terminus, {TAG: None})
    script << resumed(TAG, state=WHOLE)
    assert not link.queue
    assert delivery.link is link
    assert delivery.delivery_id == 0
    link.session.settlement.dispose(delivery, ACCEPT)
    script >> expected("disposition", role=True, first=0, settled=None, state=ACCEPTED)
    script << disposition(False, 0)
    assert delivery.settled
    assert not terminus.unsettled


def test_resumed_delivery_that_came_whole_is_not_handed_out_again_when_all_of_it_is_sent_again() -> None:
    terminus, [delivery], _link = before_the_cut(transfer(0, 7, PAYLOAD))
    link, script, _said = taken_up(terminus, {TAG: None})
    script << resumed(TAG, PAYLOAD[:9], more=True) + transfer(0, payload=PAYLOAD[9:])
    assert not link.queue
    assert link.incoming is None
    assert delivery.payload == PAYLOAD


def test_outcome_that_was_given_meanwhile_is_said_when_the_delivery_is_resumed() -> None:
    terminus, [delivery], _link = before_the_cut(transfer(0, 7, PAYLOAD))
    link, script, said = taken_up(terminus, {TAG: None})
    assert said == {TAG: WHOLE}
    link.session.settlement.dispose(delivery, ACCEPT)  # after the attach, before the transfer
    script.expect_nothing()
    script << resumed(TAG)
    script >> expected("disposition", first=0, settled=None, state=ACCEPTED)


@pytest.mark.parametrize("second", [True, False])
def test_outcome_that_the_sender_did_not_hear_is_said_again(second: bool) -> None:
    terminus, [delivery], _link = before_the_cut(transfer(0, 7, PAYLOAD), second=second)
    delivery.link.session.settlement.dispose(delivery, ACCEPT)
    with pytest.raises(LocalProtocolError, match="already given"):
        delivery.link.session.settlement.dispose(delivery, ACCEPT)
    _new, script, said = taken_up(terminus, {TAG: None}, second=second)
    assert said == {TAG: ACCEPTED}
    script << resumed(TAG)
    script >> expected("disposition", first=0, settled=None if second else True, state=ACCEPTED)
    assert delivery.settled is not second


def test_resumed_delivery_is_settled_when_the_sender_took_our_outcome() -> None:
    terminus, [delivery], _link = before_the_cut(transfer(0, 7, PAYLOAD))
    delivery.link.session.settlement.dispose(delivery, ACCEPT)
    link, script, _said = taken_up(terminus, {TAG: None})
    script << resumed(TAG, settled=True, state=ACCEPTED)
    script.expect_nothing()
    assert delivery.settled
    assert delivery.state == Accepted()
    assert not terminus.unsettled
    assert not link.tags


@pytest.mark.parametrize("second", [True, False])
def test_resumed_delivery_is_settled_when_the_sender_holds_an_outcome_and_waits_for_us(
    second: bool,
) -> None:
    terminus, [delivery], _link = before_the_cut(transfer(0, 7, PAYLOAD), taken=False, second=second)
    link, script, _said = taken_up(terminus, {TAG: ACCEPTED}, second=second)
    script << resumed(TAG, state=ACCEPTED)
    script >> expected("disposition", role=True, first=0, settled=None if second else True, state=ACCEPTED)
    assert not link.queue
    assert delivery.settled is not second
    if second:
        script << disposition(False, 0)
    assert delivery.settled
    assert delivery.state == Accepted()
    assert not terminus.unsettled
    assert link.error is None


@pytest.mark.parametrize("second", [True, False])
def test_outcome_of_the_sender_counts_when_the_receiver_has_another(second: bool) -> None:
    terminus, [delivery], _link = before_the_cut(transfer(0, 7, PAYLOAD), second=second)
    delivery.link.session.settlement.dispose(delivery, Rejected())
    _new, script, said = taken_up(terminus, {TAG: ACCEPTED}, second=second)
    assert said == {TAG: ("rejected", {})}
    script << resumed(TAG, state=ACCEPTED)
    script >> expected("disposition", role=True, first=0, settled=None if second else True, state=ACCEPTED)
    if second:
        script << disposition(False, 0)
    assert delivery.settled
    assert delivery.state == Accepted()
    assert not terminus.unsettled


@pytest.mark.parametrize("fields", [{"aborted": True}, {"settled": True, "state": ("rejected", {})}])
def test_resumed_delivery_is_taken_back_when_the_sender_has_no_more_use_for_it(
    fields: dict[str, Any],
) -> None:
    terminus, [delivery], _link = before_the_cut(transfer(0, 7, PAYLOAD), taken=False)
    link, script, _said = taken_up(terminus, {TAG: None})
    script << resumed(TAG, **fields)
    script.expect_nothing()
    assert delivery.settled
    assert not link.queue
    assert not terminus.unsettled
    assert delivery.remote_state == (None if "aborted" in fields else Rejected())


def test_delivery_that_the_sender_aborts_is_handed_out_when_it_is_sent_as_new() -> None:
    terminus, _nothing, _link = before_the_cut(transfer(0, 7, PAYLOAD[:5], more=True))
    place = ("received", {"section_number": 1, "section_offset": 0})
    link, script, said = taken_up(terminus, {TAG: place})
    assert said == {TAG: ("received", {"section_number": 0, "section_offset": 5})}
    script << resumed(TAG, aborted=True)
    assert not terminus.unsettled
    assert not terminus.partials
    script << transfer(0, 1, PAYLOAD, delivery_tag=TAG)
    assert [each.payload for each in link.queue] == [PAYLOAD]


@pytest.mark.parametrize("start", [0, 3, SECOND, SECOND + 5])
@pytest.mark.parametrize("said_before", [True, False])
def test_resumed_delivery_goes_on_where_the_sender_says(start: int, said_before: bool) -> None:
    begun_ = PAYLOAD[: SECOND + 5]
    terminus, nothing, _link = before_the_cut(
        transfer(0, 7, begun_[:9], more=True), transfer(0, payload=begun_[9:], more=True)
    )
    assert not nothing
    place = {
        "section_number": int(start >= SECOND),
        "section_offset": start - SECOND if start >= SECOND else start,
    }
    state = ("received", place) if start else None
    link, script, said = taken_up(terminus, {TAG: state if said_before else None})
    assert said == {TAG: ("received", {"section_number": 1, "section_offset": 5})}
    script << resumed(TAG, PAYLOAD[start:-2], state=state, more=True) + transfer(0, payload=PAYLOAD[-2:])
    [delivery] = link.queue
    assert delivery.payload == PAYLOAD
    assert delivery.delivery_id == 0
    assert link.session.connection.partial_octets == 0
    link.session.settlement.dispose(delivery, ACCEPT)
    script >> expected("disposition", first=0)


def test_resumed_delivery_goes_on_after_another_cut() -> None:
    terminus, _nothing, _link = before_the_cut(transfer(0, 7, PAYLOAD[:5], more=True))
    link, script, _said = taken_up(terminus, {TAG: None})
    place = ("received", {"section_number": 0, "section_offset": 5})
    script << resumed(TAG, PAYLOAD[5:9], state=place, more=True)
    script.lose()
    assert terminus.partials == {TAG: PAYLOAD[:9]}
    assert not link.queue
    link, script, _said = taken_up(terminus, {TAG: None})
    place = ("received", {"section_number": 0, "section_offset": 9})
    script << resumed(TAG, PAYLOAD[9:], state=place)
    assert [each.payload for each in link.queue] == [PAYLOAD]


def test_resumed_delivery_is_released_when_the_sender_goes_on_behind_what_came() -> None:
    terminus, _nothing, _link = before_the_cut(transfer(0, 7, PAYLOAD[:5], more=True))
    link, script, _said = taken_up(terminus, {TAG: None})
    place = ("received", {"section_number": 1, "section_offset": 0})
    script << resumed(TAG, PAYLOAD[SECOND:], state=place)
    script >> expected("disposition", first=0, state=("released", {}))
    assert not link.queue
    assert terminus.unsettled[TAG].state == Released()


def test_resumed_delivery_that_is_not_known_is_ignored() -> None:
    link, script, _said = taken_up(ReceiverTerminus(), {TAG: None})
    script << resumed(TAG, PAYLOAD)
    assert not link.queue
    script << transfer(0, 1, PAYLOAD)
    assert len(link.queue) == 1


def test_resumed_delivery_needs_no_credit() -> None:
    terminus, [delivery], _link = before_the_cut(transfer(0, 7, PAYLOAD))
    link, script, _said = taken_up(terminus, {TAG: None})
    link.set_credit(0)
    link._forgiven = 0  # pyright: ignore[reportPrivateUsage]
    script.collect()
    script << resumed(TAG)
    assert delivery.link is link


def test_resumed_delivery_settles_first_when_its_transfer_says_so() -> None:
    terminus, [delivery], _link = before_the_cut(transfer(0, 7, PAYLOAD))
    link, script, _said = taken_up(terminus, {TAG: None})
    script << resumed(TAG, rcv_settle_mode=0)
    link.session.settlement.dispose(delivery, ACCEPT)
    script >> expected("disposition", first=0, settled=True)


def test_resume_flag_on_a_link_without_a_memory_is_a_delivery_that_is_not_known() -> None:
    session, script = begun()
    link = session.receiver("x")
    attached(script, link, second=False)
    script << resumed(TAG, PAYLOAD)
    assert not link.queue
    assert link.error is None


def test_delivery_that_nobody_took_is_there_on_the_new_link() -> None:
    terminus, [delivery], _link = before_the_cut(transfer(0, 7, PAYLOAD), taken=False)
    link, script, _said = taken_up(terminus, {TAG: None})
    script << resumed(TAG)
    assert list(link.queue) == [delivery]


# -- what cannot be remembered ------------------------------------------------------------------


def test_streamed_delivery_that_was_cut_is_forgotten() -> None:
    session, script = begun()
    link = session.receiver("x")
    terminus = link.terminus = ReceiverTerminus()
    link.stream()
    attached(script, link, second=True)
    script << transfer(0, 7, PAYLOAD[:9], more=True)
    script.lose()
    assert not terminus.unsettled
    assert not terminus.partials


def test_delivery_of_a_closed_link_cannot_be_settled() -> None:
    session, script = begun()
    link = session.receiver("x")
    link.terminus = ReceiverTerminus()
    attached(script, link, second=True)
    script << transfer(0, 7, PAYLOAD)
    [delivery] = link.queue
    script << frame("detach", handle=0, closed=True, error=error("amqp:not-found"))
    with pytest.raises(LocalProtocolError, match="its link is gone"):
        session.settlement.dispose(delivery, ACCEPT)


def test_resumed_delivery_leaves_nothing_behind_when_the_sender_settles_it() -> None:
    terminus, [delivery], _link = before_the_cut(transfer(0, 7, PAYLOAD))
    link, script, _said = taken_up(terminus, {TAG: None})
    script << resumed(TAG, rcv_settle_mode=0)
    script << disposition(False, 0)
    assert delivery.settled
    assert not link.session.settlement.modes
    assert not terminus.unsettled
