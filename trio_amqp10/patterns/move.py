"""Move messages from one container to another, exactly once, whichever of the three programs is killed.

One transaction at the target sends a batch of messages, and writes the ids of that batch into a ledger, a queue there that always holds one
message. The batch is accepted at the source behind the commit, and the next one begins when the source has settled it. So at most one
batch is ever in the target and not gone from the source: the one in the ledger. What comes again after a loss is looked for
there, and only accepted.

======================  =======================================================================================
it ends                 and so
======================  =======================================================================================
before the commit       the target has neither messages nor a new ledger; the source gives the batch again
in the commit           both or neither: who comes back reads the ledger
after the commit        the source gives the batch again, the ledger has its ids, and it is only accepted
after the settlement    the source has nothing of it any more
======================  =======================================================================================

Uses only what any program may use of a connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.message import Message, Value
from trio_amqp10.peer.errors import TransactionError

if TYPE_CHECKING:
    from trio_amqp10.peer.connection import Connection
    from trio_amqp10.peer.delivery import Delivery
    from trio_amqp10.peer.receiver import Receiver
    from trio_amqp10.peer.sender import Sender

__all__ = ["move_messages"]

_CONTENT: Final = "ids of the last messages that were moved here"
_PATIENCE: Final = 10.0
"""Seconds in which the target has to give what is in the ledger, or to say that it is empty."""


async def move_messages(
    source: Connection,
    source_address: str,
    target: Connection,
    target_address: str,
    *,
    ledger: str,
    batch: int = 100,
) -> None:
    """Move messages from a node of one container to a node of another, exactly once, for as long as both connections last.

    Call it again with new connections after a loss, from another process too. Each message needs a ``message_id`` of its own.

    Args:
        source, target: connections that do not come back by themselves (``reconnect``).
        source_address: where messages are taken from; the peer has to settle by ``rcv-settle-mode second`` (2.8.3).
        target_address: where they are sent to, of a peer with transactions (4.1).
        ledger: a queue at the target for this alone: durable, and exclusive, so that only one program moves by it.
        batch: messages in one transaction, at most.

    Raises:
        LocalProtocolError: a message has no id, or a connection would come back by itself.
        GuaranteeNotSupportedError: the source cannot wait for the outcome to be told twice.
        LinkRefusedError: a node is not there, or the ledger is in use.
        TransactionError: the target did not commit; nothing of the batch is there, or it is in the ledger.
        LinkDetachedError, SessionEndedError, ConnectionClosedError: a link is gone.

    Cancelled: the batch that is under way comes again, and is not doubled by the next call.
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
                        f"the ledger {ledger!r} is empty behind a commit: another program takes from it"
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
    """Send the batch and write its ids over those of the last one, or do neither."""
    async with target.open_transaction() as transaction:
        for delivery in new:
            await sender.send(delivery.message, transaction=transaction)
        if entry is not None:
            entry.accept(transaction=transaction)
        written = Message(Value(ids), subject=_CONTENT, durable=True)
        await ledger_sender.send(written, transaction=transaction)


async def _last_entry(entries: Receiver) -> Delivery | None:
    """What the ledger holds; None if it is empty, as it is at first.

    Raises:
        trio.TooSlowError: the target did not answer.
    """
    entries.grant(1)
    with trio.fail_after(_PATIENCE):
        found = await entries.drain()
    return found[0] if found else None


def _id_of(delivery: Delivery) -> Any:
    name = delivery.message.message_id
    if name is None:
        raise LocalProtocolError(
            "a message without a message_id cannot be moved exactly once: it could not be recognised"
        )
    return name
