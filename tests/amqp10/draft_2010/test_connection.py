"""Connections and sessions of the draft (Book III, 4, 5), and what bad frames end."""

# pyright: reportUnusedExpression=false

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp10.draft_2010.connection import DraftConnection
from trio_amqp10.amqp10.draft_2010.registries import write
from trio_amqp10.amqp10.draft_2010.spec import transport as draft
from trio_amqp10.amqp10.draft_2010.spec.messaging import SectionCode, Source, Target
from trio_amqp10.amqp10.engine.events import ConnectionClosed, SessionBegun, SessionEnded
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.states import ConnectionState, SessionState
from trio_amqp10.amqp10.spec import transport as final
from trio_amqp10.amqp10.wire.frames import EMPTY_FRAME, encode_frame
from trio_amqp10.amqp10.wire.values import Symbol, UInt
from trio_amqp10.core.errors import LocalProtocolError, RemoteProtocolError
from trio_amqp10.core.partial_pool import Pool
from trio_amqp10.core.protocol_headers import AMQP_HEADER

from .pairs import Script, events_of, frames_in, opened_pair, talk
from .test_vectors import named


def test_open_carries_what_both_standards_have() -> None:
    one, two = opened_pair(properties={"product": "x"}, idle_timeout=40.0)
    assert two.remote is not None
    assert two.remote.container_id == "one"
    assert two.remote.properties == {"product": "x"}
    assert two.remote.idle_time_out == 40_000
    assert one.state is two.state is ConnectionState.OPENED


def test_frame_size_is_at_least_4096() -> None:
    with pytest.raises(LocalProtocolError, match="4096"):
        DraftConnection("us", max_frame_size=2_048)
    script = Script(begun=False)
    script.octets(b"")
    other = DraftConnection("us")
    other.open()
    body = draft.Open(container_id="them", channel_max=1, max_frame_size=4_095)
    with pytest.raises(RemoteProtocolError, match="4095"):
        other.receive_data(AMQP_HEADER + encode_frame(0, write(body)), 0.0)


def test_frames_of_4096_octets_are_taken_before_open() -> None:
    connection = DraftConnection("us", strict=True)
    body = draft.Open(container_id="c" * 4_000, channel_max=1)
    connection.receive_data(AMQP_HEADER + encode_frame(0, write(body)), 0.0)
    assert connection.remote is not None


def test_what_is_larger_waits_for_the_open_and_then_leaves() -> None:
    connection: Any = DraftConnection("us")
    connection.open()
    session = connection.session()
    session.begin()
    link = session.sender("x" * 5_000)
    link.attach()
    said = frames_in(connection.data_to_send())
    assert [type(body) for _, body in said] == [draft.Open, draft.Begin]
    opened = draft.Open(container_id="them", channel_max=1)
    connection.receive_data(AMQP_HEADER + encode_frame(0, write(opened)), 0.0)
    assert [type(body) for _, body in frames_in(connection.data_to_send())] == [draft.Attach]


def test_frame_that_the_peer_does_not_take_is_not_written() -> None:
    one, two = opened_pair(max_frame_size=4_096)
    session: Any = one.session()
    session.begin()
    link = session.sender("x" * 4_500)
    with pytest.raises(LocalProtocolError, match="draft of 2010"):
        link.attach()
    talk(one, two)


# Heartbeats -----------------------------------------------------------------------------------------


def heartbeating(interval: int | None, idle_timeout: float | None) -> Any:
    connection = DraftConnection("us", idle_timeout=idle_timeout)
    connection.open()
    body = draft.Open(container_id="them", channel_max=1, heartbeat_interval=interval)
    connection.receive_data(AMQP_HEADER + encode_frame(0, write(body)), 0.0)
    connection.data_to_send()
    return connection


def test_empty_frames_are_written_in_every_interval() -> None:
    connection = heartbeating(10, None)
    connection.handle_timer(0.0)
    connection.write_buffer.wrote = False
    connection.handle_timer(5.0)
    assert connection.data_to_send() == EMPTY_FRAME


def test_without_heartbeats_silence_means_nothing() -> None:
    for connection in (heartbeating(0, 20.0), heartbeating(None, None)):
        assert connection.next_deadline() is None
        connection.handle_timer(500.0)


@pytest.mark.parametrize(("interval", "idle", "dead"), [(None, 20.0, 20.0), (5, 20.0, 20.0), (60, 1.0, 2.0)])
def test_peer_is_given_up_after_two_intervals_at_least(interval: Any, idle: float, dead: float) -> None:
    connection = heartbeating(interval, idle)
    connection.handle_timer(dead - 0.01)
    with pytest.raises(RemoteProtocolError, match="no frame"):
        connection.handle_timer(dead)


