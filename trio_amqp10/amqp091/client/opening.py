"""Channels that are yet to be opened, and iterators over what a channel has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio

from .channel_base import ChannelBase

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from .errors import ReturnedMessage

__all__ = ["ChannelOpening", "Returns"]

C = TypeVar("C", bound=ChannelBase[Any])


class ChannelOpening(Generic[C]):
    """A channel that is yet to be opened: enter it with ``async with``.

    Entering waits for the server's answer. Leaving closes the channel; a publisher or transaction first ends what it has
    begun. An error of the server's that no call has raised is raised on leaving. What the block raises leaves as itself.

    Cancelled on entering: the channel is closed again.
    """

    __slots__ = ("_channel", "_make")

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._channel: C

    async def __aenter__(self) -> C:
        self._channel = channel = self._make()
        try:
            await channel.open()
        except BaseException:
            await channel.aclose()
            raise
        return channel

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._channel.leave(failed=kind is not None)


class Returns:
    """Iterates over the messages that came back on a channel; ends when the channel was closed here."""

    __slots__ = ("_channel",)

    def __init__(self, channel: ChannelBase[Any]) -> None:
        self._channel: Any = channel

    def __aiter__(self) -> Returns:
        return self

    async def __anext__(self) -> ReturnedMessage:
        """The next one; raises as calls of ``Channel`` if the channel is over. Cancelled: none is lost."""
        try:
            found: ReturnedMessage = await self._channel.next_returned()
        except trio.ClosedResourceError:
            raise StopAsyncIteration from None
        return found
