"""The connection endpoint: headers, open, channels, close (2.2, 2.4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.naive.performatives import empty_frame, frame, header, parse_frames, raw_frame
from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.events import (
    ConnectionClosed,
    ConnectionLost,
    ConnectionOpened,
    SessionBegun,
    SessionEnded,
)
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.states import ConnectionState, SessionState
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

from .helpers import Pair, begun, error, opened, refused

OPEN = frame("open", container_id="peer")
BEGIN = frame("begin", next_outgoing_id=0, incoming_window=100, outgoing_window=100)
CLOSE = frame("close")
S = ConnectionState


# -- lifecycle (2.4.6) --------------------------------------------------------------------------------


def states(connection: Connection, script: Script, *octets: bytes) -> list[ConnectionState]:
    """The states that a connection goes through as these pieces come in."""
    seen: list[Any] = []
    for piece in octets:
        script << piece
        seen.append(connection.state)
    return seen


def test_connection_goes_through_hdr_exch_and_open_rcvd_when_the_peer_is_first() -> None:
    connection = Connection("engine")
    script = Script(connection)
    assert connection.state is S.START
    assert states(connection, script, header(), OPEN) == [S.HDR_EXCH, S.OPEN_RCVD]
    connection.open()
    assert connection.state is S.OPENED
    assert states(connection, script, CLOSE) == [S.END]
    script.expect_header()
    script >> expected("open") >> expected("close", error=None)
    assert script.over


def test_connection_says_who_it_is_by_what_the_peer_said_when_it_opens_second() -> None:
    connection = Connection("engine", properties={"a": 1}, outgoing_locales=("de",))
    script = Script(connection)
    script << header() << OPEN
    connection.introduce(properties={"b": 2})
    connection.introduce(container_id="tenant")
    assert connection.container_id == "tenant"
    connection.open()
    script.expect_header()
    script >> expected("open", container_id="tenant", properties={"a": 1, "b": 2}, outgoing_locales=["de"])


@pytest.mark.parametrize("pipelined", [True, False])
def test_connection_says_nothing_else_of_itself_when_it_has_opened(pipelined: bool) -> None:
    connection = Connection("engine", pipelined=pipelined)
    connection.open()
    with pytest.raises(LocalProtocolError, match="cannot change the open"):
        connection.introduce(container_id="tenant")
    assert connection.container_id == "engine"


def test_connection_goes_through_hdr_sent_when_it_is_not_pipelined() -> None:
    connection = Connection("engine", pipelined=False)
    connection.open()
    assert connection.state is S.HDR_SENT
    script = Script(connection)
    script.expect_header()
    script.expect_nothing()
    assert states(connection, script, header(), OPEN) == [S.OPEN_SENT, S.OPENED]
    script >> expected("open")


def test_connection_goes_through_open_pipe_and_open_sent_when_it_is_first() -> None:
    connection = Connection("engine")
    connection.open()
    assert connection.state is S.OPEN_PIPE
    assert states(connection, Script(connection), header(), OPEN) == [S.OPEN_SENT, S.OPENED]


def test_connection_goes_through_oc_pipe_and_close_pipe_when_it_closes_before_it_is_answered() -> None:
    connection = Connection("engine")
    connection.open()
    connection.close()
    assert connection.state is S.OC_PIPE
    script = Script(connection)
    script.expect_header()
    script >> expected("open") >> expected("close")
    assert states(connection, script, header(), OPEN, CLOSE) == [S.CLOSE_PIPE, S.CLOSE_SENT, S.END]
    assert [type(e) for e in script.events] == [ConnectionOpened]
    assert script.over


def test_connection_goes_through_close_sent_when_it_closes_first() -> None:
    connection, script = opened()
    connection.close()
    assert connection.state is S.CLOSE_SENT
    script >> expected("close")
    assert states(connection, script, BEGIN, empty_frame(), CLOSE) == [S.CLOSE_SENT, S.CLOSE_SENT, S.END]
    assert not script.events


def test_connection_goes_through_discarding_when_it_closes_with_an_error() -> None:
    connection, script = opened()
    connection.close(Error(condition="amqp:connection:forced"))
    assert connection.state is S.DISCARDING
    script >> expected("close", error=error("amqp:connection:forced"))
    assert states(connection, script, BEGIN, raw_frame(b"\x40"), OPEN, CLOSE)[-2:] == [S.DISCARDING, S.END]
    assert not script.events


@pytest.mark.parametrize("with_error", [False, True])
def test_row_65_closes_that_cross_are_not_answered_twice(with_error: bool) -> None:
    pair = Pair().open()
    pair.a.close(Error(condition="amqp:connection:forced") if with_error else None)
    pair.b.close()
    pair.events = {pair.a: [], pair.b: []}
    pair.run()
    assert pair.a.state is pair.b.state is S.END
    assert pair.events == {pair.a: [], pair.b: []}
    assert pair.a.data_to_send() is pair.b.data_to_send() is None
    pair.a.close()
    assert pair.a.data_to_send() is None


def test_connection_opens_at_once_from_both_ends() -> None:
    pair = Pair()
    pair.b.open()
    pair.open()
    assert [type(e) for e in pair.events[pair.a]] == [ConnectionOpened]


@pytest.mark.parametrize("before", [b"", header(), header() + OPEN], ids=["nothing", "header", "open"])
def test_connection_says_its_open_before_a_close_that_comes_early(before: bytes) -> None:
    connection = Connection("engine")
    script = Script(connection)
    script << before
    connection.close(Error(condition="amqp:connection:forced"))
    if not before:
        script.collect()
        assert script.over
        assert connection.state is S.END
        return
    script.expect_header()
    script >> expected("open") >> expected("close", error=error("amqp:connection:forced"))
    script << (CLOSE if OPEN in before else OPEN + CLOSE)
    assert connection.state is S.END


def test_connection_answers_open_and_close_that_come_in_one_read() -> None:
    connection = Connection("engine")
    script = Script(connection)
    script << header() + OPEN + frame("close", error=("error", {"condition": "x:y", "description": "why"}))
    script.expect_header()
    script >> expected("open") >> expected("close", error=None)
    script.expect_event(ConnectionOpened)
    told = script.expect_event(ConnectionClosed).error
    assert (told.condition, told.description) == ("x:y", "why")
    assert connection.error is told
    assert script.over


def test_connection_cannot_open_twice() -> None:
    connection, script = opened()
    with pytest.raises(LocalProtocolError, match="OPENED"):
        connection.open()
    waiting = Connection("engine", pipelined=False)
    waiting.open()
    with pytest.raises(LocalProtocolError, match="cannot open"):
        waiting.open()
    script.expect_nothing()


def test_connection_begins_no_session_when_it_is_not_opened() -> None:
    for connection in (Connection("engine"), Connection("engine")):
        with pytest.raises(LocalProtocolError, match="START"):
            connection.session()
    connection, _ = opened()
    connection.close()
    with pytest.raises(LocalProtocolError, match="CLOSE_SENT"):
        connection.session()


def test_connection_begins_on_channel_0_when_it_waits_for_the_header() -> None:
    connection = Connection("engine", pipelined=False)
    connection.open()
    connection.session().begin()
    script = Script(connection)
    script.expect_header()
    script.expect_nothing()
    script << header() + OPEN
    script >> expected("open") >> expected("begin", channel=0)


def test_connection_writes_no_header_when_somebody_has_written_it() -> None:
    connection = Connection("engine")
    connection.note_header_written()
    script = Script(connection)
    script << header() + OPEN
    script.expect_nothing()
    connection.open()
    script >> expected("open")


@pytest.mark.parametrize("how", ["eof", "lose"])
def test_connection_tells_the_loss_of_its_transport_once(how: str) -> None:
    session, script = begun()
    getattr(script, how)()
    getattr(script, how)()
    script.expect_event(ConnectionLost)
    assert not script.events
    assert session.connection.state is S.END
    assert session.state is SessionState.ENDED
    assert script.collect().over
    assert session.connection.next_deadline() is None
    script << CLOSE
    script.expect_nothing()


def test_connection_still_writes_what_waits_when_the_peer_writes_no_more() -> None:
    session, _script = begun()
    session.owe_flow()
    session.connection.data_to_send()
    session.connection.close()
    session.connection.receive_eof(0.0)
    assert [f.name for f in parse_frames(session.connection.data_to_send() or b"")] == ["close"]
    session, _ = begun()
    session.connection.close()
    session.connection.transport_lost()
    assert session.connection.data_to_send() is None


def test_connection_says_who_it_is() -> None:
    connection, _ = opened()
    assert repr(connection) == "<connection 'engine' OPENED sessions=0>"


# -- open -------------------------------------------------------------------------------------------


def test_connection_answers_a_begin_when_it_is_not_pipelined_and_opens_second() -> None:
    connection = Connection("engine", pipelined=False)
    script = Script(connection)
    script << header() + OPEN
    connection.open()
    script.expect_header()
    script >> expected("open")
    script << BEGIN
    script.expect_event(ConnectionOpened)
    script.expect_event(SessionBegun).session.begin()
    script >> expected("begin", remote_channel=0)


def test_connection_refuses_an_open_that_is_too_long_when_it_is_made() -> None:
    with pytest.raises(LocalProtocolError, match="amqp:frame-size-too-small: the open frame has 9"):
        Connection("engine", properties={"x": "y" * 9000})


# -- channels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("remote_channel", [0, 5], ids=["not begun yet", "unknown"])
def test_row_38_begin_that_answers_nothing_closes(remote_channel: int) -> None:
    connection, script = opened()
    session = connection.session()
    fields: dict[str, Any] = {"next_outgoing_id": 0, "incoming_window": 1, "outgoing_window": 1}
    fault = refused(script, frame("begin", remote_channel=remote_channel, **fields))
    assert fault.condition == "amqp:not-allowed"
    script >> expected("close", error=error("amqp:not-allowed"))
    assert session.state is SessionState.ENDED


def test_row_38_begin_that_answers_a_second_time_closes() -> None:
    _session, script = begun()
    fields: dict[str, Any] = {"next_outgoing_id": 0, "incoming_window": 1, "outgoing_window": 1}
    fault = refused(script, frame("begin", channel=1, remote_channel=0, **fields))
    assert fault.condition == "amqp:not-allowed"
    script >> expected("close", error=error("amqp:not-allowed"))


def test_row_38_begin_on_a_mapped_channel_closes() -> None:
    _, script = begun()
    assert refused(script, BEGIN).condition == "amqp:connection:framing-error"
    script >> expected("close", error=error("amqp:connection:framing-error"))
    script << CLOSE
    assert script.over


def test_connection_takes_a_begin_that_answers_a_session_that_we_have_ended_already() -> None:
    connection, script = opened()
    session = connection.session()
    session.begin()
    session.end()
    script >> expected("begin") >> expected("end")
    script << frame(
        "begin", channel=3, remote_channel=0, next_outgoing_id=0, incoming_window=1, outgoing_window=1
    )
    assert session.state is SessionState.END_SENT
    assert not script.events
    script << frame("end", channel=3)
    script.expect_event(SessionEnded, session=session, error=None)
    assert session.state is SessionState.ENDED
    script.expect_nothing()


@pytest.mark.parametrize(("ours", "theirs"), [(1, 65535), (63, 1)])
def test_connection_begins_no_more_sessions_than_the_smaller_channel_max_has_room_for(
    ours: int, theirs: int
) -> None:
    connection, script = opened(Limits(channel_max=ours), remote={"channel_max": theirs})
    first, second = connection.session(), connection.session()
    for session in (first, second):
        session.begin()
        script >> expected("begin", channel=session.channel)
    with pytest.raises(LocalProtocolError, match="channel-max"):
        connection.session()
    first.end()
    with pytest.raises(LocalProtocolError, match="channel-max"):
        connection.session()  # the peer has not answered yet
    script << frame("begin", remote_channel=0, next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    script << frame("end")
    third = connection.session()
    assert third.channel == 0


def test_row_59_session_more_than_the_peers_own_channel_max_closes() -> None:
    connection, script = opened(remote={"channel_max": 0})
    connection.session().begin()
    script >> expected("begin", channel=0)
    assert refused(script, BEGIN).condition == "amqp:not-allowed"
    script >> expected("close", error=error("amqp:not-allowed"))


def test_row_22_channel_over_our_channel_max_closes() -> None:
    _connection, script = opened(Limits(channel_max=2))
    fields: dict[str, Any] = {"next_outgoing_id": 0, "incoming_window": 1, "outgoing_window": 1}
    script << frame("begin", channel=2, **fields)
    script.expect_event(SessionBegun)
    assert refused(script, frame("begin", channel=3, **fields)).condition == "amqp:connection:framing-error"
    script >> expected("close", error=error("amqp:connection:framing-error"))


@pytest.mark.parametrize("name", ["end", "flow", "disposition", "detach", "attach", "transfer"])
def test_row_23_frame_on_an_unmapped_channel_closes(name: str) -> None:
    _, script = begun()
    fields: dict[str, Any] = {
        "end": {},
        "flow": {"incoming_window": 1, "next_outgoing_id": 0, "outgoing_window": 0},
        "disposition": {"role": True, "first": 0},
        "detach": {"handle": 0},
        "attach": {"name": "x", "handle": 0, "role": True},
        "transfer": {"handle": 0},
    }
    assert refused(script, frame(name, channel=1, **fields[name])).condition == "amqp:not-allowed"
    script >> expected("close", error=error("amqp:not-allowed"))


def test_channel_rests_when_its_session_is_over() -> None:
    session, script = begun()
    script << frame("end") + frame("begin", next_outgoing_id=9, incoming_window=1, outgoing_window=1)
    script.expect_event(SessionEnded, session=session)
    again = script.expect_event(SessionBegun).session
    again.begin()
    script >> expected("end", channel=0) >> expected("begin", channel=1, remote_channel=0)
    assert session.state is SessionState.ENDED
    assert again.state is SessionState.MAPPED


def sessions_in_turn(script: Script, connection: Connection, count: int) -> list[int]:
    """The channels of sessions of which each ends before the next begins."""
    channels: list[int] = []
    for _ in range(count):
        session = connection.session()
        session.begin()
        script << frame(
            "begin",
            remote_channel=session.channel,
            next_outgoing_id=0,
            incoming_window=100,
            outgoing_window=100,
        )
        session.end()
        script << frame("end")
        assert session.state is SessionState.ENDED
        channels.append(session.channel)
    return channels


def test_channels_are_used_again_when_they_have_rested() -> None:
    connection, script = opened()
    assert sessions_in_turn(script, connection, 18) == [*range(9), *range(9)]


def test_channel_does_not_rest_where_there_is_no_other() -> None:
    connection, script = opened(Limits(channel_max=1))
    assert sessions_in_turn(script, connection, 4) == [0, 1, 0, 1]


# -- what the peer's open may not say -----------------------------------------------------------------


def answered_with(**fields: Any) -> RemoteProtocolError:
    """What becomes of an open with these fields."""
    connection = Connection("engine")
    connection.open()
    script = Script(connection)
    script.expect_header()
    script >> expected("open")
    fault = refused(script, header() + frame("open", container_id="peer", **fields))
    script >> expected("close", error=error(fault.condition))
    assert not script.events
    return fault


def test_row_32_max_frame_size_under_512_closes() -> None:
    assert answered_with(max_frame_size=511).condition == "amqp:invalid-field"


def test_row_33_frame_that_the_peer_does_not_take_is_refused_here() -> None:
    session, script = begun(remote={"max_frame_size": 512})
    with pytest.raises(LocalProtocolError, match="amqp:frame-size-too-small"):
        session.sender("n" * 600).attach()
    script.expect_nothing()
    assert session.free_handle() == 0


def test_row_33_held_frame_that_the_peer_does_not_take_closes() -> None:
    connection = Connection("engine")
    connection.open()
    session = connection.session()
    session.begin()
    session.sender("n" * 600).attach()
    script = Script(connection)
    script.expect_header()
    script >> expected("open") >> expected("begin")
    script.expect_nothing()
    fault = refused(script, header() + frame("open", container_id="peer", max_frame_size=512))
    assert fault.condition == "amqp:frame-size-too-small"
    script >> expected("close", error=error("amqp:frame-size-too-small"))
    script.expect_nothing()


def test_connection_writes_what_it_held_when_the_peer_takes_it() -> None:
    connection = Connection("engine")
    connection.open()
    session = connection.session()
    session.begin()
    session.sender("n" * 600).attach()
    script = Script(connection)
    script.expect_header()
    script >> expected("open") >> expected("begin")
    script << header() + frame("open", container_id="peer", max_frame_size=1024)
    script >> expected("attach", name="n" * 600)


def test_row_35_idle_time_out_that_is_too_short_closes() -> None:
    assert answered_with(idle_time_out=999).condition == "amqp:not-allowed"
    connection, _ = opened(remote={"idle_time_out": 1000})
    assert connection.next_deadline() == 0.25
    connection, _ = opened(remote={"idle_time_out": 0}, idle_timeout=None)
    assert connection.next_deadline() is None


def test_connection_has_no_more_to_say_when_it_cannot_hear_the_answer_to_its_close() -> None:
    connection, script = opened()
    assert refused(script, b"\0\0\0\7\2\0\0\0").condition == "amqp:connection:framing-error"
    script >> expected("close", error=error("amqp:connection:framing-error"))
    assert connection.data_to_send() is None
