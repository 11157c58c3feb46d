"""Channels that are yet to be opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .channel_base import ChannelBase

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["ChannelOpening"]

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
