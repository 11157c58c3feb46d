"""AMQ Protocol 10.3 as a dialect of a listener, over the nodes of a container.

Knows listeners and connections; what is done on a connection is in ``connection``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from trio_amqp10.amqp_10_3.frames import PROTOCOL_HEADER
from trio_amqp10.amqp_10_3.profile import V10_3
from trio_amqp10.container.protocols.amqp091.protocol import Amqp091, Conversation091

from .connection import ServedConnection103
from .options import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trio_amqp10.amqp091.content import Content
    from trio_amqp10.amqp091.engine import Engine
    from trio_amqp10.amqp091.limits import Limits
    from trio_amqp10.amqp091.methods import Method
    from trio_amqp10.amqp091.profile import Profile
    from trio_amqp10.container.connected_peer import ServingContainer
    from trio_amqp10.container.protocols.amqp091.login import Login
    from trio_amqp10.container.protocols.amqp091.protocol import FindVirtualHost
    from trio_amqp10.net.dialect import AcceptedConnection

    from .branch import Branch

__all__ = ["Amqp103"]

_FAMILY: Final = PROTOCOL_HEADER[:6]
"""How headers of class 1, instance 1 begin; other versions of it are answered with ours (C 333-335)."""

_FAILURES: Final = 5
"""Failed deliveries after which a message is a dead letter (C 1041)."""


class Amqp103(Amqp091):
    """The dialect. ``Container.serve(dialects=["10.3"])`` makes one.

    Args:
        container: whose nodes clients reach. It gets a broker if it has none.
        limits: what is proposed and borne.
        properties: what clients are told of the server, on top of the defaults.
        virtual_host: the name of the container as a virtual host.
        virtual_hosts: as of ``Amqp091``; in place of ``virtual_host``.
        tickets: whether clients need access tickets; otherwise any number is taken.
        queue_arguments: of queues that clients declare, unless they give them themselves; by default five failures make a dead
            letter, and there is no exchange for those.
        grace: seconds of disuse after which a queue or an exchange is deleted that was declared with auto-delete.
        redirect: called with the virtual host that a client asks for, and whether it insists; returns where the client is to go and
            which other hosts there are, or None to let it in.
        on_tunnel: called with the peer, the meta-data and the content of each tunnel.request; without it they are dropped.
        on_cluster: called with the peer and each method of the class cluster. What cluster.bind asks for is relayed by itself; without
            a program the others are dropped.
        on_branch: called with each branch of a distributed transaction, for the program to end; without it dtx.select is refused.
        close_timeout: seconds for the answer to our close, and for what came before the client's.
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
        self._properties.pop("capabilities", None)  # of 0-9-1, and bools, which tables of 10.3 have not
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
        """As of ``Dialect``: 10.3, and other versions of class 1, instance 1, which are answered with the header of 10.3."""
        size = min(len(head), len(_FAMILY))
        if head[:size] != _FAMILY[:size]:
            return False
        return True if size == len(_FAMILY) else None

    def converse(self, accepted: AcceptedConnection, engine: Engine) -> Conversation091:
        """A new connection."""
        self.options.files.share(accepted.pool)
        return _Conversation103(self, accepted, engine)


class _Conversation103(Conversation091):
    """One connection."""

    __slots__ = ("_options",)

    def __init__(self, dialect: Amqp103, accepted: AcceptedConnection, engine: Engine) -> None:
        super().__init__(dialect, accepted, engine)
        self._options = dialect.options

    def turned_away(self, login: Login) -> bool:
        """As of ``Conversation091``: whether the client is redirected (C 412-423)."""
        if self._options.redirect is None:
            return False
        where = self._options.redirect(login.virtual_host, login.insists)
        if where is None:
            return False
        self.pump.feed(self.engine.redirect, *where)
        return True

    def make_client(self, *args: Any, **options: Any) -> ServedConnection103:
        """As of ``Conversation091``."""
        return ServedConnection103(*args, **{**options, "habits": self._options})
