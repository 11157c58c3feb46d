"""Channels: each direction has numbers of its own, and what may come and go on which (2.4, 2.5.1, 2.7.1)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.naive.performatives import empty_frame, frame, header, raw_frame
from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.events import ConnectionClosed, LinkAttached, SessionBegun, SessionEnded
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.states import ConnectionState, SessionState
from trio_amqp10.amqp10.spec.messaging import Source, Target
from trio_amqp10.core.errors import LocalProtocolError

from .helpers import BEGIN, attach, begun, error, flow, opened, refused, transfer

if TYPE_CHECKING:
    from trio_amqp10.amqp10.engine.receiver import ReceiverLink
    from trio_amqp10.amqp10.engine.session import Session


def crossed() -> tuple[list[Session], Script]:
    """Two sessions that we began: the peer writes that of our channel 0 on its channel 1, and the other on 0."""
    connection, script = opened()
    sessions = [connection.session(), connection.session()]
    for session, theirs in zip(sessions, (1, 0), strict=True):
        session.begin()
        script >> expected("begin", channel=session.channel, remote_channel=None)
        script << frame("begin", channel=theirs, remote_channel=session.channel, **BEGIN)
        script.expect_event(SessionBegun, session=session)
    return sessions, script


def receiver(script: Script, session: Session, name: str, theirs: int) -> ReceiverLink:
    """A receiver with credit on a session that the peer writes on channel ``theirs``."""
    link = session.receiver(name)
    link.attach(source=Source(address="q"), target=Target())
    script >> expected("attach", channel=session.channel, name=name)
    script << attach(name=name, source=("source", {}), target=("target", {}), channel=theirs)
    script.expect_event(LinkAttached, link=link)
    link.set_credit(10)
    script >> expected("flow", channel=session.channel, link_credit=10)
    return link


@pytest.mark.parametrize("format_code", [0xC0, 0xD0], ids=["fast", "general"])
def test_channels_of_the_two_directions_have_nothing_to_do_with_each_other(format_code: int) -> None:
    sessions, script = crossed()
    first, second = (
        receiver(script, session, name, theirs)
        for session, name, theirs in zip(sessions, "ab", (1, 0), strict=True)
    )
    script << transfer(0, channel=1, payload=b"to a", list_code=format_code)
    script << transfer(0, channel=0, payload=b"to b", list_code=format_code)
    assert [d.payload for d in first.queue] == [b"to a"]
    assert [d.payload for d in second.queue] == [b"to b"]
    script << frame("end", channel=1)
    script.expect_event(SessionEnded, session=sessions[0])
    script >> expected("end", channel=0)
    assert [each.state for each in sessions] == [SessionState.ENDED, SessionState.MAPPED]


@pytest.mark.parametrize(
    "octets",
    [
        empty_frame(channel=3),
        raw_frame(b"\x40", channel=3),
        *(
            frame(name, channel=3, **fields)
            for name, fields in {
                "begin": BEGIN,
                "attach": {"name": "x", "handle": 0, "role": True},
                "flow": {"incoming_window": 1, "next_outgoing_id": 0, "outgoing_window": 0},
                "transfer": {"handle": 0},
                "disposition": {"role": True, "first": 0},
                "detach": {"handle": 0},
                "end": {},
                "close": {},
            }.items()
        ),
    ],
    ids=["empty", "null", "begin", "attach", "flow", "transfer", "disposition", "detach", "end", "close"],
)
def test_row_22_any_frame_on_a_channel_over_our_channel_max_closes(octets: bytes) -> None:
    _, script = opened(Limits(channel_max=2))
    fault = refused(script, octets)
    assert (fault.condition, fault.rule) == ("amqp:connection:framing-error", "channel-max")
    script >> expected("close", error=error("amqp:connection:framing-error"))


@pytest.mark.parametrize("channel", [0, 7, 63])
def test_empty_frame_is_taken_on_any_channel_whether_it_is_mapped_or_not(channel: int) -> None:
    connection, script = opened(idle_timeout=60.0)
    script.advance(50.0)
    script << empty_frame(channel=channel)
    script.expect_nothing()
    assert connection.state is ConnectionState.OPENED
    assert connection.next_deadline() == 110.0


@pytest.mark.parametrize("channel", [1, 63])
def test_close_counts_on_any_channel(channel: int) -> None:
    connection, script = opened()
    script << frame("close", channel=channel, error=error("x:y"))
    assert script.expect_event(ConnectionClosed).error.condition == "x:y"
    script >> expected("close", channel=0)
    assert connection.state is ConnectionState.END


def test_open_and_close_are_written_on_channel_0_when_they_go_out_together() -> None:
    connection = Connection("engine")
    connection.open()
    connection.close()
    script = Script(connection)
    script.expect_header()
    script >> expected("open", channel=0) >> expected("close", channel=0)


def test_close_is_written_on_channel_0_when_sessions_use_others() -> None:
    session, script = begun()
    session.connection.session().begin()
    script >> expected("begin", channel=1)
    session.connection.close()
    script >> expected("close", channel=0)


def test_one_session_begins_before_the_peers_open_on_channel_0() -> None:
    connection = Connection("engine")
    connection.open()
    connection.session().begin()
    script = Script(connection)
    script.expect_header()
    script >> expected("open") >> expected("begin", channel=0)
    with pytest.raises(LocalProtocolError, match="channel-max"):
        connection.session()
    script << header() + frame("open", container_id="peer", channel_max=1)
    connection.session().begin()
    script >> expected("begin", channel=1)


def test_session_of_the_peer_is_answered_on_a_channel_that_is_free() -> None:
    connection, script = opened()
    connection.session().begin()
    script >> expected("begin", channel=0, remote_channel=None)
    script << frame("begin", channel=0, **BEGIN)
    session = script.expect_event(SessionBegun).session
    session.begin()
    script >> expected("begin", channel=1, remote_channel=0)
    script << flow(channel=0, next_incoming_id=0, echo=True)
    script >> expected("flow", channel=1)


def test_session_carries_any_number_of_links_of_both_directions() -> None:
    session, script = begun()
    links: list[Any] = [
        session.sender("a"),
        session.receiver("a"),
        session.sender("b"),
        session.receiver("b"),
    ]
    for handle, link in enumerate(links):
        link.attach(source=Source(address="q"), target=Target(address="q"))
        script >> expected("attach", channel=0, name=link.name, handle=handle, role=bool(link.role))
        script << attach(
            name=link.name,
            handle=9 - handle,
            role=not link.role,
            initial_delivery_count=0 if link.role else None,
            source=("source", {}),
            target=("target", {}),
        )
        script.expect_event(LinkAttached, link=link)
    assert session.links == links
    for handle, link in enumerate(links):
        if not link.role:
            script << flow(handle=9 - handle, delivery_count=0, link_credit=handle + 1)
            assert link.credit == handle + 1
