"""``amqp10 spool``: run the receiver of the Spark source, in a pod or a sidecar."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import trio

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.spark.lane_program import open_lane
from trio_amqp10.spark.options import QueueOptions
from trio_amqp10.spark.spool_receiver import SpoolReceiver

from .command_runner import CommandError, write_out

if TYPE_CHECKING:
    from trio_amqp10.spark.lane_spool import LaneSpool

    from .command_runner import Interrupts
    from .dial_options import DialOptions


@dataclass(frozen=True, kw_only=True)
class SpoolOptions:
    """The options of ``amqp10 spool``."""

    url: str
    address: str
    where: str
    lane: str
    selector: str | None
    given: dict[str, str]
    until_empty: bool
    dial: DialOptions

    def parsed(self) -> QueueOptions:
        """Return the options of the Spark source.

        Raises:
            CommandError: an option is unknown, or its value is not valid.
        """
        ours = {
            "url": self.url,
            "address": self.address,
            "spool": self.where,
            "lanes": "external",
            "selector": self.selector,
            "tls.ca": self.dial.cafile,
            "tls.cert": self.dial.cert,
            "tls.key": self.dial.key,
            "allowPlaintextPassword": "true" if self.dial.allow_plaintext_password else None,
        }
        try:
            return QueueOptions.parse(
                self.given | {name: value for name, value in ours.items() if value is not None}
            )
        except LocalProtocolError as wrong:
            raise CommandError(str(wrong), 2) from None


async def spool(options: SpoolOptions, interrupts: Interrupts) -> None:
    """Receive into a lane until interrupted, or until the queue is empty.

    Raises:
        CommandError: an option is wrong, or the store cannot be used.
        AmqpError: receiving has failed.
    """
    shown = logging.StreamHandler(sys.stderr)
    shown.addFilter(lambda record: record.exc_info is None)  # the command reports the failure at the end
    logging.basicConfig(handlers=[shown], format="%(asctime)s %(levelname)s %(message)s")
    parsed = options.parsed()
    lane = await trio.to_thread.run_sync(open_lane, parsed, options.lane)
    receiver = SpoolReceiver(parsed, lane, emptying=options.until_empty)
    try:
        with interrupts.here() as scope:  # the reader of this line may send a signal at once
            await write_out(f"spooling {options.lane}/{lane.epoch.name}\n".encode())
            await trio.to_thread.run_sync(receiver.wait_until, _never, abandon_on_cancel=True)
    finally:
        with trio.CancelScope(shield=True):  # stopping has its own limit of a few seconds
            await trio.to_thread.run_sync(partial(_end, receiver, lane))
    receiver.check()
    with suppress(CommandError):  # the reader of stdout may have ended
        await write_out(f"spooled {lane.end - lane.epoch.first}\n".encode())
    if options.until_empty and not receiver.emptied:
        why = "interrupted" if scope.cancelled_caught else "the receiver ended"
        raise CommandError(f"{why} before the queue was empty", 130 if interrupts.seen else 1)


def _never() -> bool:
    return False


def _end(receiver: SpoolReceiver, lane: LaneSpool) -> None:
    receiver.stop()
    lane.close()
