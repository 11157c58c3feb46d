"""AMQP/Fast as a dialect of a listener of a container (RFC 006).

``connection`` has the work on an accepted connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp_fast.engine.engine import Engine
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.amqp_fast.engine.partial_messages import PartialMessages
from trio_amqp10.amqp_fast.wire.frames import PROTOCOL_ID
from trio_amqp10.broker.conversation import Conversation
from trio_amqp10.broker.nodes.message_origin import user_of
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.reply_codes import ReplyCodeRfc011, reply_text

from .connection import ServedConnection
from .destinations import Destinations
from .faults import code_of
from .login import Login

if TYPE_CHECKING:
    from trio_amqp10.amqp_fast import spec
    from trio_amqp10.broker.nodes.node import Owner, RefusedError
    from trio_amqp10.broker.peer_interfaces import ServingContainer
    from trio_amqp10.container.container import Container
    from trio_amqp10.net.dialect import AcceptedConnection
    from trio_amqp10.sasl.mechanism import Identity

_R = ReplyCodeRfc011
_PATHS: Final = frozenset({"", "/"})


class AmqpFast:
    """The AMQP/Fast dialect, as made by ``Container.serve(dialects=["amqp-fast"])``.

    Args:
        container: the container whose nodes clients use.
        limits: the limits to propose and to enforce.
        virtual_paths: the accepted virtual paths; each leads to the whole container.
        partials: incomplete messages, kept until their senders continue.
        close_timeout: seconds for the answer to our close, and for work that is pending when a client closes.
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
        """Whether the first octet is the protocol id (3.2.2); see ``Dialect``."""
        return head[0] == PROTOCOL_ID

    async def serve(self, accepted: AcceptedConnection) -> None:
        """Serve one connection; see ``Dialect``.

        Cancelled: the connection is closed with 541 (internal error).
        """
        self.partials.share(accepted.pool)
        engine = Engine(EndpointRole.SERVER, trio.current_time(), self.limits, partials=self.partials)
        await _FastConversation(self, accepted, engine).serve()


class _FastConversation(Conversation[Engine, ServedConnection]):
    """The service of one connection."""

    __slots__ = ("_dialect",)

    def __init__(self, dialect: AmqpFast, accepted: AcceptedConnection, engine: Engine) -> None:
        super().__init__(accepted, engine, dialect.close_timeout)
        self._dialect = dialect

    async def log_in(
        self, events: trio.MemoryReceiveChannel[Any]
    ) -> tuple[ServingContainer, ServedConnection] | None:
        """Return the new client; None if its path is unknown or its name is in use.

        See ``Conversation``.
        """
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
            self._refuse(_R.VIRTUAL_PATH_NOT_VALID, f"there is no virtual path {opened.virtual_path!r}")
            return False
        if (opened.client_name, user_of(identity)) in self._dialect.active:
            self._refuse(
                _R.CLIENT_ALREADY_ACTIVE, f"a client named {opened.client_name!r} is already connected"
            )
            return False
        return True

    def on_leave(self, client: ServedConnection) -> None:
        """Free the name of the client."""
        if self._dialect.active.get(client.owner) is client:
            del self._dialect.active[client.owner]

    def refuse(self, refusal: RefusedError) -> None:
        """Close the connection with the reason of a refusal."""
        self._refuse(code_of(refusal.condition), refusal.description)

    def _refuse(self, code: ReplyCodeRfc011, explanation: str) -> None:
        self.engine.close(trio.current_time(), code, reply_text(code, explanation))

    def close(self) -> None:
        """Close the connection with 541 (internal error)."""
        self._refuse(_R.INTERNAL_ERROR, "the service ends")
