"""What ends a link or a session: wrong fields, and answers that the peer would not take (1.4, 2.8.14)."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest

from tests.naive.codec import Typed, encode
from tests.naive.performatives import frame, header, raw_frame
from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.events import LinkAttached, LinkDetached, SessionEnded
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.receiver import ReceiverLink
from trio_amqp10.amqp10.engine.states import ConnectionState, LinkState, SessionState
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.core.errors import LocalProtocolError

from .helpers import (
    BEGIN,
    Owner,
    Pair,
    attach,
    begun,
    error,
    flow,
    opened,
    receiving,
    refused,
    sending,
    transfer,
)
from .links import session_of

PEER = header() + frame("open", container_id="peer")
BAD = Typed("string", "?")
SMALL: dict[str, Any] = {"max_frame_size": 512}
NAME = "n" * 600  # an attach of this name fits no frame of 512 octets


# -- answers that fit no frame of the peer's ----------------------------------------------------------


def test_session_ends_when_an_answer_to_a_detach_fits_no_frame_of_the_peers() -> None:
    session, script = begun(remote=SMALL)
    script << attach(name=NAME) + frame("detach", handle=0, closed=True)
    script >> expected("end", error=error("amqp:frame-size-too-small"))
    script.expect_event(LinkAttached)
    script.expect_event(SessionEnded, session=session)
    assert session.state is SessionState.DISCARDING


@pytest.mark.parametrize("format_code", [0xC0, 0xD0], ids=["fast", "general"])
def test_session_ends_when_the_error_of_a_link_needs_an_attach_that_fits_no_frame(format_code: int) -> None:
    session, script = begun(remote=SMALL)
    script << attach(name=NAME)
    script << frame(
        "transfer", handle=0, delivery_id=0, delivery_tag=b"0", list_code=format_code, payload=b"no credit"
    )
    script >> expected("end", error=error("amqp:frame-size-too-small"))
    assert session.state is SessionState.DISCARDING


def test_session_ends_when_a_bad_field_calls_for_an_attach_that_fits_no_frame() -> None:
    session, script = begun(remote=SMALL)
    script << attach(name=NAME) + frame("detach", handle=0, closed=Typed("uint", 1))
    script >> expected("end", error=error("amqp:frame-size-too-small"))
    assert session.state is SessionState.DISCARDING


# -- states that fit no frame ---------------------------------------------------------------------------

HUGE = {"x-opt-why": "y" * 600}


def test_delivery_refuses_an_outcome_that_fits_no_frame_and_may_be_given_another() -> None:
    link, script = receiving(remote=SMALL)
    script << transfer(0)
    delivery = link.queue.popleft()
    with pytest.raises(LocalProtocolError, match="amqp:frame-size-too-small"):
        delivery.modify(annotations=HUGE)
    delivery.modify(delivery_failed=True)
    script >> expected("disposition", first=0, settled=True, state=("modified", {"delivery_failed": True}))
    script.expect_nothing()


@pytest.mark.parametrize(
    ("state", "echoed"),
    [
        (("modified", {"message_annotations": HUGE}), None),
        (("modified", {"delivery_failed": True}), ("modified", {"delivery_failed": True})),
    ],
    ids=["too long", "short"],
)
def test_sender_settles_without_the_receivers_state_when_that_fits_no_frame(
    state: object, echoed: object
) -> None:
    link, script = sending(remote=SMALL)
    link.send(b"x")
    script >> expected("transfer", delivery_id=0)
    script << frame("disposition", role=True, first=0, settled=False, state=state)
    script >> expected("disposition", role=False, first=0, settled=True, state=echoed)
    assert not link.unsettled


def test_session_forgets_what_is_unsettled_when_it_ends_and_wakes_who_waits_for_it() -> None:
    link, script = receiving(rcv_settle_mode=1)
    script << transfer(0, rcv_settle_mode=0) + transfer(1)
    settlement = link.session.settlement
    owner = settlement.incoming[1].watcher = Owner()
    assert settlement.modes == {0: 0}
    session_of(link).end()
    script.collect()
    assert script.touched == [owner]
    assert not settlement.incoming
    assert not settlement.modes


def test_session_ends_in_linear_time_when_many_links_hold_much() -> None:
    def seconds(links: int) -> float:
        pair = Pair(Connection("a"), Connection("b", limits=Limits(handle_max=1000))).open()
        session = pair.a.session()
        session.begin()
        senders = [session.sender(str(i)) for i in range(links)]
        for link in senders:
            link.attach(source=Source(), target=Target(address="q"))
        pair.run()
        for event in pair.events[pair.b]:
            if isinstance(event, LinkAttached) and isinstance(event.link, ReceiverLink):
                event.link.set_credit(20)
        pair.run()
        for link in senders:
            for _ in range(20):
                link.send(b"x")
        pair.run()
        began = process_time()
        session.end()
        pair.run()
        return process_time() - began

    assert min(seconds(200) for _ in range(3)) < 6 * min(seconds(50) for _ in range(3)) + 0.005


# -- fields of a wrong type ---------------------------------------------------------------------------


def test_row_31_bad_field_of_a_transfer_ends_its_link_and_the_next_delivery_still_counts() -> None:
    link, script = receiving()
    script << attach(name="y", handle=1)
    other = script.expect_event(LinkAttached).link
    other.attach()
    other.set_credit(5)
    script >> expected("attach") >> expected("flow")
    script << transfer(0, settled=BAD) + transfer(1, handle=1)
    script >> expected("detach", handle=0, closed=True, error=error("amqp:invalid-field"))
    script.expect_nothing()
    script.expect_event(LinkDetached, link=link)
    assert [d.delivery_id for d in other.queue] == [1]
    assert other.session.windows.next_incoming_id == 2


def test_row_31_bad_field_of_a_continuation_ends_its_link_and_the_next_delivery_still_counts() -> None:
    link, script = receiving()
    script << attach(name="y", handle=1)
    other = script.expect_event(LinkAttached).link
    other.attach()
    other.set_credit(5)
    script >> expected("attach") >> expected("flow")
    script << transfer(0, more=True) + frame("transfer", handle=0, settled=BAD) + transfer(1, handle=1)
    script >> expected("detach", handle=0, error=error("amqp:invalid-field"))
    script.expect_nothing()
    assert len(other.queue) == 1
    assert link.state is LinkState.DETACH_SENT


@pytest.mark.parametrize(
    "fields",
    [{"delivery_id": BAD}, {"delivery_id": None, "settled": BAD}, {"delivery_id": 7, "settled": BAD}],
    ids=["not a number", "none", "not the next"],
)
def test_row_31_bad_field_of_a_transfer_ends_its_session_when_its_number_makes_no_sense(fields: Any) -> None:
    _, script = receiving()
    script << transfer(0)
    script << transfer(1, **fields)
    script >> expected("end", error=error("amqp:invalid-field"))


def test_row_31_bad_field_of_a_transfer_ends_its_session_when_only_the_handle_is_there() -> None:
    _, script = receiving()
    script << frame("transfer", handle=0, delivery_id=None, delivery_tag=BAD)
    script >> expected("end", error=error("amqp:invalid-field"))


def test_row_31_bad_field_of_a_transfer_ends_its_session_when_the_window_is_used_up() -> None:
    _, script = receiving(Limits(incoming_window=1))
    script << transfer(0) + transfer(1, settled=BAD)
    script >> expected("flow", incoming_window=1)  # was owed when the second one came
    script >> expected("end", error=error("amqp:invalid-field"))


def test_row_31_bad_field_is_dropped_with_the_frame_when_the_link_was_detached() -> None:
    link, script = receiving()
    link.detach()
    script >> expected("detach")
    script << transfer(0, settled=BAD)
    script << frame("detach", handle=0, closed=True)
    script.expect_nothing()
    script.expect_event(LinkDetached, link=link, error=None)


@pytest.mark.parametrize(
    "octets",
    [
        attach(name=BAD.value, role=Typed("uint", 0)),
        frame("attach", name="x", handle=0),
        frame("disposition", role=True, first=BAD),
        flow(incoming_window=None),
        frame("end", error=BAD),
        frame("transfer", handle=9, delivery_id=BAD),
        frame("transfer", delivery_id=1),
    ],
    ids=["attach", "attach without role", "disposition", "flow", "end", "no such link", "no handle"],
)
def test_row_31_bad_field_ends_the_session_when_it_is_not_of_a_link(octets: bytes) -> None:
    session, script = begun()
    script << octets
    script >> expected("end", error=error("amqp:invalid-field"))
    script.expect_event(SessionEnded, session=session)
    assert session.connection.state is ConnectionState.OPENED


def test_row_31_bad_field_of_a_detach_ends_its_link() -> None:
    link, script = sending()
    script << frame("detach", handle=0, closed=BAD)
    script >> expected("detach", handle=0, closed=True, error=error("amqp:invalid-field"))
    script.expect_event(LinkDetached, link=link)


@pytest.mark.parametrize("name", ["begin", "open", "close"])
def test_row_31_bad_field_closes_the_connection_when_it_is_of_all(name: str) -> None:
    session, script = begun()
    fields: dict[str, Any] = {
        "begin": {"next_outgoing_id": BAD},
        "open": {"container_id": Typed("uint", 1)},
        "close": {"error": BAD},
    }[name]
    assert refused(script, frame(name, **fields)).condition == "amqp:invalid-field"
    script >> expected("close", error=error("amqp:invalid-field"))
    assert session.state is SessionState.ENDED


def test_row_31_surplus_field_closes_the_connection() -> None:
    _, script = begun()
    surplus = Typed("described", (Typed("ulong", 0x17), Typed("list", (Typed("null"), Typed("null")))))
    assert refused(script, raw_frame(encode(surplus))).condition == "amqp:decode-error"
    script >> expected("close", error=error("amqp:decode-error"))


def test_row_31_bad_field_ends_the_session_when_it_was_not_answered_yet() -> None:
    _, script = opened()
    script << frame("begin", **BEGIN) + frame("disposition", role=True, first=BAD)
    script >> expected("begin", remote_channel=0)
    script >> expected("end", error=error("amqp:invalid-field"))


def test_row_31_bad_field_is_dropped_with_the_frame_when_the_session_was_ended() -> None:
    session, script = begun()
    session.end()
    script >> expected("end")
    script << frame("disposition", role=True, first=BAD)
    script.expect_nothing()
    assert not script.events
    script << frame("end")
    script.expect_event(SessionEnded, session=session, error=None)
    script.expect_nothing()


# -- a whole conversation in one read -----------------------------------------------------------------


def test_session_ends_in_order_when_open_begin_and_end_come_in_one_read() -> None:
    script = Script(Connection("engine"))
    script << PEER + frame("begin", **BEGIN) + frame("end")
    script.expect_header()
    script >> expected("open") >> expected("begin", remote_channel=0) >> expected("end", error=None)
    script.expect_nothing()


def test_session_says_its_fault_in_order_when_nothing_was_answered_yet() -> None:
    script = Script(Connection("engine"))
    script << PEER + frame("begin", **BEGIN) + frame("detach", handle=3)
    script.expect_header()
    script >> expected("open") >> expected("begin")
    script >> expected("end", error=error("amqp:session:unattached-handle"))


@pytest.mark.parametrize(
    ("octets", "condition"),
    [
        (attach() + frame("detach", handle=0, closed=True), None),
        (attach() + transfer(0), error("amqp:link:transfer-limit-exceeded")),
        (attach() + frame("detach", handle=0, closed=BAD), error("amqp:invalid-field")),
    ],
    ids=["detached", "no credit", "bad field"],
)
def test_link_detaches_in_order_when_nothing_was_answered_yet(octets: bytes, condition: object) -> None:
    script = Script(Connection("engine"))
    script << PEER + frame("begin", **BEGIN) + octets
    script.expect_header()
    script >> expected("open") >> expected("begin", remote_channel=0)
    script >> expected("attach", name="x", role=True) >> expected("detach", closed=True, error=condition)
    script.expect_nothing()


def test_session_opens_first_when_it_is_begun_before_the_connection_is() -> None:
    script = Script(Connection("engine"))
    script << PEER + frame("begin", **BEGIN)
    script.events[1].session.begin()
    script.expect_header()
    script >> expected("open") >> expected("begin")


# -- types that nobody here knows -----------------------------------------------------------------------

UNKNOWN = [("x:foo", [1]), (0x99, [])]


@pytest.mark.parametrize("unknown", UNKNOWN)
@pytest.mark.parametrize("which", ["source", "target"])
def test_row_30_unknown_terminus_is_refused_as_not_implemented(which: str, unknown: Any) -> None:
    session, script = begun()
    script << attach(**{which: unknown})
    script >> expected("attach", name="x", role=True, target=None)
    script >> expected("detach", closed=True, error=error("amqp:not-implemented"))
    assert not script.events
    script << frame("detach", handle=0, closed=True)
    assert session.state is SessionState.MAPPED


def test_row_30_unknown_terminus_in_an_answer_ends_the_link() -> None:
    session, script = begun()
    link = session.sender("x")
    link.attach()
    script >> expected("attach")
    script << attach(role=True, target=UNKNOWN[0])
    script >> expected("detach", error=error("amqp:not-implemented"))
    script.expect_event(LinkDetached, link=link)


@pytest.mark.parametrize("unknown", UNKNOWN)
def test_row_30_unknown_state_in_a_disposition_ends_the_links_that_it_is_about(unknown: Any) -> None:
    link, script = sending()
    for _ in range(3):
        link.send(b"x")
        script >> expected("transfer")
    script << frame("disposition", role=True, first=5, last=9, settled=True, state=unknown)
    script << frame("disposition", role=False, first=0, last=9, settled=True, state=unknown)
    script.expect_nothing()
    script << frame("disposition", role=True, first=1, last=9, settled=True, state=unknown)
    script >> expected("detach", handle=0, error=error("amqp:not-implemented"))
    script.expect_nothing()
    script << frame("disposition", role=True, first=9, last=1, state=unknown)
    script >> expected("end", error=error("amqp:invalid-field"))


def test_row_30_unknown_state_in_a_transfer_ends_its_link_and_the_next_delivery_still_counts() -> None:
    link, script = receiving()
    script << transfer(0) + transfer(1, state=UNKNOWN[0])
    script >> expected("detach", error=error("amqp:not-implemented"))
    script << transfer(2, state=UNKNOWN[0])
    script.expect_nothing()
    assert link.session.next_incoming_delivery_id == 3
    assert link.session.windows.next_incoming_id == 3
    assert len(link.queue) == 1
