"""Lists: whole, in pages, by one field, counted; without what their reader may not see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.container.management.errors import ManagementError
from trio_amqp10.container.management.listing import Kind, Listing
from trio_amqp10.container.management.permissions import Permissions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trio_amqp10.container.management.listing import Found

MAY_DO_ALL = Permissions(None)


class Numbers:
    """Things that are numbers; it remembers which of them were described."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.described: list[int] = []

    def _describe(self, thing: str) -> int:
        self.described.append(int(thing))
        return int(thing)

    def _find(self) -> Iterator[Found]:
        for number in range(self.count):
            yield (str(number),), str(number)

    @property
    def kind(self) -> Kind:
        """The kind of these things; the denominator is read without a description."""
        return Kind(self._find, self._describe, {"denominator": lambda _: 1})


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
        listing, found, more = Listing(Numbers(count).kind, MAY_DO_ALL), list[int](), True
        while more:
            page = await listing.page(len(found), size)
            assert len(page.items) == size or not page.more
            found += page.items
            more = page.more
        assert await listing.count() == len(found)
        return found

    assert trio.run(read) == list(range(count))


async def test_page_describes_only_its_own_things() -> None:
    numbers = Numbers(100)
    page = await Listing(numbers.kind, MAY_DO_ALL).page(50, 3)
    assert (page.items, page.more, numbers.described) == ((50, 51, 52), True, [50, 51, 52])


async def test_count_describes_nothing() -> None:
    numbers = Numbers(100)
    assert await Listing(numbers.kind, MAY_DO_ALL).count() == 100
    assert numbers.described == []


async def test_list_can_be_read_again_and_is_made_anew() -> None:
    numbers = Numbers(2)
    listing = Listing(numbers.kind, MAY_DO_ALL)
    assert [number async for number in listing] == [0, 1]
    numbers.count = 3
    assert [number async for number in listing] == [0, 1, 2]


async def test_reader_finds_what_it_may_see_and_no_gap() -> None:
    listing = Listing(Numbers(10).kind, SomeVisible({"3", "5", "8"}))
    assert [number async for number in listing] == [3, 5, 8]
    assert await listing.count() == 3
    page = await listing.page(1, 2)
    assert (page.items, page.more) == ((5, 8), False)


async def test_list_is_refused_as_a_whole_before_anything_is_found() -> None:
    numbers = Numbers(1)
    listing = Listing(numbers.kind, SomeVisible({"0"}, may_list=False))
    for read in (listing.page, listing.count):
        with pytest.raises(ManagementError, match="no permission to monitor") as refused:
            await read()
        assert refused.value.reason == "forbidden"
    assert numbers.described == []


@pytest.mark.parametrize(("offset", "count"), [(-1, 1), (0, -1)])
async def test_page_of_negative_numbers_is_invalid(offset: int, count: int) -> None:
    with pytest.raises(ManagementError, match=f"offset={offset}, count={count}: expected") as wrong:
        await Listing(Numbers(1).kind, MAY_DO_ALL).page(offset, count)
    assert wrong.value.status == 400


async def test_field_is_read_without_a_description_if_that_is_possible() -> None:
    numbers = Numbers(5)
    listing = Listing[int](numbers.kind, MAY_DO_ALL)
    things = await listing.collect()
    assert [listing.reader("denominator")(thing) for thing in things] == [1] * 5
    assert numbers.described == []
    assert [listing.reader("numerator")(thing) for thing in things] == [0, 1, 2, 3, 4]
    assert [listing.describe(thing) for thing in things[2:]] == [2, 3, 4]
    assert numbers.described == [0, 1, 2, 3, 4, 2, 3, 4]
