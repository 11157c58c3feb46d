"""Lists of things, described while they are read: whole, in pages, by one field.

A description has all fields of a thing, and costs much more than one of them. A caller that sorts or filters a long list should
collect the things, read the one field of each, and describe only those that it returns.

Knows things and permissions; does not know what the things are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from .errors import ManagementError
from .pace import Pace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping

    from trio_amqp10.broker.rights.guard import Need

    from .permissions import Permissions

T = TypeVar("T")

PAGE: Final = 500
"""The entries of a page by default."""

_SOME: Final = 256
"""Things that are collected at once."""

Found: TypeAlias = "tuple[tuple[str, ...], Any]"
"""A thing, behind the addresses that its reader must see."""


class Kind(NamedTuple):
    """A kind of things in a container.

    Attributes:
        find: returns the things as they are now.
        describe: returns the description of a thing.
        readers: by the name of a field of the description, a function that reads this field alone from a thing.
    """

    find: Callable[[], Iterable[Found]]
    describe: Callable[[Any], Any]
    readers: Mapping[str, Callable[[Any], Any]] = {}


class _Things:
    """A reading of a list: returns its things.

    An object and no generator, because a reader may leave it unfinished.
    """

    __slots__ = ("_find", "_found", "_needs", "_pace", "_permissions")

    def __init__(
        self, find: Callable[[], Iterable[Found]], permissions: Permissions, needs: tuple[Need, ...]
    ) -> None:
        self._find = find
        self._permissions = permissions
        self._needs = needs
        self._pace = Pace()
        self._found: Iterator[Found] | None = None

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        permissions = self._permissions
        if self._found is None:
            await permissions.check(self._needs)
            self._found = iter(self._find())
        pace = self._pace
        for addresses, thing in self._found:
            if pace.is_over():
                await pace.pause()
            if not permissions.limited or await self._may_see_all(addresses):
                return thing
        raise StopAsyncIteration

    async def _may_see_all(self, addresses: tuple[str, ...]) -> bool:
        for address in addresses:
            if not await self._permissions.may_see(address):
                return False
        return True


class _Described(Generic[T]):
    """One reading of a list: returns its descriptions."""

    __slots__ = ("_describe", "_things")

    def __init__(self, things: AsyncIterator[Any], describe: Callable[[Any], T]) -> None:
        self._things = things
        self._describe = describe

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        return self._describe(await self._things.__anext__())


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
    """A list of things in a container, described while it is read.

    Read it with ``async for``, or in pages. Things that the reader may not see are left out. Things that come or go
    while it is read may be in it or not; all others are in it once.

    Args:
        kind: finds and describes the things.
        permissions: the permissions of the reader.
        needs: permissions without which the whole list is refused.
    """

    __slots__ = ("_kind", "_needs", "_permissions")

    def __init__(self, kind: Kind, permissions: Permissions, needs: Iterable[Need] = ()) -> None:
        self._kind = kind
        self._permissions = permissions
        self._needs = tuple(needs)

    def __aiter__(self) -> AsyncIterator[T]:
        """Iterate over all descriptions; reading may raise ``ManagementError``."""
        return _Described(self.things(), self.describe)

    def things(self) -> AsyncIterator[Any]:
        """Iterate over the things, for ``describe`` and ``reader``: one can be skipped.

        Reading may raise ``ManagementError``: ``"forbidden"``.
        """
        return _Things(self._kind.find, self._permissions, self._needs)

    def describe(self, thing: Any) -> T:
        """Return the description of a thing of this list, as it is now."""
        described: T = self._kind.describe(thing)
        return described

    def reader(self, field: str) -> Callable[[Any], Any]:
        """Return a function that reads one field of a thing's description.

        Of most fields of queues, it does not make the description.

        Args:
            field: the name of a field of the description.
        """
        known = self._kind.readers.get(field)
        return known or (lambda thing: getattr(self.describe(thing), field))

    async def collect(self) -> list[Any]:
        """Return the things as they are now, for ``describe`` and ``reader``.

        Raises:
            ManagementError: ``"forbidden"``.

        Cancelled: nothing has changed.
        """
        if self._permissions.limited:
            return [thing async for thing in self.things()]
        pace, things = Pace(), list[Any]()
        found = map(itemgetter(1), self._kind.find())
        while some := list(islice(found, _SOME)):
            things += some
            await pace.pause()
        return things

    async def page(self, offset: int = 0, count: int = PAGE) -> Page[T]:
        """Return a page: at most ``count`` descriptions, after the first ``offset``.

        Things that are skipped are not described.

        Raises:
            ManagementError: ``"forbidden"``; or ``"invalid"``: a number is below 0.

        Cancelled: nothing has changed.
        """
        if offset < 0 or count < 0:
            raise ManagementError(
                "invalid", f"offset={offset}, count={count}: expected numbers of at least 0"
            )
        found: list[T] = []
        async for thing in self.things():
            if offset:
                offset -= 1
            elif len(found) == count:
                return Page(tuple(found), more=True)
            else:
                found.append(self.describe(thing))
        return Page(tuple(found), more=False)

    async def count(self) -> int:
        """Return the number of things, without describing them.

        Raises:
            ManagementError: ``"forbidden"``.

        Cancelled: nothing has changed.
        """
        return len(await self.collect())
