"""Read the body of a message in chunks, while it arrives (3.2.6).

What nobody has read takes a place in our session's window, so a peer never sends far ahead of
the program that reads here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.message.incremental_reader import BodyReader

from .errors import DeliveryAbortedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio_amqp10.message import Message

    from .delivery import Delivery
    from .link_owner import LinkOwner

__all__ = ["Chunks", "Reading"]


class Reading:
    """How far a delivery was read."""

    __slots__ = ("_changed", "_delivery", "_owner", "_streamed", "reader")

    def __init__(self, delivery: Delivery, owner: LinkOwner, changed: Callable[[], Awaitable[None]]) -> None:
        self._delivery = delivery
        self._owner = owner
        self._changed = changed
        self._streamed = delivery.inflow is not None
        self.reader: Final = BodyReader(delivery.message_format, delivery.message_class)
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
            raise LocalProtocolError("`message` was read since: begin `chunks` anew")
        while (part := reader.pop_chunk()) is None:
            if reader.other is not None:
                raise LocalProtocolError(
                    f"the body is in {reader.other}, and not in data sections: read `message` when it is complete"
                )
            if reader.finished:
                return None
            await self._feed()
        return part

    async def _feed(self) -> None:
        """Take one more transfer, or the end."""
        inflow = self._delivery.inflow
        assert inflow is not None
        while True:
            if inflow.aborted:
                raise DeliveryAbortedError("the sender took the message back before it was complete")
            if inflow.discarded:
                raise LocalProtocolError("what was left of this delivery was discarded")
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
    """Iterates over the octets of a body; ends with it. Where it was left, the next one goes on."""

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
        """The next octets; never none.

        Raises:
            DeliveryAbortedError: the sender took the message back.
            LinkDetachedError, SessionEndedError, ConnectionClosedError, trio.ClosedResourceError: the
                link went before the message was complete.
            RemoteProtocolError: these are no sections of a message.
            LocalProtocolError: the body is no data, or was discarded.

        Cancelled: nothing is lost; go on with the same iterator, or another.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        self._enter(self._delivery)
        part = await self._reading.next_chunk()
        if part is None:
            self._enter(None)
            raise StopAsyncIteration
        return part
