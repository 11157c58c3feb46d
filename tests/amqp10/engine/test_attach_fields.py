"""What an attach says and what it means: handles, counts, modes, and a link attached anew (2.6.2 to 2.6.5, 2.7.3)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import Any

import pytest

from tests.naive.performatives import frame
from tests.naive.script import expected
from trio_amqp10.amqp10.engine.events import LinkAttached, LinkDetached
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.engine.unsettled_state import ReceiverTerminus, SenderTerminus
from trio_amqp10.amqp10.spec.messaging import Rejected, Source, Target

from .helpers import begun, flow, receiving, sending
from .links import attach, attached, session_of, transfer

# -- handles (2.6.2) ------------------------------------------------------------------------------


def test_each_end_speaks_of_a_link_by_its_own_handle() -> None:
    session, script = begun()
    sender, receiver = session.sender("s"), session.receiver("r")
    attached(script, session, sender, 1)
    attached(script, session, receiver, 0, credit=5)
    script << flow(handle=1, delivery_count=0, link_credit=3)
    assert (sender.handle, receiver.handle, sender.credit) == (0, 1, 3)
    script << transfer(0, 0, b"in")
    assert [delivery.payload for delivery in receiver.queue] == [b"in"]
    sender.send(b"out")
    script >> expected("transfer", handle=0, payload=b"out")
    script << frame("detach", handle=1, closed=True)
    script >> expected("detach", handle=0)
    assert (sender.state, receiver.state) == (LinkState.GONE, LinkState.ATTACHED)


def test_attach_takes_the_lowest_handle_that_is_free() -> None:
    session, script = begun()
    links = [session.sender(str(n)) for n in range(4)]
    for number, link in enumerate(links):
        attached(script, session, link, number)
    for number in (2, 1):
        script << frame("detach", handle=number, closed=True)
        script >> expected("detach", handle=number)
    for handle in (1, 2, 4):
        session.sender(f"new {handle}").attach()
        script >> expected("attach", handle=handle)


def test_handle_stays_in_use_until_both_ends_have_detached() -> None:
    link, script = sending()
    link.detach()
    script >> expected("detach", handle=0)
    session_of(link).sender("y").attach()
    script >> expected("attach", name="y", handle=1)
    script << frame("detach", handle=0, closed=True)
    session_of(link).sender("z").attach()
    script >> expected("attach", name="z", handle=0)


def test_second_attach_of_a_name_in_the_other_direction_is_another_link() -> None:
    session, script = begun()
    sender, receiver = session.sender("x"), session.receiver("x")
    for link in (sender, receiver):
        link.attach(source=Source(address="q"), target=Target(address="q"))
        script >> expected("attach", name="x")
    both: Any = attach("x", 0, role=True) + attach("x", 1, role=False)
    script << both + flow(handle=0, delivery_count=0, link_credit=2)
    receiver.set_credit(1)
    script >> expected("flow", handle=1)
    script << transfer(1, 0, b"m")
    assert (sender.credit, len(receiver.queue)) == (2, 1)
    script.expect_nothing()


# -- what stands at the ends (2.6.3, 2.7.3) -------------------------------------------------------


@pytest.mark.parametrize("role", [True, False])
def test_attach_has_both_termini_whichever_end_is_ours(role: bool) -> None:
    session, script = begun()
    link = session.receiver("x") if role else session.sender("x")
    link.attach(source=Source(address="from"), target=Target(address="to"))
    script >> expected(
        "attach", role=role, source=("source", {"address": "from"}), target=("target", {"address": "to"})
    )


@pytest.mark.parametrize("peers", [None, ["amqp:released:list"]])
def test_sender_keeps_to_the_outcomes_of_its_own_source_whatever_the_answer_says(peers: Any) -> None:
    session, script = begun()
    link = session.sender("x")
    link.attach(source=Source(outcomes=("amqp:accepted:list",)), target=Target(address="q"))
    script >> expected("attach")
    script << attach("x", 0, role=True, source=("source", {"outcomes": peers}))
    assert link.outcomes == {"amqp:accepted:list"}


@pytest.mark.parametrize(
    ("source", "permitted"),
    [
        (None, True),
        (("source", {}), True),
        (("source", {"outcomes": ["amqp:rejected:list"]}), True),
        (("source", {"outcomes": ["amqp:accepted:list"]}), False),
    ],
)
def test_receiver_knows_the_outcomes_of_the_source_as_its_sender_has_it(source: Any, permitted: bool) -> None:
    session, script = begun()
    link = session.receiver("x")
    own = Source(address="q", outcomes=("amqp:released:list",))
    assert link.permits(Rejected())  # the peer has not said anything yet
    link.attach(source=own, target=Target())
    script << attach("x", 0, role=False, initial_delivery_count=0, source=source)
    assert link.permits(Rejected()) is permitted


def test_initial_delivery_count_of_a_receiver_is_ignored() -> None:
    link, script = sending(credit=0, initial_delivery_count=1000)
    assert link.delivery_count == 0
    script << flow(handle=0, delivery_count=None, link_credit=3)
    assert link.credit == 3
    link.send(b"m")
    script >> expected("transfer", delivery_id=0)
    assert (link.credit, link.delivery_count) == (2, 1)


def test_attach_of_a_sender_says_where_its_count_begins() -> None:
    session, script = begun()
    link = session.sender("x")
    link.delivery_count = 4_000_000_000
    link.attach()
    script >> expected("attach", role=False, initial_delivery_count=4_000_000_000)
    session.receiver("y").attach()
    script >> expected("attach", role=True, initial_delivery_count=None)


def test_link_begins_without_credit_and_with_nothing_available_or_drained() -> None:
    sender, script = sending(credit=0)
    assert (sender.credit, sender.drain, sender.sendable()) == (0, False, False)
    script << flow(handle=0, echo=True)
    script >> expected("flow", link_credit=0, available=None, drain=None)
    receiver, script = receiving(credit=0)
    assert (receiver.credit, receiver.available, receiver.drain) == (0, 0, False)
    script << transfer(0, 0, b"m")
    script >> expected("detach", error=("error", {"condition": "amqp:link:transfer-limit-exceeded"}))


def test_credit_counts_from_our_attach_where_the_receiver_names_no_count() -> None:
    session, script = begun()
    link = session.sender("x")
    link.delivery_count = 4_294_967_295
    link.attach()
    script >> expected("attach", initial_delivery_count=4_294_967_295)
    script << attach("x", 0, role=True) + flow(handle=0, delivery_count=None, link_credit=3)
    assert link.credit == 3
    link.send(b"m")
    script << flow(handle=0, delivery_count=None, link_credit=3)
    assert (link.credit, link.delivery_count) == (2, 0)


# -- attached anew (2.6.4, 2.6.5) -----------------------------------------------------------------


def test_link_is_attached_anew_as_the_peer_says_when_detach_and_attach_come_in_one_read() -> None:
    link, script = receiving()
    again = attach("x", 0, role=False, source=("source", {"address": "other"}), snd_settle_mode=1)
    script << frame("detach", handle=0) + again
    script >> expected("detach", handle=0, closed=None, error=None)
    script.expect_event(LinkDetached, link=link, closed=False)
    new = script.expect_event(LinkAttached).link
    new.attach(source=new.remote.source)
    script >> expected("attach", name="x", handle=0, source=("source", {"address": "other"}))
    assert (new.state, new.snd_settle_mode) == (LinkState.ATTACHED, 1)
    script.expect_nothing()


def test_link_is_attached_anew_as_we_say_before_the_peer_has_answered_the_detach() -> None:
    link, script = sending()
    link.detach(closed=False)
    again = session_of(link).sender("x")
    again.attach(source=Source(), target=Target(address="other"))
    script >> expected("detach", handle=0, closed=None)
    script >> expected("attach", name="x", handle=1, target=("target", {"address": "other"}))
    script << frame("detach", handle=0) + attach("x", 0, role=True, target=("target", {"address": "other"}))
    assert (link.state, again.state) == (LinkState.GONE, LinkState.ATTACHED)
    script.expect_nothing()


@pytest.mark.parametrize("role", [True, False])
def test_attach_after_an_error_of_the_peers_has_a_map_though_nothing_is_unsettled(role: bool) -> None:
    session, script = begun()
    terminus: Any = ReceiverTerminus() if role else SenderTerminus()
    first: Any = session.receiver("x") if role else session.sender("x")
    first.terminus = terminus
    attached(script, session, first, 0)
    error = ("error", {"condition": "amqp:internal-error"})
    script << frame("detach", handle=0, error=error)
    script >> expected("detach", closed=None)
    again: Any = session.receiver("x") if role else session.sender("x")
    again.terminus = terminus
    again.attach(source=Source(address="q"), target=Target(address="q"))
    script >> expected("attach", name="x", unsettled={}, incomplete_unsettled=None)


def test_link_that_is_attached_again_and_not_resumed_has_no_map() -> None:
    link, script = sending()
    script << frame("detach", handle=0)
    script >> expected("detach", closed=None)
    session_of(link).sender("x").attach(source=Source(), target=Target(address="q"))
    script >> expected("attach", name="x", unsettled=None, incomplete_unsettled=None)


@pytest.mark.parametrize("role", [True, False])
def test_link_that_failed_leaves_nothing_behind_when_the_peer_has_answered(role: bool) -> None:
    link, script = receiving(credit=0) if role else sending()
    session = session_of(link)
    script << transfer(0, 0, b"m")  # without credit, or to a sender: a fault
    got = script.expect("detach", handle=0, closed=True)
    assert got["error"] is not None
    script << frame("detach", handle=0, closed=True)
    assert link.state is LinkState.GONE
    assert session.links == []
    assert session.link_at(0) is None
    assert len(session.connection.names) == 0
    script.expect_event(LinkDetached, link=link)
    attached(script, session, session.receiver("x") if role else session.sender("x"), 0)
