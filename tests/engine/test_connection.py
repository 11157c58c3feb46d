"""The connection endpoint: headers, open, faults, idle times, close (2.2, 2.4)."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest

from tests.engine.helpers import Pair, begun, opened, refused
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
    _session, script = begun()
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
    _connection, script = opened(Limits(channel_max=2))
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


# -- lifecycle (2.4.6) --------------------------------------------------------------------------------

S = ConnectionState


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


# -- frames (2.3) -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "octets",
    [
        raw_frame(b"", size=7),
        raw_frame(b"", doff=1),
        raw_frame(b"", doff=3, size=8),
        raw_frame(b"x", frame_type=2),
        raw_frame(b"", frame_type=1),
    ],
    ids=["size 7", "doff 1", "doff beyond", "type 2", "type 1"],
)
def test_row_19_frame_that_is_none_closes(octets: bytes) -> None:
    _, script = opened()
    assert refused(script, octets).condition == "amqp:connection:framing-error"
    script >> expected("close", error=error("amqp:connection:framing-error"))


def test_row_20_frame_over_our_size_closes_on_its_first_four_octets() -> None:
    _, script = opened(Limits(max_frame_size=1000))
    script << raw_frame(bytes(992))[:4]
    script.expect_nothing()
    _, script = opened(Limits(max_frame_size=1000))
    assert refused(script, raw_frame(bytes(993))[:4]).condition == "amqp:connection:framing-error"
    script >> expected("close", error=error("amqp:connection:framing-error"))


def test_connection_skips_an_extended_header() -> None:
    _, script = opened()
    script << frame("begin", doff=7, next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    script.expect_event(SessionBegun)


@pytest.mark.parametrize(
    "octets",
    [BEGIN, CLOSE, empty_frame(), frame("open", channel=1, container_id="peer")],
    ids=["begin", "close", "empty", "channel 1"],
)
def test_row_21_first_frame_that_is_no_open_on_channel_0_closes(octets: bytes) -> None:
    connection = Connection("engine")
    script = Script(connection)
    script << header()
    assert refused(script, octets).condition == "amqp:connection:framing-error"
    script.expect_header()
    script >> expected("open") >> expected("close", error=error("amqp:connection:framing-error"))


def test_row_21_second_open_closes() -> None:
    _, script = opened()
    assert refused(script, OPEN).condition == "amqp:illegal-state"
    script >> expected("close", error=error("amqp:illegal-state"))


def test_row_21_open_may_be_long_and_longer_where_the_peer_may_know_what_we_take() -> None:
    def long(size: int) -> bytes:
        return frame("open", container_id="peer", properties={"x": "y" * (size - 40)})[:4]

    first = Script(Connection("engine"))
    refused(first, header() + long(9000))
    second = Connection("engine")
    second.open()
    Script(second) << header() + long(9000)
    third = Connection("engine", limits=Limits(max_frame_size=512))
    third.open()
    Script(third) << header() + long(8000)
    assert second.state is third.state is S.OPEN_SENT


def test_row_30_unknown_performative_closes() -> None:
    for body in (b"\x00\x53\x19\x45", b"\x00\xa3\x08amqp:foo\x45", b"\x40", b"\x00\x53\x10\x40"):
        _, script = begun()
        assert refused(script, raw_frame(body)).condition == "amqp:connection:framing-error"
        script >> expected("close", error=error("amqp:connection:framing-error"))


def test_connection_closes_on_octets_behind_a_performative() -> None:
    _, script = begun()
    octets = frame("flow", next_incoming_id=0, incoming_window=1, next_outgoing_id=0, outgoing_window=0)
    assert refused(script, raw_frame(octets[8:] + b"\x40")).condition == "amqp:decode-error"
    script >> expected("close", error=error("amqp:decode-error"))


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


# -- silence ------------------------------------------------------------------------------------------


def test_row_34_flood_of_empty_frames_closes() -> None:
    _, script = opened()
    script << empty_frame() * 100
    script.now = 1.0
    script << empty_frame() * 10
    assert refused(script, empty_frame()).condition == "amqp:resource-limit-exceeded"
    script >> expected("close", error=error("amqp:resource-limit-exceeded"))


def test_row_36_silent_peer_is_told_so_and_given_up_later() -> None:
    connection, script = opened(idle_timeout=60.0)
    script.advance(59.0)
    script << empty_frame()
    script.advance(59.9)
    script.expect_nothing()
    with pytest.raises(RemoteProtocolError, match="no frame from the peer for 60 s") as caught:
        script.advance(0.2)
    assert caught.value.condition == "amqp:resource-limit-exceeded"
    script >> expected("close", error=error("amqp:resource-limit-exceeded"))
    assert connection.state is S.DISCARDING
    script.advance(4.9)
    assert connection.state is S.DISCARDING
    script.advance(0.2)
    script.expect_event(ConnectionLost, reason="no close from the peer within 5.0 s")
    assert script.collect().over


def test_connection_keeps_alive_what_the_peer_would_give_up() -> None:
    connection, script = opened(remote={"idle_time_out": 4000}, idle_timeout=None)
    for _ in range(3):
        script.advance(2.0)
        script >> expected("empty", channel=0)
    script.inbox.frames.clear()
    connection.session().begin()
    script.advance(1.0)
    script >> expected("begin")
    script.expect_nothing()
    script.advance(2.0)
    script >> expected("empty")


def test_connection_keeps_both_alive_when_both_want_it() -> None:
    connection, script = opened(remote={"idle_time_out": 10_000}, idle_timeout=20.0)
    for _ in range(20):
        script.advance(5.0)
        script >> expected("empty")
        script << empty_frame()
    assert connection.state is S.OPENED


def test_connection_gives_up_a_peer_that_never_answers_its_close() -> None:
    connection, script = opened(Limits(close_timeout=2.0))
    script.advance(10.0)
    connection.close(now=script.now)
    script >> expected("close")
    assert connection.next_deadline() == 12.0
    script.advance(2.0)
    script.expect_event(ConnectionLost)
    assert connection.state is S.END
    assert connection.next_deadline() is None


def test_row_37_octets_behind_the_close_are_dropped() -> None:
    _connection, script = opened()
    script << CLOSE + BEGIN + b"garbage\xff"
    script >> expected("close")
    script << b"more garbage"
    assert [type(e) for e in script.events] == [ConnectionClosed]
    assert script.collect().over


# -- what a peer may cost us ----------------------------------------------------------------------------


def test_row_63_peer_that_reads_nothing_is_given_up_at_the_hard_limit() -> None:
    connection, script = opened(Limits(output_hard=2000, channel_max=10_000, churn=None))
    fields = {"next_outgoing_id": 0, "incoming_window": 1, "outgoing_window": 1}
    octets = b"".join(frame("begin", channel=n, **fields) + frame("end", channel=n) for n in range(40))
    connection.receive_data(octets, 0.0)
    assert connection.state is S.OPENED
    connection.receive_data(octets * 2, 0.0)
    assert connection.state is S.END
    script.collect()
    assert script.over
    assert isinstance(script.events[-1], ConnectionLost)
    assert not script.inbox.frames


def test_connection_bears_any_output_when_there_is_no_hard_limit() -> None:
    connection, _ = opened(Limits(output_hard=None, channel_max=10_000, churn=None))
    fields = {"next_outgoing_id": 0, "incoming_window": 1, "outgoing_window": 1}
    octets = b"".join(frame("begin", channel=n, **fields) + frame("end", channel=n) for n in range(1000))
    connection.receive_data(octets, 0.0)
    assert connection.state is S.OPENED


def test_connection_reads_a_large_frame_in_linear_time_when_it_drips() -> None:
    octets = frame("attach", name="x" * 60_000, handle=0, role=True)
    session, script = begun()
    for start in range(0, len(octets), 7):
        session.connection.receive_data(octets[start : start + 7], 0.0)
    script.collect()
    assert len(script.events) == 1


def test_connection_copies_the_octets_behind_many_faults_once() -> None:
    connection, _ = opened()
    octets = raw_frame(b"x", frame_type=5) * 25_000
    began = process_time()
    with pytest.raises(RemoteProtocolError):
        connection.receive_data(octets, 0.0)
    assert process_time() - began < 1.0
    assert connection.state is S.DISCARDING


def test_connection_rings_when_a_session_has_something_to_say() -> None:
    session, script = begun()
    rung: list[int] = []
    session.connection.outbox.bell = lambda: rung.append(1)
    session.owe_flow()
    session.owe_flow()
    assert rung == [1]
    script >> expected("flow")
