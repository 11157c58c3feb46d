"""Both ends of a link: attach, refuse, detach, and the frames that cross each other (2.6.3 to 2.6.6)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.naive.performatives import frame
from tests.naive.script import Script, expected, filled
from trio_amqp10.amqp10.engine.events import LinkAttached, LinkDetached, SessionBegun, SessionEnded
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.link import Link
from trio_amqp10.amqp10.engine.states import LinkState, SessionState
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.amqp10.spec.transport import Error, ReceiverSettleMode, Role, SenderSettleMode
from trio_amqp10.core import peer_rules as rules
from trio_amqp10.core.errors import LocalProtocolError

from .helpers import BEGIN, Pair, begun, flow, opened, receiving, sending
from .links import Owner, attach, attached, disposition, error, session_of, transfer

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.receiver import ReceiverLink
    from trio_amqp10.amqp10.engine.sender import SenderLink

TERMINI: dict[str, Any] = {"source": ("source", {"address": "s"}), "target": ("target", {"address": "t"})}


# -- attach -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("repeated", "shared"), [(1, True), (True, False), (2, False)])
def test_link_holds_once_what_the_peer_repeats_of_its_attach(repeated: object, shared: bool) -> None:
    session, script = begun()
    link = session.sender("x")
    ours = Source(address="s", filter={"f": 1}), Target(address="t")
    link.attach(source=ours[0], target=ours[1])
    source = ("source", {"address": "s", "filter": {"f": repeated}})
    script.send(attach(name="x", handle=0, role=True, source=source, target=TERMINI["target"]))
    assert link.remote is not None
    assert link.remote.name is link.name
    assert link.remote.target is ours[1]
    assert (link.remote.source is ours[0]) == shared
    assert link.remote.source is not None
    told = link.remote.source.filter["f"]
    assert (told, type(told)) == (repeated, type(repeated))


def test_attach_says_all_that_it_was_given() -> None:
    session, script = begun()
    link = session.sender("x")
    link.attach(
        source=Source(address="s"),
        target=Target(address="t"),
        snd_settle_mode=SenderSettleMode.SETTLED,
        rcv_settle_mode=ReceiverSettleMode.SECOND,
        max_message_size=7,
        properties={"p": 1},
        offered_capabilities=("a",),
        desired_capabilities=("b", "c"),
    )
    got = script.expect(
        "attach",
        channel=0,
        name="x",
        handle=0,
        role=False,
        snd_settle_mode=1,
        rcv_settle_mode=1,
        initial_delivery_count=0,
        max_message_size=7,
        unsettled=None,
        **TERMINI,
    )
    assert list(got["properties"]) == ["p"]
    assert (got["offered_capabilities"], got["desired_capabilities"]) == (["a"], ["b", "c"])
    assert link.state is LinkState.ATTACH_SENT
    assert not link.answered
    script.expect_nothing()


def test_attach_of_both_at_once_is_one_link() -> None:
    session, script = begun()
    link = session.sender("x")
    link.attach()
    script << attach("x", 9, role=True)
    script >> expected("attach", handle=0)
    script.expect_event(LinkAttached, link=link)
    assert (link.state, link.answered, link.remote_handle) == (LinkState.ATTACHED, False, 9)
    script.expect_nothing()


def test_attach_answers_the_peers_when_that_came_first() -> None:
    _session, script = begun()
    script << attach("x", 9, role=True)
    link = script.expect_event(LinkAttached).link
    assert (link.role, link.state, link.answered) == (Role.SENDER, LinkState.ATTACH_RCVD, False)
    link.attach(source=Source(), target=Target())
    assert (link.state, link.answered) == (LinkState.ATTACHED, True)
    script >> expected("attach", name="x", handle=0, role=False)


def test_attach_raises_and_changes_nothing_when_the_link_is_attached() -> None:
    link, script = sending()
    with pytest.raises(LocalProtocolError, match="cannot attach: this link is ATTACHED"):
        link.attach()
    assert link.state is LinkState.ATTACHED
    script.expect_nothing()


def test_row_33_attach_raises_and_changes_nothing_when_it_fits_no_frame_of_the_peers() -> None:
    session, script = begun(remote={"max_frame_size": 512})
    link = session.sender("x")
    with pytest.raises(LocalProtocolError, match="frame-size-too-small"):
        link.attach(source=Source(address="s" * 500))
    assert (link.state, link.handle, link.source) == (LinkState.DETACHED, -1, None)
    script.expect_nothing()
    link.attach(source=Source(address="s"))
    script >> expected("attach", handle=0)


@pytest.mark.parametrize("ended", [True, False])
def test_attach_raises_and_changes_nothing_when_the_session_is_not_begun(ended: bool) -> None:
    connection, script = opened()
    session = connection.session()
    if ended:
        session.begin()
        script >> expected("begin")
        script << filled("begin", BEGIN, {"remote_channel": 0})
        session.end()
        script >> expected("end")
    link = session.receiver("x")
    with pytest.raises(LocalProtocolError, match="cannot attach: this session is"):
        link.attach()
    assert link.state is LinkState.DETACHED
    script.expect_nothing()


MODES = [(snd, rcv) for snd in SenderSettleMode for rcv in ReceiverSettleMode]


@pytest.mark.parametrize(("snd", "rcv"), MODES)
def test_settle_mode_of_each_end_is_its_own_word(snd: SenderSettleMode, rcv: ReceiverSettleMode) -> None:
    session, script = begun()
    sender, receiver = session.sender("s"), session.receiver("r")
    for link in (sender, receiver):
        link.attach(snd_settle_mode=snd, rcv_settle_mode=rcv)
    other = {"snd_settle_mode": (snd + 1) % 3, "rcv_settle_mode": 1 - rcv}
    script << attach("s", 0, role=True, **other) + attach("r", 1, role=False, **other)
    assert (sender.snd_settle_mode, sender.rcv_settle_mode) == (snd, 1 - rcv)
    assert (receiver.snd_settle_mode, receiver.rcv_settle_mode) == ((snd + 1) % 3, rcv)


def test_row_31_attach_with_a_wrong_field_ends_the_session() -> None:
    session, script = begun()
    script << attach("x", 0, role=False, snd_settle_mode=7)
    script >> expected("end", error=error("amqp:invalid-field"))
    script.expect_event(SessionEnded, session=session)


# -- refuse -------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [True, False])
def test_refuse_answers_without_a_terminus_of_ours_and_detaches(role: bool) -> None:
    _session, script = begun()
    script << attach("x", 4, role=role, **TERMINI)
    link = script.expect_event(LinkAttached).link
    link.refuse(Error(condition="amqp:not-found", description="no such node"))
    ours, theirs = ("source", "target") if role else ("target", "source")
    script >> expected("attach", role=not role, handle=0, **{ours: None, theirs: TERMINI[theirs]})
    script >> expected("detach", handle=0, closed=True, error=error("amqp:not-found"))
    script << frame("detach", handle=4, closed=True)
    script.expect_event(LinkDetached, link=link)
    assert link.state is LinkState.GONE
    script.expect_nothing()


@pytest.mark.parametrize("role", [True, False])
def test_refuse_echoes_no_terminus_that_fits_no_frame_of_the_peers(role: bool) -> None:
    _session, script = begun(remote={"max_frame_size": 512})
    long = {"source": ("source", {"address": "s" * 600}), "target": ("target", {"address": "t" * 600})}
    script << attach("x", 4, role=role, **long)
    script.expect_event(LinkAttached).link.refuse(Error(condition="amqp:not-found"))
    (
        script
        >> expected("attach", source=None, target=None)
        >> expected("detach", error=error("amqp:not-found"))
    )


def test_refuse_shortens_its_description_when_a_frame_has_no_room_for_it() -> None:
    _session, script = begun(remote={"max_frame_size": 512})
    script << attach("x", 4, role=True)
    link = script.expect_event(LinkAttached).link
    link.refuse(Error(condition="amqp:not-found", description="é" * 600))
    script >> expected("attach")
    got = script.expect("detach")
    assert len(got.raw) <= 512
    assert set(got["error"][1]["description"]) == {"é"}
    assert link.error is not None
    assert link.error.condition == "amqp:not-found"


def test_refuse_raises_and_changes_nothing_when_there_is_nothing_to_answer() -> None:
    link, script = sending()
    with pytest.raises(LocalProtocolError, match="cannot refuse: this link is ATTACHED"):
        link.refuse(Error(condition="amqp:not-found"))
    script.expect_nothing()


def test_refuse_raises_and_changes_nothing_when_the_error_fits_no_frame() -> None:
    _session, script = begun(remote={"max_frame_size": 512})
    script << attach("x", 4, role=True)
    link = script.expect_event(LinkAttached).link
    with pytest.raises(LocalProtocolError, match="frame-size-too-small"):
        link.refuse(Error(condition="x" * 600))
    assert link.state is LinkState.ATTACH_RCVD
    script.expect_nothing()


# -- detach -------------------------------------------------------------------------------------


@pytest.mark.parametrize("closed", [True, False])
def test_detach_is_answered_once_and_in_kind(closed: bool) -> None:
    link, script = sending()
    script << frame("detach", handle=0, closed=closed, error=error("amqp:resource-deleted"))
    script >> expected("detach", handle=0, closed=closed or None, error=None)
    event = script.expect_event(LinkDetached, link=link, closed=closed)
    assert event.error.condition == "amqp:resource-deleted"
    assert link.error is event.error
    assert link.state is LinkState.GONE
    script.expect_nothing()


@pytest.mark.parametrize("closed", [True, False])
def test_detach_waits_for_the_answer_and_frees_handle_and_name_then(closed: bool) -> None:
    link, script = sending()
    link.detach(closed=closed)
    script >> expected("detach", handle=0, closed=closed or None)
    assert link.state is LinkState.DETACH_SENT
    script << frame("detach", handle=0, closed=closed)
    script.expect_event(LinkDetached, link=link, error=None)
    assert link.state is LinkState.GONE
    assert session_of(link).links == []
    script.expect_nothing()
    link.detach()
    script.expect_nothing()


@pytest.mark.parametrize(("ours", "theirs"), [(True, True), (False, False), (True, False)])
def test_row_65_detaches_that_cross_are_the_answer_to_each_other(ours: bool, theirs: bool) -> None:
    link, script = sending()
    link.detach(closed=ours)
    script << frame("detach", handle=0, closed=theirs)
    script >> expected("detach", closed=ours or None)
    script.expect_event(LinkDetached, link=link, closed=theirs)
    script.expect_nothing()
    assert link.state is LinkState.GONE


@pytest.mark.parametrize("role", [True, False])
def test_row_65_closing_detach_that_crosses_ours_makes_us_attach_again_and_close(role: bool) -> None:
    session, script = begun()
    link: Link = session.receiver("x") if role else session.sender("x")
    attached(script, session, link, 3)
    link.detach(closed=False)
    script >> expected("detach", handle=0, closed=None)
    script << frame("detach", handle=3, closed=True)
    script.expect_event(LinkDetached, link=link, closed=True)
    script >> expected("attach", name="x", handle=0, role=role)
    assert script.last is not None
    assert script.last["source"][1]["address"] == script.last["target"][1]["address"] == "q"
    script >> expected("detach", handle=0, closed=True, error=None)
    script << attach("x", 3, role=not role) + frame("detach", handle=3, closed=True)
    assert not script.events
    assert session.links == []
    assert len(session.connection.names) == 0
    script.expect_nothing()


def test_row_65_closing_detach_that_crosses_ours_leaves_a_new_link_of_that_name_alone() -> None:
    link, script = sending()
    link.detach(closed=False)
    again = session_of(link).sender("x")
    again.attach()
    script >> expected("detach", handle=0) >> expected("attach", handle=1)
    script << frame("detach", handle=0, closed=True)
    script.expect_nothing()
    assert again.state is LinkState.ATTACH_SENT


def test_row_65_two_engines_come_to_rest_when_a_close_crosses_a_detach() -> None:
    pair = Pair().open()
    sender, receiver = pair.link()
    sender.detach(closed=False)
    receiver.detach(closed=True)
    pair.run()
    assert sender.state is receiver.state is LinkState.GONE
    for connection in (pair.a, pair.b):
        assert len(connection.names) == 0


def test_detach_before_our_attach_is_answered_by_attach_and_detach() -> None:
    _session, script = begun()
    script << attach("x", 4, role=True)
    link = script.expect_event(LinkAttached).link
    script << frame("detach", handle=4, closed=True)
    script >> expected("attach", name="x", handle=0) >> expected("detach", handle=0, closed=True)
    script.expect_event(LinkDetached, link=link)
    assert link.state is LinkState.GONE


def test_detach_of_ours_before_our_attach_says_the_attach_first() -> None:
    _session, script = begun()
    script << attach("x", 4, role=True)
    link = script.expect_event(LinkAttached).link
    link.detach()
    script >> expected("attach", name="x") >> expected("detach", closed=True)
    assert link.state is LinkState.DETACH_SENT


def test_detach_does_nothing_when_the_link_was_never_attached() -> None:
    session, script = begun()
    session.sender("x").detach()
    script.expect_nothing()


def test_detach_raises_and_changes_nothing_when_its_error_fits_no_frame() -> None:
    link, script = receiving(remote={"max_frame_size": 512}, credit=0)
    link.set_credit(3)
    with pytest.raises(LocalProtocolError, match="frame-size-too-small"):
        link.detach(error=Error(condition="x" * 600))
    assert link.state is LinkState.ATTACHED
    script >> expected("flow", link_credit=3)
    script.expect_nothing()


def test_detach_keeps_the_first_error_when_both_ends_have_one() -> None:
    link, script = sending()
    link.detach(error=Error(condition="amqp:internal-error"))
    script << frame("detach", handle=0, closed=True, error=error("amqp:not-found"))
    assert link.error is not None
    assert link.error.condition == "amqp:internal-error"


def test_detach_writes_what_was_owed_before_it() -> None:
    link, script = receiving()
    script << transfer(0, 0, b"m")
    link.queue[0].accept()
    link.set_credit(50)
    link.detach()
    script >> expected("disposition", first=0, settled=True) >> expected("flow", link_credit=50)
    script >> expected("detach")
    script.expect_nothing()


def test_row_43_frames_for_a_link_that_we_detached_are_discarded_without_limit_and_counted() -> None:
    link, script = receiving(credit=3)
    session = session_of(link)
    other = session.receiver("other")
    attached(script, session, other, 1, credit=10)
    link.detach()
    script >> expected("detach", handle=0)
    for n in range(500):
        script << transfer(0, n, b"x") << flow(handle=0, next_outgoing_id=n + 1, delivery_count=n + 1)
    script << transfer(1, 500, b"for the other")
    assert [d.payload for d in other.queue] == [b"for the other"]
    assert not link.queue
    assert session.windows.next_incoming_id == 501
    script << frame("detach", handle=0, closed=True)
    script.expect_event(LinkDetached, link=link, error=None)
    assert session.state is SessionState.MAPPED


@pytest.mark.parametrize("octets", [transfer(0, 0, b"m"), flow(handle=0), frame("detach", handle=0)])
def test_row_43_frames_that_go_on_after_the_peers_detach_end_the_session_with_errant_link(
    octets: bytes,
) -> None:
    link, script = receiving()
    link.detach()
    script << frame("detach", handle=0, closed=True) + octets
    script >> expected("detach") >> expected("end", error=error("amqp:session:errant-link"))


def test_flow_for_a_link_that_is_errant_is_not_answered() -> None:
    _link, other, script = failed()
    other.send(b"m")
    script >> expected("transfer")
    script << flow(next_incoming_id=1, next_outgoing_id=1) << flow(handle=0, next_incoming_id=1, echo=True)
    script >> expected("end", error=error("amqp:session:errant-link"))
    assert not script.collect().inbox.frames


def failed(*, window: int = 8, strict: rules.Strict | None = None) -> tuple[ReceiverLink, SenderLink, Script]:
    """A receiver that a fault of the peer's has detached, a transfer of it read, beside a sender with credit."""
    connection, script = opened(Limits(incoming_window=window), strict=strict)
    session = connection.session()
    session.begin()
    script.expect("begin")
    script << frame("begin", **{**BEGIN, "remote_channel": 0})
    script.expect_event(SessionBegun, session=session)
    link, other = session.receiver("x"), session.sender("other")
    attached(script, session, link, 0, credit=100)
    attached(script, session, other, 1)
    script << flow(handle=1, delivery_count=0, link_credit=10)
    script << transfer(0, 0, b"no tag", delivery_tag=None)
    script >> expected("detach", handle=0, error=error("amqp:invalid-field"))
    script.expect_event(LinkDetached, link=link)
    return link, other, script


