"""Read the body of a message in chunks, while it arrives (3.2.6).

Octets that the program has not read yet count against the incoming window of the session, so a peer never
sends far ahead of the program that reads here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.amqp10.message.incremental_reader import BodyReader
from trio_amqp10.core.errors import LocalProtocolError

from .errors import DeliveryAbortedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio_amqp10.amqp10.message import Message

    from .delivery import Delivery
    from .link_callbacks import LinkOwner


class Reading:
    """The progress of reading one delivery."""

    __slots__ = ("_changed", "_delivery", "_owner", "_streamed", "reader")

    def __init__(self, delivery: Delivery, owner: LinkOwner, changed: Callable[[], Awaitable[None]]) -> None:
        self._delivery = delivery
        self._owner = owner
        self._changed = changed
        self._streamed = delivery.inflow is not None
        self.reader: Final = BodyReader(
            delivery.message_format, delivery.message_class, delivery.link.context.tolerances
        )
        if not self._streamed:
            if delivery.payload:
                self.reader.feed(delivery.payload)
            self.reader.end()

    async def head(self) -> Message:
        reader = self.reader
        while not reader.in_body:
            await self._feed()
        return reader.message()

    async def next_chunk(self) -> bytes | None:
        reader = self.reader
        if self._streamed and self._delivery.inflow is None:
            raise LocalProtocolError("`message` was read meanwhile: call `chunks()` again")
        while (part := reader.pop_chunk()) is None:
            if reader.other is not None:
                raise LocalProtocolError(
                    f"the body is in {reader.other}, not in data sections: read `message` when the delivery is complete"
                )
            if reader.finished:
                return None
            await self._feed()
        return part

    async def _feed(self) -> None:
        """Feed the reader the octets that have come, after waiting for some; or the end."""
        inflow = self._delivery.inflow
        assert inflow is not None
        while True:
            if inflow.aborted:
                raise DeliveryAbortedError("the sender aborted the message before it was complete")
            if inflow.discarded:
                raise LocalProtocolError(
                    "the rest of this delivery was discarded: it cannot be read any more"
                )
            octets = inflow.take()
            if octets:
                self.reader.feed(octets)
                return
            if inflow.complete:
                self.reader.end()
                return
            self._owner.raise_if_outcome_lost(self._delivery)
            await self._changed()
            self._owner.session.connection.pace.blocked()


class Chunks:
    """An iterator over the octets of a body, in chunks.

    A new iterator over the same delivery continues at the octet where the last iterator stopped.
    """

    __slots__ = ("_delivery", "_enter", "_reading")

    def __init__(
        self, delivery: Delivery, reading: Reading, enter: Callable[[Delivery | None], None]
    ) -> None:
        self._delivery = delivery
        self._reading = reading
        self._enter = enter

    def __aiter__(self) -> Chunks:
        return self

    async def __anext__(self) -> bytes:
        """Return the next octets, at least one.

        Raises:
            DeliveryAbortedError: the sender aborted the message.
            LinkDetachedError, SessionEndedError, ConnectionClosedError, trio.ClosedResourceError: the link
                ended before the message was complete.
            RemoteProtocolError: the octets are not the sections of a message.
            LocalProtocolError: the body is not in data sections, or was discarded.

        Cancelled: no octets are lost; continue with the same iterator, or another.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        self._enter(self._delivery)
        part = await self._reading.next_chunk()
        if part is None:
            self._enter(None)
            raise StopAsyncIteration
        return part
