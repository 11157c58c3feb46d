"""AMQP 0-9-1 as a dialect of a listener, for the nodes of a container.

``connection`` handles an open connection.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import trio

from trio_amqp10.amqp091.engine.engine import Engine
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.engine.profile import V091
from trio_amqp10.amqp091.wire.frames import PROTOCOL_HEADER, PROTOCOL_HEADER_09
from trio_amqp10.broker.client_broker import broker_for_clients
from trio_amqp10.broker.conversation import Conversation
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.reply_codes import ReplyCode091, reply_text

from .connection import ServedConnection
from .login import Login, mechanisms_for
from .server_habits import Habits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.engine.profile import Profile
    from trio_amqp10.broker.exchanges.topology import Topology
    from trio_amqp10.broker.nodes.node import RefusedError
    from trio_amqp10.broker.peer_interfaces import ServingContainer
    from trio_amqp10.net.dialect import AcceptedConnection

    FindVirtualHost = Callable[[str, str | None], ServingContainer | None]

_VERSION: Final = b"AMQP\x00\x00\x09"
"""The begin of all headers of this family; other revisions get ours (4.2.2)."""

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
"""The product name for which clients expect RabbitMQ's ``basic.qos``.

RabbitMQ does not change the window of running consumers.
"""


class Amqp091:
    """The dialect; made by ``Container.serve(dialects=["0-9-1"])``.

    Args:
        container: the container whose nodes clients use. It gets a broker if it has none.
        limits: the limits to propose and to enforce.
        properties: server properties for clients, in addition to the defaults.
        virtual_host: the name of the container as a virtual host.
        virtual_hosts: the containers of all virtual hosts, by name. Or a function that returns a container or
            None; its arguments are the requested name and the server name in TLS (None without TLS). Replaces
            ``virtual_host``.
        by_default: the dialect was not asked for. Then a container without a store gets its broker when the first client logs
            in, and a strict container without a broker lets clients declare only queues and exchanges that exist.
        no_local: obey the bit ``no-local`` of ``basic.consume``: a consumer gets no message of a client that
            has the same ``connection_name`` and logged in as the same user; without a name, no message of its
            own connection.
        close_timeout: seconds for the answer to our close, and for methods that came before the client's close.
    """

    name = "AMQP 0-9-1"
    profile: ClassVar[Profile] = V091

    def __init__(
        self,
        container: ServingContainer,
        *,
        limits: Limits | None = None,
        properties: Mapping[str, Any] | None = None,
        virtual_host: str = "/",
        virtual_hosts: Mapping[str, ServingContainer] | FindVirtualHost | None = None,
        by_default: bool = False,
        no_local: bool = False,
        close_timeout: float = 5.0,
    ) -> None:
        if virtual_hosts is None or callable(virtual_hosts):
            containers = {virtual_host: container}
        else:
            containers = dict(virtual_hosts)
        self._by_default = by_default
        for name, each in containers.items():
            if not by_default or each.journal is not None:
                self.broker_of(each).virtual_host = name
        self._find: FindVirtualHost = (
            virtual_hosts if callable(virtual_hosts) else lambda name, _: containers.get(name)
        )
        self._limits = limits or Limits()
        self._properties = {
            "product": _PRODUCT,
            "version": "1.0.0",
            "platform": "Python",
            "cluster_name": container.name,
            "capabilities": dict.fromkeys(_CAPABILITIES, True),
            **(properties or {}),
        }
        self._habits = Habits(like_rabbitmq=self._properties["product"] == _RABBITMQ, no_local=no_local)
        self._close_timeout = close_timeout

    def claims(self, head: bytes) -> bool | None:
        """Whether a connection begins with a header of this family; None if undecided.

        Headers of 0-9 and 0-9-1 are accepted; other revisions are answered with the header of 0-9-1. See
        ``Dialect``.
        """
        for known in (_VERSION, PROTOCOL_HEADER, PROTOCOL_HEADER_09):
            size = min(len(head), len(known))
            if head[:size] == known[:size]:
                return True if len(head) >= len(known) else None
        return False

    async def serve(self, accepted: AcceptedConnection) -> None:
        """Serve a connection; see ``Dialect``.

        Cancelled: the connection is closed with 320 (connection-forced).
        """
        await self.converse(accepted, self._new_engine(accepted)).serve()

    def _new_engine(self, accepted: AcceptedConnection) -> Engine:
        start = self.profile.methods.make(
            "connection.start",
            server_properties=self._properties,
            mechanisms=" ".join(each.name for each in mechanisms_for(accepted)).encode(),
        )
        return Engine(
            EndpointRole.SERVER, trio.current_time(), self._limits, profile=self.profile, start=start
        )

    def converse(self, accepted: AcceptedConnection, engine: Engine) -> Conversation091:
        """Return the conversation of a new connection."""
        return Conversation091(self, accepted, engine)

    # -- used by a conversation ---------------------------------------------------------------------

    def find_container(self, virtual_host: str, server_name: str | None) -> ServingContainer | None:
        """Return the container of a virtual host, or None.

        Args:
            virtual_host: the name that the client requests.
            server_name: the server name in TLS; None without TLS.
        """
        return self._find(virtual_host, server_name)

    def broker_of(self, container: ServingContainer) -> Topology:
        """Return the broker of a container; add one if it has none."""
        return broker_for_clients(container, by_default=self._by_default)

    @property
    def habits(self) -> Habits:
        """Options for compatibility with other servers."""
        return self._habits

    @property
    def close_timeout(self) -> float:
        """Seconds for the answer to a close."""
        return self._close_timeout


class Conversation091(Conversation[Engine, ServedConnection]):
    """One connection of 0-9-1, or of a version that is derived from it."""

    __slots__ = ("_dialect",)

    def __init__(self, dialect: Amqp091, accepted: AcceptedConnection, engine: Engine) -> None:
        super().__init__(accepted, engine, dialect.close_timeout)
        self._dialect = dialect

    async def log_in(
        self, events: trio.MemoryReceiveChannel[Any]
    ) -> tuple[ServingContainer, ServedConnection] | None:
        """Log a client in; None if it is refused. See ``Conversation``."""
        login = Login(self.engine, self.pump, self.accepted)
        virtual_host = await login.run(events)
        if virtual_host is None or self.turned_away(login):
            return None
        container = self._dialect.find_container(virtual_host, self.accepted.transport.server_name)
        if container is None:
            self._refuse(f"vhost {virtual_host} not found")
            return None
        return container, self.make_client(
            container,
            self._dialect.broker_of(container),
            self.engine,
            self.pump,
            self.traffic,
            login=login,
            host=self.accepted.host,
            habits=self._dialect.habits,
        )

    def turned_away(self, login: Login) -> bool:
        """Whether the client was redirected instead; always False in 0-9-1."""
        _ = login
        return False

    def make_client(self, *args: Any, **options: Any) -> ServedConnection:
        """Create the client with the arguments of ``ServedConnection``."""
        return ServedConnection(*args, **options)

    def on_enter(self, client: ServedConnection) -> None:
        """Watch the expiry of the client's token; see ``Conversation``."""
        client.watch_token()

    def refuse(self, refusal: RefusedError) -> None:
        """Close with 530 (not-allowed); see ``Conversation``."""
        self._refuse(refusal.description)

    def _refuse(self, explanation: str) -> None:
        open_ = self.engine.methods.by_name["connection.open"]
        code = ReplyCode091.NOT_ALLOWED
        text = reply_text(code, explanation)
        self.pump.feed(
            partial(self.engine.close, trio.current_time(), code, text, open_.class_id, open_.method_id)
        )

    def close(self) -> None:
        """Close with 320 (connection-forced); see ``Conversation``."""
        code = ReplyCode091.CONNECTION_FORCED
        self.engine.close(trio.current_time(), code, reply_text(code, "the service ends"))
