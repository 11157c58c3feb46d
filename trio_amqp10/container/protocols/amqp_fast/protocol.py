"""AMQP/Fast as a dialect of a listener, over the nodes of a container (RFC 006).

Knows listeners and connections; what is done on a connection is in ``connection``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp_fast.engine import Engine
from trio_amqp10.amqp_fast.frames import PROTOCOL_ID
from trio_amqp10.amqp_fast.limits import Limits
from trio_amqp10.amqp_fast.resumable_messages import PartialMessages
from trio_amqp10.container.nodes.message_origin import user_of
from trio_amqp10.container.protocols.conversation import Conversation
from trio_amqp10.endpoint_role import EndpointRole
from trio_amqp10.reply_codes import ReplyCodeRfc011, reply_text

from .connection import ServedConnection
from .destinations import Destinations
from .faults import code_of
from .login import Login

if TYPE_CHECKING:
    from trio_amqp10.amqp_fast import spec
    from trio_amqp10.container.connected_peer import ServingContainer
    from trio_amqp10.container.container import Container
    from trio_amqp10.container.nodes.node import Owner, RefusedError
    from trio_amqp10.net.dialect import AcceptedConnection
    from trio_amqp10.sasl.mechanism import Identity

__all__ = ["AmqpFast"]

_R = ReplyCodeRfc011
_PATHS: Final = frozenset({"", "/"})


class AmqpFast:
    """The dialect. ``Container.serve(dialects=["amqp-fast"])`` makes one.

    Args:
        container: whose nodes clients reach.
        limits: what is proposed and borne.
        virtual_paths: those that there are; all of them are the container.
        partials: messages of which a part has come; for senders that come again.
        close_timeout: seconds for the answer to our close, and for what came before the client's.
    """

    name = "AMQP/Fast"

    def __init__(
        self,
        container: Container,
        *,
        limits: Limits | None = None,
        virtual_paths: frozenset[str] = _PATHS,
        partials: PartialMessages | None = None,
        close_timeout: float = 5.0,
    ) -> None:
        self.container = container
        self.limits: Limits = limits or Limits()
        self.virtual_paths = virtual_paths
        self.partials: PartialMessages = PartialMessages() if partials is None else partials
        self.close_timeout = close_timeout
        self.destinations: Final = Destinations(container)
        self.active: dict[Owner, ServedConnection] = {}
        """The connection of each client: by its name (3.2.6) and its user."""

    def claims(self, head: bytes) -> bool | None:
        """As of ``Dialect``: the protocol id, whatever the version (3.2.2)."""
        return head[0] == PROTOCOL_ID

    async def serve(self, accepted: AcceptedConnection) -> None:
        """As of ``Dialect``. Cancelled: the connection is closed with 541 (internal error)."""
        self.partials.share(accepted.pool)
        engine = Engine(EndpointRole.SERVER, trio.current_time(), self.limits, partials=self.partials)
        await _FastConversation(self, accepted, engine).serve()


class _FastConversation(Conversation[Engine, ServedConnection]):
    """One connection."""

    __slots__ = ("_dialect",)

    def __init__(self, dialect: AmqpFast, accepted: AcceptedConnection, engine: Engine) -> None:
        super().__init__(accepted, engine, dialect.close_timeout)
        self._dialect = dialect

    async def log_in(
        self, events: trio.MemoryReceiveChannel[Any]
    ) -> tuple[ServingContainer, ServedConnection] | None:
        """As of ``Conversation``: the client, unless its path is unknown, or its name in use."""
        login = Login(self.engine, self.pump, self.accepted, events)
        opened = await login.run()
        if opened is None or not self._may_open(opened, login.identity):
            return None
        container = self._dialect.container
        client = ServedConnection(
            container,
            self._dialect.destinations,
            self.engine,
            self.pump,
            self.traffic,
            identity=login.identity,
            host=self.accepted.host,
        )
        self._dialect.active[client.owner] = client
        return container, client

    def _may_open(self, opened: spec.ConnectionOpen, identity: Identity | None) -> bool:
        if opened.virtual_path not in self._dialect.virtual_paths:
            self._refuse(_R.VIRTUAL_PATH_NOT_VALID, f"no virtual path {opened.virtual_path!r}")
            return False
        if (opened.client_name, user_of(identity)) in self._dialect.active:
            self._refuse(_R.CLIENT_ALREADY_ACTIVE, f"client {opened.client_name!r}")
            return False
        return True

    def on_leave(self, client: ServedConnection) -> None:
        """As of ``Conversation``: the name is free again."""
        if self._dialect.active.get(client.owner) is client:
            del self._dialect.active[client.owner]

    def refuse(self, refusal: RefusedError) -> None:
        """As of ``Conversation``."""
        self._refuse(code_of(refusal.condition), refusal.description)

    def _refuse(self, code: ReplyCodeRfc011, explanation: str) -> None:
        self.engine.close(trio.current_time(), code, reply_text(code, explanation))

    def close(self) -> None:
        """As of ``Conversation``: with 541 (internal error)."""
        self._refuse(_R.INTERNAL_ERROR, "the service ends")
