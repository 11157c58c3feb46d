"""Send a batch in order, and know that all of it was accepted.

Knows links; knows no broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import trio

import trio_amqp10 as amqp
from trio_amqp10.tools.cli.command_runner import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trio_amqp10.amqp10.peer.transaction import Transaction

    from .figures import Figures

BATCH: Final = 500
"""The most messages of a batch."""
_OCTETS: Final = 32 * 1024 * 1024
"""About the octets of a batch: this command holds one batch at a time."""
_PATIENCE: Final = 30.0
"""Seconds to wait for the target to take a batch."""


class Batch(NamedTuple):
    """A batch that was moved.

    Attributes:
        moved: the number of messages.
        is_full: whether more may be ready; if not, the queue had no others at that moment.
    """

    moved: int
    is_full: bool


def batch_size(figures: Figures) -> int:
    """Return how many messages of a queue make one batch."""
    messages = figures.ready + figures.busy
    return max(1, min(BATCH, _OCTETS * messages // figures.octets if figures.octets else BATCH))


def check_unused(place: str, queue: str, figures: Figures | None) -> None:
    """Raise ``CommandError`` if a queue has consumers.

    What they take cannot be seen any more by a run that has to know what an earlier one has sent.
    """
    if figures is not None and figures.consumers:
        raise CommandError(
            f"{place}: {queue!r} has {figures.consumers} consumers: stop them until the migration is done, and run the command again"
        )


async def send_all(
    sender: amqp.Sender, messages: Iterable[amqp.Message], transaction: Transaction | None = None
) -> None:
    """Send messages in order, and wait until all are accepted.

    Raises:
        CommandError: the target does not accept one, or takes none for a long time; the others may be there.

    Cancelled: some of them may be there.
    """
    refused: list[str] = []
    with trio.move_on_after(_PATIENCE) as patience:
        sent = [await sender.transmit(message, transaction=transaction) for message in messages]
        for delivery in sent:
            outcome = await delivery.outcome()
            if transaction is None and not isinstance(outcome, amqp.Accepted):
                refused.append(str(outcome))
    if patience.cancelled_caught:
        raise CommandError(
            f"{sender.address} took no more messages for {_PATIENCE:g} s: it may be full; give it room, and run the command again"
        )
    if refused:
        raise CommandError(
            f"{sender.address} did not accept {len(refused)} messages ({refused[0]}): give it room, and run the command again"
        )
