"""Lists that are made lazily, entry by entry, and read whole or in pages.

Knows entries and permissions; does not know what the entries are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from .errors import ManagementError
from .pace import Pace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from trio_amqp10.broker.rights.guard import Need

    from .permissions import Permissions

T = TypeVar("T")

PAGE: Final = 500
"""The entries of a page by default."""

_SOME: Final = 256
"""Entries that are collected at once."""

Entries: TypeAlias = "Iterable[tuple[tuple[str, ...], Callable[[], T]]]"
"""Each entry: the addresses that its reader must see, and what makes it."""


class _Makers(Generic[T]):
    """A reading of a list: returns functions that make its entries.

    An object and no generator, because a reader may leave it unfinished.
    """

    __slots__ = ("_entries", "_find", "_needs", "_pace", "_permissions")

    def __init__(
        self, find: Callable[[], Entries[T]], permissions: Permissions, needs: tuple[Need, ...]
    ) -> None:
        self._find = find
        self._permissions = permissions
        self._needs = needs
        self._pace = Pace()
        self._entries: Iterator[tuple[tuple[str, ...], Callable[[], T]]] | None = None

    def __aiter__(self) -> AsyncIterator[Callable[[], T]]:
        return self

    async def __anext__(self) -> Callable[[], T]:
        permissions = self._permissions
        if self._entries is None:
            await permissions.check(self._needs)
            self._entries = iter(self._find())
        pace = self._pace
        for addresses, make in self._entries:
            if pace.is_over():
                await pace.pause()
            if not permissions.limited or await self._may_see_all(addresses):
                return make
        raise StopAsyncIteration

    async def _may_see_all(self, addresses: tuple[str, ...]) -> bool:
        for address in addresses:
            if not await self._permissions.may_see(address):
                return False
        return True


class _Made(Generic[T]):
    """One reading of a list: returns its entries."""

    __slots__ = ("_makers",)

    def __init__(self, makers: AsyncIterator[Callable[[], T]]) -> None:
        self._makers = makers

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        return (await self._makers.__anext__())()


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some entries of a list.

    Args:
        items: the entries.
        more: whether further entries follow.
    """

    items: tuple[T, ...]
    more: bool


class Listing(Generic[T]):
    """A list of things in a container, made while it is read.

    Read it with ``async for``, or in pages. Entries that the reader may not see are left out. Things that come or go
    while it is read may be in it or not; all others are in it once.

    Args:
        find: returns the entries as they are now.
        permissions: the permissions of the reader.
        needs: permissions without which the whole list is refused.
    """

    __slots__ = ("_find", "_needs", "_permissions")

    def __init__(
        self, find: Callable[[], Entries[T]], permissions: Permissions, needs: Iterable[Need] = ()
    ) -> None:
        self._find = find
        self._permissions = permissions
        self._needs = tuple(needs)

    def __aiter__(self) -> AsyncIterator[T]:
        """Iterate over all entries; reading may raise ``ManagementError``."""
        return _Made(self.makers())

    def makers(self) -> AsyncIterator[Callable[[], T]]:
        """Iterate over functions that make the entries: one can be skipped.

        Reading may raise ``ManagementError``: ``"forbidden"``.
        """
        return _Makers(self._find, self._permissions, self._needs)

    async def collect(self) -> list[Callable[[], T]]:
        """Return the functions that make the entries, as they are now.

        Raises:
            ManagementError: ``"forbidden"``.

        Cancelled: nothing has changed.
        """
        if self._permissions.limited:
            return [make async for make in self.makers()]
        pace, found = Pace(), list[Callable[[], T]]()
        entries = iter(self._find())
        while some := [make for _, make in islice(entries, _SOME)]:
            found += some
            await pace.pause()
        return found

    async def page(self, offset: int = 0, count: int = PAGE) -> Page[T]:
        """Return a page: at most ``count`` entries, after the first ``offset``.

        Entries that are skipped are not made.

        Raises:
            ManagementError: ``"forbidden"``; or ``"invalid"``: a number is below 0.

        Cancelled: nothing has changed.
        """
        if offset < 0 or count < 0:
            raise ManagementError(
                "invalid", f"offset={offset}, count={count}: expected numbers of at least 0"
            )
        found: list[T] = []
        async for make in self.makers():
            if offset:
                offset -= 1
            elif len(found) == count:
                return Page(tuple(found), more=True)
            else:
                found.append(make())
        return Page(tuple(found), more=False)

    async def count(self) -> int:
        """Return the number of entries, without making them.

        Raises:
            ManagementError: ``"forbidden"``.

        Cancelled: nothing has changed.
        """
        return len(await self.collect())