def skip_flows(script: Script) -> None:
    """What tells the peer of more room."""
    while script.collect().inbox.frames:
        script.expect("flow")


def test_frames_written_before_the_peer_read_of_our_error_are_dropped() -> None:
    link, other, script = failed()
    for n in range(1, 8):
        script << transfer(0, n, b"m") << flow(handle=0, next_outgoing_id=n + 1)
    skip_flows(script)
    other.send(b"m")
    script >> expected("transfer")
    script << flow(handle=0, next_outgoing_id=8)  # it has not read the transfer either
    assert link.session.state is SessionState.MAPPED
    script << frame("detach", handle=0, closed=True)
    assert link.state is LinkState.GONE


@pytest.mark.parametrize(
    "octets", [transfer(0, 1, b"m"), transfer(0, 1, b"m", batchable=True), flow(handle=0, next_incoming_id=1)]
)
def test_frames_of_a_peer_that_acknowledged_what_followed_our_error_end_the_session(octets: bytes) -> None:
    link, other, script = failed()
    other.send(b"m")
    script >> expected("transfer")
    script << flow(next_incoming_id=1, next_outgoing_id=1)
    assert link.session.state is SessionState.MAPPED
    script << octets
    script >> expected("end", error=error("amqp:session:errant-link"))
    script.expect_event(SessionEnded, session=link.session)


