"""A transaction: publishes and settlements that take effect together (class tx)."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import trio

from trio_amqp10.amqp091.engine.states import ChannelState

from .channel import Channel
from .channel_base import ChannelBase, D
from .delivery import Delivery
from .errors import ChannelClosedError, ConnectionClosedError, TransactionInDoubtError

if TYPE_CHECKING:
    from trio_amqp10.amqp091.wire.methods import Method


class TransactionBase(ChannelBase[D]):
    """A channel with transactions, with the parts that both versions share."""

    _has_work: bool = False
    """Whether something was published or settled since the last commit or rollback."""

    async def wait_unblocked(self) -> None:
        """Wait until a message can be published, which is work of the transaction."""
        await super().wait_unblocked()
        self._has_work = True

    def ack(self, tag: int, epoch: int, multiple: bool) -> None:
        """Acknowledge a delivery in the transaction; see ``Delivery.ack``."""
        super().ack(tag, epoch, multiple)
        self._has_work = True

    def settle(self, tag: int, epoch: int, method: Method) -> None:
        """Settle a delivery in the transaction."""
        super().settle(tag, epoch, method)
        self._has_work = True

    async def open(self) -> None:
        """Open the channel; an open transaction is not restored after a loss.

        Until it is open, nothing was done on it, so its opening is retried after a loss.
        """
        await super().open()
        self.restores = False

    def setup(self) -> list[Method]:
        """Add tx.select to the requests of the opening."""
        return [*super().setup(), self.make("tx.select")]

    async def commit(self) -> None:
        """Commit publishes and settlements since the last commit or rollback (tx.commit)."""
        self.check()
        self._has_work = False
        try:
            await self.call(lambda: self.make("tx.commit"))
        except ConnectionClosedError as lost:
            raise TransactionInDoubtError(f"the answer to a commit was lost: {lost}") from lost

    async def rollback(self) -> None:
        """Undo publishes and settlements since the last commit or rollback (tx.rollback)."""
        self._has_work = False
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
        """Commit, because the block ends without an exception."""
        if self._has_work or isinstance(self._failure, ChannelClosedError):
            await self.commit()
        # A loss now undoes nothing, and no program should repeat the block.
        self.note_raised()


class Transaction(TransactionBase[Delivery], Channel):
    """A channel with transactions; made by ``Connection.open_transaction``.

    Leaving its block commits, or rolls back after an exception. ``commit`` and ``rollback`` end one transaction
    and begin the next. A transaction settles only deliveries of its own channel; deliveries whose
    acknowledgement was rolled back are unsettled again.
    """
