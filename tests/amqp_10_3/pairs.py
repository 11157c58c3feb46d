"""Two engines of 10.3 and what lies between them, and one engine with a peer made of octets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.engine_pairs import EnginePair, events_of
from trio_amqp10.amqp091.engine.engine import Engine
from trio_amqp10.amqp091.engine.events import OpenRequested, StartAnswered, Started
from trio_amqp10.amqp091.wire.fields import FIVE
from trio_amqp10.amqp091.wire.frames import METHOD
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.engine.profile import V10_3
from trio_amqp10.amqp_10_3.wire.frames import FRAMES, PROTOCOL_HEADER
from trio_amqp10.core.endpoint_role import EndpointRole

from . import naive

if TYPE_CHECKING:
    from trio_amqp10.amqp091.engine.limits import Limits
    from trio_amqp10.amqp091.wire.methods import Method


def written(method: Method, channel: int = 0) -> bytes:
    """A method frame."""
    return FRAMES.frame(METHOD, channel, method.plan.write(method, FIVE))


def said(engine: Engine) -> list[tuple[int, str, list[Any]]]:
    """Channel, name and arguments of each method that the engine has to send, as the second reader reads them."""
    found: list[tuple[int, str, list[Any]]] = []
    for kind, channel, payload in naive.frames(engine.data_to_send() or b""):
        assert kind == METHOD
        found.append((channel, *naive.method(payload)))
    return found


def codes(engine: Engine) -> list[tuple[str, int]]:
    """The closes that the engine has to send: name and code."""
    return [(name, arguments[0]) for _, name, arguments in said(engine) if name.endswith(".close")]


def client_engine(limits: Limits | None = None, **options: Any) -> Engine:
    return Engine(EndpointRole.CLIENT, 0.0, limits, profile=V10_3, **options)


def server_engine(limits: Limits | None = None, **options: Any) -> Engine:
    return Engine(EndpointRole.SERVER, 0.0, limits, profile=V10_3, **options)


class Pair(EnginePair[Engine]):
    """A client and a server; ``run`` carries octets until neither has any, and decides what is asked.

    Attributes:
        redirect: where the server sends a client that does not insist; None to let it in.
    """

    def __init__(
        self,
        chunk: int = 0,
        limits: Limits | None = None,
        *,
        redirect: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(client_engine(limits, **options), server_engine(limits), chunk)
        self.redirect = redirect

    def decide(self, event: Any) -> None:
        if isinstance(event, Started):
            self.client.answer_start(spec.ConnectionStartOk(response=b"\0ada\0secret"), 0.0)
        elif isinstance(event, StartAnswered):
            self.server.accept_login("ada", 0.0)
        elif isinstance(event, OpenRequested):
            if self.redirect is not None and not event.insist:
                self.server.redirect(self.redirect, "h3:5672")
            else:
                self.server.accept_open(0.0, known_hosts="h2:5672")

    def channels(self, **arguments: Any) -> tuple[Any, Any]:
        """One channel, at both ends."""
        ours = self.client.open_channel(**arguments)
        self.run()
        return ours, self.events["server"][-1].channel


def connected(**options: Any) -> Pair:
    pair = Pair(**options)
    pair.run()
    return pair


OPENING = b"".join(
    (
        PROTOCOL_HEADER,
        written(spec.ConnectionStartOk()),
        written(spec.ConnectionTuneOk(channel_max=2047, frame_max=131_072, heartbeat=60)),
        written(spec.ConnectionOpen()),
    )
)
"""What a client says until its connection is open."""


def open_server(limits: Limits | None = None, channels: int = 1) -> Engine:
    """A server whose client is made of octets; what both said so far is forgotten."""
    server = server_engine(limits)
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
    client = client_engine(limits)
    client.receive_data(written(spec.ConnectionStart()), 0.0)
    client.answer_start(spec.ConnectionStartOk(), 0.0)
    client.receive_data(written(spec.ConnectionTune(heartbeat=60)) + written(spec.ConnectionOpenOk()), 0.0)
    channel = client.open_channel()
    client.receive_data(written(spec.ChannelOpenOk(), 1), 0.0)
    client.data_to_send()
    events_of(client)
    return client, channel
