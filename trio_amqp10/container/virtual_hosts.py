"""Containers behind one listener, by the host that a peer asks for (2.7.1).

A peer may name its host three times: in TLS (SNI), in SASL and in ``open``. Whoever is let in by one name
and served by another has found a way around what guards them, so names that differ are refused.

Knows no nodes: what serves a host is a container, or any handler of connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.errors import Condition, LocalProtocolError
from trio_amqp10.peer.listen import Listener, serve
from trio_amqp10.peer.option_signatures import takes_as
from trio_amqp10.spec.transport import Error

from .container import Container
from .protocols.table import dialects_of, named_by_scheme, of_own_schemes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from trio_amqp10.peer.connection import Connection

    Host = Container | Callable[[Connection], Awaitable[object]]

__all__ = ["VirtualHosts"]

_NONE_IN_PARTICULAR: Final = "/"
"""The virtual host that clients of 0-9-1 ask for unless they are told which."""


class VirtualHosts:
    """Containers by the hostname that peers ask for: ``VirtualHosts({"a.example": one, "b.example": other})``.

    Others are turned away with ``amqp:not-found``, and those who ask for different hosts in TLS, SASL and
    ``open`` with ``amqp:not-allowed``. Upper and lower case are the same.

    Args:
        hosts: what serves each: a ``Container``, or an async function of a ``Connection``.
        default: what serves those who ask for no host, or for one that is not there; None refuses them.
        compare: whether names that differ are refused. RabbitMQ's ``vhost:NAME`` in ``open`` is no name that SNI
            could have: with such, False.

    Raises:
        LocalProtocolError: there are no hosts, or two differ in case alone.
    """

    def __init__(
        self, hosts: Mapping[str, Host], *, default: Host | None = None, compare: bool = True
    ) -> None:
        self._hosts = {name.lower(): host for name, host in hosts.items()}
        if not hosts or len(self._hosts) < len(hosts):
            raise LocalProtocolError(f"{sorted(hosts)!r}: at least one host, each once, is due")
        self._default = default
        self._compare = compare

    def vet(self, connection: Connection) -> Error | None:
        """Why this peer is not let in; None for one that is, and sees the container that it asked for. For ``serve(vet=...)``."""
        error = self._check(connection)
        host = self._find(connection)
        if error is not None or not isinstance(host, Container):
            return error
        connection.engine.introduce(container_id=host.name)
        return host.vet(connection)

    def _check(self, connection: Connection) -> Error | None:
        names = (connection.server_name, connection.sasl_hostname, connection.remote.hostname)
        asked = {name.lower() for name in names if name}
        if self._compare and len(asked) > 1:
            return Error(
                condition=Condition.NOT_ALLOWED.value,
                description=f"different hosts in TLS, SASL and open: {_shown(*sorted(asked))}",
            )
        if self._find(connection) is None:
            return Error(
                condition=Condition.NOT_FOUND.value,
                description=f"no host {_shown(connection.remote.hostname or '')}",
            )
        return None

    def _find(self, connection: Connection) -> Host | None:
        return self._hosts.get((connection.remote.hostname or "").lower(), self._default)

    async def handle(self, connection: Connection) -> None:
        """Have the host that the peer asks for serve it; a handler for ``serve``.

        Raises: as the handlers of the hosts.

        Cancelled: as they are.
        """
        error = self._check(connection)
        host = self._find(connection)
        if error is not None or host is None:
            await connection.aclose(error)
        elif isinstance(host, Container):
            await host.handle(connection)
        else:
            await host(connection)

    @takes_as(serve)
    async def serve(
        self,
        *urls: str,
        task_status: trio.TaskStatus[list[Listener]] = trio.TASK_STATUS_IGNORED,
        **options: Any,
    ) -> None:
        """Listen, and serve every peer that connects; see ``trio_amqp10.serve`` for the options, and ``Container.serve`` for ``dialects``.

        Peers are turned away before the connection is open, and see the container that they asked for. A virtual host of AMQP
        0-9-1 is the container of that name; ``/``, for which clients ask that want none in particular, is the one whose name
        is asked for in TLS, or else the default. Others are refused with 530.

        Raises:
            LocalProtocolError: ``dialects`` are asked for, and no host is a container; or as ``trio_amqp10.serve``.

        Cancelled: every connection is closed with ``amqp:connection:forced``.
        """
        containers = self._containers()
        asked = options.get("dialects", ())
        if asked or named_by_scheme(urls):
            if not containers:
                raise LocalProtocolError("dialects need a host that is a container")
            more = {"virtual_hosts": self._find_virtual_host}
            options["dialects"] = dialects_of(containers[0], asked, **more)
            options.setdefault("dialect_schemes", of_own_schemes(containers[0], urls, asked, **more))
            for container in containers:
                if container.broker is None:
                    container.add_broker()
        options.setdefault("vet", self.vet)
        options.setdefault("offered_capabilities", Container.offered_capabilities())
        try:
            await serve(self.handle, *urls, task_status=task_status, **options)
        finally:
            for container in containers:
                await container.flush(options.get("close_timeout", 5.0))

    def _containers(self) -> list[Container]:
        """Those of the hosts that are containers, each once."""
        hosts = dict.fromkeys((*self._hosts.values(), self._default))
        return [host for host in hosts if isinstance(host, Container)]

    def _find_virtual_host(self, name: str, server_name: str | None) -> Container | None:
        """The container of a virtual host of 0-9-1; None for one that is not there, or differs from the name in TLS."""
        asked = name.lower()
        if name == _NONE_IN_PARTICULAR:
            asked = name if name in self._hosts else (server_name or "").lower()
        elif self._compare and server_name is not None and server_name.lower() != asked:
            return None
        host = self._hosts.get(asked) or self._hosts.get(f"vhost:{asked}", self._default)
        return host if isinstance(host, Container) else None

    def __repr__(self) -> str:
        return f"<VirtualHosts {', '.join(sorted(self._hosts))}>"


def _shown(*names: str) -> str:
    """Parts of an error that has to fit into the smallest frame."""
    return ", ".join(repr(name[:64]) for name in names)