def test_empty_frame_has_no_effect() -> None:
    script = Script()
    script.octets(named("empty-frame"))
    assert script.said() == []
    assert not script.faults


# Sessions and ends ----------------------------------------------------------------------------------


def test_session_begins_and_ends_on_either_side() -> None:
    script = Script()
    script << draft.End()
    assert script.said() == [draft.End()]
    assert [type(event) for event in events_of(script.connection)] == [SessionEnded]
    other = script.connection.session()
    other.begin()
    (begin,) = script.said()
    assert begin.remote_channel is None
    script.on(3, draft.Begin(remote_channel=other.channel))
    assert other.state is SessionState.MAPPED
    other.end(final.Error(condition="x:y", description="z" * 10_000))
    (end,) = script.said()
    assert end.error.condition == "x:y"
    script.on(3, draft.End())
    assert other.state is SessionState.ENDED


def test_close_is_answered() -> None:
    script = Script()
    script << draft.Close(error=draft.Error(condition=Symbol("amqp:connection:forced")))
    assert [type(body) for body in script.said()] == [draft.Close]
    (event,) = events_of(script.connection)
    assert isinstance(event, ConnectionClosed)
    assert event.error is not None
    assert event.error.condition == "amqp:connection:forced"


def test_frames_behind_an_end_of_ours_are_dropped() -> None:
    script = Script()
    script.session.end()
    script.said()
    script.octets(encode_frame(0, named("bad-state-key")[8:]))
    script << draft.Flow(handle=7, flow_state=draft.FlowState(session_credit=1)) << draft.End()
    assert script.said() == []
    assert not script.faults


def test_frames_behind_a_close_of_ours_are_dropped_but_for_the_close() -> None:
    script = Script()
    script.connection.close(final.Error(condition="x:y"))
    script.said()
    script.octets(encode_frame(0, b"\xff"))
    script << draft.Begin(remote_channel=9) << draft.End() << draft.Close()
    assert not script.faults
    assert script.connection.state is ConnectionState.END


# Faults ---------------------------------------------------------------------------------------------


