"""What both sides share: frames, states, and two of them back to back."""

from __future__ import annotations

from contextlib import suppress
from struct import pack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naive.performatives import parse_frames
from tests.sasl.frames import CountClient, CountServer, frame
from trio_amqp10 import sasl
from trio_amqp10.amqp10.engine.sasl_layer import MOVES, RECEIVES, sasl_frame_size
from trio_amqp10.amqp10.spec.security import SaslCode, SaslInit, SaslMechanisms, SaslOutcome
from trio_amqp10.amqp10.spec.transport import Close, Open
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.frames import AMQP_FRAME, EMPTY_FRAME, SASL_FRAME, encode_frame
from trio_amqp10.core.errors import AmqpError, RemoteProtocolError
from trio_amqp10.core.peer_rules import Strict
from trio_amqp10.sasl import SaslState

USERS = {"guest": "guest-secret"}
INIT = frame(SaslInit(mechanism="PLAIN", initial_response=b"\0guest\0guest-secret"))


def make(side: str, max_frame_size: int = 8192) -> Any:
    if side == "client":
        return sasl.SaslClient([sasl.Plain("guest", "guest-secret")], max_frame_size=max_frame_size)
    return sasl.SaslServer(sasl.Server(USERS).offer(secure=True), max_frame_size=max_frame_size)


sides = pytest.mark.parametrize("side", ["client", "server"])


def refuse(layer: Any, data: bytes) -> RemoteProtocolError:
    """Irrecoverable: raised at once, nothing more to send, nothing more is read."""
    with pytest.raises(RemoteProtocolError) as caught:
        layer.receive_data(data)
    assert layer.failed
    assert not layer.done
    assert layer.data_to_send() == b""
    layer.receive_data(data)
    return caught.value


@sides
def test_row_8_layer_refuses_a_large_frame_from_its_size_alone(side: str) -> None:
    error = refuse(make(side), pack(">I", 8193))
    assert (error.condition, error.rule) == ("amqp:connection:framing-error", "sasl-frame-size")


@sides
def test_row_8_layer_takes_512_octets_and_no_more_when_strict(side: str) -> None:
    layer = make(side, 512)
    layer.receive_data(pack(">I", 512))
    assert not layer.failed
    refuse(make(side, 512), pack(">I", 513))


def test_row_8_layer_sends_512_octets_and_no_more_when_strict() -> None:
    head = len(frame(SaslOutcome(code=SaslCode.OK, additional_data=bytes(256)))) - 256
    for size, failed in ((512, False), (513, True)):
        server = sasl.SaslServer([CountServer(0, proof=bytes(size - head))], max_frame_size=512)
        server.data_to_send()
        server.receive_data(frame(SaslInit(mechanism="X-COUNT")))
        assert server.failed is failed


def test_row_8_sasl_frames_have_8192_octets_unless_the_standard_is_kept_to_the_letter() -> None:
    assert sasl_frame_size(Strict.all(True)) == 512
    assert sasl_frame_size(Strict.all(False)) == sasl_frame_size(Strict()) == 8192


@sides
def test_row_9_layer_refuses_an_empty_frame(side: str) -> None:
    assert "empty frame" in str(refuse(make(side), encode_frame(0, b"", SASL_FRAME)))


@sides
def test_row_9_layer_refuses_what_follows_the_performative_in_its_frame(side: str) -> None:
    body = encode(
        SaslInit(mechanism="PLAIN") if side == "server" else SaslMechanisms(sasl_server_mechanisms=["PLAIN"])
    )
    name = "SaslInit" if side == "server" else "SaslMechanisms"
    error = str(refuse(make(side), encode_frame(0, body + b"\x40", SASL_FRAME)))
    assert f"1 octets follow {name} in its frame" in error
    assert "octets follow" in str(refuse(make(side), encode_frame(0, body + body, SASL_FRAME)))


@sides
def test_row_10_layer_refuses_frames_of_the_amqp_type(side: str) -> None:
    assert "a frame of type 0" in str(refuse(make(side), EMPTY_FRAME))
    assert "a frame of type 0" in str(
        refuse(make(side), encode_frame(0, encode(SaslInit(mechanism="PLAIN")), AMQP_FRAME))
    )
    assert "a frame of type 2" in str(refuse(make(side), encode_frame(0, b"x", 2)))


@sides
@pytest.mark.parametrize("performative", [Open(container_id="x"), Close()])
def test_row_10_layer_refuses_performatives_of_the_amqp_layer(side: str, performative: Any) -> None:
    refuse(make(side), encode_frame(0, encode(performative), SASL_FRAME))


