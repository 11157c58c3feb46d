"""One connection of a 0-9-1 client to a container: channels, secrets, statistics.

``channel`` processes the methods of a channel.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.events import (
    ChannelClosed,
    ChannelOpened,
    ConnectionClosed,
    ConnectionLost,
    SecretUpdated,
)
from trio_amqp10.amqp091.wire.faults import ReplyError
from trio_amqp10.broker.nodes.message_origin import origin_of
from trio_amqp10.broker.nodes.node import RefusedError
from trio_amqp10.broker.peer_interfaces import LinkView
from trio_amqp10.core.errors import Condition
from trio_amqp10.core.reply_codes import ReplyCode091, reply_text

from .channel import ChannelOwner, ServerChannel
from .faults import connection_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trio_amqp10.amqp091.engine.engine import Engine
    from trio_amqp10.broker.exchanges.topology import Topology
    from trio_amqp10.broker.nodes.node import Node
    from trio_amqp10.broker.peer_interfaces import ServingContainer
    from trio_amqp10.net.pump import Pump, Traffic

    from .login import Login
    from .server_habits import Habits

_BLOCKED: Final = "low on memory"


class ServedConnection(ChannelOwner):
    """One client; see ``ChannelPeer``.

    If it supports ``connection.blocked``, it is notified while its publishes are not read.

    Args:
        container: the container that serves it.
        broker: the container's exchanges and queues.
        engine, pump, traffic: those of the connection.
        login: the login of the client.
        host: the client's IP address.
        habits: options for compatibility with other servers.

    Attributes:
        broker, habits: as given.
        origin: identifies the client as the publisher of messages.
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
        """Return a view of each consumer."""
        for channel in self.channels.values():
            for tag, outlet in channel.consuming.outlets.items():
                yield LinkView("sender", f"{channel.number}/{tag}", outlet.statistics, outlet.close)

    def close(self, condition: str, description: str, info: Mapping[Any, Any] | None = None) -> None:
        """Close the connection; see ``ConnectedPeer``."""
        _ = info
        code = connection_code(condition)
        self.engine.close(trio.current_time(), code, reply_text(code, description))
        self.end_channels()

    def fail(self, fault: ReplyError) -> None:
        """Close the connection, because a method violated a rule."""
        now = trio.current_time()
        self.engine.close(now, fault.code, fault.reply_text, fault.class_id, fault.method_id)
        self.end_channels()

    # -- events -----------------------------------------------------------------------------

    def on_event(self, event: Any) -> None:
        """Handle an event of an open connection's engine."""
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
        """Return a channel for one that the client has opened."""
        return ServerChannel(self, opened.channel)

    async def _renew(self) -> None:
        """Answer new secrets in order; close with 530 if a token is not accepted."""
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
        """Close the connection with 530 when its token expires, unless it is renewed."""
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
        """End the channels after the methods that have already come."""
        for channel in list(self.channels.values()):
            channel.close()
        self.over.set()

    def ended(self) -> None:
        """End the connection's objects; see ``ConnectedPeer``."""
        super().ended()
        self._forget_token()
        self.broker.disown(self)

    def on_blocked(self) -> None:
        """Send connection.blocked; see ``ChannelPeer``."""
        self.engine.block(_BLOCKED)

    def on_unblocked(self) -> None:
        """Send connection.unblocked; see ``ChannelPeer``."""
        self.engine.unblock()

    def _find(self, address: str) -> Node:
        """Return an existing node: a publish does not create one."""
        node = self._container.nodes.get(address)
        if node is None:
            raise RefusedError(Condition.NOT_FOUND, f"there is no node {address!r}")
        return node
