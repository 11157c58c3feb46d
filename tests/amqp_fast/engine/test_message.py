"""Messages: fragments, encoding errors, and short names of headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.amqp_fast.pairs import (
    HEAD,
    QUEUE,
    SMALL,
    Pair,
    connected,
    names,
    octets_of,
)
from tests.engine_pairs import arrivals_of
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.engine import Engine
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.amqp_fast.engine.message import Message, fragments_of, head_octets
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError


@given(st.binary(max_size=5000), st.integers(1, 3000))
def test_fragments_are_the_message_when_joined(block: bytes, largest: int) -> None:
    pieces = list(fragments_of(block, largest))
    assert b"".join(pieces) == block
    assert all(len(each) <= largest for each in pieces)
    assert len(pieces) == max(1, -(-len(block) // largest))


@pytest.mark.parametrize(
    "message",
    [
        Message(spec.MessageHead(priority=10)),
        Message(spec.MessageHead(priority="high")),  # type: ignore[arg-type]
        Message(spec.MessageHead(headers={"a": "x" * 2000})),
        Message(spec.MessageHead(identifier="x" * 256)),
    ],
)
def test_message_that_cannot_be_encoded_raises_and_writes_nothing(message: Message) -> None:
    pair = connected(client=SMALL)
    ours, _ = pair.handles(pair.channels(), **QUEUE)
    with pytest.raises(LocalProtocolError):
        ours.send(message)
    assert names(pair.client) == []


def test_message_has_4_gib_at_most() -> None:
    with pytest.raises(LocalProtocolError, match="4294967295"):
        head_octets(HEAD, 1 << 32, 1024)


@pytest.mark.parametrize("on", [False, True])
def test_headers_have_short_names_on_the_wire_if_dictionaries_are_on(on: bool) -> None:
    limits = Limits(dictionaries=on)
    pair = Pair(client=limits, server=limits)
    pair.client = Engine(
        EndpointRole.CLIENT, 0.0, limits, opening=spec.ConnectionOpen(), dictionary={"ET": "Expiration_Time"}
    )
    pair.run()
    channels = pair.channels()
    ours, _ = pair.handles(channels, **QUEUE)
    ours.send(Message(spec.MessageHead(headers={"Expiration_Time": "now", "other": 1})))
    ours.send(Message(spec.MessageHead()))
    octets = octets_of(pair.client)
    assert (b"Expiration" in octets) is not on
    assert (b"ET" in octets) is on
    pair.server.receive_data(octets, 0.0)
    arrival, plain = arrivals_of(channels[1])
    assert arrival.message is not None
    assert arrival.message.head.headers == {"Expiration_Time": "now", "other": 1}
    assert plain.message is not None
    assert plain.message.head.headers == {}
