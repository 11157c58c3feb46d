"""Dialling a server of 10.3: ``open_connection`` (class connection, C 273-437)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from trio_amqp10.amqp091.client.connection_base import ClientEngine
from trio_amqp10.amqp091.client.dial_options import DialOptions
from trio_amqp10.amqp091.client.dialling_base import SharedDialling
from trio_amqp10.amqp_10_3.engine.profile import V10_3
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.net.option_signatures import takes

from .connection import Connection

if TYPE_CHECKING:
    from trio_amqp10.amqp091.engine.limits import Limits


@dataclass(frozen=True, kw_only=True)
class Options(DialOptions):
    """The parameters of ``open_connection``."""

    protocol: ClassVar[str] = "amqp103"

    insist: bool = False


@takes(Options)
def open_connection(options: Options) -> Dialling:
    """Dial a server of AMQ Protocol 10.3.

    Use it as ``async with open_connection(url) as connection``. Entering waits until the server has opened the virtual host.
    Leaving closes the connection: queued output is written first, then the server's answer is awaited for at most
    ``close_timeout`` seconds. An exception raised in the block propagates unchanged.

    Args:
        where: a URL, several URLs to try in turn, or a stream that is already connected.
            ``amqp103://[user[:password]@]host[:port][/vhost]``; ``amqp103s://`` for TLS; ``amqp103ws://host/path?vhost=...`` and
            ``amqp103wss://`` in a WebSocket; ``amqp103+unix:///path?vhost=...``. Here ``amqp://`` and similar schemes have the
            same meaning. Path, query and all parameters of the same name work as in ``amqp091.open_connection``.
        vhost: the virtual host, up to 255 octets and without a NUL; None for that of the URL.
        insist: ask the server not to redirect (C 402).
        login: user and password; None for those of the URL, or ``guest`` with ``guest`` if it has none.
        sasl: a mechanism, or several, best first. If None: SCRAM, EXTERNAL with ``certfile``, PLAIN and AMQPLAIN.
        allow_plaintext_password: send a password even over a transport that others could read, or to a server without a verified
            certificate (``insecure``).
        layers: layers between the stream and AMQP, lowest first: ``"tls"``, ``"websocket"``. None for those of the URL.
        ssl_context: for TLS, instead of a new context.
        cafile: trusted authorities, in PEM, instead of those of the system.
        certfile, keyfile: our own certificate, and its key if that is in another file.
        server_hostname: the name that the server's certificate must have; None for the host of the URL.
        insecure: accept any certificate.
        heartbeat: requested interval in seconds; the lower value of both ends is used. 0 for no heartbeats. 60 if None.
        frame_max: maximum octets of a frame, at least 4096; the lower value of both ends is used. 131,072 if None.
        channel_max: the highest channel number; the lower value of both ends is used. 2047 if None.
        connection_name: a name to show in the server's lists.
        client_properties: further properties for the server; names without hyphens, no bools and no arrays.
        limits: the resources that the server may use here.
        close_timeout: seconds to wait for the server whenever something is closed.
        reconnect: restore the connection after a loss, with channels and their tickets, declarations and consumers: True to try
            for ever, or a ``Backoff``. The first dial is repeated too. A redirect ends the connection. See
            ``Connection.changes``.

    Raises (on entering):
        OSError: there is no server at that address.
        SecurityError: the login was refused, the server's identity is wrong, or a password would be readable.
        RedirectedError: the server redirects to another host.
        ConnectionClosedError: the server closed (530: no such virtual host, or no access to it), was lost, or took too long.
        RemoteProtocolError: the server does not speak 10.3.
        LocalProtocolError: the URL is malformed, or options contradict each other or are not safe.

    Cancelled: the new connection is closed.
    """
    return Dialling(options)


class Dialling(SharedDialling[Connection]):
    """The result of ``open_connection``: enter it with ``async with`` to connect."""

    def __init__(self, options: Options) -> None:
        self._insist = options.insist
        super().__init__(options)

    def make_connection(self, close_timeout: float) -> Connection:
        """Return a new connection; see ``SharedDialling``."""
        return Connection(close_timeout)

    def make_engine(self, now: float, limits: Limits, virtual_host: str) -> ClientEngine:
        """Return a new engine; see ``SharedDialling``."""
        return ClientEngine(
            EndpointRole.CLIENT,
            now,
            limits,
            profile=V10_3,
            virtual_host=virtual_host,
            opening={"insist": self._insist},
        )
