"""SASL frames for the tests, and two toy mechanisms of several rounds."""

from __future__ import annotations

from typing import Any

from trio_amqp10 import sasl
from trio_amqp10.amqp10.spec import SASL_PERFORMATIVES
from trio_amqp10.amqp10.wire.encode import encode
from trio_amqp10.amqp10.wire.frames import SASL_FRAME, encode_frame, parse_frame


def frame(performative: Any) -> bytes:
    return encode_frame(0, encode(performative), SASL_FRAME)


def performatives(data: bytes) -> list[Any]:
    found: list[Any] = []
    while data:
        parsed = parse_frame(data, 0, 65_536)
        assert parsed is not None
        frame_type, channel, start, end = parsed
        assert (frame_type, channel) == (SASL_FRAME, 0)
        performative, stop = SASL_PERFORMATIVES.decode(data[:end], start)
        assert stop == end
        found.append(performative)
        data = data[end:]
    return found


class CountClient(sasl.ClientMechanism):
    """Answers each challenge with its octets doubled, and requires ``proof``."""

    name = "X-COUNT"

    def __init__(self, *, asks: bool = False, proof: bytes | None = b"proof") -> None:
        self.asks = asks
        self.proof = proof
        self.context: sasl.ClientContext | None = None

    def begin(self, context: sasl.ClientContext) -> sasl.ClientExchange:
        self.context = context
        return _CountClient(self)


class _CountClient(sasl.ClientExchange):
    def __init__(self, mechanism: CountClient) -> None:
        self.mechanism = mechanism

    def start(self) -> sasl.Respond | sasl.Question:
        return sasl.Question("a token", fetch_token) if self.mechanism.asks else sasl.Respond(None)

    def answer(self, value: object) -> sasl.Respond:
        assert isinstance(value, bytes)
        return sasl.Respond(value)

    def challenge(self, data: bytes) -> sasl.Respond:
        return sasl.Respond(data * 2 or None)

    def finish(self, data: bytes | None) -> str | None:
        return None if data == self.mechanism.proof else "the server did not prove its identity"


class CountServer(sasl.ServerMechanism):
    """Sends ``rounds`` challenges, asks the application, and sends ``proof``."""

    name = "X-COUNT"

    def __init__(self, rounds: int, *, asks: bool = False, proof: bytes | None = b"proof") -> None:
        self.rounds = rounds
        self.asks = asks
        self.proof = proof

    def begin(self, context: sasl.ServerContext) -> sasl.ServerExchange:
        return _CountServer(self)


class _CountServer(sasl.ServerExchange):
    def __init__(self, mechanism: CountServer) -> None:
        self.mechanism = mechanism
        self.round = 0
        self.got: list[bytes | None] = []

    def start(self, initial_response: bytes | None) -> Any:
        return self.response(initial_response)

    def response(self, data: bytes | None) -> Any:
        self.got.append(data)
        if self.round < self.mechanism.rounds:
            self.round += 1
            return sasl.Challenge(b"c%d" % self.round)
        return sasl.Question("the user", fetch_token) if self.mechanism.asks else self.answer(True)

    def answer(self, value: object) -> Any:
        return sasl.Verified("counter", self.mechanism.proof) if value is True else sasl.Refused()


async def fetch_token() -> bytes:
    return b"token"


def settle(question: sasl.Question) -> Any:
    """Return the answer, from work for a thread or a coroutine that never waits."""
    if question.work is not None:
        return question.work()
    coroutine: Any = question.ask()
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits")


def carry(source: Any, target: Any) -> bytes:
    """Pass pending octets on and answer the questions that follow; return the octets."""
    data: bytes = source.data_to_send()
    if data:
        target.receive_data(data)
    while target.question is not None:
        target.answer(settle(target.question))
    return data


def converse(client: sasl.SaslClient, server: sasl.SaslServer) -> bytes:
    """Pass octets between both sides until neither has more to send."""
    carried = b""
    while True:
        said = carry(server, client) + carry(client, server)
        if not said:
            return carried
        carried += said
