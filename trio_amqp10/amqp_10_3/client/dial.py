"""Dial a server of 10.3: ``open_connection``, with all its options (class connection, C 273-437)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from trio_amqp10.amqp091.client.connection_base import ClientEngine
from trio_amqp10.amqp091.client.dial import product_properties
from trio_amqp10.amqp091.client.dialling import DiallingBase, Options
from trio_amqp10.amqp091.client.urls import Place, parse_place
from trio_amqp10.amqp091.limits import Limits
from trio_amqp10.amqp_10_3.profile import V10_3
from trio_amqp10.endpoint_role import EndpointRole
from trio_amqp10.net.backoff import Backoff
from trio_amqp10.net.tls_options import TlsOptions

from .connection import Connection

if TYPE_CHECKING:
    import os
    import ssl
    from collections.abc import Mapping, Sequence

    from trio_amqp10.amqp091.client.dialling import SaslChoice

__all__ = ["Dialling", "open_connection"]


def open_connection(
    where: str | Sequence[str] | trio.abc.Stream,
    *,
    vhost: str | None = None,
    insist: bool = False,
    login: tuple[str, str] | None = None,
    sasl: SaslChoice = None,
    allow_plaintext_password: bool = False,
    layers: Sequence[str] | None = None,
    ssl_context: ssl.SSLContext | None = None,
    cafile: str | os.PathLike[str] | None = None,
    certfile: str | os.PathLike[str] | None = None,
    keyfile: str | os.PathLike[str] | None = None,
    server_hostname: str | None = None,
    insecure: bool = False,
    heartbeat: int | None = None,
    frame_max: int | None = None,
    channel_max: int | None = None,
    connection_name: str | None = None,
    client_properties: Mapping[str, Any] | None = None,
    limits: Limits | None = None,
    close_timeout: float = 5.0,
    reconnect: bool | Backoff = False,
) -> Dialling:
    """Dial a server of AMQ Protocol 10.3: ``async with open_connection(url) as connection``.

    Entering waits until the server has opened the virtual host. Leaving closes the connection: what is queued is written
    first, then the server's answer is awaited for at most ``close_timeout`` seconds. What the block raises leaves as itself.

    Args:
        where: a URL, or several, tried in turn, or a stream that is connected already.
            ``amqp103://[user[:password]@]host[:port][/vhost]``; ``amqp103s://`` with TLS; ``amqp103ws://host/path?vhost=...`` and
            ``amqp103wss://`` in a WebSocket; ``amqp103+unix:///path?vhost=...``. ``amqp://`` and so on mean the same here. Path and
            query are those of ``amqp091.open_connection``, and so is what has the same name here.
        vhost: the virtual host, up to 255 octets and without a NUL; that of the URL if None.
        insist: ask the server not to redirect (C 402).
        login: user and password; those of the URL if None, and ``guest`` with ``guest`` if it has none.
        sasl: a mechanism, or several, best first. If None: SCRAM, EXTERNAL with ``certfile``, PLAIN and AMQPLAIN.
        allow_plaintext_password: send a password where others could read it on the way, or to a server that proved
            nothing (``insecure``).
        layers: what to put between the stream and AMQP, lowest first: ``"tls"``, ``"websocket"``. None: what the URL says.
        ssl_context: for TLS, in place of one made here.
        cafile: authorities to believe, in PEM, in place of those of the system.
        certfile, keyfile: our own certificate, and its key if that is in another file.
        server_hostname: the name that the server's certificate has to have; the URL's host if None.
        insecure: take any certificate.
        heartbeat: seconds of the interval to ask for; the lower of both ends' numbers holds. 0 for none. 60 if None.
        frame_max: octets of a frame, 4096 or more; the lower of both ends' numbers holds. 131,072 if None.
        channel_max: the highest channel number; the lower of both ends' numbers holds. 2047 if None.
        connection_name: a name for the server's lists.
        client_properties: more about us, for the server; names without hyphens, no bools and no arrays.
        limits: what the server may cost us.
        close_timeout: seconds to wait for the server whenever something is closed.
        reconnect: come back by itself, with channels and their tickets, declarations and consumers, for ever or as a ``Backoff``
            says; the first dial too. A redirect ends it. See ``Connection.changes``.

    Raises (on entering):
        OSError: nobody answers there.
        SecurityError: the login was refused, or the server is not who it should be, or a password would be readable.
        RedirectedError: the server asks to connect elsewhere.
        ConnectionClosedError: the server closed (530: no such virtual host, or no access to it), or was lost, or took too long.
        RemoteProtocolError: what answers does not speak 10.3.
        LocalProtocolError: the URL is not one, or options make no sense or are not safe.

    Cancelled: what was dialled is closed.
    """
    given = {"heartbeat": heartbeat, "frame_max": frame_max, "channel_max": channel_max}
    stream = where if isinstance(where, trio.abc.Stream) else None
    urls = () if isinstance(where, trio.abc.Stream) else (where,) if isinstance(where, str) else where
    tls = TlsOptions(
        layers=layers,
        ssl_context=ssl_context,
        cafile=cafile,
        certfile=certfile,
        keyfile=keyfile,
        server_hostname=server_hostname,
        insecure=insecure,
    )
    options = Options(
        virtual_host=vhost,
        login=login,
        sasl=sasl,
        allow_plaintext_password=allow_plaintext_password,
        tls=tls,
        limits=limits or Limits(),
        given={name: value for name, value in given.items() if value is not None},
        properties={**product_properties(connection_name), **(client_properties or {})},
        close_timeout=close_timeout,
        backoff=Backoff() if reconnect is True else reconnect or None,
    )
    return Dialling([parse_place(url, "amqp103") for url in urls], stream, options, insist=insist)


class Dialling(DiallingBase[Connection]):
    """A connection that is yet to be made: enter it with ``async with``."""

    def __init__(
        self, places: Sequence[Place], stream: trio.abc.Stream | None, options: Options, *, insist: bool
    ) -> None:
        self._insist = insist
        super().__init__(places, stream, options)

    def make_connection(self, close_timeout: float) -> Connection:
        """As of ``DiallingBase``."""
        return Connection(close_timeout)

    def make_engine(self, now: float, limits: Limits, virtual_host: str) -> ClientEngine:
        """As of ``DiallingBase``."""
        return ClientEngine(
            EndpointRole.CLIENT,
            now,
            limits,
            profile=V10_3,
            virtual_host=virtual_host,
            opening={"insist": self._insist},
        )
