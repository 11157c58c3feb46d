"""Batches that another thread makes ahead: in order, before what failed, and no more than are wanted."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10.spark.prefetch import prefetch

if TYPE_CHECKING:
    from trio_amqp10.spark.prefetch import Offer

BATCHES: list[Any] = [object() for _ in range(20)]


def test_batches_come_in_the_order_in_which_they_were_made() -> None:
    async def make(offer: Offer) -> None:
        for each in BATCHES:
            assert await offer(each)

    assert list(prefetch(make)) == BATCHES


def test_failure_is_raised_behind_the_batches_before_it() -> None:
    async def make(offer: Offer) -> None:
        await offer(BATCHES[0])
        raise ZeroDivisionError

    found = prefetch(make)
    assert next(found) is BATCHES[0]
    with pytest.raises(ZeroDivisionError):
        next(found)


def test_function_is_told_when_nobody_iterates_any_more() -> None:
    ended = threading.Event()
    offered = 0

    async def make(offer: Offer) -> None:
        nonlocal offered
        for each in BATCHES:
            if not await offer(each):
                ended.set()
                return
            offered += 1

    found = prefetch(make)
    next(found)
    found.close()  # type: ignore[attr-defined]  # it is a generator
    assert ended.wait(30)
    assert offered < len(BATCHES)
