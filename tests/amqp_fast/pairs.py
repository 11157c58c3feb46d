"""Two connected engines, and an engine whose peer is made of octets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.engine_pairs import EnginePair, arrivals_of, events_of
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.engine import Engine
from trio_amqp10.amqp_fast.engine.events import (
    Challenged,
    ChannelFailed,
    HandleFailed,
    Initiated,
    OpenRequested,
    Responded,
)
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.amqp_fast.engine.message import Message, head_octets
from trio_amqp10.amqp_fast.wire.frames import INITIATION, frame_of
from trio_amqp10.core.endpoint_role import EndpointRole

from . import naive

if TYPE_CHECKING:
    from trio_amqp10.amqp_fast.engine.channel import Channel
    from trio_amqp10.amqp_fast.engine.handle import Handle
    from trio_amqp10.amqp_fast.engine.partial_messages import PartialMessages
    from trio_amqp10.amqp_fast.wire.commands import Command

NAMES = {plan.id: plan.name for plan in spec.COMMANDS}
HELLO = Message(spec.MessageHead(identifier="id-1"), b"hello")


def written(*commands: Command, fragment: bytes = b"") -> bytes:
    """Return frames, and a fragment after the last one."""
    return b"".join(map(frame_of, commands)) + fragment


def block_of(message: Message) -> bytes:
    """Return head and body of a message."""
    return head_octets(message.head, len(message.body), 1 << 20) + message.body


def sending(message: Message = HELLO, **fields: Any) -> bytes:
    """Return HANDLE SEND with a whole message."""
    block = block_of(message)
    return written(spec.HandleSend(handle_id=1, fragment_size=len(block), **fields), fragment=block)


def notifying(message: Message = HELLO, **fields: Any) -> bytes:
    """Return HANDLE NOTIFY with a whole message."""
    block = block_of(message)
    return written(spec.HandleNotify(handle_id=1, fragment_size=len(block), **fields), fragment=block)


def octets_of(engine: Engine) -> bytes:
    """Return all octets that the engine has to send now."""
    out = b""
    while data := engine.data_to_send():
        out += data
    return out


def said(engine: Engine) -> list[tuple[Any, ...]]:
    """Return name and fields of each command to send, as decoded by the second reader."""
    return [(NAMES[number], *values) for number, values, _ in naive.read(octets_of(engine))]


def names(engine: Engine) -> list[str]:
    """Return the names of the commands that the engine has to send."""
    return [each[0] for each in said(engine)]


class Pair(EnginePair[Engine]):
    """A connected client and server."""

    def __init__(
        self,
        chunk: int = 0,
        client: Limits | None = None,
        server: Limits | None = None,
        partials: tuple[PartialMessages | None, PartialMessages | None] = (None, None),
    ) -> None:
        opening = spec.ConnectionOpen(confirm_tag=1, virtual_path="/", client_name="ada")
        super().__init__(
            Engine(EndpointRole.CLIENT, 0.0, client, opening=opening, partials=partials[0]),
            Engine(EndpointRole.SERVER, 0.0, server, partials=partials[1]),
            chunk,
        )

    def decide(self, event: Any) -> None:
        if isinstance(event, Initiated):
            self.server.challenge("NONE", {}, self.now)
        elif isinstance(event, Challenged):
            self.client.respond("NONE", {}, self.now)
        elif isinstance(event, Responded):
            self.server.accept_login(self.now)
        elif isinstance(event, OpenRequested):
            self.server.owner = event.open.client_name
            self.server.accept_open(self.now)

    def channels(self, **fields: Any) -> tuple[Channel, Channel]:
        """Open a channel; return both ends."""
        ours = self.client.open_channel(spec.ChannelOpen(**fields))
        self.run()
        return ours, self.events["server"][-1].channel

    def handles(self, channels: tuple[Channel, Channel], **fields: Any) -> tuple[Handle, Handle]:
        """Open a handle; return both ends."""
        ours = channels[0].open_handle(spec.HandleOpen(**fields))
        self.run()
        theirs = arrivals_of(channels[1])[-1].handle
        assert theirs is not None
        return ours, theirs


def connected(**options: Any) -> Pair:
    pair = Pair(**options)
    pair.run()
    return pair


QUEUE: dict[str, Any] = {"producer": True, "consumer": True, "browser": True, "dest_name": "q"}
"""The command that opens a handle to a queue with all access."""


def opening_of_server(limits: Limits | None = None) -> Engine:
    """Return a server that waits for the client's response."""
    server = Engine(EndpointRole.SERVER, 0.0, limits)
    server.receive_data(INITIATION, 0.0)
    server.challenge("NONE PLAIN", {}, 0.0)
    octets_of(server)
    return server


