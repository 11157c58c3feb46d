"""Methods of connections and sessions that are patterns by nature: requests, transactions, tokens.

The one place where the house is climbed: the methods stand where one looks for them, their code in
``patterns``, where only the public API is used. Knows nothing of either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .options import RequesterOptions
from .signatures import takes_on

if TYPE_CHECKING:
    from trio_amqp10.patterns.cbs import TokenKeeping, TokenSource
    from trio_amqp10.patterns.requester import RequesterOpening
    from trio_amqp10.patterns.transaction import TransactionOpening
    from trio_amqp10.tokens import Token

    from .connection import Connection
    from .session import Session

__all__ = ["keep_token", "open_requester", "open_transaction", "open_transaction_on_session", "put_token"]


async def put_token(self: Connection, audience: str, token: Token) -> None:
    """Put one token to the peer's ``$cbs``, and wait until it is taken; see ``keep_token`` for one that lasts.

    Args:
        self: the connection that it is for.
        audience: what it is for, e.g. ``sb://NAMESPACE.servicebus.windows.net/orders``.
        token: which.

    Raises:
        TokenRefusedError: the peer did not take it.
        LinkRefusedError: the peer has no ``$cbs``.
        trio.TooSlowError: it did not answer within 30 seconds.
        LinkDetachedError, SessionEndedError, ConnectionClosedError, ...: a link is gone.

    Cancelled: the peer may have the token or not.
    """
    from trio_amqp10.patterns.cbs import put_token

    await put_token(self, audience, token)


def keep_token(self: Connection, audience: str, source: TokenSource) -> TokenKeeping:
    """Put a token, and another whenever nine tenths of its life are over: ``async with conn.keep_token(...)``.

    Where that fails it is logged, and tried again after 1 to 30 seconds; links end with
    ``amqp:unauthorized-access`` if no token came in time.

    Args:
        self: the connection that the tokens are for.
        audience: what they are for, e.g. ``sb://NAMESPACE.servicebus.windows.net/orders``.
        source: an async function of the audience that returns a ``Token``, e.g. ``SasTokens(name, key)``.

    Raises (on entering): as ``put_token``, and whatever the source raises.
    """
    from trio_amqp10.patterns.cbs import keep_token

    return keep_token(self, audience, source)


@takes_on(RequesterOptions)
def open_requester(self: Connection, options: RequesterOptions) -> RequesterOpening:
    """Ask a service: ``async with conn.open_requester("upper") as r: reply = await r.request("hi")``; as ``trio_amqp10.open_requester``."""
    from trio_amqp10.patterns.requester import RequesterOpening

    return RequesterOpening(self, options)


def open_transaction(self: Connection, *, keep: bool = False) -> TransactionOpening:
    """Send and settle all or nothing: ``async with conn.open_transaction() as txn`` (4.1).

    Leaving commits, and an exception rolls back; see ``Transaction``. Never tried again by itself.

    Args:
        self: the connection to the coordinator.
        keep: after a rollback, leave deliveries that were settled in it to be settled anew by you
            (4.4.2); otherwise they are released.
    """
    from trio_amqp10.patterns.transaction import open_transaction

    return open_transaction(self, keep=keep)


def open_transaction_on_session(self: Session, *, keep: bool = False) -> TransactionOpening:
    """As ``Connection.open_transaction``, with its control link on this session."""
    from trio_amqp10.patterns.transaction import open_transaction

    return open_transaction(self.connection, session=self, keep=keep)
