"""AMQP 0-9-1 as a dialect of a listener, over the nodes of a container.

Knows listeners and connections; what is done on a connection is in ``connection``.
"""

from __future__ import annotations

import logging
import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.frames import PROTOCOL_HEADER, PROTOCOL_HEADER_09
from trio_amqp10.amqp091.limits import Limits
from trio_amqp10.amqp091.methods import Sender
from trio_amqp10.container.nodes.node import RefusedError
from trio_amqp10.net.pump import READ_SIZE, Pump, Traffic
from trio_amqp10.reply_codes import ReplyCode091, reply_text

from .connection import ServedConnection, ServerEngine
from .login import Login, mechanisms_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio_amqp10.container.broker.topology import Topology
    from trio_amqp10.container.service import Container
    from trio_amqp10.net.dialect import AcceptedConnection
    from trio_amqp10.sasl.mechanism import Identity

__all__ = ["Amqp091"]

_log = logging.getLogger("trio_amqp10.listen")

_VERSION: Final = b"AMQP\x00\x00\x09"
"""How headers of this family begin; another revision of it is answered with ours (4.2.2)."""

_CAPABILITIES: Final = (
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
)
_PRODUCT: Final = "trio-amqp10"
_RABBITMQ: Final = "RabbitMQ"
"""Under this product name clients expect of ``basic.qos`` that consumers that run keep their window."""


class Amqp091:
    """The dialect. ``Container.serve(dialects=["0-9-1"])`` makes one.

    Args:
        container: whose nodes clients reach. It gets a broker if it has none.
        limits: what is proposed and borne.
        properties: what clients are told of the server, on top of the defaults.
        virtual_host: the one that there is.
        close_timeout: seconds for the answer to our close, and for what came before the client's.
    """

    name = "AMQP 0-9-1"

    def __init__(
        self,
        container: Container,
        *,
        limits: Limits | None = None,
        properties: Mapping[str, Any] | None = None,
        virtual_host: str = "/",
        close_timeout: float = 5.0,
    ) -> None:
        self._container = container
        self._broker: Topology = container.broker or container.add_broker()
        self._limits = limits or Limits()
        self._properties = {
            "product": _PRODUCT,
            "version": "1.0.0",
            "platform": "Python",
            "cluster_name": container.name,
            "capabilities": dict.fromkeys(_CAPABILITIES, True),
            **(properties or {}),
        }
        self._virtual_host = virtual_host
        self._close_timeout = close_timeout

    def claims(self, head: bytes) -> bool | None:
        """As of ``Dialect``: 0-9-1, 0-9, and other revisions of it, which are answered with the header of 0-9-1."""
        for known in (_VERSION, PROTOCOL_HEADER, PROTOCOL_HEADER_09):
            size = min(len(head), len(known))
            if head[:size] == known[:size]:
                return True if len(head) >= len(known) else None
        return False

    async def serve(self, accepted: AcceptedConnection) -> None:
        """As of ``Dialect``. Cancelled: the connection is closed with 320 (connection-forced)."""
        now = trio.current_time()
        start = spec.ConnectionStart(
            server_properties=self._properties,
            mechanisms=" ".join(each.name for each in mechanisms_for(accepted)).encode(),
        )
        engine = ServerEngine(Sender.SERVER, now, self._limits, start=start)
        talk = _Talk(self, accepted, engine)
        async with trio.open_nursery() as nursery:
            talk.pump.start(nursery)
            if accepted.transport.head:
                talk.pump.feed(engine.receive_slice, accepted.transport.head, now)
            try:
                await talk.run()
            finally:
                with trio.CancelScope(shield=True, deadline=trio.current_time() + self._close_timeout):
                    await talk.close()
                talk.pump.cancel()
            nursery.cancel_scope.cancel()

    # -- what a talk asks -------------------------------------------------------------------

    def has_virtual_host(self, name: str) -> bool:
        """Whether there is this virtual host."""
        return name == self._virtual_host

    def connect(
        self, engine: ServerEngine, pump: Pump, traffic: Traffic, identity: Identity | None, host: str | None
    ) -> ServedConnection:
        """The client, that has come in."""
        return ServedConnection(
            self._container,
            self._broker,
            engine,
            pump,
            traffic,
            identity=identity,
            host=host,
            reaches_running=self._properties["product"] != _RABBITMQ,
        )

    @property
    def container(self) -> Container:
        """As given."""
        return self._container

    @property
    def close_timeout(self) -> float:
        """As given."""
        return self._close_timeout


class _Talk:
    """One connection: first the handshake, then the client."""

    def __init__(self, dialect: Amqp091, accepted: AcceptedConnection, engine: ServerEngine) -> None:
        self._dialect = dialect
        self._accepted = accepted
        self._engine = engine
        self._say, self._hear = trio.open_memory_channel[Any](math.inf)
        self._client: ServedConnection | None = None
        self._traffic = Traffic()
        self.pump = Pump(
            engine, accepted.transport.stream, self._on_event, self._on_over, totals=self._traffic
        )

    def _on_event(self, event: Any) -> None:
        if self._client is None:
            self._say.send_nowait(event)
        else:
            self._client.on_event(event)

    def _on_over(self) -> None:
        self._say.close()
        if self._client is not None:
            self._client.on_over()

    async def run(self) -> None:
        """The connection, to its end."""
        login = Login(self._engine, self.pump, self._accepted, self._hear)
        virtual_host = await login.run()
        if virtual_host is None:
            _log.info("%s came no further than the handshake", self._accepted.name)
            return
        if not self._dialect.has_virtual_host(virtual_host):
            self._refuse(ReplyCode091.NOT_ALLOWED, f"vhost {virtual_host} not found")
            return
        client = self._dialect.connect(
            self._engine, self.pump, self._traffic, login.identity, self._accepted.host
        )
        async with trio.open_nursery() as nursery:
            try:
                await self._serve(client, nursery)
            finally:
                self._client = None
                self._dialect.container.leave(client)

    async def _serve(self, client: ServedConnection, nursery: trio.Nursery) -> None:
        try:
            self._dialect.container.enter(client, nursery)
            await client.guard.check("open", None)
        except RefusedError as refusal:
            self._refuse(ReplyCode091.NOT_ALLOWED, refusal.description)
            return
        self._client = client
        self._accepted.opened()
        self.pump.read_size = READ_SIZE
        self.pump.feed(self._engine.accept_open, trio.current_time())
        await client.over.wait()
        await client.until_done(self._dialect.close_timeout)

    def _refuse(self, code: ReplyCode091, explanation: str) -> None:
        """Close it in answer to connection.open."""
        open_ = spec.ConnectionOpen.plan
        text = reply_text(code, explanation)
        self.pump.feed(
            partial(self._engine.close, trio.current_time(), code, text, open_.class_id, open_.method_id)
        )

    async def close(self) -> None:
        """Close it if it is open, and wait until the client has answered."""
        code = ReplyCode091.CONNECTION_FORCED
        self._engine.close(trio.current_time(), code, reply_text(code, "the service ends"))
        self.pump.ring()
        await self.pump.finished.wait()
