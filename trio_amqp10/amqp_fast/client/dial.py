"""Dial a server of AMQP/Fast: ``open_connection`` (RFC 006, 3.2.2)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine import Engine
from trio_amqp10.amqp_fast.limits import Limits
from trio_amqp10.amqp_fast.resumable_messages import PartialMessages
from trio_amqp10.endpoint_role import EndpointRole
from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.net.backoff import Backoff
from trio_amqp10.net.redial import Redial
from trio_amqp10.net.tls_options import TlsOptions
from trio_amqp10.net.transports import connect, is_private
from trio_amqp10.net.urls import Url, parse_url
from trio_amqp10.net.waiters import check_trio
from trio_amqp10.peer.recovery_events import Change, Changes, Watchers

from .connection import Connection
from .recovery import Recovery

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping
    from types import TracebackType


__all__ = ["Dialling", "open_connection"]

PORT: Final = 3018
"""Of the document's example (3.2.2)."""

_SCHEMES: Final = {"amqp-fast": "amqp", "amqp-fasts": "amqps"}


def open_connection(
    where: str | trio.abc.Stream,
    *,
    virtual_path: str | None = None,
    client_name: str = "",
    login: tuple[str, str] | None = None,
    allow_plaintext_password: bool = False,
    ssl_context: ssl.SSLContext | None = None,
    limits: Limits | None = None,
    dictionary: Mapping[str, str] | None = None,
    partials: PartialMessages | None = None,
    close_timeout: float = 5.0,
    reconnect: bool | Backoff = False,
) -> Dialling:
    """Dial a server of AMQP/Fast: ``async with open_connection(url) as connection``.

    Entering waits until the server has opened the virtual path. Leaving closes the connection, and waits for the server's answer
    for at most ``close_timeout`` seconds. What the block raises leaves as itself.

    Args:
        where: ``amqp-fast://[user[:password]@]host[:port][/path]``, ``amqp-fasts://`` with TLS, or a stream that is connected
            already. The port is 3018 if there is none.
        virtual_path: the virtual path; that of the URL if None, with a slash before it.
        client_name: by which the server knows durable subscriptions; active in one connection at a time.
        login: user and password; those of the URL if None. Without any, the mechanism is NONE.
        allow_plaintext_password: send a password where others could read it on the way.
        ssl_context: for ``amqp-fasts://``; one that believes the system's authorities if None.
        limits: what is proposed, and what the server may cost us.
        dictionary: full names of headers by their short ones, if ``limits.dictionaries`` (3.2.5.2).
        partials: messages of which a part came by another connection, on restartable channels.
        close_timeout: seconds to wait for the server whenever something is closed.
        reconnect: come back by itself, with channels, handles and subscriptions, for ever or as a ``Backoff`` says; the first dial
            too. A transacted channel does not. Give a ``client_name``: by it the server keeps durable subscriptions and, on
            restartable channels, the parts of messages that broke off. See ``Connection.changes``.

    Raises (on entering):
        OSError: nobody answers there.
        SecurityError: the login was refused, or no mechanism fits.
        ConnectionClosedError: the server closed (402: no such path; 320: the client name is active), or was lost.
        RemoteProtocolError: what answers does not speak AMQP/Fast.
        LocalProtocolError: the URL is not one, there is an ``ssl_context`` and no TLS, or ``reconnect`` and no URL.

    Cancelled: what was dialled is closed.
    """
    url = None if isinstance(where, trio.abc.Stream) else _parsed(where)
    stream = where if isinstance(where, trio.abc.Stream) else None
    if url is not None and login is None and url.username is not None:
        login = url.username, url.password or ""
    if virtual_path is None:
        virtual_path = f"/{(url.address or '') if url is not None else ''}"
    tls = TlsOptions(ssl_context=ssl_context)
    if url is not None:
        tls.layers_for(url)
    opening = spec.ConnectionOpen(confirm_tag=1, virtual_path=virtual_path, client_name=client_name)
    opening.encode()
    return Dialling(
        url,
        stream,
        opening,
        login=login,
        allow_plaintext_password=allow_plaintext_password,
        tls=tls,
        limits=limits or Limits(),
        dictionary=dictionary,
        partials=partials,
        close_timeout=close_timeout,
        backoff=Backoff() if reconnect is True else reconnect or None,
    )


