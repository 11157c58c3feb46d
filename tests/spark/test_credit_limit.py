"""Credit by messages and by octets."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from trio_amqp10.spark.credit_limit import CreditLimit

MIB = 2**20


class Granted:
    """The part of a receiver that grants credit."""

    def __init__(self) -> None:
        self.total = 0

    def grant(self, count: int) -> None:
        assert count > 0
        self.total += count


def test_few_messages_are_granted_before_any_has_come() -> None:
    assert CreditLimit(4000, 16 * MIB).most == 16
    assert CreditLimit(4, 16 * MIB).most == 4
    assert CreditLimit(4000, 1).most == 1


def test_octets_bound_large_messages_and_numbers_small_ones() -> None:
    limit = CreditLimit(4000, 16 * MIB)
    limit.weigh(256)
    assert limit.most == 4000
    limit.weigh(4 * MIB)
    assert limit.most == 4
    limit.weigh(256)
    assert limit.most == 8  # a large one may come again soon
    limit.weigh(64 * MIB)
    assert limit.most == 1


@given(st.lists(st.tuples(st.integers(0, 64 * MIB), st.integers(0, 5000)), max_size=30))
def test_grants_and_settlements_never_pass_the_bound_of_their_time(steps: list[tuple[int, int]]) -> None:
    limit, link = CreditLimit(4000, 16 * MIB), Granted()
    receiver: Any = cast("Any", link)
    most = limit.most
    limit.grant(receiver)
    settled = 0
    for size, count in steps:
        limit.weigh(size)
        done = min(count, link.total - settled)
        settled += done
        limit.settled(receiver, done)
        limit.grant(receiver)
        outstanding = link.total - settled
        assert outstanding <= max(most, limit.most)
        assert outstanding >= limit.most
        most = max(limit.most, outstanding)
    assert limit.links == [link]
    limit.forget_links()
    assert limit.links == []
