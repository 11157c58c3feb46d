"""Any octets from a peer of 10.3, in pieces of any size, have one bounded outcome.

The outcome is events, arrivals and closes, or a ``ReplyError``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amqp_10_3.pairs import OPENING, client_engine, open_client, open_server, server_engine, written
from tests.amqp_10_3.wire.test_methods import methods
from tests.engine_pairs import arrivals_of, events_of, refusal
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.wire.content import BasicProperties, Content, write_header
from trio_amqp10.amqp091.wire.fields import FIVE
from trio_amqp10.amqp091.wire.frames import BODY, HEADER
from trio_amqp10.amqp_10_3.wire.frames import FRAMES, TRACE

if TYPE_CHECKING:
    from trio_amqp10.amqp091.engine.engine import Engine

LIMITS = Limits(max_message_size=64, max_partial=100)

channels = st.sampled_from([0, 1, 1, 1, 2, 3])
frames = st.one_of(
    st.builds(written, methods(), channels),
    st.builds(
        lambda channel, size, class_id: FRAMES.frame(
            HEADER, channel, write_header(Content(BasicProperties(), bytes(size)), FIVE, class_id)
        ),
        channels,
        st.integers(0, 80),
        st.sampled_from([60, 60, 70, 80, 110, 120]),
    ),
    st.builds(lambda channel, body: FRAMES.frame(BODY, channel, body), channels, st.binary(max_size=40)),
    st.sampled_from([FRAMES.heartbeat, FRAMES.frame(TRACE, 1, b"x"), FRAMES.frame(BODY, 1, b"")]),
    st.binary(max_size=20),
)


def engine_in(state: str) -> Engine:
    if state == "client":
        return open_client(LIMITS)[0]
    if state == "server":
        return open_server(LIMITS)
    engine = client_engine(LIMITS) if state == "dialled" else server_engine(LIMITS)
    if state == "half":
        engine.receive_data(OPENING, 0.0)
        engine.accept_login("ada", 0.0)
    return engine


def outcome(state: str, octets: bytes, step: int) -> tuple[Any, ...]:
    """Return all effects that octets in pieces have on an engine."""
    engine = engine_in(state)
    told: list[str] = []
    for start in range(0, len(octets), step):
        for piece in (octets[start : start + step], b""):
            fault = refusal(engine.receive_data, piece, 0.0)
            told += [repr(fault)] * (fault is not None)
        assert len(engine._buffer) <= len(octets)
        assert engine.partial <= LIMITS.max_partial + len(octets)
    events = [type(event).__name__ for event in events_of(engine)]
    arrivals = [(channel.number, arrivals_of(channel)) for channel in engine.take_touched()]
    return told, events, arrivals, engine.data_to_send(), engine.state


@given(
    st.sampled_from(["client", "server", "dialled", "accepted", "half"]),
    st.lists(frames, max_size=12).map(b"".join),
    st.integers(1, 40),
)
@settings(max_examples=300)
def test_any_octets_in_any_pieces_have_one_outcome(state: str, octets: bytes, step: int) -> None:
    assert outcome(state, octets, max(len(octets), 1)) == outcome(state, octets, step)
