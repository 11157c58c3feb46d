"""Containers at one listener, chosen by the host that a peer asks for (2.7.1).

A peer may name its host three times: in TLS (SNI), in SASL and in ``open``. If the names differ, the peer could
authenticate at one host and be served by another, so it is refused.

Knows no nodes: a host is served by a container, or by any handler of connections.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.amqp10.peer.listen import Listener, serve
from trio_amqp10.amqp10.spec.transport import Error
from trio_amqp10.broker.client_broker import broker_for_clients
from trio_amqp10.core.errors import Condition, LocalProtocolError
from trio_amqp10.net.option_signatures import takes_as

from .container import Container
from .dialects import dialects_of, named_by_scheme, of_own_schemes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from trio_amqp10.amqp10.peer.connection import Connection

    Host = Container | Callable[[Connection], Awaitable[object]]

_NONE_IN_PARTICULAR: Final = "/"
"""The virtual host that clients of 0-9-1 ask for by default."""


class VirtualHosts:
    """Containers, each chosen by the hostname that a peer asks for.

    Make it with ``VirtualHosts({"a.example": one, "b.example": other})``.

    Peers that ask for any other host are refused with ``amqp:not-found``, and peers that ask for different hosts in TLS,
    SASL and ``open`` with ``amqp:not-allowed``. Upper and lower case are the same.

    Args:
        hosts: a handler for each host: a ``Container``, or an async function of a ``Connection``.
        default: the handler for peers that ask for no host, or for an unknown one; None refuses them.
        compare: whether names that differ are refused. Set it to False for RabbitMQ's ``vhost:NAME`` in ``open``, which
            cannot be a name in SNI.

    Raises:
        LocalProtocolError: there are no hosts, or two differ in case alone.
    """

    def __init__(
        self, hosts: Mapping[str, Host], *, default: Host | None = None, compare: bool = True
    ) -> None:
        self._hosts = {name.lower(): host for name, host in hosts.items()}
        if not hosts or len(self._hosts) < len(hosts):
            raise LocalProtocolError(
                f"hosts={sorted(hosts)!r}: expected at least one host, and no two that differ in case alone"
            )
        self._default = default
        self._compare = compare
        for name, host in hosts.items():
            if isinstance(host, Container):
                host.virtual_hosts = tuple(dict.fromkeys((*host.virtual_hosts, name)))

    def vet(self, connection: Connection) -> Error | None:
        """Return the error that refuses this peer, or None; for ``serve(vet=...)``.

        A peer that is not refused sees the container id of the host that it asked for.
        """
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
        """Serve a connection by the host that its peer asks for; a handler for ``serve``.

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
        """Listen, and serve every peer that connects.

        ``trio_amqp10.serve`` documents the options, and ``Container.serve`` documents ``dialects``. Peers are refused before
        the connection is open, and see the id of the container that they asked for. A virtual host of AMQP 0-9-1 is the
        container of that name; for ``/``, the default of clients, it is the container whose name is asked for in TLS, or
        otherwise the default container. Peers that ask for another virtual host are refused with 530.

        Raises:
            LocalProtocolError: ``dialects`` are asked for, and no host is a container; or as ``trio_amqp10.serve``.

        Cancelled: every connection is closed with ``amqp:connection:forced``.
        """
        containers = self._containers()
        asked = options.get("dialects", ())
        if asked or named_by_scheme(urls):
            if not containers:
                raise LocalProtocolError("dialects: expected at least one host that is a Container")
            more = {"virtual_hosts": self._find_virtual_host}
            options["dialects"] = dialects_of(containers[0], asked, **more)
            options.setdefault("dialect_schemes", of_own_schemes(containers[0], urls, asked, **more))
            for container in containers:
                _broker_of(container, by_default=False)
        elif containers and "dialects" not in options and "vet" not in options:
            options["dialects"] = dialects_of(
                containers[0],
                Container.default_dialects,
                virtual_hosts=self._find_virtual_host,
                by_default=True,
            )
            for container in containers:
                if container.journal is not None:
                    _broker_of(container, by_default=True)
        options.setdefault("vet", self.vet)
        options.setdefault("offered_capabilities", Container.offered_capabilities())
        try:
            with ExitStack() as stack:
                for container in containers:
                    sharing = container._sharing(options.get("sasl"), task_status)  # noqa: SLF001 - our own # pyright: ignore[reportPrivateUsage]
                    task_status = stack.enter_context(sharing)
                await serve(self.handle, *urls, task_status=task_status, **options)
        finally:
            for container in containers:
                await container.flush(options.get("close_timeout", 5.0))

    def _containers(self) -> list[Container]:
        """Return the hosts that are containers, each once."""
        hosts = dict.fromkeys((*self._hosts.values(), self._default))
        return [host for host in hosts if isinstance(host, Container)]

    def _find_virtual_host(self, name: str, server_name: str | None) -> Container | None:
        """Return the container of a virtual host of 0-9-1.

        Return None if there is none, or if its name differs from the name in TLS.
        """
        asked = name.lower()
        if name == _NONE_IN_PARTICULAR:
            # The client asks for no particular host, so the name in TLS decides.
            asked = name if name in self._hosts else (server_name or "").lower()
        elif self._compare and server_name is not None and server_name.lower() != asked:
            # The client authenticated the server by another name than it asks for.
            return None
        host = self._hosts.get(asked) or self._hosts.get(f"vhost:{asked}", self._default)
        return host if isinstance(host, Container) else None

    def __repr__(self) -> str:
        return f"<VirtualHosts {', '.join(sorted(self._hosts))}>"


def _broker_of(container: Container, *, by_default: bool) -> None:
    """Have the container's broker, and name it as clients of 0-9-1 ask for it."""
    broker = broker_for_clients(container, by_default=by_default)
    broker.virtual_host = next(iter(container.virtual_hosts), broker.virtual_host)


def _shown(*names: str) -> str:
    """Quote names, cut so that an error with them fits into the smallest frame."""
    return ", ".join(repr(name[:64]) for name in names)
