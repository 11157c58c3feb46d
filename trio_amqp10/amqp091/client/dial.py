"""Connect to a 0-9-1 server: ``open_connection``, with all its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trio_amqp10.amqp091.wire.fields import STRICT, USUAL
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.net.option_signatures import takes

from .connection import Connection
from .connection_base import ClientEngine
from .dial_options import DialOptions
from .dialling_base import SharedDialling

if TYPE_CHECKING:
    from trio_amqp10.amqp091.engine.limits import Limits


@dataclass(frozen=True, kw_only=True)
class Options(DialOptions):
    """All parameters of ``open_connection``."""

    strict_tables: bool = False

    def properties(self) -> dict[str, Any]:
        """Return the client properties, with the capabilities of this client."""
        return {
            **super().properties(),
            "capabilities": {
                "publisher_confirms": True,
                "exchange_exchange_bindings": True,
                "basic.nack": True,
                "consumer_cancel_notify": True,
                "connection.blocked": True,
                "authentication_failure_close": True,
            },
        }


@takes(Options)
def open_connection(options: Options) -> Dialling:
    """Connect to a server: ``async with open_connection(url) as connection``.

    Entering waits until the server has opened the virtual host (0-9-1, 2.2.4, 4.2.2). Leaving closes the
    connection: queued octets are written first, then the server's answer is awaited for at most
    ``close_timeout`` seconds. An exception raised in the block propagates unchanged.

    Args:
        where: a URL; or several, which are tried in turn; or a stream that is already connected.
            ``amqp091://[user[:password]@]host[:port][/vhost]``; ``amqp091s://`` with TLS;
            ``amqp091ws://host/path?vhost=...`` and ``amqp091wss://`` in a WebSocket;
            ``amqp091+unix:///path?vhost=...``. ``amqp://`` and so on mean the same here. The path is the
            virtual host, percent-decoded; without a path it is ``/``. Query options: ``heartbeat``,
            ``frame_max``, ``channel_max``, ``connection_timeout`` (milliseconds), ``auth_mechanism``,
            ``cacertfile``, ``certfile``, ``keyfile``, ``server_name_indication``. An argument of this function
            overrides an option of a URL.
        vhost: the virtual host, up to 255 octets and without a NUL; that of the URL if None.
        login: user and password; those of the URL if None, or ``guest`` with ``guest`` if the URL has none.
        sasl: a mechanism, or several, best first. If None: SCRAM, EXTERNAL with ``certfile``, PLAIN and
            AMQPLAIN.
        allow_plaintext_password: send a password even if others can read it on the way, or if the server proved
            nothing about itself (``insecure``).
        layers: the layers between the stream and AMQP, lowest first: ``"tls"``, ``"websocket"``. None: as the
            URL requires.
        ssl_context: the context for TLS, instead of one made here.
        cafile: trusted certificate authorities in PEM, instead of those of the system.
        certfile, keyfile: the client's certificate, and its key if that is in another file.
        server_hostname: the name that the server's certificate must have; the URL's host if None.
        insecure: accept any certificate.
        heartbeat: the requested heartbeat interval in seconds; the lower number of both ends applies. 0 for
            none. 60 if None.
        frame_max: the largest frame in octets, 4096 or more; the lower number of both ends applies. 131,072 if
            None.
        channel_max: the highest channel number; the lower number of both ends applies. 2047 if None.
        connection_name: a name that the server shows in its lists of connections.
        client_properties: more information about this client, for the server.
        limits: bounds for the memory and time that the server may use here.
        strict_tables: write and read field tables by the grammar of 0-9-1, not as RabbitMQ does.
        close_timeout: seconds to wait for the server whenever something is closed.
        reconnect: restore the connection after a loss, with its channels, declarations and consumers; also
            retry the first dial. True retries without an end, a ``Backoff`` sets limits. See
            ``Connection.changes``.

    Raises (on entering):
        OSError: no server answers at this address.
        SecurityError: the login was refused, the server could not prove its identity, or others could read the
            password.
        ConnectionClosedError: the server closed the connection (530: no such virtual host, or no access to it),
            or the connection was lost, or the server took too long.
        RemoteProtocolError: the peer does not use AMQP 0-9-1.
        LocalProtocolError: the URL is not valid, or the options are contradictory or not safe.

    Cancelled: the new transport is closed.
    """
    return Dialling(options)


class Dialling(SharedDialling[Connection]):
    """A connection that is not opened yet: enter it with ``async with``."""

    def __init__(self, options: Options) -> None:
        self._letters = STRICT if options.strict_tables else USUAL
        super().__init__(options)

    def make_connection(self, close_timeout: float) -> Connection:
        """Return a connection that has no transport yet."""
        return Connection(close_timeout)

    def make_engine(self, now: float, limits: Limits, virtual_host: str) -> ClientEngine:
        """Return the engine of one transport."""
        return ClientEngine(
            EndpointRole.CLIENT, now, limits, virtual_host=virtual_host, letters=self._letters
        )
