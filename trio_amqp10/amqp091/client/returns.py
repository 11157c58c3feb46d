"""The messages that came back on a channel, one after another (0-9-1, basic.return)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import trio

if TYPE_CHECKING:
    from .errors import ReturnedMessage

__all__ = ["Returns"]


class _Returning(Protocol):
    async def next_returned(self) -> ReturnedMessage: ...


class Returns:
    """Iterates over the messages that came back on a channel; ends when the channel was closed here."""

    __slots__ = ("_channel",)

    def __init__(self, channel: _Returning) -> None:
        self._channel = channel

    def __aiter__(self) -> Returns:
        return self

    async def __anext__(self) -> ReturnedMessage:
        """The next one; raises as calls of ``Channel`` if the channel is over. Cancelled: none is lost."""
        try:
            found = await self._channel.next_returned()
        except trio.ClosedResourceError:
            raise StopAsyncIteration from None
        return found
