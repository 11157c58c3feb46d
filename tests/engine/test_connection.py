"""The connection endpoint: headers, open, faults, idle times, close (2.2, 2.4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.helpers import Pair, begun, begun_by_peer, opened, receiving, refused, sending
from tests.naive.codec import Typed
from tests.naive.performatives import empty_frame, frame, header, parse_frames, raw_frame
from tests.naive.script import Script, expected
from trio_amqp10.engine.connection import Connection
from trio_amqp10.engine.events import (
    ConnectionClosed,
    ConnectionLost,
    ConnectionOpened,
    SessionBegun,
    SessionEnded,
)
from trio_amqp10.engine.limits import Limits
from trio_amqp10.engine.states import ConnectionState, LinkState, SessionState
from trio_amqp10.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.spec.transport import Error

OPEN = frame("open", container_id="peer")
BEGIN = frame("begin", next_outgoing_id=0, incoming_window=100, outgoing_window=100)
CLOSE = frame("close")


def error(condition: str) -> tuple[str, dict[str, object]]:
    """An error of this condition, as a composite that a transcript expects."""
    return ("error", {"condition": condition})


# -- faults -----------------------------------------------------------------------------------------


def test_connection_reads_the_close_behind_a_fault_when_both_come_in_one_read() -> None:
    connection, script = opened()
    fault = refused(script, frame("end", channel=7), CLOSE)
    assert fault.condition == "amqp:not-allowed"
    script >> expected("close", error=error("amqp:not-allowed"))
    assert connection.state is ConnectionState.END
    assert script.over


def test_connection_says_one_error_when_many_frames_are_at_fault() -> None:
    connection, script = opened()
    refused(script, frame("end", channel=7), frame("end", channel=8), raw_frame(b"", frame_type=1))
    script << frame("end", channel=9) + raw_frame(b"x", frame_type=9) + b"".join([empty_frame()] * 500)
    script >> expected("close", error=error("amqp:not-allowed"))
    script.expect_nothing()
    assert connection.state is ConnectionState.DISCARDING
    script << CLOSE
    assert connection.state is ConnectionState.END


def test_connection_still_reads_the_close_after_a_framing_error_that_left_the_frames_intact() -> None:
    connection, script = opened()
    refused(script, frame("sasl-outcome", code=0))
    script >> expected("close", error=error("amqp:connection:framing-error"))
    script << frame("flow", channel=3, incoming_window=1, next_outgoing_id=0, outgoing_window=0)
    script << CLOSE
    assert connection.state is ConnectionState.END


def test_connection_reads_nothing_more_when_it_is_lost_where_frames_begin() -> None:
    connection, script = opened()
    refused(script, b"\x00\x00\x00\x07")
    script >> expected("close", error=error("amqp:connection:framing-error"))
    script << CLOSE
    script.expect_nothing()
    assert connection.state is ConnectionState.DISCARDING
    assert connection.next_deadline() == 5.0


def test_connection_takes_the_peers_header_when_it_has_closed_with_an_error_before_that() -> None:
    connection = Connection("engine")
    connection.open()
    connection.close(Error(condition="amqp:connection:forced"))
    script = Script(connection)
    script.expect_header()
    script >> expected("open") >> expected("close", error=error("amqp:connection:forced"))
    assert connection.state is ConnectionState.DISCARDING
    script.send(header(), OPEN, BEGIN, chunk=5)
    assert connection.state is ConnectionState.DISCARDING
    script << CLOSE
    assert connection.state is ConnectionState.END


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
    with pytest.raises(LocalProtocolError, match="amqp:frame-size-too-small: an open of 9"):
        Connection("engine", properties={"x": "y" * 9000})


# -- errors that we send ----------------------------------------------------------------------------

LONG = Error(condition="amqp:connection:forced", description="\u00e4" * 2000, info={"why": 1})
ENDLESS = Error(condition="amqp:connection:forced", info={"why": "x" * 2000})


def test_connection_shortens_the_description_of_an_error_when_the_peer_takes_small_frames() -> None:
    connection, script = opened(remote={"max_frame_size": 512})
    connection.close(LONG)
    got = script.expect("close", error=("error", {"condition": "amqp:connection:forced", "info": {"why": 1}}))
    assert 440 < len(got.raw) <= 512
    assert set(got["error"][1]["description"]) == {"\u00e4"}


def test_connection_keeps_the_description_of_an_error_when_it_fits() -> None:
    connection, script = opened()
    connection.close(LONG)
    script >> expected("close", error=("error", {"description": LONG.description}))


def test_connection_changes_nothing_when_an_error_fits_no_frame() -> None:
    session, script = begun(remote={"max_frame_size": 512})
    link = session.sender("x")
    link.attach()
    script >> expected("attach")
    for command in (session.connection.close, session.end, lambda error: link.detach(error=error)):
        with pytest.raises(LocalProtocolError, match="amqp:frame-size-too-small"):
            command(ENDLESS)
    script.expect_nothing()
    assert session.connection.state is ConnectionState.OPENED
    assert session.state is SessionState.MAPPED
    assert link.state is LinkState.ATTACH_SENT


def test_row_66_connection_bounds_the_text_of_the_peers_that_an_error_quotes() -> None:
    session, script = begun(remote={"max_frame_size": 65536})
    name = "\n" * 30_000
    script << frame("attach", name=name, handle=0, role=True) + frame(
        "attach", name=name, handle=1, role=True
    )
    script >> expected("attach", name=name)
    got = script.expect("detach", error=error("amqp:link:stolen"))
    assert len(got["error"][1]["description"]) == 1024
    assert "\n" not in got["error"][1]["description"]
    assert session.state is SessionState.MAPPED


# -- channels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("remote_channel", [0, 5], ids=["not begun yet", "unknown"])
def test_row_38_begin_that_answers_nothing_closes(remote_channel: int) -> None:
    connection, script = opened()
    session = connection.session()
    fields = {"next_outgoing_id": 0, "incoming_window": 1, "outgoing_window": 1}
    fault = refused(script, frame("begin", remote_channel=remote_channel, **fields))
    assert fault.condition == "amqp:not-allowed"
    script >> expected("close", error=error("amqp:not-allowed"))
    assert session.state is SessionState.ENDED


def test_row_38_begin_that_answers_a_second_time_closes() -> None:
    session, script = begun()
    fields = {"next_outgoing_id": 0, "incoming_window": 1, "outgoing_window": 1}
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
    connection, script = opened(Limits(channel_max=2))
    fields = {"next_outgoing_id": 0, "incoming_window": 1, "outgoing_window": 1}
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


def test_connection_uses_a_channel_again_when_its_session_is_over() -> None:
    session, script = begun()
    script << frame("end") + frame("begin", next_outgoing_id=9, incoming_window=1, outgoing_window=1)
    script.expect_event(SessionEnded, session=session)
    again = script.expect_event(SessionBegun).session
    again.begin()
    script >> expected("end", channel=0) >> expected("begin", channel=0, remote_channel=0)
    assert session.state is SessionState.ENDED
    assert again.state is SessionState.MAPPED
