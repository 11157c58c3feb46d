"""Two engines and what lies between them, and one engine with a peer made of octets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.engine_pairs import EnginePair, events_of
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine import Engine
from trio_amqp10.amqp091.events import OpenRequested, StartAnswered, Started
from trio_amqp10.amqp091.fields import USUAL
from trio_amqp10.amqp091.frames import METHOD, PROTOCOL_HEADER, frame
from trio_amqp10.endpoint_role import EndpointRole

from . import naive

if TYPE_CHECKING:
    from trio_amqp10.amqp091.limits import Limits
    from trio_amqp10.amqp091.methods import Method

CLIENT_PROPERTIES = {
    "capabilities": {"connection.blocked": True, "authentication_failure_close": True},
}


def written(method: Method, channel: int = 0) -> bytes:
    """A method frame."""
    return frame(METHOD, channel, method.plan.write(method, USUAL))


def said(engine: Engine) -> list[tuple[int, str, dict[str, Any]]]:
    """Channel, name and arguments of each method that the engine has to send, as the second reader reads them."""
    found: list[tuple[int, str, dict[str, Any]]] = []
    for kind, channel, payload in naive.frames(engine.data_to_send() or b""):
        assert kind == METHOD
        name, arguments = naive.method(payload)
        found.append((channel, name, arguments))
    return found


def codes(engine: Engine) -> list[tuple[str, int, tuple[int, int]]]:
    """The closes that the engine has to send: name, code, class and method."""
    return [
        (name, arguments["reply_code"], (arguments["class_id"], arguments["method_id"]))
        for _, name, arguments in said(engine)
        if name.endswith(".close")
    ]


class Pair(EnginePair[Engine]):
    """A client and a server of this wire."""

    def __init__(self, chunk: int = 0, client: Limits | None = None, server: Limits | None = None) -> None:
        super().__init__(
            Engine(EndpointRole.CLIENT, 0.0, client), Engine(EndpointRole.SERVER, 0.0, server), chunk
        )

    def decide(self, event: Any) -> None:
        if isinstance(event, Started):
            answer = spec.ConnectionStartOk(client_properties=CLIENT_PROPERTIES, response=b"\0ada\0secret")
            self.client.answer_start(answer, self.now)
        elif isinstance(event, StartAnswered):
            self.server.accept_login("ada", self.now)
        elif isinstance(event, OpenRequested):
            self.server.accept_open(self.now)

    def channels(self) -> tuple[Any, Any]:
        """One channel, at both ends."""
        ours = self.client.open_channel()
        self.run()
        return ours, self.events["server"][-1].channel


def connected(**limits: Limits) -> Pair:
    pair = Pair(**limits)  # type: ignore[arg-type]
    pair.run()
    return pair


OPENING = b"".join(
    (
        PROTOCOL_HEADER,
        written(spec.ConnectionStartOk(client_properties=CLIENT_PROPERTIES)),
        written(spec.ConnectionTuneOk(channel_max=2047, frame_max=131_072, heartbeat=60)),
        written(spec.ConnectionOpen()),
    )
)
"""What a client says until its connection is open."""


def open_server(limits: Limits | None = None, channels: int = 1) -> Engine:
    """A server whose client is made of octets; what both said so far is forgotten."""
    server = Engine(EndpointRole.SERVER, 0.0, limits)
    server.receive_data(OPENING, 0.0)
    server.accept_login("ada", 0.0)
    server.accept_open(0.0)
    for number in range(1, channels + 1):
        server.receive_data(written(spec.ChannelOpen(), number), 0.0)
    server.data_to_send()
    events_of(server)
    return server


def open_client(limits: Limits | None = None) -> tuple[Engine, Any]:
    """A client with channel 1, whose server is made of octets."""
    client = Engine(EndpointRole.CLIENT, 0.0, limits)
    client.receive_data(written(spec.ConnectionStart()), 0.0)
    client.answer_start(spec.ConnectionStartOk(), 0.0)
    client.receive_data(written(spec.ConnectionTune(heartbeat=60)) + written(spec.ConnectionOpenOk()), 0.0)
    channel = client.open_channel()
    client.receive_data(written(spec.ChannelOpenOk(), 1), 0.0)
    client.data_to_send()
    events_of(client)
    return client, channel
