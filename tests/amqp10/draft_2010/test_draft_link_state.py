"""Linkages, handles and error mode of a link, which only the draft has (Book III, 6)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

import pytest

from trio_amqp10.amqp10.draft_2010.spec import transport as draft
from trio_amqp10.amqp10.draft_2010.spec.messaging import Source, Target
from trio_amqp10.amqp10.engine.events import LinkDetached, SessionEnded
from trio_amqp10.amqp10.engine.states import LinkState
from trio_amqp10.amqp10.message import Message
from trio_amqp10.amqp10.spec import messaging as final
from trio_amqp10.amqp10.spec import transport
from trio_amqp10.amqp10.wire.values import Symbol

from .links import BOTH, data, receiving, state, transfer
from .pairs import Script, events_of


def test_attach_is_answered_with_both_linkages() -> None:
    script = Script()
    script.attach(False)
    (attach,) = script.said()
    assert attach.role is True
    assert attach.local.source.address == attach.local.target.address == "q"
    assert attach.remote == draft.Linkage(source=Source(address="q"), target=Target(address="q"))
    assert attach.flow_state.session_credit == 2_048
    assert attach.flow_state.unsettled_lwm is None
    assert attach.flow_state.transfer_count == 0
    assert attach.flow_state.link_credit == 0


def test_sender_says_where_it_counts_from_and_knows_no_remote_linkage() -> None:
    script = Script()
    link = script.session.sender("mine")
    link.attach(source=final.Source(address="a"), target=final.Target(address="b"))
    (attach,) = script.said()
    assert attach.remote is None
    assert attach.flow_state.transfer_count == 0
    assert attach.flow_state.link_credit is None
    assert attach.flow_state.session_credit == 0


def test_link_is_refused_by_an_attach_without_linkage_and_a_detach() -> None:
    script = Script()
    script << draft.Attach(name="n", handle=4, role=False, local=BOTH, flow_state=state(transfer_count=0))
    (event,) = events_of(script.connection)
    event.link.refuse(transport.Error(condition="amqp:not-found"))
    attach, detach = script.said()
    assert attach.local is None
    assert detach.local is None
    assert detach.error.condition == "amqp:not-found"
    script << draft.Detach(handle=4)
    assert event.link.state is LinkState.GONE


def test_refusal_of_the_peer_is_read() -> None:
    script = Script()
    link = script.session.sender("mine")
    link.attach(source=final.Source(address="a"), target=final.Target(address="b"))
    script.said()
    script << draft.Attach(name="mine", handle=0, role=True, flow_state=state())
    assert link.remote.target is None
    script << draft.Detach(handle=0, error=draft.Error(condition=Symbol("amqp:not-found")))
    (answer,) = script.said()
    assert answer == draft.Detach(handle=link.handle)
    *_, event = events_of(script.connection)
    assert isinstance(event, LinkDetached)
    assert event.closed
    assert event.error is not None
    assert event.error.condition == "amqp:not-found"


@pytest.mark.parametrize("closed", [False, True])
def test_detach_of_ours_keeps_or_drops_the_local_linkage(closed: bool) -> None:
    script, link = receiving()
    link.detach(closed=closed)
    (detach,) = script.said()
    assert (detach.local is None) is closed
    assert detach.remote is not None
    script << draft.Detach(handle=0, local=None if closed else BOTH)
    assert link.state is LinkState.GONE
    assert script.session.windows.links == {}


def test_detach_of_the_peer_is_answered_and_a_close_by_both_null() -> None:
    script, link = receiving()
    script << draft.Detach(handle=0, local=BOTH, remote=BOTH)
    (answer,) = script.said()
    assert answer.local is not None
    assert answer.remote is not None
    assert not link.closed
    again = script.attach(False)
    script.said()
    script << draft.Detach(handle=0, remote=BOTH)
    assert script.said() == [draft.Detach(handle=again.handle)]
    assert again.closed


@pytest.mark.parametrize("mode", ["detach", "end"])
def test_error_mode_end_ends_the_session_behind_the_link(mode: str) -> None:
    script = Script()
    link = script.attach(False, error_mode=Symbol(mode))
    script.said()
    link.detach(error=transport.Error(condition="amqp:internal-error"))
    said = script.said()
    assert isinstance(said[0], draft.Detach)
    assert [type(body) for body in said[1:]] == ([draft.End] if mode == "end" else [])
    if mode == "end":
        assert said[1].error.condition == "amqp:session:link-error"
        assert isinstance(events_of(script.connection)[-1], SessionEnded)


def test_handles_of_the_two_ends_have_nothing_to_do_with_each_other() -> None:
    script = Script()
    one = script.attach(False, name="one", handle=7)
    two = script.attach(False, name="two", handle=3)
    assert [body.handle for body in script.said()] == [one.handle, two.handle] == [0, 1]
    for link in (one, two):
        link.set_credit(5)
    assert [body.handle for body in script.said()] == [0, 1]
    script << transfer(0, data(b"for two"), handle=3) << transfer(1, data(b"for one"), handle=7)
    assert [len(link.queue) for link in (one, two)] == [1, 1]
    assert Message.from_payload(one.queue[0].payload).body == b"for one"
    script << draft.Detach(handle=7)
    (detach,) = script.said()
    assert detach.handle == 0
    assert (one.state, two.state) == (LinkState.GONE, LinkState.ATTACHED)
