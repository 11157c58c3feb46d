"""Whatever a peer sends, in whatever pieces: events, arrivals and closes, or ``ReplyError``; nothing else, and bounded."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.amqp091.pairs import OPENING, open_client, open_server, written
from tests.amqp091.wire.test_methods import methods
from tests.engine_pairs import arrivals_of, events_of, refusal
from trio_amqp10.amqp091.engine.engine import Engine
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.engine.states import ConnectionState
from trio_amqp10.amqp091.wire.content import BasicProperties, Content, write_header
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.amqp091.wire.frames import BODY, HEADER, HEARTBEAT_FRAME, PROTOCOL_HEADER, frame
from trio_amqp10.core.endpoint_role import EndpointRole

LIMITS = Limits(max_message_size=64, max_partial=100)

channels = st.sampled_from([0, 1, 1, 1, 2, 3])
frames = st.one_of(
    st.builds(written, methods(), channels),
    st.builds(lambda n: written_method(60, 40, b"\0\0\0\1q\0") if n else HEARTBEAT_FRAME, st.booleans()),
    st.builds(
        lambda channel, size: frame(
            HEADER, channel, write_header(Content(BasicProperties(priority=1), bytes(size)), USUAL)
        ),
        channels,
        st.integers(0, 80),
    ),
    st.builds(lambda channel, body: frame(BODY, channel, body), channels, st.binary(max_size=40)),
    st.binary(max_size=20),
)


def written_method(class_id: int, method_id: int, arguments: bytes) -> bytes:
    return frame(1, 1, class_id.to_bytes(2) + method_id.to_bytes(2) + arguments)


def engine_in(state: str) -> Engine:
    if state == "client":
        return open_client(LIMITS)[0]
    if state == "server":
        return open_server(LIMITS)
    engine = Engine(EndpointRole.CLIENT if state == "dialled" else EndpointRole.SERVER, 0.0, LIMITS)
    if state == "half":
        engine.receive_data(OPENING, 0.0)
        engine.accept_login("ada", 0.0)
    return engine


def outcome(state: str, octets: bytes, step: int) -> tuple[Any, ...]:
    """All that an engine does with octets that come in pieces."""
    engine = engine_in(state)
    told: list[Any] = []
    for start in range(0, len(octets), step):
        fault: Any = refusal(engine.receive_slice, octets[start : start + step], 0.0)
        told += [repr(fault)] * (fault is not None)
        while engine.has_input():
            fault = refusal(engine.receive_slice, b"", 0.0)
            told += [repr(fault)] * (fault is not None)
        if len(engine._buffer) > 2 * len(octets) or engine.partial > LIMITS.max_partial + len(octets):
            raise AssertionError("more is stored than came")
    events = [type(event).__name__ for event in events_of(engine)]
    arrivals = [(channel.number, arrivals_of(channel)) for channel in engine.take_touched()]
    return told, events, arrivals, engine.data_to_send(), engine.state


@given(
    st.sampled_from(["client", "server", "dialled", "accepted", "half"]),
    st.lists(frames, max_size=12).map(b"".join),
    st.integers(1, 40),
)
@example("dialled", b"\x08\0\0\0\0\0\0\xce" + bytes(7), 1)  # a whole heartbeat, then no frame
@settings(max_examples=300)
def test_any_octets_in_any_pieces_have_one_outcome(state: str, octets: bytes, step: int) -> None:
    assert outcome(state, octets, max(len(octets), 1)) == outcome(state, octets, step)


@given(st.binary(max_size=200))
def test_garbage_after_the_protocol_header_ends_the_server_or_waits(octets: bytes) -> None:
    server = Engine(EndpointRole.SERVER, 0.0)
    server.receive_data(PROTOCOL_HEADER, 0.0)
    fault = refusal(server.receive_data, octets, 0.0)
    assert fault is None or server.state is ConnectionState.CLOSED
    server.transport_lost()
    assert server.data_to_send() is None
