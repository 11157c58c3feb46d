"""Hostile octets: whatever comes, an engine raises nothing but its own error, and says what closes what."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amqp_fast.pairs import QUEUE, block_of, client_with, octets_of, server_with, written
from tests.engine_pairs import refusal
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.engine import Engine
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.amqp_fast.engine.message import Message
from trio_amqp10.amqp_fast.engine.states import EXPECTED, ConnectionState
from trio_amqp10.core.endpoint_role import EndpointRole

SMALL = Limits(frame_max=1024, channel_max=3, handle_max=3, max_message_size=5000, max_partial=6000)
VALUES: dict[str, list[Any]] = {
    "octet": [0, 1, 255],
    "short": [0, 1, 2, 65_535],
    "long": [0, 1, 2, 30, 1000, 2**32 - 1],
    "bit": [False, True],
    "shortstr": ["", "q", "x" * 255],
    "longstr": [b"", b"a=1", b"1-2"],
    "table": [{}, {"A": 1}],
}
COMMANDS = list(spec.COMMANDS)


def any_command(chance: random.Random, role: EndpointRole) -> bytes:
    """A command with any values, mostly one that is expected somewhere, with a fragment as large as it says."""
    expected = [
        made for made, rule in EXPECTED[role].items() if rule.when.name.startswith(("HANDLE", "CHANNEL"))
    ]
    plan = chance.choice(expected).plan if chance.random() < 0.98 else chance.choice(COMMANDS)
    made: Any = plan.made(**{name: chance.choice(VALUES[kind.name]) for name, kind in plan.fields})
    for name in ("channel_id", "handle_id"):
        if hasattr(made, name) and chance.random() < 0.97:
            setattr(made, name, 1)
    for name in ("out_of_band", "streaming", "recovery"):
        if getattr(made, name, None) is True and chance.random() < 0.8:
            setattr(made, name, False)
    size = getattr(made, "fragment_size", -1)
    if size < 0:
        return written(made)
    block = block_of(Message(spec.MessageHead(), b"y" * chance.choice([0, 10, 100])))
    if not getattr(made, "out_of_band", False) and (size <= 1000 or chance.random() < 0.9):
        made.fragment_size = len(block)
        return written(made, fragment=block)
    return written(made)


def check_end(engine: Engine, octets: bytes) -> bool:
    """Whether the engine goes on; if it does not, it refuses, and the transport ends in time."""
    fault = refusal(engine.receive_data, octets, 1.0)
    octets_of(engine)
    while engine.next_event() is not None:
        pass
    for channel in engine.take_touched():
        while channel.next_arrival() is not None:
            pass
    if fault is None:
        return engine.state is not ConnectionState.CLOSED
    assert engine.state is not ConnectionState.OPEN
    engine.handle_timer(100.0)
    octets_of(engine)
    assert engine.data_to_send() is None
    assert (engine.held, engine.partial) == (0, 0)
    return False


@pytest.mark.parametrize("role", [EndpointRole.SERVER, EndpointRole.CLIENT])
@pytest.mark.parametrize("seed", range(150))
def test_any_commands_raise_nothing_but_a_reply_error(role: EndpointRole, seed: int) -> None:
    chance = random.Random(seed)
    options = {"transacted": chance.random() < 0.5, "restartable": chance.random() < 0.5}
    if role is EndpointRole.SERVER:
        engine, _ = server_with(limits=SMALL, service_type=chance.choice([1, 2]), **options)
    else:
        engine, _, handle = client_with(**options)
        handle.write(spec.HandleConsume())
        handle.write(spec.HandleQuery())
        handle.send(Message(spec.MessageHead(), b"z" * chance.choice([1, 9000])))
    for _ in range(200):
        octets = any_command(chance, role)
        if chance.random() < 0.02:
            octets = octets[: chance.randrange(len(octets))]
        if not check_end(engine, octets):
            break


@settings(max_examples=200)
@given(octets=st.binary(max_size=200), opened=st.booleans())
def test_any_octets_raise_nothing_but_a_reply_error(octets: bytes, opened: bool) -> None:
    server = server_with()[0] if opened else Engine(EndpointRole.SERVER, 0.0)
    check_end(server, octets)


def test_handles_in_excess_are_forgotten_when_both_have_closed_them() -> None:
    server, channel = server_with(limits=SMALL)
    for number in range(2, 20):
        opened = spec.HandleOpen(channel_id=1, handle_id=number, **QUEUE)
        server.receive_data(written(opened, spec.HandleClose(handle_id=number)), 0.0)
        for handle in list(channel.handles.values())[1:]:
            handle.close()
    assert list(channel.handles) == [1]
