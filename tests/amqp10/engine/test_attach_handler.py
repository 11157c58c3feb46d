"""The links of a session: handles, names, what comes behind a detach (2.6)."""

from __future__ import annotations

import pytest

from tests.naive.performatives import frame
from tests.naive.script import expected
from trio_amqp10.amqp10.engine.events import LinkAttached, LinkDetached, SessionBegun, SessionEnded
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.core.errors import LocalProtocolError

from .helpers import BEGIN, attach, begun, error, flow, opened, receiving, refused, sending, transfer

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
    script >> expected("detach", handle=0, closed=None, error=error("amqp:link:stolen"))
    script.expect_event(LinkDetached, link=link, closed=False)
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
        assert session.has_free_handle
        session.sender(name).attach()
        script >> expected("attach", name=name)
    assert not session.has_free_handle
    with pytest.raises(LocalProtocolError, match="handle-max"):
        session.sender("c").attach()
    script.expect_nothing()


def test_only_the_first_handle_is_certain_before_the_begin_of_the_peer() -> None:
    connection, script = opened()
    session = connection.session()
    session.begin()
    assert session.is_handle_certain
    session.sender("a").attach()
    assert not session.is_handle_certain
    script << frame("begin", **{**BEGIN, "remote_channel": 0})
    script.expect_event(SessionBegun)
    assert session.is_handle_certain


def test_row_59_link_more_than_the_peers_own_handle_max_ends_the_session() -> None:
    session, script = begun(handle_max=0)
    script << attach()
    link = script.expect_event(LinkAttached).link
    with pytest.raises(LocalProtocolError, match="handle-max"):
        session.sender("ours").attach()  # the handle is kept for the answer
    ours = session.connection.names.find("ours", False)
    assert ours is not None
    session.connection.names.release(ours)
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
