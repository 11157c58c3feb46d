"""Open and close a channel by ``async with``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .channel_base import ChannelBase

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

C = TypeVar("C", bound=ChannelBase[Any])


class ChannelOpening(Generic[C]):
    """A channel that is not opened yet: enter it with ``async with``.

    Entering waits for the server's answer. Leaving closes the channel; a publisher or transaction first
    completes its pending work. If the server closed the channel and no call has raised that, leaving raises it.
    An exception raised in the block propagates unchanged.

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
