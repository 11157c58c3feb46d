"""One connection of a client of 0-9-1 to a container: its channels, its secret, and what the container sees of it.

Knows the container and the engine; what methods of a channel do is in ``channel``.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.events import (
    ChannelClosed,
    ChannelOpened,
    ConnectionClosed,
    ConnectionLost,
    SecretUpdated,
)
from trio_amqp10.amqp091.faults import ReplyError
from trio_amqp10.container.connected_peer import LinkView
from trio_amqp10.container.nodes.message_origin import origin_of
from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.errors import Condition
from trio_amqp10.reply_codes import ReplyCode091, reply_text

from .channel import ChannelOwner, ServerChannel
from .faults import connection_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trio_amqp10.amqp091.engine import Engine
    from trio_amqp10.container.broker.topology import Topology
    from trio_amqp10.container.connected_peer import ServingContainer
    from trio_amqp10.container.nodes.node import Node
    from trio_amqp10.net.pump import Pump, Traffic

    from .login import Login
    from .rabbitmq_compatibility import Habits

__all__ = ["ServedConnection"]

_BLOCKED: Final = "low on memory"


class ServedConnection(ChannelOwner):
    """One client; see ``ChannelPeer``. One that understands ``connection.blocked`` is told why it is not read.

    Args:
        container: that serves it.
        broker: its exchanges and queues.
        engine, pump, traffic: of the connection.
        login: by which the client came in.
        host: the IP address that it dialled from.
        habits: what differs from one server to the next.

    Attributes:
        broker, habits: as given.
        origin: of what it publishes.
    """

    protocol = "AMQP 0-9-1"

    __slots__ = ("_login", "_token_scope", "_updates")

    def __init__(
        self,
        container: ServingContainer,
        broker: Topology,
        engine: Engine,
        pump: Pump,
        traffic: Traffic,
        *,
        login: Login,
        host: str | None,
        habits: Habits,
    ) -> None:
        name = engine.peer_properties.get("connection_name")
        super().__init__(
            container,
            self._find,
            engine,
            pump,
            traffic,
            name=name if isinstance(name, str) and name else str(uuid.uuid4()),
            identity=login.identity,
            host=host,
        )
        self.origin: str = origin_of(self)
        self.broker = broker
        self.habits = habits
        self._login = login
        self._updates: list[bytes] = []
        self._token_scope: trio.CancelScope | None = None

    def outgoing_links(self) -> Iterator[LinkView]:
        """Its consumers."""
        for channel in self.channels.values():
            for tag, outlet in channel.consuming.outlets.items():
                yield LinkView("sender", f"{channel.number}/{tag}", outlet.statistics)

    def close(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        """As for ``ConnectedPeer``."""
        _ = info
        code = connection_code(condition)
        self.engine.close(trio.current_time(), code, reply_text(code, description))
        self.end_channels()

    def fail(self, fault: ReplyError) -> None:
        """A method broke a rule that ends the connection."""
        now = trio.current_time()
        self.engine.close(now, fault.code, fault.reply_text, fault.class_id, fault.method_id)
        self.end_channels()

    # -- what happens -----------------------------------------------------------------------

    def on_event(self, event: Any) -> None:
        """What the engine reports of an open connection."""
        if isinstance(event, ChannelOpened):
            self.channels[event.channel] = self.make_channel(event)
        elif isinstance(event, ChannelClosed):
            channel = self.channels.get(event.channel)
            if channel is not None:
                channel.close()
        elif isinstance(event, SecretUpdated):
            self._updates.append(event.secret)
            if len(self._updates) == 1:
                self.start_soon(self._renew)
        elif isinstance(event, (ConnectionClosed, ConnectionLost)):
            self.on_over()

    def make_channel(self, opened: ChannelOpened) -> ServerChannel:
        """A channel that the client has opened."""
        return ServerChannel(self, opened.channel)

    async def _renew(self) -> None:
        """Answer new secrets, in order; the connection ends with 530 if one is a token that is not good."""
        while self._updates:
            accepted = await self._login.renew(self._updates[0])
            del self._updates[0]
            if not self.engine.is_open:
                return
            if not accepted:
                method = spec.ConnectionUpdateSecret.plan
                fault = ReplyError(ReplyCode091.NOT_ALLOWED, "the new token is not accepted")
                self.fail(fault.about(method.class_id, method.method_id))
                return
            self.engine.accept_secret()
            self._forget_token()
            self.watch_token()

    def watch_token(self) -> None:
        """End the connection with 530 when the token of the client ends, unless another takes its place."""
        if self._login.expires is not None and self.open:
            assert self.nursery is not None
            self._token_scope = trio.CancelScope()
            self.nursery.start_soon(self._expire, self._token_scope, self._login.expires)

    def _forget_token(self) -> None:
        scope, self._token_scope = self._token_scope, None
        if scope is not None:
            scope.cancel()

    async def _expire(self, scope: trio.CancelScope, expires: float) -> None:
        with scope:
            await trio.sleep(max(0.0, expires - self._container.clock.wall()))
            self.fail(ReplyError(ReplyCode091.NOT_ALLOWED, "the token has expired"))

    def on_over(self) -> None:
        """Nothing more comes; what came is still done."""
        for channel in list(self.channels.values()):
            channel.close()
        self.over.set()

    def ended(self) -> None:
        """As for ``ConnectedPeer``."""
        super().ended()
        self._forget_token()
        self.broker.disown(self)

    def on_blocked(self) -> None:
        """As for ``ChannelPeer``: connection.blocked."""
        self.engine.block(_BLOCKED)

    def on_unblocked(self) -> None:
        """As for ``ChannelPeer``: connection.unblocked."""
        self.engine.unblock()

    def _find(self, address: str) -> Node:
        """A node that is there: what nobody declared is not made by publishing to it."""
        node = self._container.nodes.get(address)
        if node is None:
            raise RefusedError(Condition.NOT_FOUND, f"no node {address!r}")
        return node