def tuning_server(limits: Limits | None = None) -> Engine:
    """Return a server that waits for the client's open or tune."""
    server = opening_of_server(limits)
    server.receive_data(written(spec.ConnectionResponse(mechanism="NONE")), 0.0)
    server.accept_login(0.0)
    octets_of(server)
    events_of(server)
    return server


def open_server(limits: Limits | None = None) -> Engine:
    """Return an open server whose client is made of octets."""
    server = tuning_server(limits)
    server.receive_data(written(spec.ConnectionOpen(client_name="ada")), 0.0)
    server.accept_open(0.0)
    octets_of(server)
    events_of(server)
    return server


def server_with(*, limits: Limits | None = None, **fields: Any) -> tuple[Engine, Channel]:
    """Return a server with channel 1 and its handle 1, by default to a queue."""
    channel_fields = {name: fields.pop(name) for name in ("transacted", "restartable") if name in fields}
    server = open_server(limits)
    server.receive_data(written(spec.ChannelOpen(channel_id=1, **channel_fields)), 0.0)
    (event,) = events_of(server)
    opened = spec.HandleOpen(channel_id=1, handle_id=1, **(QUEUE | fields))
    server.receive_data(written(opened), 0.0)
    arrivals_of(event.channel)
    octets_of(server)
    return server, event.channel


def open_client(limits: Limits | None = None, *, tune: dict[str, Any] | None = None) -> Engine:
    """Return an open client whose server is made of octets."""
    client = Engine(EndpointRole.CLIENT, 0.0, limits)
    client.receive_data(written(spec.ConnectionChallenge(mechanisms="NONE")), 0.0)
    client.respond("NONE", {}, 0.0)
    options = {"FRAME_MAX": 8192} if tune is None else tune
    reply = spec.ConnectionReply(confirm_tag=1)
    client.receive_data(written(spec.ConnectionTune(options=options), reply), 0.0)
    octets_of(client)
    events_of(client)
    return client


def client_with(**fields: Any) -> tuple[Engine, Channel, Handle]:
    """Return a client with channel 1 and its handle 1, by default to a queue."""
    channel_fields = {name: fields.pop(name) for name in ("transacted", "restartable") if name in fields}
    client = open_client()
    channel = client.open_channel(spec.ChannelOpen(**channel_fields))
    handle = channel.open_handle(spec.HandleOpen(**(QUEUE | fields)))
    octets_of(client)
    return client, channel, handle


PEER: dict[str, Any] = {"service_type": 3, "producer": False, "consumer": False, "browser": False}


def failure(server: Any) -> tuple[str, int]:
    """The one handle or channel that was closed, and with which code; the client was sent the same."""
    (event,) = events_of(server)
    kind = "channel" if isinstance(event, ChannelFailed) else "handle"
    assert isinstance(event, ChannelFailed | HandleFailed)
    assert [(each[0], each[2]) for each in said(server)] == [(f"{kind} close", event.code)]
    return kind, event.code


HEAD = spec.MessageHead(identifier="id")


SMALL = Limits(frame_max=1024)


def send(fragment: bytes, *, handle: int = 1, **fields: Any) -> bytes:
    command = spec.HandleSend(handle_id=handle, fragment_size=len(fragment), **fields)
    return written(command, fragment=fragment)


def prepare(fragment: bytes, content_hash: str = "", *, handle: int = 1) -> bytes:
    command = spec.HandlePrepare(handle_id=handle, fragment_size=len(fragment), content_hash=content_hash)
    return written(command, fragment=fragment)


def bodies(channel: Any) -> list[bytes]:
    return [each.message.body for each in arrivals_of(channel) if each.message is not None]


def restartable(pair: Pair) -> tuple[Any, Any, Any, Any]:
    """Channel and handle at both ends."""
    channels = pair.channels(restartable=True)
    handles = pair.handles(channels, **QUEUE)
    return *channels, *handles
