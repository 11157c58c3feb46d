"""Dialling a server of AMQP/Fast: ``open_connection`` (RFC 006, 3.2.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

import trio

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.engine import Engine
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.amqp_fast.engine.partial_messages import PartialMessages
from trio_amqp10.core.endpoint_role import EndpointRole
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.dial_options import CommonDialOptions
from trio_amqp10.net.dialling_base import DiallingBase
from trio_amqp10.net.option_signatures import takes
from trio_amqp10.net.tls_options import TlsOptions
from trio_amqp10.net.urls import Url, parse_url

from .connection import Connection
from .errors import ConnectionClosedError
from .recovery import Recovery

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from trio_amqp10.net.recovery_base import RecoveryBase


PORT: Final = 3018
"""The default port: that of the document's example (3.2.2)."""

_SCHEMES: Final = {"amqp-fast": "amqp", "amqp-fasts": "amqps"}


@dataclass(frozen=True, kw_only=True)
class DialOptions(CommonDialOptions):
    """The parameters of ``open_connection``."""

    where: str | trio.abc.Stream = field(kw_only=False, repr=False)  # may hold a password
    virtual_path: str | None = None
    client_name: str = ""
    login: tuple[str, str] | None = field(default=None, repr=False)
    ssl_context: ssl.SSLContext | None = None
    limits: Limits | None = None
    dictionary: Mapping[str, str] | None = None
    partials: PartialMessages | None = None


@takes(DialOptions)
def open_connection(options: DialOptions) -> Dialling:
    """Dial a server of AMQP/Fast: ``async with open_connection(url) as connection``.

    Entering waits until the server has opened the virtual path. Leaving closes the connection, and waits for the server's answer
    for at most ``close_timeout`` seconds. An exception raised in the block propagates unchanged.

    Args:
        where: ``amqp-fast://[user[:password]@]host[:port][/path]``, ``amqp-fasts://`` for TLS, or a stream that is already
            connected. The default port is 3018.
        virtual_path: the virtual path; None for the path of the URL, with a leading slash.
        client_name: the name under which the server keeps durable subscriptions; only one connection at a time may use it.
        login: user and password; None for those of the URL. Without any, the mechanism is NONE.
        allow_plaintext_password: send a password even over a transport that others could read.
        ssl_context: for ``amqp-fasts://``; None for a context that trusts the authorities of the system.
        limits: the limits to propose, and the resources that the server may use here.
        dictionary: full names of headers by their short names, if ``limits.dictionaries`` (3.2.5.2).
        partials: partly transferred messages of an earlier connection, for restartable channels.
        close_timeout: seconds to wait for the server whenever something is closed.
        reconnect: restore the connection after a loss, with channels, handles and subscriptions: True to try for ever, or a
            ``Backoff``. The first dial is repeated too. Transacted channels are not restored. Give a ``client_name``:
            with it the server keeps durable subscriptions and, on restartable channels, the parts of interrupted
            messages. See ``Connection.changes``.

    Raises (on entering):
        OSError: there is no server at that address.
        SecurityError: the login was refused, or no mechanism fits.
        ConnectionClosedError: the server closed (402: no such path; 320: the client name is in use), or the connection was
            lost.
        RemoteProtocolError: the server does not speak AMQP/Fast.
        LocalProtocolError: the URL is malformed, ``ssl_context`` is given without TLS, or ``reconnect`` without a URL.

    Cancelled: the new connection is closed.
    """
    return Dialling(options)


def _parsed(text: str) -> Url:
    scheme, found, rest = text.partition("://")
    if not found or scheme not in _SCHEMES:
        raise LocalProtocolError("a URL of AMQP/Fast begins with amqp-fast:// or amqp-fasts://")
    authority, slash, path = rest.partition("/")
    host = authority.rpartition("@")[2]
    if not host.rpartition("]")[2].rpartition(":")[1]:
        authority = f"{authority}:{PORT}"
    return parse_url(f"{_SCHEMES[scheme]}://{authority}{slash}{path}")


class Dialling(DiallingBase[Connection, "Url | None"]):
    """The result of ``open_connection``: enter it with ``async with`` to connect."""

    recovery_class: ClassVar[type[RecoveryBase[Any]]] = Recovery

    def __init__(self, options: DialOptions) -> None:
        where = options.where
        stream = where if isinstance(where, trio.abc.Stream) else None
        url = None if isinstance(where, trio.abc.Stream) else _parsed(where)
        super().__init__((url,), stream, options.backoff)
        self._options = options
        self._limits = options.limits or Limits()
        self._tls = TlsOptions(ssl_context=options.ssl_context)
        login, path = options.login, options.virtual_path
        self._tls.layers_for(url)
        if url is not None and login is None and url.username is not None:
            login = url.username, url.password or ""
        if path is None:
            path = f"/{(url.address or '') if url is not None else ''}"
        self._login = login
        self._opening = spec.ConnectionOpen(confirm_tag=1, virtual_path=path, client_name=options.client_name)
        self._opening.encode()
        self._partials = PartialMessages() if options.partials is None else options.partials

    async def _dial(self) -> str:
        url = self._next_place()
        seconds = self._limits.handshake_timeout
        try:
            transport, private = await self._transport_to(url, self._tls, seconds)
        except trio.TooSlowError:
            raise ConnectionClosedError(None, f"no answer within {seconds:g} s") from None
        engine = Engine(
            EndpointRole.CLIENT,
            trio.current_time(),
            self._limits,
            opening=self._opening,
            dictionary=self._options.dictionary,
            partials=self._partials,
        )
        connection = self._connection or Connection(self._login, close_timeout=self._options.close_timeout)
        may_send_password = private or self._options.allow_plaintext_password
        connection.begin(engine, transport.stream, self._nursery, may_send_password=may_send_password)
        try:
            await connection.opened()
        except BaseException:
            await connection.hang_up()
            raise
        self._connection = connection
        return "a stream" if url is None else str(url)
