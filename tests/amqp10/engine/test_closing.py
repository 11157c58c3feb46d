"""The first and the last that a connection writes, and what it still reads (2.4.1, 2.4.3, 2.4.5, 2.4.6)."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

import pytest

from tests.naive.performatives import empty_frame, frame, header
from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.events import ConnectionClosed, ConnectionOpened
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.states import ConnectionState
from trio_amqp10.amqp10.engine.write_buffer import PEER_FRAME_CAP
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.core.errors import LocalProtocolError

from .helpers import BEGIN, begun, flow, opened, refused, sending
from .links import session_of

CLOSE = frame("close")


# -- behind a close -----------------------------------------------------------------------------------


@pytest.mark.parametrize("with_error", [False, True])
def test_connection_writes_nothing_behind_its_close(with_error: bool) -> None:
    link, script = sending()
    session = session_of(link)
    session.connection.close(Error(condition="amqp:connection:forced") if with_error else None)
    script >> expected("close")
    session.owe_flow()
    script << flow(next_incoming_id=0, echo=True) + frame("begin", channel=1, **BEGIN)
    script.expect_nothing()
    assert link.send(b"x") is None
    link.detach()
    session.end()
    with pytest.raises(LocalProtocolError):
        session.connection.session()
    script.expect_nothing()
    script << CLOSE
    assert script.over


def test_connection_writes_no_empty_frame_behind_its_close() -> None:
    connection, script = opened(Limits(close_timeout=60.0), remote={"idle_time_out": 4000}, idle_timeout=None)
    script.advance(2.0)
    script >> expected("empty")
    connection.close(now=script.now)
    script >> expected("close")
    for _ in range(5):
        script.now += 2.0
        connection.handle_timer(script.now)  # whenever that may be
        script.expect_nothing()
    assert connection.next_deadline() == 62.0


def test_connection_writes_what_it_owes_before_it_answers_a_close() -> None:
    session, script = begun()
    session.owe_flow()
    session.connection.receive_data(CLOSE, 0.0)
    script >> expected("flow") >> expected("close")
    script.expect_event(ConnectionClosed)
    assert script.over


def test_connection_reads_on_behind_its_close_until_it_is_answered() -> None:
    connection, script = opened()
    connection.close()
    script >> expected("close")
    script << frame("begin", **BEGIN) + frame("end") + empty_frame() + CLOSE
    assert connection.state is ConnectionState.END
    assert script.collect().over


# -- before an open -----------------------------------------------------------------------------------


@pytest.mark.parametrize("opens", [False, True])
def test_connection_writes_no_empty_frame_before_the_peers_open(opens: bool) -> None:
    connection = Connection("engine", idle_timeout=None)
    script = Script(connection)
    if opens:
        connection.open()
    script << header()
    script.expect_header()
    if opens:
        script >> expected("open")
    for now in (10.0, 100.0, 1000.0):
        connection.handle_timer(now)
        script.expect_nothing()


def test_connection_closes_when_an_open_names_no_container() -> None:
    connection = Connection("engine")
    connection.open()
    script = Script(connection)
    fault = refused(script, header() + frame("open", hostname="h"))
    assert (fault.condition, fault.rule) == ("amqp:invalid-field", "field")


# -- the sizes of frames ------------------------------------------------------------------------------


@pytest.mark.parametrize("announced", [512, 65_536])
def test_frame_of_512_octets_is_taken_before_and_after_the_open(announced: int) -> None:
    rest = len(frame("open", container_id="x" * 300)) - 300
    first = frame("open", container_id="x" * (512 - rest))
    begin = frame("begin", properties={"x": "y" * 300}, **BEGIN)
    second = frame("begin", properties={"x": "y" * (300 + 512 - len(begin))}, **BEGIN)
    assert len(first) == len(second) == 512
    connection = Connection("engine", limits=Limits(max_frame_size=announced))
    script = Script(connection)
    script << header() + first
    script.expect_event(ConnectionOpened)
    connection.open()
    script << second
    assert connection.state is ConnectionState.OPENED
    assert len(connection.channels.theirs) == 1


def test_peer_that_announces_no_frame_size_takes_any() -> None:
    connection, _ = opened()
    assert connection.remote is not None
    assert connection.remote.max_frame_size == 0xFFFFFFFF
    assert connection.write_buffer.frame_size == PEER_FRAME_CAP
