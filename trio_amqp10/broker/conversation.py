"""One connection of a dialect with channels: the handshake, the client, the end.

Knows pumps and connected peers; the dialect knows the handshake.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import trio

from trio_amqp10.core.partial_pool import PoolMember
from trio_amqp10.net.engine_interface import Engine
from trio_amqp10.net.pump import READ_SIZE, Pump, Traffic

from .nodes.node import RefusedError

if TYPE_CHECKING:
    from trio_amqp10.net.dialect import AcceptedConnection

    from .channel_peer import ChannelPeer
    from .peer_interfaces import ServingContainer

_log = logging.getLogger("trio_amqp10.listen")


class _OpenedByUs(Engine, PoolMember, Protocol):
    def open_by(self, deadline: float) -> None:
        """Set the deadline for the client's open."""
        ...

    def accept_open(self, now: float) -> None:
        """Accept the open of the client."""
        ...


EngineT = TypeVar("EngineT", bound=_OpenedByUs)
PeerT = TypeVar("PeerT", bound="ChannelPeer[Any, Any]")


class Conversation(ABC, Generic[EngineT, PeerT]):
    """One connection. A dialect adds its handshake and its errors.

    Args:
        accepted: the connection.
        engine: a new engine, in the role of the server.
        close_timeout: seconds to wait for the answer to our close, and for the client's input before its close.

    Attributes:
        accepted, engine: as given.
        pump: drives the engine.
        traffic: the counters of the pump.
    """

    __slots__ = (
        "_client",
        "_close_timeout",
        "_event_receiver",
        "_event_sender",
        "_over",
        "accepted",
        "engine",
        "pump",
        "traffic",
    )

    def __init__(self, accepted: AcceptedConnection, engine: EngineT, close_timeout: float) -> None:
        self.accepted: AcceptedConnection = accepted
        self.engine: EngineT = engine
        engine.open_by(accepted.deadline)
        self.traffic: Final = Traffic()
        self.pump: Final = Pump(
            engine, accepted.transport.stream, self._on_event, self._on_over, totals=self.traffic
        )
        self._close_timeout = close_timeout
        self._event_sender: trio.MemorySendChannel[Any] | None
        self._event_sender, self._event_receiver = trio.open_memory_channel[Any](math.inf)
        self._client: PeerT | None = None
        self._over = False

    # -- for a dialect to override ----------------------------------------------------------

    @abstractmethod
    async def log_in(self, events: trio.MemoryReceiveChannel[Any]) -> tuple[ServingContainer, PeerT] | None:
        """Do the handshake; return the container that the client asks for, and the client.

        Return None if the client did not complete the handshake, or was refused.

        Args:
            events: the events of the engine during the handshake.
        """

    def on_enter(self, client: PeerT) -> None:
        """React to a client that is admitted; its open is answered after this."""

    def on_leave(self, client: PeerT) -> None:
        """React to the end of a client's connection, also if it was not admitted."""

    @abstractmethod
    def refuse(self, refusal: RefusedError) -> None:
        """Close the connection in answer to the client's open."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection, if it is open, because the service ends."""

    # -- from the first octet to the last ---------------------------------------------------

    async def serve(self) -> None:
        """Serve the connection to its end.

        Cancelled: the connection is closed by ``close``, and the answer is awaited.
        """
        pool = self.accepted.pool
        if pool is not None:
            pool.join(self.engine)
        try:
            await self._converse()
        finally:
            if pool is not None:
                pool.leave(self.engine)

    async def _converse(self) -> None:
        async with trio.open_nursery() as nursery:
            self.pump.start(nursery)
            head = self.accepted.transport.head
            if head:
                self.pump.feed(self.engine.receive_slice, head, trio.current_time())
            try:
                await self._run()
            finally:
                with trio.CancelScope(shield=True, deadline=trio.current_time() + self._close_timeout):
                    self.close()
                    await self.pump.finished.wait()
                self.pump.cancel()
            nursery.cancel_scope.cancel()

    async def _run(self) -> None:
        found = await self.log_in(self._event_receiver)
        del self._event_receiver
        if found is None:
            _log.info("%s did not complete the handshake", self.accepted.name)
            return
        container, client = found
        async with trio.open_nursery() as nursery:
            try:
                await self._serve(container, client, nursery)
            finally:
                self._client = None
                self.on_leave(client)
                container.leave(client)

    async def _serve(self, container: ServingContainer, client: PeerT, nursery: trio.Nursery) -> None:
        try:
            container.enter(client, nursery)
            await client.guard.check("open", None)
        except RefusedError as refusal:
            self.refuse(refusal)
            return
        if self._over:  # The connection was lost while the permission was asked for.
            return
        self._client = client
        self.accepted.opened()
        self._event_sender = None  # Events go to the client from now on, not to the handshake.
        self.pump.read_size = READ_SIZE
        self.on_enter(client)
        self.pump.feed(self.engine.accept_open, trio.current_time())
        await client.over.wait()
        await client.until_done(self._close_timeout)

    def _on_event(self, event: Any) -> None:
        if self._client is not None:
            self._client.on_event(event)
        elif self._event_sender is not None and not self._over:
            self._event_sender.send_nowait(event)

    def _on_over(self) -> None:
        self._over = True
        if self._event_sender is not None:
            self._event_sender.close()
        if self._client is not None:
            self._client.on_over()