BAD = {
    "bad-attach-no-flow-state": "amqp:invalid-field",
    "bad-unknown-option": "amqp:not-implemented",
    "bad-map-as-list": "amqp:invalid-field",
    "bad-state-key": "amqp:invalid-field",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_vector_ends_the_session_with_its_condition(name: str) -> None:
    octets = named(name)
    channel = int.from_bytes(octets[6:8], "big")
    script = Script(begun=False)
    if name != "bad-unknown-option":
        script.on(channel, draft.Begin())
    script.octets(octets)
    *_, end = script.said()
    assert isinstance(end, draft.End)
    assert end.error is not None
    assert end.error.condition == BAD[name]
    assert not script.faults
    (event,) = [each for each in events_of(script.connection) if isinstance(each, SessionEnded)]
    assert event.error is not None
    assert event.error.condition == BAD[name]


@pytest.mark.parametrize("name", BAD)
def test_bad_vector_comes_in_any_two_parts(name: str) -> None:
    octets = named(name)
    for cut in range(1, len(octets)):
        script = Script(begun=False)
        script.on(int.from_bytes(octets[6:8], "big"), draft.Begin()) if "option" not in name else None
        script.octets(octets[:cut])
        script.octets(octets[cut:])
        assert isinstance(script.said()[-1], draft.End)


@pytest.mark.parametrize(
    ("octets", "condition"),
    [
        (b"\xff", "amqp:connection:framing-error"),
        (b"\x00\x53\x14\x45", "amqp:connection:framing-error"),  # a transfer of the final standard
        (write(draft.End()) + b"\x40", "amqp:decode-error"),
        (write(draft.Close())[:-1], "amqp:decode-error"),
    ],
)
def test_octets_that_are_no_frame_body_end_the_connection(octets: bytes, condition: str) -> None:
    script = Script()
    script.octets(encode_frame(0, octets))
    (fault,) = script.faults
    close = script.said()[-1]
    assert isinstance(close, draft.Close)
    assert close.error is not None
    assert close.error.condition == fault.condition
    assert fault.condition in (condition, "amqp:decode-error", "amqp:connection:framing-error")


@pytest.mark.parametrize(
    "body",
    [
        draft.Flow(handle=0, flow_state=draft.FlowState(session_credit=0)),
        draft.End(),
        draft.Begin(remote_channel=99),
        draft.Open(container_id="again", channel_max=1),
    ],
)
def test_frame_that_may_not_come_ends_the_connection(body: Any) -> None:
    script = Script()
    script.on(5, body)
    assert len(script.faults) == 1


def test_frame_before_open_ends_the_connection() -> None:
    connection = DraftConnection("us")
    connection.open()
    with pytest.raises(RemoteProtocolError, match="before open"):
        connection.receive_data(AMQP_HEADER + encode_frame(0, write(draft.End())), 0.0)


def test_begin_with_a_wrong_field_ends_the_connection_that_has_no_session_for_it() -> None:
    script = Script(begun=False)
    script.octets(encode_frame(4, bytes.fromhex("00800000000100000101c003024041")))
    assert script.faults[0].condition == "amqp:invalid-field"


def test_open_with_an_option_that_is_not_known_ends_the_connection() -> None:
    connection = DraftConnection("us")
    body = draft.Open(container_id="c", channel_max=1, options={Symbol("strange"): UInt(1)})
    with pytest.raises(RemoteProtocolError, match="strange"):
        connection.receive_data(AMQP_HEADER + encode_frame(0, write(body)), 0.0)


def test_encodings_of_the_final_standard_are_taken_unless_strict() -> None:
    compact = encode_frame(0, write(draft.Begin())[:-3] + b"\x45")
    for strict, faults in ((None, 0), (True, 1)):
        script = Script(begun=False, strict=strict)
        script.octets(compact)
        assert len(script.faults) == faults


def test_fields_that_no_final_frame_can_have_are_refused() -> None:
    script = Script()
    both = draft.Linkage(source=Source(address=UInt(5)), target=Target())
    state = draft.FlowState(session_credit=0, transfer_count=0)
    script << draft.Attach(name="n", handle=0, role=False, local=both, flow_state=state)
    assert script.faults[0].condition == "amqp:invalid-field"


def test_wrong_type_of_frame_and_channel_over_the_highest() -> None:
    for frame in (encode_frame(0, write(draft.End()), 5), encode_frame(99, write(draft.Begin()))):
        script = Script()
        script.octets(frame)
        assert script.faults


def test_write_buffer_is_true_with_dispositions_alone() -> None:
    script = Script()
    link = script.attach(False)
    link.set_credit(5)
    script.said()
    state = draft.FlowState(session_credit=0, transfer_count=1)
    fragment = draft.Fragment(
        first=True, last=True, format_code=int(SectionCode.DATA), fragment_offset=0, payload=b"x"
    )
    script << draft.Transfer(
        handle=0, flow_state=state, delivery_tag=b"t", transfer_id=0, fragments=(fragment,)
    )
    assert not script.connection.write_buffer
    link.queue.popleft().accept()
    rings: list[int] = []
    script.connection.write_buffer.on_output = lambda: rings.append(1)
    script.connection.context.flush()
    assert script.connection.write_buffer
    assert rings
    script.connection.transport_lost()
    assert not script.connection.write_buffer


def test_pool_bounds_messages_in_progress_of_all_connections() -> None:
    pool = Pool(1_000)
    script = Script(limits=Limits(partial_octets=None))
    pool.join(script.connection.context)
    link = script.attach(False)
    link.set_credit(5)
    script.said()
    state = draft.FlowState(session_credit=0, transfer_count=0)
    fragment = draft.Fragment(
        first=True, last=False, format_code=int(SectionCode.DATA), fragment_offset=0, payload=b"x" * 1_001
    )
    script << draft.Transfer(
        handle=0, flow_state=state, delivery_tag=b"t", transfer_id=0, more=True, fragments=(fragment,)
    )
    (detach,) = script.said()
    assert detach.error.condition == "amqp:resource-limit-exceeded"
    assert pool.octets == 0


@pytest.mark.parametrize("header", [b"AMQP\0\2\0\0", b"AMQP\0\1\1\0", b"AMQP\0\0\x09\1", b"HTTP/1.1"])
def test_another_protocol_header_gets_ours_and_the_end(header: bytes) -> None:
    connection: Any = DraftConnection("us")
    with pytest.raises(RemoteProtocolError):
        connection.receive_data(header, 0.0)
    assert connection.data_to_send() == AMQP_HEADER
    assert connection.data_to_send() is None


def test_answer_to_a_begin_names_the_channel_of_the_peer_and_a_begin_of_ours_none() -> None:
    script = Script(begun=False)
    script.on(7, draft.Begin())
    session = next(each.session for each in events_of(script.connection) if isinstance(each, SessionBegun))
    session.begin()
    (answer,) = script.said()
    assert answer.remote_channel == 7
    script.connection.session().begin()
    (begin,) = script.said()
    assert begin.remote_channel is None
