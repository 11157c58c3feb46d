"""Claims-based security for clients: put tokens to ``$cbs``, and renew them.

Azure Service Bus and Event Hubs let a client connect with SASL ANONYMOUS. The client then puts a token for
each node that it wants to use: a request to the node ``$cbs``, whose reply has a status as in HTTP. When a
token expires, the service ends the links that the token permitted, unless a newer token came before.

The links to ``$cbs`` are opened for each token and closed again, because services close idle ones. After a
connection was restored, each token is put again before the links are attached.

Uses only the public interface of a connection; knows nothing of the service that verifies the tokens.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import trio

from trio_amqp10.amqp10.message import Message, Value
from trio_amqp10.amqp10.wire.values import Timestamp
from trio_amqp10.core.errors import AmqpError, LocalProtocolError, SecurityError
from trio_amqp10.core.tokens import Token, sign_sas
from trio_amqp10.net.errors import TimedOutError, time_limit

if TYPE_CHECKING:
    from types import TracebackType

    from .link_carriers import LinkConnection

_log = logging.getLogger("trio_amqp10.cbs")

_NODE: Final = "$cbs"

_USED: Final = 0.9
"""The fraction of a token's lifetime after which the next token is put."""
_SHORTEST: Final = 1.0
_LONGEST: Final = 30.0
"""Seconds between failing attempts: ``_SHORTEST`` at first, ``_LONGEST`` at most."""

TokenSource: TypeAlias = Callable[[str], Awaitable[Token]]
"""An async function of an audience that returns a new token for it at each call."""


class TokenRefusedError(SecurityError):
    """The peer refused a token.

    Attributes:
        status_code: as in HTTP, e.g. 401; None if the peer sent none.
        status_description: the peer's text, or None.
    """

    def __init__(self, audience: str, status_code: int | None, status_description: str | None) -> None:
        shown = "".join(c if c.isprintable() else "\ufffd" for c in (status_description or "")[:1024])
        super().__init__(f"the token for {audience!r} was refused: {status_code} {shown}".rstrip())
        self.status_code = status_code
        self.status_description = status_description


class SasTokens:
    """A source of SAS tokens for ``keep_token``, signed with one key.

    Args:
        key_name: the name of the key, e.g. ``RootManageSharedAccessKey``.
        key: the key as the portal shows it; do not decode it.
        lifetime: seconds until a token expires.
        wall_clock: returns the seconds since 1970.
    """

    __slots__ = ("_key", "_wall", "key_name", "lifetime")

    def __init__(
        self,
        key_name: str,
        key: str,
        *,
        lifetime: float = 3600.0,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.key_name: Final = key_name
        self.lifetime: Final = lifetime
        self._key = key
        self._wall = wall_clock

    async def __call__(self, audience: str) -> Token:
        """Return a new token.

        Raises:
            LocalProtocolError: the audience, the key or its name is empty.

        Cancelled: never; it does not wait.
        """
        return sign_sas(audience, self.key_name, self._key, self._wall() + self.lifetime)

    def __repr__(self) -> str:
        return f"<SasTokens {self.key_name!r} lifetime={self.lifetime:g}>"


async def put_token(
    connection: LinkConnection,
    audience: str,
    token: Token,
    *,
    timeout: float | None = 30.0,  # noqa: ASYNC109
) -> None:
    """Put one token to the peer's ``$cbs``, and wait until the peer has accepted it.

    Args:
        connection: the connection to the peer.
        audience: the resource that the token is for, e.g. ``sb://NAMESPACE.servicebus.windows.net/orders``.
        token: the token.
        timeout: seconds to wait for the peer at most; None for no limit.

    Raises:
        TokenRefusedError: the peer refused the token.
        LinkRefusedError: the peer has no ``$cbs``.
        TimedOutError: the peer did not answer in time.
        DeliveryRejectedError, LinkDetachedError, ConnectionClosedError, ...: as ``Requester.request``.

    Cancelled: the peer may have accepted the token or not.
    """
    properties: dict[str, Any] = {"operation": "put-token", "type": token.type, "name": audience}
    if token.expires is not None:
        properties["expiration"] = Timestamp(int(token.expires * 1000))
    request = Message(Value(token.value), application_properties=properties)
    with time_limit(timeout, lambda: TimedOutError(f"no answer from {_NODE!r} within {timeout:g} s")):
        async with connection.open_requester(_NODE, direct=True) as requester:
            reply = await requester.request(request)
    status: Any = reply.application_properties or {}
    code = status.get("status-code")
    if not isinstance(code, int) or not 200 <= code < 300:
        words = status.get("status-description")
        raise TokenRefusedError(
            audience, code if isinstance(code, int) else None, words if isinstance(words, str) else None
        )


class TokenKeeping:
    """Puts a token, and renews it while an ``async with`` block lasts.

    Raises (on entering): as ``put_token``, and any exception of the token source.
    """

    def __init__(
        self, connection: LinkConnection, audience: str, source: TokenSource, wall_clock: Callable[[], float]
    ) -> None:
        self._connection = connection
        self._audience = audience
        self._source = source
        self._wall = wall_clock
        self._left: float | None = None
        self._again = trio.Event()

    async def __aenter__(self) -> None:
        left = await self._put()
        # The nursery is entered by hand, so that an exception of the user's block is not wrapped in a group.
        self._manager = trio.open_nursery()
        self._nursery = await self._manager.__aenter__()
        self._left = left
        self._restoring = self._connection.restore_with(self._put_again)
        self._restoring.__enter__()
        self._nursery.start_soon(self._renew)

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._restoring.__exit__(None, None, None)
        self._nursery.cancel_scope.cancel()
        await self._manager.__aexit__(None, None, None)

    async def _put(self) -> float | None:
        """Put a new token; return its remaining lifetime in seconds, None for no end."""
        token = await self._source(self._audience)
        left = None if token.expires is None else token.expires - self._wall()
        if left is not None and left <= 0:
            raise LocalProtocolError(
                f"the token source returned a token for {self._audience!r} that expired {-left:.0f} s ago"
            )
        await put_token(self._connection, self._audience, token)
        return left

    async def _put_again(self) -> None:
        """Put a token on the restored connection, before its links are attached."""
        try:
            self._left = await self._put()
        except TokenRefusedError as refused:
            _log.warning("%s", refused)  # the peer decides which links it refuses without the token
            self._left = 0.0
        self._again.set()

    async def _renew(self) -> None:
        pause = _SHORTEST
        while not self._connection.closed:
            self._again = again = trio.Event()
            left = math.inf if self._left is None else self._left
            with trio.move_on_after(max(left * _USED, _SHORTEST)):
                await again.wait()
                continue  # The connection was restored, and `_put_again` has put a token.
            while not self._connection.closed and not again.is_set():
                try:
                    self._left = await self._put()
                except Exception as failure:  # also one of the token source: its cause may pass
                    if self._connection.closed:
                        return
                    _log.warning(
                        "no new token for %r, next attempt in %g s: %s",
                        self._audience,
                        pause,
                        failure,
                        exc_info=None if isinstance(failure, (AmqpError, OSError)) else failure,
                    )
                    await trio.sleep(pause)
                    pause = min(pause * 2, _LONGEST)
                else:
                    pause = _SHORTEST
                    break


def keep_token(
    connection: LinkConnection,
    audience: str,
    source: TokenSource,
    *,
    wall_clock: Callable[[], float] = time.time,
) -> TokenKeeping:
    """Keep a token at the peer; see ``Connection.keep_token``."""
    return TokenKeeping(connection, audience, source, wall_clock)
