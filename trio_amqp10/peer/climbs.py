"""Methods of connections and sessions that are patterns by nature: requests, transactions.

The one place where the house is climbed: the methods stand where one looks for them, their code in
``patterns``, where only the public API is used. Knows nothing of either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trio_amqp10.patterns.requester import RequesterOpening
    from trio_amqp10.patterns.transaction import TransactionOpening

    from .connection import Connection
    from .session import Session

__all__ = ["open_requester", "open_transaction", "open_transaction_on_session"]


def open_requester(
    self: Connection, address: str, *, reply_to: str | None = None, **options: Any
) -> RequesterOpening:
    """Ask a service: ``async with conn.open_requester("upper") as r: reply = await r.request("hi")``.

    Args:
        self: the connection to the service.
        address: the node that answers.
        reply_to: where it is to send replies; a node that the peer makes for us if None.
        options: for the sender of the requests, as for ``open_sender``.
    """
    from trio_amqp10.patterns.requester import open_requester

    return open_requester(self, address, reply_to=reply_to, **options)


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
