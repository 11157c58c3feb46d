"""Lists of a container, read from its management node in pages.

Knows pages; does not know what the entries are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from .errors import ManagementError
from .listing import PAGE, Page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from .remote_requests import Entity, RemoteRequests

T = TypeVar("T")

_MOST: Final = 500
"""The most entities to ask for at once, because a reply is one message."""
_IN_VAIN: Final = 10
"""Replies without a new entry after which a reading ends.

Three more are permitted for each reply that had one.
"""


class _Part(NamedTuple, Generic[T]):
    """The entries of one reply.

    Attributes:
        entries: in order.
        keys: what identifies each in its list; None if nothing does.
        more: whether further entries follow.
    """

    entries: list[T]
    keys: list[str | None]
    more: bool


class RemoteListing(Generic[T]):
    """A list of things in the container of a peer.

    Read it with ``async for``, or in pages, as a ``Listing``. Each reply of the peer has at most 500 entries, and about a
    megabyte. Entries that the user may not see are left out.

    Args:
        requests: sends the requests.
        kind: the type of the entities.
        read: makes the entry of an entity, or raises ``ValueError``.
        identity: the attributes that identify an entity in its list; empty if none do.
        counted: the attributes to ask for in order to count the entities.
        asked: other properties of each request.
    """

    __slots__ = ("_asked", "_counted", "_identity", "_kind", "_read", "_requests")

    def __init__(
        self,
        requests: RemoteRequests,
        kind: str,
        read: Callable[[Entity], T],
        identity: tuple[str, ...],
        counted: tuple[str, ...] = (),
        **asked: Any,
    ) -> None:
        self._requests = requests
        self._kind = kind
        self._read = read
        self._identity = identity
        self._counted = counted or identity
        self._asked = asked

    def __aiter__(self) -> AsyncIterator[T]:
        """Iterate over all entries; reading raises the errors of ``page``.

        Things that come or go while the list is read may be in it or not; all others are in it once. Bindings and transactions
        have no identity: if some of them go meanwhile, another may be left out.
        """
        return self.reading()

    def reading(self) -> RemoteReading[T]:
        """Return an iterator over all entries, which also returns several at a time."""
        return RemoteReading(self)

    async def page(self, offset: int = 0, count: int = PAGE) -> Page[T]:
        """Return a page: at most ``count`` entries, after the first ``offset``.

        Raises:
            ManagementError: ``"invalid"``: a number is below 0; or an ``OperationRefusedError``. For other errors see
                ``RemoteManagement``.

        Cancelled: nothing has changed.
        """
        if offset < 0 or count < 0:
            raise ManagementError(
                "invalid", f"offset={offset}, count={count}: expected numbers of at least 0"
            )
        found: list[T] = []
        while True:
            part = await self.part(offset + len(found), min(count - len(found), _MOST))
            found += part.entries
            if not part.entries or not part.more or len(found) >= count:
                return Page(tuple(found), more=part.more)

    async def part(self, offset: int, count: int) -> _Part[T]:
        """Return the entries of one reply, at most ``count``.

        There may be fewer although more follow. Raises: as ``page``. Cancelled: nothing has changed.
        """
        page = await self._requests.page(self._kind, offset, count, **self._asked)
        identities = ([each.get(name) for name in self._identity] for each in page.entities)
        keys = [None if all(value is None for value in each) else repr(each) for each in identities]
        try:
            return _Part([self._read(each) for each in page.entities], keys, page.more)
        except ValueError as fault:
            raise self.fault(str(fault)) from fault

    def fault(self, what: str) -> Exception:
        """Return the error for a reply that is not as expected."""
        return self._requests.fault("QUERY", what)

    async def count(self) -> int:
        """Return the number of entries; the peer sends only what identifies them.

        Raises: as ``page``. Cancelled: nothing has changed.
        """
        names = RemoteListing(
            self._requests, self._kind, lambda _: None, self._identity, names=self._counted, **self._asked
        )
        counted, reading = 0, names.reading()
        while some := await reading.some():
            counted += len(some)
        return counted

    def __repr__(self) -> str:
        return f"<RemoteListing of type {self._kind!r} at {self._requests.address!r}>"


class RemoteReading(Generic[T]):
    """One reading of a list.

    A page begins with the last entry of the page before. If that is an entry that was not there before, entries before it have
    gone, and earlier pages are asked for again: no entry that stays is left out.

    Args:
        listing: the list.
    """

    __slots__ = ("_entries", "_fruitful", "_in_vain", "_is_over", "_listing", "_offset", "_overlaps", "_seen")

    def __init__(self, listing: RemoteListing[T]) -> None:
        self._listing = listing
        self._entries: list[T] = []
        self._seen: set[str | None] = set()
        self._offset = self._fruitful = self._in_vain = 0
        self._overlaps = False
        self._is_over = False

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        if not self._entries:
            self._entries = (await self.some())[::-1]
        if not self._entries:
            raise StopAsyncIteration
        return self._entries.pop()

    async def some(self) -> list[T]:
        """Return the next entries, those of one reply; none at the end.

        Raises: as ``RemoteListing.page``. Cancelled: no entry is lost.
        """
        if self._entries:
            kept, self._entries = self._entries[::-1], []
            return kept
        while not self._is_over:
            fresh = self._take(await self._listing.part(self._offset, _MOST))
            if fresh:
                self._fruitful += 1
                self._in_vain = 0
                return fresh
            self._in_vain += 1
            if self._in_vain > _IN_VAIN + 3 * self._fruitful:
                raise self._listing.fault(
                    f"{self._in_vain} pages without a new entity, although more follow: expected further entities"
                )
        return []

    def put_back(self, entries: list[T]) -> None:
        """Return entries that were not used: they are the next ones."""
        self._entries += entries[::-1]

    def _take(self, part: _Part[T]) -> list[T]:
        """Return the new entries of a page, and note where the next begins."""
        keys = part.keys
        if self._overlaps and (not keys or keys[0] not in self._seen):
            self._offset = max(0, self._offset - _MOST)
            self._overlaps = self._offset > 0
            return []
        fresh = [
            entry
            for key, entry in zip(keys, part.entries, strict=True)
            if key is None or key not in self._seen
        ]
        self._seen.update(keys)
        self._is_over = not part.more
        # After a page of one entry, as of a very large one, the next cannot begin with the same.
        self._overlaps = len(keys) > 1 and None not in keys
        self._offset += len(keys) - self._overlaps
        return fresh
