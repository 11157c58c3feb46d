"""The SASL layer in frames of the draft (Book VI, 3)."""

from __future__ import annotations

from typing import Any

import pytest

from trio_amqp10.amqp10.draft_2010.connection import DraftConnection
from trio_amqp10.amqp10.draft_2010.registries import SASL_FRAME_BODIES, read
from trio_amqp10.amqp10.draft_2010.sasl import DraftSaslClient, DraftSaslServer
from trio_amqp10.amqp10.draft_2010.spec.security import SaslInit, SaslMechanisms, SaslOutcome
from trio_amqp10.amqp10.engine.events import Authenticated, ConnectionOpened
from trio_amqp10.amqp10.engine.layer_stack import Stack
from trio_amqp10.amqp10.wire.frames import SASL_FRAME, encode_frame
from trio_amqp10.core.errors import RemoteProtocolError
from trio_amqp10.core.protocol_headers import SASL_HEADER
from trio_amqp10.sasl import Plain, Server
from trio_amqp10.sasl.mechanism import ServerContext

from .test_vectors import named


def server(**users: str) -> DraftSaslServer:
    mechanisms = Server(users=users).offer(True, False, ServerContext())
    return DraftSaslServer(mechanisms, context=ServerContext())


def stacks(password: str) -> tuple[Stack, Stack]:
    dialler, acceptor = DraftConnection("dialler"), DraftConnection("acceptor")
    dialler.open()
    return (
        Stack(dialler, 0.0, sasl=DraftSaslClient([Plain("u", password)], hostname="h")),
        Stack(acceptor, 0.0, accepting=True, accept_sasl=lambda: server(u="p"), accept_plain=False),
    )


def sasl_bodies(octets: bytes) -> list[Any]:
    """The frames of the layer that these octets begin with, without its header."""
    found: list[Any] = []
    pos = 8 if octets.startswith(SASL_HEADER) else 0
    while octets[pos + 4 : pos + 6] == b"\x02\x01":
        size = int.from_bytes(octets[pos : pos + 4], "big")
        found.append(read(octets[pos + 8 : pos + size], SASL_FRAME_BODIES, strict=True))
        pos += size
    return found


def test_exchange_is_in_frames_of_the_draft_and_then_the_connection_opens() -> None:
    one, two = stacks("p")
    said: list[Any] = []
    for _ in range(6):
        for here, there in ((one, two), (two, one)):
            octets = here.data_to_send() or b""
            said += sasl_bodies(octets)
            there.receive_data(octets, 0.0)
    assert [type(body) for body in said] == [SaslMechanisms, SaslInit, SaslOutcome]
    events = [type(event) for event in iter(two.next_event, None)]
    assert events == [Authenticated, ConnectionOpened]
    assert two.identity is not None


def test_wrong_password_is_refused() -> None:
    one, two = stacks("wrong")
    with pytest.raises(Exception, match="refused the credentials"):
        for now in range(20):
            for here, there in ((one, two), (two, one)):
                here.handle_timer(float(now))
                there.receive_data(here.data_to_send() or b"", float(now))


@pytest.mark.parametrize(
    "frame",
    [
        encode_frame(0, b"", SASL_FRAME),
        encode_frame(0, named("sasl-init")[8:]),
        encode_frame(0, bytes.fromhex("005341c00100"), SASL_FRAME),
        named("sasl-outcome"),
    ],
)
def test_other_frames_are_refused(frame: bytes) -> None:
    layer = server(u="p")
    with pytest.raises(RemoteProtocolError):
        layer.receive_data(frame)
    assert layer.failed


def test_vectors_are_what_a_client_writes() -> None:
    layer = DraftSaslClient([Plain("a", "b")], hostname="h")
    layer.receive_data(named("sasl-mechanisms"))
    assert layer.data_to_send() == named("sasl-init")
