"""One connection of a dialect with channels, from its first octet to its last: the handshake, then the client.

Knows pumps and connected peers; what is said in the handshake, the dialect says.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

import trio

from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.net.engine_interface import Engine
from trio_amqp10.net.pump import READ_SIZE, Pump, Traffic
from trio_amqp10.partial_pool import PoolMember

if TYPE_CHECKING:
    from trio_amqp10.container.connected_peer import ServingContainer
    from trio_amqp10.net.dialect import AcceptedConnection

    from .channel_peer import ChannelPeer

__all__ = ["Conversation"]

_log = logging.getLogger("trio_amqp10.listen")


class _OpenedByUs(Engine, PoolMember, Protocol):
    def open_by(self, deadline: float) -> None:
        """The client has no more time than that for its open."""
        ...

    def accept_open(self, now: float) -> None:
        """The client is let in."""
        ...


EngineT = TypeVar("EngineT", bound=_OpenedByUs)
PeerT = TypeVar("PeerT", bound="ChannelPeer[Any, Any]")


class Conversation(ABC, Generic[EngineT, PeerT]):
    """One connection. A dialect adds its handshake and its last words.

    Args:
        accepted: the connection.
        engine: a new one, of the server.
        close_timeout: seconds for the answer to our close, and for what came before the client's.

    Attributes:
        accepted, engine: as given.
        pump: that drives the engine.
        traffic: that the pump counts.
    """

    __slots__ = (
        "_client",
        "_close_timeout",
        "_hear",
        "_over",
        "_say",
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
        self._say: trio.MemorySendChannel[Any] | None
        self._say, self._hear = trio.open_memory_channel[Any](math.inf)
        self._client: PeerT | None = None
        self._over = False

    # -- what a dialect says ----------------------------------------------------------------

    @abstractmethod
    async def log_in(self, events: trio.MemoryReceiveChannel[Any]) -> tuple[ServingContainer, PeerT] | None:
        """The client, and the container that it asks for; None if it came no further, or is refused.

        Args:
            events: what the engine reports meanwhile.
        """

    def on_enter(self, client: PeerT) -> None:
        """The client may come in, and is told so behind this."""

    def on_leave(self, client: PeerT) -> None:
        """The connection of the client is over, or it may not come in."""

    @abstractmethod
    def refuse(self, refusal: RefusedError) -> None:
        """Close the connection in answer to the client's open."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection, if it is open: the service ends."""

    # -- from the first octet to the last ---------------------------------------------------

    async def serve(self) -> None:
        """All of it. Cancelled: the connection is closed as ``close`` says, and the answer waited for."""
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
        found = await self.log_in(self._hear)
        del self._hear
        if found is None:
            _log.info("%s came no further than the handshake", self.accepted.name)
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
        if self._over:  # it was lost while the permission was asked for
            return
        self._client = client
        self.accepted.opened()
        self._say = None  # what was needed to log in is let go of
        self.pump.read_size = READ_SIZE
        self.on_enter(client)
        self.pump.feed(self.engine.accept_open, trio.current_time())
        await client.over.wait()
        await client.until_done(self._close_timeout)

    def _on_event(self, event: Any) -> None:
        if self._client is not None:
            self._client.on_event(event)
        elif self._say is not None and not self._over:
            self._say.send_nowait(event)

    def _on_over(self) -> None:
        self._over = True
        if self._say is not None:
            self._say.close()
        if self._client is not None:
            self._client.on_over()
