"""Which link an attach is about, by name, direction and the order of attaches (2.6.1)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.naive.performatives import frame
from tests.naive.script import expected, filled
from trio_amqp10.amqp10.engine.events import LinkAttached, LinkDetached
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.core.errors import LocalProtocolError

from .helpers import BEGIN, begun, receiving, sending
from .links import attach, session_of, transfer

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.link import Link


def test_name_is_taken_once_for_each_direction() -> None:
    session, _ = begun()
    sender, receiver = session.sender("x"), session.receiver("x")
    names = session.connection.names
    assert list(names) == [sender, receiver]
    assert len(names) == 2
    for make in (session.sender, session.receiver):
        with pytest.raises(LocalProtocolError, match="a link 'x' of this direction exists"):
            make("x")
    assert names.find("x", False) is sender
    assert names.find("x", True) is receiver
    assert names.find("y", True) is None


def test_name_is_free_when_its_link_is_over() -> None:
    session, _ = begun()
    names = session.connection.names
    link = session.sender("x")
    names.release(link)
    names.release(link)
    assert len(names) == 0
    again = session.sender("x")
    names.release(link)
    assert names.find("x", False) is again


def test_names_count_deliveries_of_links_that_are_over_too() -> None:
    link, script = sending()
    names = link.session.connection.names
    assert names.deliveries() == (0, 0)
    link.send(b"one")
    link.send(b"two")
    assert names.deliveries() == (2, 0)
    link.detach(closed=True)
    again = session_of(link).sender("x")  # before the peer has answered: the name is free at once
    assert names.deliveries() == (2, 0)
    script << frame("detach", handle=0, closed=True)
    assert names.find("x", False) is again
    assert names.deliveries() == (2, 0)


def test_names_count_deliveries_that_came() -> None:
    link, script = receiving()
    names = link.session.connection.names
    script << transfer(0, 0, b"m", delivery_tag=b"t")
    assert names.deliveries() == (0, 1)
    script << frame("detach", handle=0, closed=True)
    assert (len(names), names.deliveries()) == (0, (0, 1))


def test_attach_is_answered_in_order_when_a_name_is_used_again_before_the_first_answer() -> None:
    session, script = begun()
    links: list[Link] = []
    for _ in range(3):
        link = session.sender("x")
        link.attach()
        links.append(link)
        if len(links) < 3:
            link.detach()
    names = session.connection.names
    assert len(names) == len(list(names)) == 3
    for handle in range(2):
        script >> expected("attach", handle=handle) >> expected("detach", handle=handle)
    script >> expected("attach", handle=2)
    script << attach("x", 5, role=True) << frame("detach", handle=5, closed=True)
    script.expect_event(LinkDetached, link=links[0])
    script << attach("x", 6, role=True) + attach("x", 7, role=True)
    script.expect_event(LinkAttached, link=links[2])
    script << frame("detach", handle=6, closed=True)
    script.expect_event(LinkDetached, link=links[1])
    script.expect_nothing()
    assert [link.state for link in links] == [LinkState.GONE, LinkState.GONE, LinkState.ATTACHED]
    assert [link.remote_handle for link in links] == [5, 6, 7]
    assert list(names) == [links[2]]


def test_name_may_be_used_again_when_its_link_is_detaching() -> None:
    session, script = begun()
    first = session.sender("x")
    first.attach()
    script << attach("x", 5, role=True)
    first.detach()
    again = session.sender("x")
    again.attach()
    script >> expected("attach", handle=0) >> expected("detach", handle=0) >> expected("attach", handle=1)
    script.expect_event(LinkAttached, link=first)
    script << frame("detach", handle=5, closed=True) + attach("x", 5, role=True)
    script.expect_event(LinkDetached, link=first)
    script.expect_event(LinkAttached, link=again)
    assert again.state is LinkState.ATTACHED


def test_row_41_attach_in_another_session_steals_a_link_whose_own_answer_is_still_to_come() -> None:
    session, script = begun()
    link = session.receiver("x")
    link.attach()
    script >> expected("attach")
    script << filled("begin", BEGIN, {}, channel=1)
    script << frame("attach", channel=1, name="x", handle=0, role=False, initial_delivery_count=0)
    script >> expected(
        "detach", channel=0, handle=0, error=("error", {"condition": "amqp:link:stolen"}), closed=None
    )
    script << attach("x", 3, role=False) + frame("detach", handle=3, closed=True)
    script.expect_nothing()
    assert link.state is LinkState.GONE
    names = session.connection.names
    thief = names.find("x", True)
    assert thief is not None
    assert thief.state is LinkState.ATTACH_RCVD
    assert list(names) == [thief]


def test_name_of_every_link_is_free_when_the_session_ends() -> None:
    session, script = begun()
    for _ in range(2):
        link = session.sender("x")
        link.attach()
        link.detach()
    session.end()
    script << frame("end")
    assert len(session.connection.names) == 0
