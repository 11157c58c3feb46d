"""Lists of a peer: pages, and entries that go while the list is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.container.management import remote_listing
from trio_amqp10.container.management.errors import ManagementError
from trio_amqp10.container.management.remote_listing import RemoteListing
from trio_amqp10.container.management.remote_requests import EntityPage
from trio_amqp10.core.errors import RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 5


class Pages:
    """The requests of a list, with its entities here; ``meanwhile`` is called before each page."""

    address = "$management"

    def __init__(self, names: list[str], *, largest: int = MOST, meanwhile: Any = None) -> None:
        self.names = names
        self.largest = largest
        self.meanwhile: Callable[[], None] = meanwhile or (lambda: None)
        self.asked: list[tuple[int, int]] = []

    async def page(self, kind: str, offset: int, count: int, **asked: Any) -> EntityPage:
        await trio.lowlevel.checkpoint()
        self.meanwhile()
        self.asked.append((offset, count))
        some = self.names[offset : offset + min(count, self.largest)]
        return EntityPage([{"name": name} for name in some], more=offset + len(some) < len(self.names))

    def fault(self, operation: str, what: str) -> RemoteProtocolError:
        return RemoteProtocolError(f"{operation}: {what}")


def listing(pages: Any, identity: tuple[str, ...] = ("name",)) -> RemoteListing[str]:
    return RemoteListing(pages, "queue", lambda entity: str(entity["name"]), identity, ("name",))


@pytest.fixture(autouse=True, scope="module")
def _small_pages() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote_listing, "_MOST", MOST)
        yield


@pytest.mark.hypothesis
@given(st.data())
def test_entry_that_stays_is_in_the_list_once_whatever_comes_and_goes(data: st.DataObject) -> None:
    names = [f"{number}" for number in range(data.draw(st.integers(0, 30)))]
    gone = data.draw(st.sets(st.sampled_from(names))) if names else set()
    leaving = data.draw(st.permutations(sorted(gone)))
    pages = Pages(list(names), largest=data.draw(st.integers(2, MOST)))
    come: list[str] = []

    def meanwhile() -> None:
        for _ in range(min(len(leaving), data.draw(st.integers(0, 3)))):
            pages.names.remove(leaving.pop())
        if len(come) < 10 and data.draw(st.booleans()):
            come.append(f"new{len(come)}")
            pages.names.append(come[-1])

    pages.meanwhile = meanwhile

    async def main() -> list[str]:
        return [each async for each in listing(pages)]

    found = trio.run(main)
    assert len(found) == len(set(found))
    assert [each for each in found if each in names and each not in gone] == [
        each for each in names if each not in gone
    ]
    assert set(found) <= {*names, *come}


@pytest.mark.hypothesis
@given(st.integers(0, 30), st.integers(1, MOST), st.integers(0, 35), st.integers(0, 35))
def test_page_and_count_are_those_of_a_list_that_stays(
    length: int, largest: int, offset: int, count: int
) -> None:
    names = [f"{number}" for number in range(length)]

    async def main() -> tuple[Any, int, list[str], list[str]]:
        one = listing(Pages(names, largest=largest))
        plain = listing(Pages(names, largest=largest), ())
        return (
            await one.page(offset, count),
            await one.count(),
            [each async for each in one],
            [each async for each in plain],
        )

    page, counted, whole, plain = trio.run(main)
    assert (page.items, page.more) == (
        tuple(names[offset : offset + count]),
        offset + count < length if offset <= length else False,
    )
    assert counted == length
    assert whole == plain == names


async def test_pages_overlap_by_one_entry_alone() -> None:
    pages = Pages([f"{number}" for number in range(12)])
    assert len([each async for each in listing(pages)]) == 12
    assert pages.asked == [(0, 5), (4, 5), (8, 5)]


async def test_cancelled_reading_goes_on_where_it_was() -> None:
    names = [f"{number}" for number in range(12)]
    reading, found = aiter(listing(Pages(names))), list[str]()
    while len(found) < 12:
        with trio.CancelScope() as scope:
            if len(found) % 3 == 0:
                scope.cancel()
            found.append(await anext(reading))
        if scope.cancelled_caught:
            found.append(await anext(reading))
    assert found == names


async def test_peer_that_always_has_more_of_the_same_ends_with_an_error() -> None:
    class Stuck(Pages):
        async def page(self, kind: str, offset: int, count: int, **asked: Any) -> EntityPage:
            await super().page(kind, offset, count)
            return EntityPage([{"name": "a"}, {"name": "b"}], more=True)

    pages = Stuck([])
    for wrong in (listing(pages).count(), anext(aiter_after(listing(pages), 2))):
        with pytest.raises(RemoteProtocolError, match="pages without a new entity"):
            await wrong
    assert len(pages.asked) == 30


def aiter_after(one: RemoteListing[str], skip: int) -> Any:
    async def rest() -> Any:
        place = 0
        async for each in one:
            place += 1
            if place > skip:
                yield each

    return rest()


async def test_peer_that_sends_nothing_and_says_that_more_follows_ends_a_page() -> None:
    class Empty(Pages):
        async def page(self, kind: str, offset: int, count: int, **asked: Any) -> EntityPage:
            await super().page(kind, offset, count)
            return EntityPage([], more=True)

    assert (await listing(Empty([])).page(0, 3)).items == ()
    with pytest.raises(RemoteProtocolError, match="without a new entity"):
        await listing(Empty([])).count()


async def test_entity_that_is_none_and_numbers_below_0_are_refused() -> None:
    def read(entity: dict[str, Any]) -> str:
        raise ValueError("name=3: expected a string")

    one: RemoteListing[str] = RemoteListing(Pages(["a"]), "queue", read, ("name",))  # type: ignore[arg-type]
    with pytest.raises(RemoteProtocolError, match="QUERY: name=3: expected a string"):
        await one.page()
    for numbers in ((-1, 1), (0, -1)):
        with pytest.raises(ManagementError, match="expected numbers of at least 0"):
            await one.page(*numbers)
    assert repr(one) == "<RemoteListing of type 'queue' at '$management'>"