def _parsed(text: str) -> Url:
    scheme, found, rest = text.partition("://")
    if not found or scheme not in _SCHEMES:
        raise LocalProtocolError("a URL of AMQP/Fast begins with amqp-fast:// or amqp-fasts://")
    authority, slash, path = rest.partition("/")
    host = authority.rpartition("@")[2]
    if not host.rpartition("]")[2].rpartition(":")[1]:
        authority = f"{authority}:{PORT}"
    return parse_url(f"{_SCHEMES[scheme]}://{authority}{slash}{path}")


class Dialling:
    """A connection that is yet to be made: enter it with ``async with``."""

    def __init__(
        self,
        url: Url | None,
        stream: trio.abc.Stream | None,
        opening: spec.ConnectionOpen,
        *,
        login: tuple[str, str] | None,
        allow_plaintext_password: bool,
        tls: TlsOptions,
        limits: Limits,
        dictionary: Mapping[str, str] | None,
        partials: PartialMessages | None,
        close_timeout: float,
        backoff: Backoff | None,
    ) -> None:
        if backoff is not None and stream is not None:
            raise LocalProtocolError("a stream cannot be dialled again: reconnect needs a URL")
        self._url = url
        self._stream = stream
        self._opening = opening
        self._login = login
        self._allow_plaintext_password = allow_plaintext_password
        self._tls = tls
        self._limits = limits
        self._dictionary = dictionary
        self._partials = PartialMessages() if partials is None else partials
        self._close_timeout = close_timeout
        self._backoff = backoff
        self._watchers = Watchers()

    async def _reach(self) -> tuple[trio.abc.Stream, bool]:
        """The stream to use, and whether nobody on the way can read along."""
        url = self._url
        if url is None:
            assert self._stream is not None
            return self._stream, is_private(self._stream)
        transport = await self._tls.put_on(await connect(url), url)
        return transport.stream, transport.private or is_private(transport.stream)

    async def _dial(self) -> str:
        """One transport, which the server has opened; where it leads. Raises what kept it from that."""
        stream, private = await self._reach()
        engine = Engine(
            EndpointRole.CLIENT,
            trio.current_time(),
            self._limits,
            opening=self._opening,
            dictionary=self._dictionary,
            partials=self._partials,
        )
        connection = self._connection
        may_say_password = private or self._allow_plaintext_password
        connection.begin(engine, stream, self._nursery, may_say_password=may_say_password)
        try:
            await connection.opened()
        except BaseException:
            await connection.pump.part(partial(engine.close, trio.current_time()))
            raise
        return "a stream" if self._url is None else str(self._url)

    def changes(self) -> Changes:
        """What happens to the connection, from the first dial on, each attempt that fails included.

        For a task of its own: entering waits for as long as ``reconnect`` says. Ends at once without ``reconnect``.
        """
        if self._backoff is None:
            return Changes(ended=True)
        return self._watchers.changes(attempts=True)

    async def __aenter__(self) -> Connection:
        check_trio()
        # The nursery is entered and left by hand: what the user's block raises must not pass
        # through it, or it would come out as a group of one.
        self._manager = trio.open_nursery()
        self._nursery = await self._manager.__aenter__()
        self._connection = connection = Connection(self._login, close_timeout=self._close_timeout)
        self._dialled = False
        watchers = self._watchers
        try:
            redial = Redial(
                self._backoff, is_final=Recovery.is_final, log=Recovery.log, failed=watchers.failed
            )
            url = await redial.first(self._dial, 1)
            self._dialled = True
            if self._backoff is not None:
                connection.recovery = recovery = Recovery(connection, self._dial, redial, watchers)
                self._nursery.start_soon(recovery.run)
                watchers.tell(Change("restored", url=url))
            connection.on_ready()
        except BaseException as failure:
            watchers.tell(Change("stopped", failure if isinstance(failure, Exception) else None))
            await self._leave()
            raise
        return connection

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._leave()

    async def _leave(self) -> None:
        try:
            if self._dialled:
                await self._connection.aclose()
        finally:
            self._nursery.cancel_scope.cancel()
            await self._manager.__aexit__(None, None, None)