@pytest.mark.parametrize("strict", [True, False])
def test_transfers_beyond_the_room_that_there_was_before_our_error_end_the_session(*, strict: bool) -> None:
    link, _other, script = failed(strict=rules.Strict(incoming_window=strict))
    for n in range(1, 8):
        script << transfer(0, n, b"m")
    skip_flows(script)
    assert link.session.state is SessionState.MAPPED
    script << transfer(0, 8, b"m")
    if strict:
        script >> expected("end", error=error("amqp:session:errant-link"))
    else:
        assert link.session.state is SessionState.MAPPED


def test_dispositions_of_a_peer_that_read_of_our_error_are_no_fault() -> None:
    link, other, script = failed()
    other.send(b"m")
    script >> expected("transfer")
    script << flow(next_incoming_id=1, next_outgoing_id=1) << disposition(False, 0, 5)
    assert link.session.state is SessionState.MAPPED


@pytest.mark.parametrize("octets", [transfer(0, 0, b"m"), flow(handle=0), frame("detach", handle=0)])
def test_row_42_frames_for_a_handle_that_the_peer_detached_end_the_session(octets: bytes) -> None:
    _link, script = receiving()
    script << frame("detach", handle=0, closed=True) + octets
    script >> expected("detach") >> expected("end", error=error("amqp:session:unattached-handle"))


