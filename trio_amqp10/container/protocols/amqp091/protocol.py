"""AMQP 0-9-1 as a dialect of a listener, over the nodes of a container.

Knows listeners and connections; what is done on a connection is in ``connection``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import trio

from trio_amqp10.amqp091.engine import Engine
from trio_amqp10.amqp091.frames import PROTOCOL_HEADER, PROTOCOL_HEADER_09
from trio_amqp10.amqp091.limits import Limits
from trio_amqp10.amqp091.profile import V091
from trio_amqp10.container.protocols.conversation import Conversation
from trio_amqp10.endpoint_role import EndpointRole
from trio_amqp10.reply_codes import ReplyCode091, reply_text

from .connection import ServedConnection
from .login import Login, mechanisms_for
from .rabbitmq_compatibility import Habits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.profile import Profile
    from trio_amqp10.container.broker.topology import Topology
    from trio_amqp10.container.connected_peer import ServingContainer
    from trio_amqp10.container.nodes.node import RefusedError
    from trio_amqp10.net.dialect import AcceptedConnection

    FindVirtualHost = Callable[[str, str | None], ServingContainer | None]

__all__ = ["Amqp091", "Conversation091", "broker_of"]

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


def broker_of(container: ServingContainer) -> Topology:
    """The broker of a container, which gets one if it has none."""
    return container.broker or container.add_broker()


class Amqp091:
    """The dialect. ``Container.serve(dialects=["0-9-1"])`` makes one.

    Args:
        container: whose nodes clients reach. It gets a broker if it has none.
        limits: what is proposed and borne.
        properties: what clients are told of the server, on top of the defaults.
        virtual_host: the name of the container as a virtual host.
        virtual_hosts: the containers of all virtual hosts, by name, or a function of the name that a client asks for and of the
            name of the server in its TLS (None without), which gives the container or None; in place of ``virtual_host``.
        no_local: obey the bit ``no-local`` of ``basic.consume``: a consumer is given no message of a client that has the same
            ``connection_name`` and logged in as the same user; without a name, of its own connection.
        close_timeout: seconds for the answer to our close, and for what came before the client's.
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
        no_local: bool = False,
        close_timeout: float = 5.0,
    ) -> None:
        if virtual_hosts is None or callable(virtual_hosts):
            containers = {virtual_host: container}
        else:
            containers = dict(virtual_hosts)
        for each in containers.values():
            broker_of(each)
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
        """As of ``Dialect``: 0-9-1, 0-9, and other revisions of it, which are answered with the header of 0-9-1."""
        for known in (_VERSION, PROTOCOL_HEADER, PROTOCOL_HEADER_09):
            size = min(len(head), len(known))
            if head[:size] == known[:size]:
                return True if len(head) >= len(known) else None
        return False

    async def serve(self, accepted: AcceptedConnection) -> None:
        """As of ``Dialect``. Cancelled: the connection is closed with 320 (connection-forced)."""
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
        """A new connection."""
        return Conversation091(self, accepted, engine)

    # -- what a conversation asks -------------------------------------------------------------------

    def find_container(self, virtual_host: str, server_name: str | None) -> ServingContainer | None:
        """The container of a virtual host, for a client that asked for this server in TLS."""
        return self._find(virtual_host, server_name)

    @property
    def habits(self) -> Habits:
        """What this server does one way or the other."""
        return self._habits

    @property
    def close_timeout(self) -> float:
        """As given."""
        return self._close_timeout


class Conversation091(Conversation[Engine, ServedConnection]):
    """One connection of 0-9-1, or of a version that is much the same."""

    __slots__ = ("_dialect",)

    def __init__(self, dialect: Amqp091, accepted: AcceptedConnection, engine: Engine) -> None:
        super().__init__(accepted, engine, dialect.close_timeout)
        self._dialect = dialect

    async def log_in(
        self, events: trio.MemoryReceiveChannel[Any]
    ) -> tuple[ServingContainer, ServedConnection] | None:
        """As of ``Conversation``: the client, unless there is no such virtual host."""
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
            broker_of(container),
            self.engine,
            self.pump,
            self.traffic,
            login=login,
            host=self.accepted.host,
            habits=self._dialect.habits,
        )

    def turned_away(self, login: Login) -> bool:
        """Whether the client has been told to go elsewhere; never in 0-9-1."""
        _ = login
        return False

    def make_client(self, *args: Any, **options: Any) -> ServedConnection:
        """The client, as ``ServedConnection`` takes it."""
        return ServedConnection(*args, **options)

    def on_enter(self, client: ServedConnection) -> None:
        """As of ``Conversation``: a token that ends is watched."""
        client.watch_token()

    def refuse(self, refusal: RefusedError) -> None:
        """As of ``Conversation``: with 530 (not-allowed)."""
        self._refuse(refusal.description)

    def _refuse(self, explanation: str) -> None:
        open_ = self.engine.methods.by_name["connection.open"]
        code = ReplyCode091.NOT_ALLOWED
        text = reply_text(code, explanation)
        self.pump.feed(
            partial(self.engine.close, trio.current_time(), code, text, open_.class_id, open_.method_id)
        )

    def close(self) -> None:
        """As of ``Conversation``: with 320 (connection-forced)."""
        code = ReplyCode091.CONNECTION_FORCED
        self.engine.close(trio.current_time(), code, reply_text(code, "the service ends"))
