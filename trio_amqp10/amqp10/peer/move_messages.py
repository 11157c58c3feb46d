"""Move messages between containers exactly once, even if any program is killed.

One transaction at the target sends a batch of messages, and writes their ids into the ledger: a queue at the
target that always holds one message. The batch is accepted at the source after the commit, and the next batch
begins when the source has settled it. So at most one batch is in the target and still at the source: the
batch in the ledger. If messages come again after a loss, their ids are in the ledger, and they are only
accepted.

======================  =======================================================================================
time of the loss        result
======================  =======================================================================================
before the commit       the target has neither messages nor a new ledger; the source delivers the batch again
during the commit       both or neither: the next program reads the ledger
after the commit        the source delivers the batch again, its ids are in the ledger, and it is only accepted
after the settlement    the source has removed the batch
======================  =======================================================================================

A commit may still be in progress at the target when the next program reads the ledger. The ledger would then
have neither the old ids nor the new ones. So each program first sends a message of its own to the ledger: the
target accepts it after the commit, and a read after that returns the result of the commit.

Uses only the public interface of a connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trio_amqp10.amqp10.message import Message, Value
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.net.errors import TimedOutError, time_limit

from .errors import TransactionError

if TYPE_CHECKING:
    from .connection import Connection
    from .delivery import Delivery
    from .receiver import Receiver
    from .sender import Sender

_CONTENT: Final = "ids of the last messages that were moved here"
_BEGIN: Final = "a program begins to move messages here"
_ENTRIES: Final = 10
"""Messages to receive from the ledger at a time.

There are one entry, and the messages of programs that ended as they began.
"""
_PATIENCE: Final = 10.0
"""Seconds to wait for the messages in the ledger, or until it is empty."""


async def move_messages(
    source: Connection,
    source_address: str,
    target: Connection,
    target_address: str,
    *,
    ledger: str,
    batch: int = 100,
) -> None:
    """Move messages between nodes of two containers exactly once, until a loss.

    Call it again with new connections after a loss, from another process too. Each message must have a
    ``message_id`` of its own.

    Args:
        source, target: connections without ``reconnect``.
        source_address: the node to receive from; the peer must settle by ``rcv-settle-mode second`` (2.8.3).
        target_address: the node to send to, at a peer with transactions (4.1).
        ledger: a queue at the target for this purpose alone: durable, and exclusive, so that only one program
            uses it.
        batch: messages in one transaction, at most.

    Raises:
        LocalProtocolError: a message has no id, or a connection has ``reconnect``.
        GuaranteeNotSupportedError: the source does not support exactly once.
        LinkRefusedError: a node does not exist, or the ledger is in use.
        TransactionError: the target did not commit; none of the batch is at the target, or its ids are in the
            ledger.
        LinkDetachedError, SessionEndedError, ConnectionClosedError: a link ended.

    Cancelled: the batch in progress comes again, and the next call does not duplicate it.
    """
    if source.recovery is not None or target.recovery is not None:
        raise LocalProtocolError(
            "move_messages needs connections without reconnect: call it again with new ones"
        )
    async with (
        target.open_receiver(ledger, credit=0) as entries,
        target.open_sender(ledger) as ledger_sender,
        target.open_sender(target_address) as sender,
        source.open_receiver(source_address, guarantee="exactly-once", prefetch=batch) as receiver,
    ):
        await ledger_sender.send(Message(subject=_BEGIN, durable=True))
        entry = await _last_entry(entries)
        while True:
            deliveries = await receiver.receive_many(batch)
            ids = [_id_of(delivery) for delivery in deliveries]
            moved: set[Any] = set() if entry is None else set(entry.message.body)
            new = [each for each, name in zip(deliveries, ids, strict=True) if name not in moved]
            if new:
                await _commit(target, sender, ledger_sender, new, entry, ids)
                entry = await _last_entry(entries)
                if entry is None:
                    raise TransactionError(
                        f"the ledger {ledger!r} is empty after a commit: another program receives from it"
                    )
            for delivery in deliveries:
                delivery.accept()
            for delivery in deliveries:
                await delivery.wait_settled()


async def _commit(
    target: Connection,
    sender: Sender,
    ledger_sender: Sender,
    new: list[Delivery],
    entry: Delivery | None,
    ids: list[Any],
) -> None:
    """Send the batch and replace the ids in the ledger by its ids, or do neither."""
    async with target.open_transaction() as transaction:
        for delivery in new:
            await sender.send(delivery.message, transaction=transaction)
        if entry is not None:
            entry.accept(transaction=transaction)
        written = Message(Value(ids), subject=_CONTENT, durable=True)
        await ledger_sender.send(written, transaction=transaction)


async def _last_entry(entries: Receiver) -> Delivery | None:
    """Return the entry of the ledger; None if it is empty, as it is at first.

    Accepts the messages that programs sent to the ledger when they began.

    Raises:
        TimedOutError: the target did not answer.
    """
    entry = None
    with time_limit(
        _PATIENCE,
        lambda: TimedOutError(f"no answer about the ledger {entries.node!r} within {_PATIENCE:g} s"),
    ):
        while True:
            entries.grant(_ENTRIES)
            found = await entries.drain()
            for each in found:
                if each.message.subject == _BEGIN:
                    each.accept()
                else:
                    entry = each
            if len(found) < _ENTRIES:
                return entry


def _id_of(delivery: Delivery) -> Any:
    name = delivery.message.message_id
    if name is None:
        raise LocalProtocolError(
            "a message without a message_id cannot be moved exactly once: it could not be recognised"
        )
    return name
