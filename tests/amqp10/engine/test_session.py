"""Session endpoints: begin, flow, windows, end (2.5)."""

from __future__ import annotations

import pytest

from tests.naive.performatives import frame, header
from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.events import LinkAttached, SessionBegun, SessionEnded
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.receiver import ReceiverLink
from trio_amqp10.amqp10.engine.states import ConnectionState, LinkState, SessionState
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.core import peer_rules as rules
from trio_amqp10.core.errors import LocalProtocolError

from .helpers import (
    BEGIN,
    Owner,
    Pair,
    attach,
    begun,
    begun_by_peer,
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
    assert not pair.a.channels.ours
    assert not pair.b.channels.ours


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


@pytest.mark.parametrize("number", [1, 5, 2**31 - 1])
def test_row_45_flow_that_expects_what_we_never_sent_ends_the_session(number: int) -> None:
    _, script = sending()
    script << flow(next_incoming_id=number)
    script >> expected("end", error=error("amqp:session:window-violation"))


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
    assert isinstance(receiver, ReceiverLink)
    receiver.set_credit(10)
    pair.move(pair.b, pair.a)
    for n in range(10):
        sender.send(b"%d" % n)
    pair.move(pair.a, pair.b)
    assert [d.payload for d in receiver.queue] == [b"%d" % n for n in range(10)]


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


# -- end ----------------------------------------------------------------------------------------------


def test_session_wakes_its_owner_when_the_end_is_answered() -> None:
    session, script = begun()
    session.owner = owner = Owner()
    session.fail(rules.DELIVERY_ID_ORDER.broken("no"))
    script >> expected("end", error=error("amqp:invalid-field"))
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
        session_of(sender).end()
        pair.run()
    assert pair.b.state is ConnectionState.OPENED
