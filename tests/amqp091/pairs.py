"""Two engines and what lies between them, and one engine with a peer made of octets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.engine_pairs import EnginePair, arrivals_of, events_of
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.engine import Engine
from trio_amqp10.amqp091.engine.events import OpenRequested, StartAnswered, Started
from trio_amqp10.amqp091.wire.content import BasicProperties, Content, write_header
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.amqp091.wire.frames import BODY, HEADER, METHOD, PROTOCOL_HEADER, frame
from trio_amqp10.core.endpoint_role import EndpointRole

from . import naive

if TYPE_CHECKING:
    from trio_amqp10.amqp091.engine.limits import Limits
    from trio_amqp10.amqp091.wire.methods import Method

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


HELLO = Content(BasicProperties(content_type="text/plain"), b"hello")


PUBLISH = written(spec.BasicPublish(routing_key="q"), 1)


def head(size: int, properties: BasicProperties | None = None) -> bytes:
    payload = write_header(Content(properties or BasicProperties(), b""), USUAL)
    return frame(HEADER, 1, payload[:4] + size.to_bytes(8) + payload[12:])


def published(body: bytes = b"", properties: BasicProperties | None = None) -> bytes:
    return PUBLISH + head(len(body), properties) + (frame(BODY, 1, body) if body else b"")


def methods_of(channel: Any) -> list[str]:
    return [arrival.method.plan.name for arrival in arrivals_of(channel)]


def consuming(pair: Pair, ours: Any, theirs: Any, tag: str = "t", **options: Any) -> None:
    """A consumer at both ends."""
    ours.send(spec.BasicConsume(queue="q", consumer_tag=tag, **options))
    pair.run()
    if not options.get("no_wait"):
        theirs.send(spec.BasicConsumeOk(consumer_tag=tag or "made-up"))
        pair.run()
    arrivals_of(ours)
    arrivals_of(theirs)


def refused(octets: bytes, limits: Limits | None = None) -> Any:
    """The only close that a server says to these octets on channel 1, and whether it raised."""
    server = open_server(limits)
    raised = False
    try:
        server.receive_data(octets, 0.0)
    except ReplyError:
        raised = True
    for channel in list(server._channels.values()):
        try:
            arrivals_of(channel)
        except ReplyError as fault:  # A channel is closed after the methods before have been processed.
            channel.close(fault.code, fault.reply_text, fault.class_id, fault.method_id)
    (close,) = codes(server)
    assert raised == (close[0] == "connection.close")
    return close


START_OK = spec.ConnectionStartOk(client_properties=CLIENT_PROPERTIES)


TUNE_OK = spec.ConnectionTuneOk(channel_max=7, frame_max=4096, heartbeat=3)
