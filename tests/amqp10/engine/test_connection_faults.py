"""What a connection does not take: frames, silence, floods; and how it says so (2.3, 2.4.5, 2.8.14)."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest

from tests.naive.performatives import empty_frame, frame, header, raw_frame
from tests.naive.script import Script, expected
from trio_amqp10.amqp10.engine.connection import Connection
from trio_amqp10.amqp10.engine.events import ConnectionClosed, ConnectionLost, SessionBegun
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.states import ConnectionState, LinkState, SessionState
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError

from .helpers import begun, error, opened, refused

OPEN = frame("open", container_id="peer")
BEGIN = frame("begin", next_outgoing_id=0, incoming_window=100, outgoing_window=100)
CLOSE = frame("close")
S = ConnectionState


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


def test_connection_that_stood_still_for_longer_than_the_peer_waits_closes_with_an_error() -> None:
    connection, script = opened(remote={"idle_time_out": 4000}, idle_timeout=None)
    script.advance(1.0)
    script.now += 8.0  # the peer waits for 8 s at most: what it announces is half of that (2.4.5)
    connection.handle_timer(script.now)
    script.collect().expect_event(
        ConnectionLost, reason="nothing was written for 8 s, which exceeds the peer's idle time-out (2.4.5)"
    )
    script >> expected("close", error=error("amqp:connection:forced"))
    assert connection.state is S.DISCARDING
    script << frame("close")
    assert script.collect().over


def test_connection_that_stood_still_for_less_than_the_peer_waits_keeps_it_alive() -> None:
    connection, script = opened(remote={"idle_time_out": 4000}, idle_timeout=None)
    script.advance(1.0)
    script.now += 6.9
    connection.handle_timer(script.now)
    script.collect() >> expected("empty", channel=0)
    assert connection.state is S.OPENED


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
    fields: dict[str, Any] = {"next_outgoing_id": 0, "incoming_window": 1, "outgoing_window": 1}
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
    fields: dict[str, Any] = {"next_outgoing_id": 0, "incoming_window": 1, "outgoing_window": 1}
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
    session.connection.write_buffer.on_output = lambda: rung.append(1)
    session.owe_flow()
    session.owe_flow()
    assert rung == [1]
    script >> expected("flow")


# -- bounds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("why", [None, Error(condition="amqp:connection:forced")])
def test_close_is_on_channel_0_whatever_channels_are_in_use(why: Error | None) -> None:
    session, script = begun()
    session.connection.session().begin()
    script >> expected("begin", channel=1)
    session.connection.close(why)
    script >> expected("close", channel=0)


def test_open_with_the_least_frame_size_is_taken() -> None:
    connection, _ = opened(remote={"max_frame_size": 512})
    assert connection.remote is not None
    assert connection.remote.max_frame_size == 512


def test_handles_are_used_up_to_handle_max_and_no_further() -> None:
    session, script = begun(handle_max=1)
    for handle in (0, 1):
        session.sender(str(handle)).attach()
        script >> expected("attach", handle=handle)
    with pytest.raises(LocalProtocolError, match="handle-max"):
        session.sender("2").attach()
