"""The pool of incomplete messages: the member with most octets drops first."""

from __future__ import annotations

from trio_amqp10.core.interrupted_transfers import InterruptedTransfer, InterruptedTransfers
from trio_amqp10.core.partial_pool import Pool


class Member:
    """A member with messages of these sizes."""

    def __init__(self, *sizes: int, drops: bool = True) -> None:
        self.sizes = list(sizes)
        self.pool: Pool | None = None
        self.drops = drops

    @property
    def partial_octets(self) -> int:
        return sum(self.sizes)

    def drop_largest(self, limit: str) -> bool:
        assert limit == "100 octets on all connections of the listener"
        if not self.drops:
            return False
        assert self.pool is not None
        largest = max(self.sizes)
        self.sizes.remove(largest)
        self.pool.octets -= largest
        return True


def test_member_that_has_most_gives_until_there_is_room() -> None:
    pool, greedy, other = Pool(100), Member(60, 50, 10), Member(20)
    for each in (greedy, other, greedy):
        pool.join(each)
    assert pool.octets == 140
    assert pool.relieve(other)
    assert (greedy.sizes, pool.octets) == ([50, 10], 80)
    pool.leave(greedy)
    pool.leave(greedy)
    assert (pool.octets, greedy.pool, other.pool) == (20, None, pool)


def test_member_that_brought_the_last_octets_gives_itself_if_it_has_most_or_who_has_most_cannot() -> None:
    pool, greedy, other = Pool(100), Member(150, drops=False), Member(20)
    pool.join(greedy)
    pool.join(other)
    assert not pool.relieve(greedy)
    assert not pool.relieve(other)


class Transfers(InterruptedTransfers[InterruptedTransfer]):
    def begin(self, name: str, octets: int) -> InterruptedTransfer:
        made = InterruptedTransfer((name, name), bytes(octets))
        self._activate(made)
        return made


def test_idle_transfers_count_in_the_pool_and_the_oldest_go_first() -> None:
    pool, kept = Pool(100), Transfers(10.0, 10, 1000)
    kept.share(pool)
    for name in "abc":
        kept.release(kept.begin(name, 40), 0.0)
    assert (kept.partial_octets, pool.octets, len(kept)) == (80, 80, 2)
    again = kept.begin("c", 40)
    assert (kept.partial_octets, pool.octets) == (40, 40)
    kept.finish(again)
    assert kept.drop_largest("")
    assert not kept.drop_largest("")
    assert (kept.partial_octets, pool.octets) == (0, 0)


def test_idle_transfers_count_in_one_pool_at_a_time() -> None:
    one, other, kept = Pool(100), Pool(100), Transfers(10.0, 10, 1000)
    kept.share(one)
    kept.release(kept.begin("a", 40), 0.0)
    kept.share(one)
    assert (one.octets, other.octets) == (40, 0)
    kept.share(other)
    assert (one.octets, other.octets) == (0, 40)
    kept.share(None)
    kept.release(kept.begin("b", 40), 0.0)
    assert (one.octets, other.octets, kept.pool) == (0, 0, None)
