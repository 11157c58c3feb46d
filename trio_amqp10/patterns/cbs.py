"""Claims-based security for clients: put tokens to ``$cbs``, and renew them.

Azure Service Bus and Event Hubs let a client connect with SASL ANONYMOUS and then put a token for
each node that it wants to use: a request to the node ``$cbs``, whose reply has a status as in HTTP.
A token that ends takes the links with it that it permitted, unless another came before.

The links to ``$cbs`` are opened for each token and closed again: services close those that are idle.
A connection that comes back brings no tokens with it, so each is put anew before the links are attached.

Uses only what any program may use of a connection; knows nothing of who verifies the tokens.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import trio

from trio_amqp10.errors import AmqpError, LocalProtocolError, SecurityError
from trio_amqp10.message import Message, Value
from trio_amqp10.tokens import Token, sign_sas
from trio_amqp10.wire.values import Timestamp

if TYPE_CHECKING:
    from types import TracebackType

    from trio_amqp10.peer.link_carriers import LinkConnection

__all__ = ["SasTokens", "TokenKeeping", "TokenRefusedError", "TokenSource", "keep_token", "put_token"]

_log = logging.getLogger("trio_amqp10.cbs")

_NODE: Final = "$cbs"

_USED: Final = 0.9
"""Of the life of a token, after which another is put."""
_SHORTEST: Final = 1.0
_LONGEST: Final = 30.0
"""Seconds between attempts that fail, the first and at most."""

TokenSource: TypeAlias = Callable[[str], Awaitable[Token]]
"""An async function of an audience that returns a token for it, a new one each time."""


class TokenRefusedError(SecurityError):
    """The peer did not take a token.

    Attributes:
        status_code: as in HTTP, e.g. 401; None if the peer gave none.
        status_description: the peer's words, or None.
    """

    def __init__(self, audience: str, status_code: int | None, status_description: str | None) -> None:
        shown = "".join(c if c.isprintable() else "\ufffd" for c in (status_description or "")[:1024])
        super().__init__(f"the token for {audience!r} was refused: {status_code} {shown}".rstrip())
        self.status_code = status_code
        self.status_description = status_description


class SasTokens:
    """Signs SAS tokens with one key: a source for ``keep_token``.

    Args:
        key_name: of the key, e.g. ``RootManageSharedAccessKey``.
        key: the key as it is shown, not decoded.
        lifetime: seconds that a token is good for.
        wall_clock: gives seconds since 1970.
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
        """A new token.

        Raises:
            LocalProtocolError: no audience, key or name of it.

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
    """Put one token to the peer's ``$cbs``, and wait until it is taken.

    Args:
        connection: to the peer.
        audience: what it is for, e.g. ``sb://NAMESPACE.servicebus.windows.net/orders``.
        token: which.
        timeout: seconds that the peer may take; None for as long as it takes.

    Raises:
        TokenRefusedError: the peer did not take it.
        LinkRefusedError: the peer has no ``$cbs``.
        trio.TooSlowError: it did not answer in time.
        DeliveryRejectedError, LinkDetachedError, ConnectionClosedError, ...: as ``Requester.request``.

    Cancelled: the peer may have the token or not.
    """
    properties: dict[str, Any] = {"operation": "put-token", "type": token.type, "name": audience}
    if token.expires is not None:
        properties["expiration"] = Timestamp(int(token.expires * 1000))
    request = Message(Value(token.value), application_properties=properties)
    with trio.fail_after(float("inf") if timeout is None else timeout):
        async with connection.open_requester(_NODE, direct=True) as requester:
            reply = await requester.request(request)
    said: Any = reply.application_properties or {}
    code = said.get("status-code")
    if not isinstance(code, int) or not 200 <= code < 300:
        words = said.get("status-description")
        raise TokenRefusedError(
            audience, code if isinstance(code, int) else None, words if isinstance(words, str) else None
        )


class TokenKeeping:
    """A token that is to be put, and put anew for as long as the block lasts: enter it with ``async with``.

    Raises (on entering): as ``put_token``, and whatever the source raises.
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
        # By hand, so that what the user's block raises does not come out as a group of one.
        self._manager = trio.open_nursery()
        self._nursery = await self._manager.__aenter__()
        self._left = left
        self._restoring = self._connection.restore_with(self._put_anew)
        self._restoring.__enter__()
        self._nursery.start_soon(self._renew)

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._restoring.__exit__(None, None, None)
        self._nursery.cancel_scope.cancel()
        await self._manager.__aexit__(None, None, None)

    async def _put(self) -> float | None:
        """Put a new token; returns the seconds that it is good for."""
        token = await self._source(self._audience)
        left = None if token.expires is None else token.expires - self._wall()
        if left is not None and left <= 0:
            raise LocalProtocolError(
                f"the source gave a token for {self._audience!r} that expired {-left:.0f} s ago"
            )
        await put_token(self._connection, self._audience, token)
        return left

    async def _put_anew(self) -> None:
        """The connection is back, and wants a token before its links."""
        try:
            self._left = await self._put()
        except TokenRefusedError as refused:
            _log.warning("%s", refused)  # it is for the peer to say which links cannot be without it
            self._left = 0.0
        self._again.set()

    async def _renew(self) -> None:
        pause = _SHORTEST
        while not self._connection.closed:
            self._again = again = trio.Event()
            left = math.inf if self._left is None else self._left
            with trio.move_on_after(max(left * _USED, _SHORTEST)):
                await again.wait()
                continue  # put on the way back
            while not self._connection.closed and not again.is_set():
                try:
                    self._left = await self._put()
                except Exception as failure:  # the source's too: what it raises now may be over soon
                    if self._connection.closed:
                        return
                    _log.warning(
                        "no new token for %r, next attempt in %g s: %s",
                        self._audience,
                        pause,
                        failure,
                        exc_info=None
                        if isinstance(failure, (AmqpError, OSError, trio.TooSlowError))
                        else failure,
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
    """See ``Connection.keep_token``, which this is."""
    return TokenKeeping(connection, audience, source, wall_clock)
