"""Session endpoints: begin, flow, channels and handles, faults, end (2.5)."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest

from tests.engine.helpers import BEGIN, Pair, begun, begun_by_peer, flow, opened, receiving, refused, sending
from tests.naive.codec import Typed, encode
from tests.naive.performatives import frame, header, raw_frame
from tests.naive.script import Script, expected
from trio_amqp10.engine.connection import Connection
from trio_amqp10.engine.events import LinkAttached, LinkDetached, SessionBegun, SessionEnded
from trio_amqp10.engine.limits import Limits
from trio_amqp10.engine.states import ConnectionState, LinkState, SessionState
from trio_amqp10.errors import Condition, LocalProtocolError
from trio_amqp10.spec.messaging import Source, Target
from trio_amqp10.spec.transport import Error

SMALL = {"max_frame_size": 512}
NAME = "n" * 600  # an attach of this name fits no frame of 512 octets


def error(condition: str) -> tuple[str, dict[str, object]]:
    """An error of this condition, as a composite that a transcript expects."""
    return ("error", {"condition": condition})


def attach(**fields: Any) -> bytes:
    """A sender's attach, unless the fields say otherwise."""
    usual = {"name": "x", "handle": 0, "role": False, "initial_delivery_count": 0}
    return frame("attach", **{**usual, **fields})


