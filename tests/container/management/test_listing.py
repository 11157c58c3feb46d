"""Lists: whole, in pages, counted; without what their reader may not see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.container.management.errors import ManagementError
from trio_amqp10.container.management.listing import Listing
from trio_amqp10.container.management.permissions import Permissions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAY_DO_ALL = Permissions(None)


class Numbers:
    """Entries that remember which of them were made."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.made: list[int] = []

    def _make(self, number: int) -> int:
        self.made.append(number)
        return number

    def find(self) -> Iterator[tuple[tuple[str, ...], Callable[[], int]]]:
        """Return the entries."""
        for number in range(self.count):
            yield (str(number),), lambda number=number: self._make(number)


class SomeVisible(Permissions):
    """Permissions of one who may see some addresses."""

    def __init__(self, visible: set[str], *, may_list: bool = True) -> None:
        super().__init__(None)
        self.visible = visible
        self.may_list = may_list

    @property
    def limited(self) -> bool:
        """Whether anything can be refused."""
        return True

    async def check(self, needs: object) -> None:
        """Refuse the whole list, if it may not be listed."""
        if not self.may_list:
            raise ManagementError("forbidden", "no permission to monitor")

    async def may_see(self, address: str) -> bool:
        """Whether the address is among the visible."""
        return address in self.visible


@given(count=st.integers(0, 30), size=st.integers(1, 7))
def test_pages_have_every_entry_once_in_its_order(count: int, size: int) -> None:
    async def read() -> list[int]:
        listing, found, more = Listing(Numbers(count).find, MAY_DO_ALL), list[int](), True
        while more:
            page = await listing.page(len(found), size)
            assert len(page.items) == size or not page.more
            found += page.items
            more = page.more
        assert await listing.count() == len(found)
        return found

    assert trio.run(read) == list(range(count))


async def test_page_makes_only_its_own_entries() -> None:
    numbers = Numbers(100)
    page = await Listing(numbers.find, MAY_DO_ALL).page(50, 3)
    assert (page.items, page.more, numbers.made) == ((50, 51, 52), True, [50, 51, 52])


async def test_count_makes_no_entry() -> None:
    numbers = Numbers(100)
    assert await Listing(numbers.find, MAY_DO_ALL).count() == 100
    assert numbers.made == []


async def test_list_can_be_read_again_and_is_made_anew() -> None:
    numbers = Numbers(2)
    listing = Listing(numbers.find, MAY_DO_ALL)
    assert [number async for number in listing] == [0, 1]
    numbers.count = 3
    assert [number async for number in listing] == [0, 1, 2]


async def test_reader_finds_what_it_may_see_and_no_gap() -> None:
    listing = Listing(Numbers(10).find, SomeVisible({"3", "5", "8"}))
    assert [number async for number in listing] == [3, 5, 8]
    assert await listing.count() == 3
    page = await listing.page(1, 2)
    assert (page.items, page.more) == ((5, 8), False)


async def test_list_is_refused_as_a_whole_before_anything_is_found() -> None:
    numbers = Numbers(1)
    listing = Listing(numbers.find, SomeVisible({"0"}, may_list=False))
    for read in (listing.page, listing.count):
        with pytest.raises(ManagementError, match="no permission to monitor") as refused:
            await read()
        assert refused.value.reason == "forbidden"
    assert numbers.made == []


@pytest.mark.parametrize(("offset", "count"), [(-1, 1), (0, -1)])
async def test_page_of_negative_numbers_is_invalid(offset: int, count: int) -> None:
    with pytest.raises(ManagementError, match=f"offset={offset}, count={count}: expected") as wrong:
        await Listing(Numbers(1).find, MAY_DO_ALL).page(offset, count)
    assert wrong.value.status == 400
