"""A transaction: publishes and acknowledgements that happen together at the commit, or not at all (0-9-1, class tx).

RabbitMQ commits atomically for one queue only. A transaction never comes back with its connection: what was not committed
has not happened, and a commit whose answer was lost is in doubt.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import trio

from trio_amqp10.amqp091.states import ChannelState

from .channel import Channel
from .channel_base import ChannelBase, D
from .delivery import Delivery
from .errors import ConnectionClosedError, TransactionInDoubtError

if TYPE_CHECKING:
    from trio_amqp10.amqp091.methods import Method

__all__ = ["Transaction", "TransactionBase"]


class TransactionBase(ChannelBase[D]):
    """A channel with transactions, with what versions have in common."""

    async def open(self) -> None:
        """As of ``ChannelBase``. Until it is open, nothing was done on it, so it comes back after a loss."""
        await super().open()
        self.restores = False

    def setup(self) -> list[Method]:
        """Transactions are selected when the channel is opened."""
        return [*super().setup(), self.make("tx.select")]

    async def commit(self) -> None:
        """Do all that was published and settled since the last commit or rollback (0-9-1, tx.commit).

        Raises:
            TransactionInDoubtError: the connection was lost before the answer: all has happened, or nothing.
            ChannelClosedError: the server refused, and nothing has happened.

        Cancelled: it may happen or not.
        """
        self.check()
        try:
            await self.call(lambda: self.make("tx.commit"))
        except ConnectionClosedError as lost:
            raise TransactionInDoubtError(f"the answer to a commit was lost: {lost}") from lost

    async def rollback(self) -> None:
        """Drop what was published since the last commit or rollback, and undo the acknowledgements (0-9-1, tx.rollback).

        Cancelled: it may be done or not; nothing is committed in any case.
        """
        await self.call(lambda: self.make("tx.rollback"))

    async def leave(self, *, failed: bool) -> None:
        """Commit, or roll back after an exception, and close the channel."""
        if failed:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + self.connection.close_timeout):
                if self.is_usable and self.engine.state is ChannelState.OPEN:
                    with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                        await self.rollback()  # otherwise it is rolled back with its channel
        await super().leave(failed=failed)

    async def finish(self) -> None:
        """Before the block is left without an exception: commit."""
        await self.commit()


class Transaction(TransactionBase[Delivery], Channel):
    """A channel with transactions; made by ``Connection.open_transaction``.

    Leaving its block commits, or rolls back after an exception. ``commit`` and ``rollback`` end one transaction and begin the
    next. It settles only deliveries that came on itself: those that were acknowledged and rolled back are unsettled again.
    """