@sides
@pytest.mark.parametrize(
    "body",
    [
        "40",
        "a0 01 00",
        "00 53 45 c0 01 00",
        "00 53 41 a0 00",
        "00 53 41 c0 01 00",
        "00 53 41 c0 05 01 a1 01 41 41",
    ],
)
def test_layer_refuses_what_is_no_performative_of_its_own(side: str, body: str) -> None:
    refuse(make(side), encode_frame(0, bytes.fromhex(body), SASL_FRAME))


def test_layer_ignores_the_channel_and_the_extended_header() -> None:
    body = INIT[8:]
    data = pack(">IBBH", 12 + len(body), 3, SASL_FRAME, 0xABCD) + b"more" + body
    server = make("server")
    server.receive_data(data)
    assert server.done


def converse(client: sasl.SaslClient, server: sasl.SaslServer, sizes: list[int]) -> bytes:
    """Carry octets both ways in pieces of these sizes, over and over; what was carried comes back."""
    carried = b""
    turn = 0
    while True:
        quiet = True
        for source, target in ((server, client), (client, server)):
            data = source.data_to_send()
            carried += data
            quiet = quiet and not data
            while data:
                size = sizes[turn % len(sizes)]
                turn += 1
                target.receive_data(data[:size])
                data = data[size:]
                if target.question is not None:
                    target.answer(b"token" if target is client else True)
                    quiet = False
        if quiet:
            return carried


def test_layers_say_the_same_to_the_second_codec() -> None:
    client = sasl.SaslClient([CountClient()], hostname="example.com")
    carried = converse(client, sasl.SaslServer([CountServer(1)]), [10_000])
    assert [(each.name, each.fields) for each in parse_frames(carried)] == [
        ("sasl-mechanisms", {"sasl_server_mechanisms": ["X-COUNT"]}),
        ("sasl-init", {"mechanism": "X-COUNT", "hostname": "example.com"}),
        ("sasl-challenge", {"challenge": b"c1"}),
        ("sasl-response", {"response": b"c1c1"}),
        ("sasl-outcome", {"code": 0, "additional_data": b"proof"}),
    ]


sizes = st.lists(st.integers(1, 40), min_size=1, max_size=6)


@given(sizes=sizes, rounds=st.integers(0, 8), client_asks=st.booleans(), server_asks=st.booleans())
def test_layers_agree_in_any_chunking(
    sizes: list[int], rounds: int, client_asks: bool, server_asks: bool
) -> None:
    client = sasl.SaslClient([CountClient(asks=client_asks)], hostname="example.com")
    server = sasl.SaslServer([CountServer(rounds, asks=server_asks)])
    again = sasl.SaslClient([CountClient(asks=client_asks)], hostname="example.com")
    other = sasl.SaslServer([CountServer(rounds, asks=server_asks)])
    assert converse(client, server, sizes) == converse(again, other, [10_000])
    assert client.done
    assert server.done
    assert server.identity == sasl.Identity("counter", "X-COUNT")


@given(sizes=sizes, rest=st.binary(max_size=60))
def test_layer_keeps_the_rest_in_any_chunking(sizes: list[int], rest: bytes) -> None:
    server = make("server")
    data = INIT + rest
    turn = 0
    while data:
        size = sizes[turn % len(sizes)]
        server.receive_data(data[:size])
        data = data[size:]
        turn += 1
    assert server.take_rest() == rest


@sides
@given(data=st.binary(max_size=60))
def test_layer_raises_nothing_else_on_garbage(side: str, data: bytes) -> None:
    layer = make(side)
    try:
        layer.receive_data(data)
    except AmqpError:
        assert layer.failed
    assert not layer.done


@given(position=st.integers(0, len(INIT) - 1), octet=st.integers(0, 255))
def test_server_authenticates_nobody_by_an_init_with_one_octet_changed(position: int, octet: int) -> None:
    data = INIT[:position] + bytes([octet]) + INIT[position + 1 :]
    server = make("server")
    try:
        server.receive_data(data)
    except RemoteProtocolError:
        assert server.failed
    harmless = data == INIT or (position in (6, 7))  # the channel means nothing
    assert server.done is harmless


@given(body=st.binary(min_size=1, max_size=24))
def test_server_raises_nothing_else_on_a_frame_of_garbage(body: bytes) -> None:
    server = make("server")
    with suppress(RemoteProtocolError):
        server.receive_data(encode_frame(0, b"\x00\x53" + body, SASL_FRAME))
    assert server.failed


def test_states_lead_somewhere_or_are_final() -> None:
    assert set(MOVES) == set(SaslState)
    assert {state for state, moves in MOVES.items() if not moves} == {SaslState.DONE, SaslState.FAILED}
    assert all(SaslState.FAILED in moves for moves in MOVES.values() if moves)
    assert set(RECEIVES) == {state for state in SaslState if state.name.startswith("EXPECT")}
    assert repr(SaslState.DONE) == "<DONE>"