@pytest.mark.parametrize("octets", [transfer(7, 0, b"m"), flow(handle=7), frame("detach", handle=7)])
def test_row_42_frames_for_a_handle_that_was_never_attached_end_the_session(octets: bytes) -> None:
    session, script = begun()
    script << octets
    script >> expected("end", error=error("amqp:session:unattached-handle"))
    script.expect_event(SessionEnded, session=session)


def test_row_43_handle_is_not_errant_any_more_when_a_new_link_has_come_and_gone_on_it() -> None:
    link, script = receiving()
    link.detach()
    script << frame("detach", handle=0, closed=True) + attach("y", 0, role=False)
    script << frame("detach", handle=0, closed=True) + flow(handle=0)
    script >> expected("detach") >> expected("attach") >> expected("detach")
    script >> expected("end", error=error("amqp:session:unattached-handle"))


def test_row_52_transfer_to_our_own_sender_detaches_it() -> None:
    link, script = sending()
    script << transfer(0, 0, b"m")
    script >> expected("detach", handle=0, closed=True, error=error("amqp:not-allowed"))
    script.expect_event(LinkDetached, link=link)
    script << transfer(0, 1, b"m")
    script.expect_nothing()
    assert link.session.state is SessionState.MAPPED


def test_fault_on_a_link_that_is_detaching_changes_nothing() -> None:
    link, script = receiving()
    link.detach()
    script >> expected("detach")
    link.fail(rules.LINK_CREDIT.broken("too late"))
    assert link.error is None
    assert not script.collect().events
    script.expect_nothing()


