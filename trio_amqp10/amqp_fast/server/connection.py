"""A client's connection to a container: its channels, and its view for management."""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp_fast.engine.engine import Engine
from trio_amqp10.amqp_fast.engine.events import (
    ChannelFailed,
    ChannelOpened,
    ConnectionClosed,
    ConnectionLost,
    HandleFailed,
)
from trio_amqp10.broker.channel_peer import ChannelPeer
from trio_amqp10.broker.nodes.message_origin import origin_of
from trio_amqp10.broker.peer_interfaces import LinkView
from trio_amqp10.core.reply_codes import reply_text

from .channel import ServerChannel
from .faults import code_of
from .outlets import ConsumerOutlet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trio_amqp10.broker.peer_interfaces import ServingContainer
    from trio_amqp10.net.pump import Pump, Traffic
    from trio_amqp10.sasl.mechanism import Identity

    from .destinations import Destinations


class ServedConnection(ChannelPeer[Engine, ServerChannel]):
    """A connected client; see ``ChannelPeer``.

    Args:
        container: the container that serves the client.
        destinations: resolves names of destinations.
        engine, pump, traffic: those of the connection.
        identity: the proven identity of the client.
        host: the IP address of the client.

    Attributes:
        destinations: as given.
        client_name: the name that the client chose, which identifies its durable subscriptions; may be empty.
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
        # The owner includes the user, so that another user with this name does not find the messages.
        engine.owner = origin_of(self)

    def outgoing_links(self) -> Iterator[LinkView]:
        """Iterate over the subscriptions of the client."""
        for channel in self.channels.values():
            for handle in channel.handles.values():
                for number, outlet in enumerate(handle.outlets):
                    name = f"{channel.engine.id}/{handle.engine.id}/{number}"
                    kind = "attached" if isinstance(outlet, ConsumerOutlet) else "replies"
                    figures = partial(_figures_of, kind, outlet.address)
                    yield LinkView("sender", name, figures, outlet.close)

    def close(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        """Close the connection with an error; see ``ConnectedPeer``."""
        _ = info
        code = code_of(condition)
        self.engine.close(trio.current_time(), code, reply_text(code, description))
        self.end_channels()

    def on_event(self, event: Any) -> None:
        """Process an event of the engine of an open connection."""
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
        """Process the end of the connection, after the commands that arrived before it."""
        for channel in list(self.channels.values()):
            channel.run()
        self.over.set()


def _figures_of(state: str, address: str) -> dict[str, Any]:
    return {"state": state, "address": address}
