"""AMQ Protocol 10.3 as a dialect of a listener of a container.

``connection`` has the work on an accepted connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from trio_amqp10.amqp091.server.protocol import Amqp091, Conversation091
from trio_amqp10.amqp_10_3.engine.profile import V10_3
from trio_amqp10.amqp_10_3.wire.frames import PROTOCOL_HEADER

from .connection import ServedConnection103
from .options import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.engine.engine import Engine
    from trio_amqp10.amqp091.engine.limits import Limits
    from trio_amqp10.amqp091.engine.profile import Profile
    from trio_amqp10.amqp091.server.login import Login
    from trio_amqp10.amqp091.server.protocol import FindVirtualHost
    from trio_amqp10.amqp091.wire.content import Content
    from trio_amqp10.amqp091.wire.methods import Method
    from trio_amqp10.broker.peer_interfaces import ServingContainer
    from trio_amqp10.net.dialect import AcceptedConnection

    from .branch import Branch

_FAMILY: Final = PROTOCOL_HEADER[:6]
"""The first octets of headers of class 1, instance 1.

Other versions are answered with our header (C 333-335).
"""

_FAILURES: Final = 5
"""The number of failed deliveries that dead-letters a message (C 1041)."""


class Amqp103(Amqp091):
    """The 10.3 dialect, as made by ``Container.serve(dialects=["10.3"])``.

    Args:
        container: the container whose nodes clients use. It gets a broker if it has none.
        limits: the limits to propose and to enforce.
        properties: server properties for clients, added to the defaults.
        virtual_host: the name of the container as a virtual host.
        virtual_hosts: as for ``Amqp091``; replaces ``virtual_host``.
        tickets: whether clients need access tickets; otherwise any ticket number is accepted.
        queue_arguments: defaults for arguments of queues that clients declare. By default a message is dead-lettered after five
            failures, and there is no dead-letter exchange.
        grace: seconds without use after which an auto-delete queue or exchange is deleted.
        redirect: called with the requested virtual host, and whether the client insists. Returns the host to redirect to and the
            other known hosts, or None to accept the client.
        on_tunnel: called with the peer, the meta-data and the content of each tunnel.request; None to drop them.
        on_cluster: called with the peer and each method of the class cluster; None to ignore them. cluster.bind is carried out in
            any case.
        on_branch: called with each branch of a distributed transaction, which the program must end; None to refuse dtx.select.
        close_timeout: seconds for the answer to our close, and for work that is pending when a client closes.
    """

    name = "AMQ Protocol 10.3"
    profile: ClassVar[Profile] = V10_3

    def __init__(
        self,
        container: ServingContainer,
        *,
        limits: Limits | None = None,
        properties: Mapping[str, Any] | None = None,
        virtual_host: str = "/",
        virtual_hosts: Mapping[str, ServingContainer] | FindVirtualHost | None = None,
        tickets: bool = True,
        queue_arguments: Mapping[str, Any] | None = None,
        grace: float = 60.0,
        redirect: Callable[[str, bool], tuple[str, str] | None] | None = None,
        on_tunnel: Callable[[Any, Mapping[str, Any], Content], object] | None = None,
        on_cluster: Callable[[Any, Method], object] | None = None,
        on_branch: Callable[[Branch], object] | None = None,
        close_timeout: float = 5.0,
    ) -> None:
        super().__init__(
            container,
            limits=limits,
            properties=properties,
            virtual_host=virtual_host,
            virtual_hosts=virtual_hosts,
            close_timeout=close_timeout,
        )
        # The capabilities are those of 0-9-1, and are bools, which tables of 10.3 cannot contain.
        self._properties.pop("capabilities", None)
        self.options: Options = Options(
            tickets=tickets,
            queue_arguments={"x-delivery-limit": _FAILURES - 1, **(queue_arguments or {})},
            grace=grace,
            redirect=redirect,
            on_tunnel=on_tunnel,
            on_cluster=on_cluster,
            on_branch=on_branch,
        )

    def claims(self, head: bytes) -> bool | None:
        """Whether the client sent a header of class 1, instance 1; see ``Dialect``.

        The header of another version than 10.3 is answered with the header of 10.3.
        """
        size = min(len(head), len(_FAMILY))
        if head[:size] != _FAMILY[:size]:
            return False
        return True if size == len(_FAMILY) else None

    def converse(self, accepted: AcceptedConnection, engine: Engine) -> Conversation091:
        """Return the service of a new connection."""
        self.options.files.share(accepted.pool)
        return _Conversation103(self, accepted, engine)


class _Conversation103(Conversation091):
    """The service of one connection."""

    __slots__ = ("_options",)

    def __init__(self, dialect: Amqp103, accepted: AcceptedConnection, engine: Engine) -> None:
        super().__init__(dialect, accepted, engine)
        self._options = dialect.options

    def turned_away(self, login: Login) -> bool:
        """Redirect the client if the program wants that; return whether it was redirected.

        See ``Conversation091`` (C 412-423).
        """
        if self._options.redirect is None:
            return False
        where = self._options.redirect(login.virtual_host, login.insists)
        if where is None:
            return False
        self.pump.feed(self.engine.redirect, *where)
        return True

    def make_client(self, *args: Any, **options: Any) -> ServedConnection103:
        """Return a new client; see ``Conversation091``."""
        return ServedConnection103(*args, **{**options, "habits": self._options})