def transfer(number: int, **fields: Any) -> bytes:
    """A whole delivery of this id, on handle 0 unless the fields say otherwise."""
    payload = fields.pop("payload", b"x")
    usual = {"handle": 0, "delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0}
    return frame("transfer", payload=payload, **{**usual, **fields})


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


# -- fields of a wrong type ---------------------------------------------------------------------------

BAD = Typed("string", "?")


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
    script << frame("disposition", role=True, first=BAD) + frame("end")
    script.expect_nothing()
    assert session.state is SessionState.ENDED


# -- a whole conversation in one read -----------------------------------------------------------------

PEER = header() + frame("open", container_id="peer")


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


# -- handles and names --------------------------------------------------------------------------------


def test_row_39_handle_over_our_handle_max_closes() -> None:
    _, script = begun(Limits(handle_max=2))
    script << attach(handle=2)
    script.expect_event(LinkAttached)
    fault = refused(script, attach(name="y", handle=3))
    assert fault.condition == "amqp:connection:framing-error"
    script >> expected("close", error=error("amqp:connection:framing-error"))


def test_row_40_attach_on_a_handle_in_use_ends_the_session() -> None:
    session, script = begun()
    script << attach() + attach(name="y")
    script >> expected("end", error=error("amqp:session:handle-in-use"))
    script.expect_event(LinkAttached)
    script.expect_event(SessionEnded, session=session)


def test_row_41_attach_of_an_attached_name_steals_the_link() -> None:
    link, script = receiving()
    script << attach(handle=1) + transfer(0)
    script >> expected("detach", handle=0, closed=True, error=error("amqp:link:stolen"))
    script.expect_event(LinkDetached, link=link, closed=True)
    again = script.expect_event(LinkAttached).link
    again.attach()
    script >> expected("attach", name="x", handle=1)
    script << frame("detach", handle=0, closed=True)
    script.expect_nothing()
    assert link.state is LinkState.GONE
    assert not link.queue
    assert again.state is LinkState.ATTACHED
    assert link.session.connection.names.find("x", True) is again


def test_row_41_attach_in_another_session_steals_the_link() -> None:
    link, script = sending()
    script << frame("begin", channel=1, **BEGIN) + attach(channel=1, role=True)
    script >> expected("detach", channel=0, error=error("amqp:link:stolen"))
    other = script.expect_event(SessionBegun).session
    script.expect_event(LinkDetached, link=link)
    assert script.expect_event(LinkAttached).link.session is other


def test_row_41_attach_steals_a_name_that_we_have_only_claimed() -> None:
    session, script = begun()
    script << frame("begin", channel=1, **BEGIN)
    claimed = session.receiver("x")
    script << attach(channel=1)
    script.expect_event(SessionBegun)
    script.expect_event(LinkDetached, link=claimed)
    assert script.expect_event(LinkAttached).link is not claimed
    with pytest.raises(LocalProtocolError, match="GONE"):
        claimed.attach()


def test_session_tells_no_theft_of_a_link_that_we_are_detaching() -> None:
    link, script = receiving()
    link.detach()
    script >> expected("detach", handle=0)
    script << attach(handle=1)
    assert script.expect_event(LinkAttached).link is not link
    script << frame("detach", handle=0, closed=True)
    script.expect_event(LinkDetached, link=link, error=None)
    script.expect_nothing()


def test_session_tells_of_no_attach_when_we_have_detached_before_it_came() -> None:
    session, script = begun()
    link = session.sender("x")
    link.attach()
    link.detach()
    script >> expected("attach") >> expected("detach")
    script << attach(role=True)
    assert not script.events
    assert link.state is LinkState.DETACH_SENT
    script << frame("detach", handle=0, closed=True)
    script.expect_event(LinkDetached, link=link)
    assert link.state is LinkState.GONE


def test_session_lets_a_claimed_link_answer_the_peers_attach() -> None:
    session, script = begun()
    link = session.receiver("x")
    script << attach(handle=5)
    script.expect_event(LinkAttached, link=link)
    link.attach()
    script >> expected("attach", name="x", handle=0, role=True)
    assert link.answered


@pytest.mark.parametrize(("ours", "theirs"), [(1, 4294967295), (255, 1)])
def test_session_attaches_no_more_links_than_the_smaller_handle_max_has_room_for(
    ours: int, theirs: int
) -> None:
    session, script = begun(Limits(handle_max=ours), handle_max=theirs)
    for name in "ab":
        session.sender(name).attach()
        script >> expected("attach", name=name)
    with pytest.raises(LocalProtocolError, match="handle-max"):
        session.sender("c").attach()
    script.expect_nothing()


def test_row_59_link_more_than_the_peers_own_handle_max_ends_the_session() -> None:
    session, script = begun(handle_max=0)
    script << attach()
    link = script.expect_event(LinkAttached).link
    with pytest.raises(LocalProtocolError, match="handle-max"):
        session.sender("ours").attach()  # the handle is kept for the answer
    session.connection.names.release(session.connection.names.find("ours", False))
    script << attach(name="y", handle=1)
    script >> expected("end", error=error("amqp:resource-limit-exceeded"))
    assert link.state is LinkState.GONE
    assert len(session.connection.names) == 0


def test_session_uses_a_handle_and_a_name_again_when_the_link_is_over() -> None:
    link, script = receiving()
    script << frame("detach", handle=0, closed=True) + attach(handle=0)
    script.expect_event(LinkDetached, link=link)
    again = script.expect_event(LinkAttached).link
    again.attach()
    script >> expected("detach", handle=0, closed=True) >> expected("attach", name="x", handle=0)
    assert link.state is LinkState.GONE
    assert again.state is LinkState.ATTACHED


@pytest.mark.parametrize("role", [False, True])
def test_row_59_link_over_max_links_is_attached_without_a_terminus_and_detached(role: bool) -> None:
    session, script = begun(Limits(max_links=1))
    session.sender("ours").attach()
    script >> expected("attach", name="ours")
    termini = {"source": ("source", {"address": "s"}), "target": ("target", {"address": "t"})}
    script << attach(name="x", role=role, handle=4, **termini)
    got = script.expect("attach", name="x", role=not role, handle=1)
    assert got["target" if role is False else "source"] is None
    assert got["source" if role is False else "target"][1] == {"address": "st"[role]}
    script >> expected("detach", handle=1, closed=True, error=error("amqp:resource-limit-exceeded"))
    assert not script.events
    script << frame("detach", handle=4, closed=True)
    script.expect_event(LinkDetached)
    script.expect_nothing()
    assert len(session.connection.names) == 1


def test_session_takes_the_answer_to_its_own_attach_whatever_max_links_says() -> None:
    session, script = begun(Limits(max_links=1))
    links = [session.sender(name) for name in "ab"]
    for link in links:
        link.attach()
        script >> expected("attach")
    script << attach(name="a", role=True, handle=0) + attach(name="b", role=True, handle=1)
    assert [script.expect_event(LinkAttached).link for _ in links] == links
    script.expect_nothing()


def test_session_attaches_no_link_when_it_is_not_begun_or_over() -> None:
    connection, script = opened()
    session = connection.session()
    link = session.sender("x")
    with pytest.raises(LocalProtocolError, match="UNMAPPED"):
        link.attach()
    session.begin()
    session.end()
    with pytest.raises(LocalProtocolError, match="END_SENT"):
        link.attach()
    script >> expected("begin") >> expected("end")
    script.expect_nothing()


# -- flow ---------------------------------------------------------------------------------------------


def test_session_echoes_a_flow_that_came_before_it_was_answered() -> None:
    _connection, script = opened()
    script << frame("begin", **BEGIN) + flow(next_incoming_id=None, echo=True)
    script.expect_nothing()
    script.expect_event(SessionBegun).session.begin()
    script >> expected("begin") >> expected("flow", handle=None, next_incoming_id=0, next_outgoing_id=0)
    script.expect_nothing()


def test_session_echoes_a_flow_of_a_link_when_its_attach_is_answered() -> None:
    session, script = begun()
    script << attach(role=True, initial_delivery_count=None)
    script << flow(next_incoming_id=None, handle=0, link_credit=3, echo=True)
    script.expect_nothing()
    link = script.expect_event(LinkAttached).link
    session.owe_flow()
    script >> expected("flow", handle=None)
    link.attach()
    script >> expected("attach") >> expected("flow", handle=0, link_credit=3, delivery_count=0, echo=None)
    script.expect_nothing()


def test_session_writes_one_flow_however_often_it_is_asked() -> None:
    session, script = begun()
    session.owe_flow()
    session.connection.receive_data(flow(echo=True) + flow(echo=True), 0.0)
    script >> expected("flow", handle=None, next_incoming_id=0, incoming_window=2048)
    script.expect_nothing()


# -- end ----------------------------------------------------------------------------------------------


class Owner:
    """Something that waits."""

    touched = False

    def wake(self) -> None: ...


def test_session_wakes_its_owner_when_the_end_is_answered() -> None:
    session, script = begun()
    session.owner = owner = Owner()
    session.fail(Condition.NOT_ALLOWED, "no")
    script >> expected("end", error=error("amqp:not-allowed"))
    assert not script.touched
    script << frame("end")
    assert script.touched == [owner]
    assert session.state is SessionState.ENDED


def test_session_wakes_its_owner_when_the_connection_goes() -> None:
    session, script = begun()
    session.owner = owner = Owner()
    script.lose()
    assert script.touched == [owner]
    assert session.state is SessionState.ENDED


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
    link.session.end()
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
            if isinstance(event, LinkAttached):
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


# -- lifecycle (2.5.5) --------------------------------------------------------------------------------

S = SessionState


def test_session_goes_through_begin_sent_and_end_sent_when_it_is_first() -> None:
    connection, script = opened()
    session = connection.session()
    assert session.state is S.UNMAPPED
    session.begin(properties={"x": 1})
    assert session.state is S.BEGIN_SENT
    script >> expected("begin", channel=0, remote_channel=None, properties={"x": 1})
    script << frame("begin", remote_channel=0, **BEGIN)
    assert session.state is S.MAPPED
    assert not session.answered
    session.end()
    session.end()
    assert session.state is S.END_SENT
    script >> expected("end", error=None)
    script << attach() + frame("end")
    assert session.state is S.ENDED
    script.expect_nothing()
    with pytest.raises(LocalProtocolError, match="ENDED"):
        session.begin()


def test_session_goes_through_begin_rcvd_when_the_peer_is_first() -> None:
    _connection, script = opened()
    script << frame("begin", channel=9, **BEGIN)
    session = script.expect_event(SessionBegun).session
    assert session.state is S.BEGIN_RCVD
    session.begin()
    assert session.state is S.MAPPED
    assert session.answered
    script >> expected("begin", channel=0, remote_channel=9)
    script << frame("end", channel=9, error=("error", {"condition": "x:y"}))
    assert session.state is S.ENDED
    script >> expected("end", channel=0, error=None)
    assert script.expect_event(SessionEnded).error.condition == "x:y"
    assert session.error.condition == "x:y"


def test_session_goes_through_discarding_when_it_ends_with_an_error() -> None:
    session, script = begun_by_peer()
    session.end(Error(condition="amqp:internal-error"))
    assert session.state is S.DISCARDING
    script >> expected("end", error=error("amqp:internal-error"))
    script << attach() + frame("disposition", role=True, first=5, last=1) + frame("detach", handle=9)
    script.expect_nothing()
    script << frame("end")
    assert session.state is S.ENDED
    script.expect_event(SessionEnded, session=session, error=None)
    script.expect_nothing()


@pytest.mark.parametrize("with_error", [False, True])
def test_row_65_ends_that_cross_are_not_answered_twice(with_error: bool) -> None:
    pair = Pair().open()
    pair.link()
    (ours,) = (e.session for e in pair.events[pair.a] if isinstance(e, SessionBegun))
    (theirs,) = (e.session for e in pair.events[pair.b] if isinstance(e, SessionBegun))
    ours.end(Error(condition="amqp:internal-error") if with_error else None)
    theirs.end()
    pair.run()
    assert ours.state is theirs.state is S.ENDED
    assert pair.a.state is pair.b.state is ConnectionState.OPENED
    again = pair.a.session()
    assert again.channel == 0


def test_sessions_begin_at_once_from_both_ends() -> None:
    pair = Pair().open()
    sessions = [pair.a.session(), pair.b.session()]
    for session in sessions:
        session.begin()
    pair.run()
    assert [s.state for s in sessions] == [S.MAPPED, S.MAPPED]
    assert [type(e) for c in (pair.a, pair.b) for e in pair.events[c]].count(SessionBegun) == 4


def test_links_attach_at_once_from_both_ends_under_one_name() -> None:
    pair = Pair().open()
    session = pair.a.session()
    session.begin()
    pair.run()
    (theirs,) = (e.session for e in pair.events[pair.b] if isinstance(e, SessionBegun))
    sender, receiver = session.sender("x"), theirs.receiver("x")
    sender.attach(target=Target(address="q"))
    receiver.attach(source=Source(), target=Target(address="q"))
    pair.run()
    assert sender.state is receiver.state is LinkState.ATTACHED
    assert not sender.answered
    assert not receiver.answered
    assert [len(s.links) for s in (session, theirs)] == [1, 1]
    receiver.set_credit(1)
    pair.run()
    sender.send(b"x")
    pair.run()
    assert len(receiver.queue) == 1


@pytest.mark.parametrize("closed", [False, True])
def test_row_65_detaches_that_cross_are_not_answered_twice(closed: bool) -> None:
    pair = Pair().open()
    sender, receiver = pair.link()
    for link in (sender, receiver):
        link.detach(closed=closed)
    pair.run()
    assert sender.state is receiver.state is LinkState.GONE
    assert sender.session.free_handle() == receiver.session.free_handle() == 0


def test_session_says_what_it_is() -> None:
    session, _ = begun()
    assert repr(session) == "<session 0 MAPPED links=0>"


# -- windows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_code", [0xC0, 0xD0], ids=["fast", "general"])
def test_row_44_transfer_beyond_the_window_ends_the_session(format_code: int) -> None:
    link, script = receiving(Limits(incoming_window=2))
    octets = b"".join(transfer(n, list_code=format_code) for n in range(3))
    script << octets
    script >> expected("flow", incoming_window=2, next_incoming_id=2)  # was owed when the third one came
    script >> expected("end", error=error("amqp:session:window-violation"))
    assert link.state is LinkState.GONE


def test_session_opens_its_window_again_when_half_of_it_is_used() -> None:
    link, script = receiving(Limits(incoming_window=4))
    script << transfer(0)
    script.expect_nothing()
    script << transfer(1)
    script >> expected("flow", incoming_window=4, next_incoming_id=2, handle=None)
    assert len(link.queue) == 2


@pytest.mark.parametrize("number", [1, 5, 2**31 - 1])
def test_row_45_flow_that_expects_what_we_never_sent_ends_the_session(number: int) -> None:
    _, script = sending()
    script << flow(next_incoming_id=number)
    script >> expected("end", error=error("amqp:session:window-violation"))


def test_session_sends_no_more_transfers_than_the_window_of_the_peer_has_room_for() -> None:
    link, script = sending(credit=0)
    script << flow(handle=0, delivery_count=0, link_credit=100, incoming_window=2)
    link.owner = owner = Owner()
    link.send(b"0")
    link.send(b"1")
    assert not link.sendable()
    link.await_sendable()
    script >> expected("transfer", delivery_id=0) >> expected("transfer", delivery_id=1)
    script.touched.clear()
    script << flow(next_incoming_id=1, incoming_window=1)
    assert not script.touched
    script << flow(next_incoming_id=1, incoming_window=2)
    assert script.touched == [owner]
    link.send(b"2")
    script >> expected("transfer", delivery_id=2)


def test_session_takes_turns_with_deliveries_in_progress_and_stops_at_the_window() -> None:
    session, script = begun(remote=SMALL)
    links = [session.sender(name) for name in "ab"]
    for link in links:
        link.attach(target=Target(address="q"))
        script >> expected("attach")
        script << attach(name=link.name, handle=link.handle, role=True, target=("target", {}))
        script << flow(handle=link.handle, delivery_count=0, link_credit=1, incoming_window=3)
    for link in links:
        link.send(bytes(1000))
    handles = []
    script.collect()
    while script.inbox.frames:
        handles.append(script.inbox.take(expected("transfer", more=True))["handle"])
    assert handles == [0, 1, 0]
    script << flow(next_incoming_id=3, incoming_window=1)
    script >> expected("transfer", handle=1, more=True)
    script << flow(next_incoming_id=4, incoming_window=100)
    script >> expected("transfer", handle=0, more=None) >> expected("transfer", handle=1, more=None)
    script.expect_nothing()


def test_session_sends_as_soon_as_the_credit_is_read_when_all_else_was_pipelined() -> None:
    connection = Connection("engine")
    connection.open()
    session = connection.session()
    session.begin()
    link = session.sender("x")
    link.attach(source=Source(), target=Target(address="q"))
    other = session.receiver("y")
    other.attach(source=Source(address="q"), target=Target())
    other.set_credit(7)
    script = Script(connection)
    script.expect_header()
    for got in ("open", "begin", "attach", "attach", "flow"):
        assert len(script.expect(got).raw) <= 512
    script << PEER + frame("begin", remote_channel=0, **BEGIN) + attach(role=True) + flow(
        handle=0, delivery_count=0, link_credit=1
    )
    link.send(b"at once")
    script >> expected("transfer", payload=b"at once")


def test_session_takes_a_whole_pipelined_conversation_and_grants_and_receives_in_one_exchange() -> None:
    dialler = Connection("dialler")
    dialler.open()
    session = dialler.session()
    session.begin()
    sender = session.sender("x")
    sender.attach(source=Source(), target=Target(address="q"))
    pair = Pair(dialler)
    pair.move(pair.a, pair.b)
    (receiver,) = (e.link for e in pair.events[pair.b] if isinstance(e, LinkAttached))
    receiver.set_credit(10)
    pair.move(pair.b, pair.a)
    for n in range(10):
        sender.send(b"%d" % n)
    pair.move(pair.a, pair.b)
    assert [d.payload for d in receiver.queue] == [b"%d" % n for n in range(10)]


# -- frames for a link that we have detached ------------------------------------------------------------


def test_row_43_frames_for_a_detached_link_are_dropped_and_counted() -> None:
    link, script = receiving()
    link.detach()
    script >> expected("detach")
    script << flow(handle=0, delivery_count=5, available=3) + transfer(0) + transfer(1, list_code=0xD0)
    script.expect_nothing()
    assert link.session.windows.next_incoming_id == 2
    assert link.delivery_count == 0


def test_session_drops_a_transfer_for_a_sender_that_is_detached_and_refuses_it_before() -> None:
    _link, script = sending()
    script << transfer(0)
    script >> expected("detach", error=error("amqp:not-allowed"))
    script << transfer(1)
    script.expect_nothing()


@pytest.mark.parametrize("octets", [flow(handle=5), transfer(0, handle=5), frame("detach", handle=5)])
def test_row_42_frame_for_a_handle_without_a_link_ends_the_session(octets: bytes) -> None:
    _, script = begun()
    script << octets
    script >> expected("end", error=error("amqp:session:unattached-handle"))


# -- churn --------------------------------------------------------------------------------------------


def test_row_60_sessions_that_nobody_could_answer_are_charged() -> None:
    connection, _ = opened(Limits(churn=3, churn_rate=1.0))
    octets = frame("begin", **BEGIN) + frame("end")
    connection.receive_data(octets * 3, 1.0)
    assert connection.state is ConnectionState.OPENED
    connection.receive_data(octets, 2.0)
    script = Script(connection, now=2.5)
    script.inbox.frames.clear()
    assert refused(script, octets).condition == "amqp:resource-limit-exceeded"
    script >> expected("close", error=error("amqp:resource-limit-exceeded"))


def test_row_60_links_that_nobody_could_answer_are_charged() -> None:
    _, script = begun(Limits(churn=3))
    octets = attach() + frame("detach", handle=0, closed=True)
    script << octets * 3
    script.inbox.frames.clear()
    assert refused(script, octets).condition == "amqp:resource-limit-exceeded"
    script >> expected("close", error=error("amqp:resource-limit-exceeded"))


def test_row_60_links_that_were_answered_are_free() -> None:
    pair = Pair(Connection("a"), Connection("b", limits=Limits(churn=0))).open()
    for _ in range(5):
        sender, receiver = pair.link(credit=1)
        sender.send(b"x")
        sender.detach()
        pair.run()
        assert receiver.state is LinkState.GONE
        sender.session.end()
        pair.run()
    assert pair.b.state is ConnectionState.OPENED


def test_session_opens_its_window_only_with_a_flow_that_says_so() -> None:
    link, script = receiving(Limits(incoming_window=8))
    script << attach(name="y", role=True, handle=1, initial_delivery_count=None)
    script << transfer(0) + flow(handle=1, link_credit=1, echo=True)
    script.expect_nothing()  # the echo waits for our attach
    assert link.session.windows.incoming_window == 7
    script.expect_event(LinkAttached).link.attach()
    script >> expected("attach", name="y") >> expected("flow", handle=1, incoming_window=8)
