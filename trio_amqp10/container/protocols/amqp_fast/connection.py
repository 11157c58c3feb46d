"""One connection of a client of AMQP/Fast to a container: its channels, and what the container sees of it.

Knows the container and the engine; what commands of a channel do is in ``channel``.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp_fast.engine import Engine
from trio_amqp10.amqp_fast.events import (
    ChannelFailed,
    ChannelOpened,
    ConnectionClosed,
    ConnectionLost,
    HandleFailed,
)
from trio_amqp10.container.connected_peer import LinkView
from trio_amqp10.container.nodes.message_origin import origin_of
from trio_amqp10.container.protocols.channel_peer import ChannelPeer
from trio_amqp10.reply_codes import reply_text

from .channel import ServerChannel
from .faults import code_of
from .outlets import ConsumerOutlet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trio_amqp10.container.connected_peer import ServingContainer
    from trio_amqp10.net.pump import Pump, Traffic
    from trio_amqp10.sasl.mechanism import Identity

    from .destinations import Destinations

__all__ = ["ServedConnection"]


class ServedConnection(ChannelPeer[Engine, ServerChannel]):
    """One client; see ``ChannelPeer``.

    Args:
        container: that serves it.
        destinations: what names mean.
        engine, pump, traffic: of the connection.
        identity: who the client proved to be.
        host: the IP address that it dialled from.

    Attributes:
        destinations: as given.
        client_name: the name that the client gave itself, by which its durable subscriptions are known; may be empty.
    """

    protocol = "AMQP/Fast"

    __slots__ = ("client_name", "destinations")

    def __init__(
        self,
        container: ServingContainer,
        destinations: Destinations,
        engine: Engine,
        pump: Pump,
        traffic: Traffic,
        *,
        identity: Identity | None,
        host: str | None,
    ) -> None:
        self.client_name: Final = engine.opened.client_name
        name = self.client_name or str(uuid.uuid4())
        super().__init__(
            container, container.find, engine, pump, traffic, name=name, identity=identity, host=host
        )
        self.destinations: Final = destinations
        engine.owner = origin_of(self)  # a client of another user with this name does not find what has come

    def outgoing_links(self) -> Iterator[LinkView]:
        """Its subscriptions."""
        for channel in self.channels.values():
            for handle in channel.handles.values():
                for number, outlet in enumerate(handle.outlets):
                    name = f"{channel.engine.id}/{handle.engine.id}/{number}"
                    kind = "attached" if isinstance(outlet, ConsumerOutlet) else "replies"
                    yield LinkView("sender", name, partial(dict, state=kind, address=outlet.address))

    def close(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        """As for ``ConnectedPeer``."""
        _ = info
        code = code_of(condition)
        self.engine.close(trio.current_time(), code, reply_text(code, description))
        self.end_channels()

    def on_event(self, event: Any) -> None:
        """What the engine reports of an open connection."""
        if isinstance(event, ChannelOpened):
            self.channels[event.channel] = ServerChannel(self, event.channel)
        elif isinstance(event, ChannelFailed):
            channel = self.channels.get(event.channel)
            if channel is not None:
                channel.end()
        elif isinstance(event, HandleFailed):
            channel = self.channels.get(event.handle.channel)
            handle = None if channel is None else channel.handles.get(event.handle)
            if channel is not None and handle is not None:
                channel.end_handle(handle)
        elif isinstance(event, (ConnectionClosed, ConnectionLost)):
            self.on_over()

    def on_over(self) -> None:
        """Nothing more comes; what came is still done."""
        for channel in list(self.channels.values()):
            channel.run()
        self.over.set()