def test_fault_text_is_bounded_when_the_peer_chose_a_long_name() -> None:
    session, script = begun(remote={"max_frame_size": 4096})
    script << attach("n" * 3000, 0, role=False)
    link = script.expect_event(LinkAttached).link
    link.attach()
    script >> expected("attach")
    script << transfer(0, 0, b"m")
    got = script.expect("detach", error=error("amqp:link:transfer-limit-exceeded"))
    assert len(got["error"][1]["description"]) <= 1024
    assert session.state is SessionState.MAPPED


# -- what a lost session leaves -----------------------------------------------------------------


def test_link_is_gone_and_its_owner_woken_when_the_session_ends() -> None:
    link, script = sending()
    link.owner = owner = Owner()
    script << frame("end")
    assert link.state is LinkState.GONE
    assert owner in script.touched
    assert session_of(link).links == []


def test_link_without_an_owner_wakes_nobody() -> None:
    link, script = sending()
    script << flow(handle=0, delivery_count=0, link_credit=3)
    assert script.touched == []
    assert link.credit == 3


# -- flow ---------------------------------------------------------------------------------------


def test_row_61_echoes_and_drains_are_answered_by_one_flow_for_a_link_however_many_came() -> None:
    link, script = sending()
    other = session_of(link).receiver("other")
    attached(script, link.session, other, 1)
    script << b"".join(
        flow(handle=handle, delivery_count=0, link_credit=5, echo=True, drain=drain)
        for _ in range(500)
        for handle in (0, 1)
        for drain in (True, False)
    )
    script >> expected("flow", handle=0, link_credit=5, drain=None)
    script >> expected("flow", handle=1)
    script.expect_nothing()


def test_flow_may_ask_for_an_echo() -> None:
    link, script = sending(credit=3)
    link.available = 8
    link.write_flow(echo=True)
    script >> expected(
        "flow", handle=0, delivery_count=0, link_credit=3, available=8, echo=True, next_incoming_id=0
    )


def test_link_shows_what_it_is() -> None:
    assert repr(sending(credit=4)[0]) == "<sender 'x' ATTACHED credit=4>"
    assert repr(receiving(credit=5)[0]) == "<receiver 'x' ATTACHED credit=5>"


def test_link_base_knows_no_direction() -> None:
    session, _ = begun()
    with pytest.raises(NotImplementedError):
        Link(session, "x").on_flow(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(NotImplementedError):
        Link(session, "x").write_flow()


def test_disposition_for_a_link_that_is_detaching_still_settles() -> None:
    link, script = sending()
    delivery = link.send(b"m")
    assert delivery is not None
    link.detach()
    script << disposition(True, 0)
    assert delivery.settled
    assert link.unsettled == 0
