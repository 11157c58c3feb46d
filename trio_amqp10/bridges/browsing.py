"""Browse a node: receive copies of its messages, which stay there (3.5.3)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from trio_amqp10.amqp10.peer.errors import GuaranteeNotSupportedError
from trio_amqp10.amqp10.spec.messaging import Source

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio_amqp10.amqp10.peer.connection import Connection
    from trio_amqp10.amqp10.peer.receiver import Receiver

_COPY = "copy"


@asynccontextmanager
async def open_browser(
    connection: Connection, address: str, prefetch: int | None
) -> AsyncGenerator[Receiver]:
    """Open a receiver of copies.

    Raises (on entering):
        GuaranteeNotSupportedError: the peer would remove the messages.
        LinkRefusedError: the peer refuses the link.

    Cancelled: the link is detached.
    """
    source = Source(address=address, distribution_mode=_COPY)
    # No credit before the answer: a peer that does not copy would send the messages for good.
    async with connection.open_receiver(
        address, source=source, credit=0 if prefetch is None else None, prefetch=prefetch
    ) as receiver:
        granted = receiver.remote.source
        if granted is None or granted.distribution_mode != _COPY:
            raise GuaranteeNotSupportedError(
                f"{address!r} cannot be browsed, as the peer would remove its messages: open a receiver to remove them"
            )
        yield receiver
