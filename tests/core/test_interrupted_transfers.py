"""Interrupted transfers are kept for a while, and dropped without a pass over all."""

from __future__ import annotations

from trio_amqp10.core.interrupted_transfers import InterruptedTransfer, InterruptedTransfers


class Counted(bytearray):
    """Octets that count how often their length is read."""

    asked = 0

    def __len__(self) -> int:
        type(self).asked += 1
        return super().__len__()


class Store(InterruptedTransfers[InterruptedTransfer]):
    """A store of plain transfers."""

    def begin(self, name: object, now: float, octets: int = 1) -> InterruptedTransfer:
        self._forget(now)
        transfer = InterruptedTransfer(("o", name))
        transfer.body = Counted(octets)
        self._activate(transfer)
        return transfer

    def find(self, name: object, now: float = 0.0) -> InterruptedTransfer | None:
        self._forget(now)
        return self._find(("o", name))


def store(**bounds: float) -> Store:
    return Store(**{"kept": 10.0, "max_number": 10_000, "max_octets": 10_000, **bounds})  # type: ignore[arg-type]


def test_calls_look_at_a_few_transfers_however_many_are_kept() -> None:
    kept = store()
    for number in range(2000):
        kept.release(kept.begin(number, 0.0), 0.0)
    Counted.asked = 0
    for number in range(100):
        kept.release(kept.begin(("more", number), 1.0), 1.0)
    assert kept.octets == 2100
    assert Counted.asked <= 200


def test_oldest_are_forgotten_first() -> None:
    kept = store(max_octets=3)
    first, second = kept.begin(1, 0.0), kept.begin(2, 0.0)
    third = kept.begin(3, 0.0, 2)
    for each in (second, first, third):
        kept.release(each, 0.0)
    assert (len(kept), kept.octets) == (2, 3)
    assert kept.find(2) is None
    assert kept.find(1) is first


def test_transfers_that_are_received_count_and_are_not_forgotten() -> None:
    kept = store(max_number=2)
    idle = kept.begin(1, 0.0)
    kept.release(idle, 0.0)
    active = [kept.begin(number, 0.0) for number in (2, 3)]
    assert [kept.find(number) for number in (1, 2, 3)] == [None, *active]
    kept.begin(4, 99.0)
    assert len(kept) == 3


def test_transfer_that_is_kept_already_is_neither_released_nor_finished() -> None:
    kept = store()
    one = kept.begin(1, 0.0)
    kept.release(one, 0.0)
    kept.release(one, 5.0)
    kept.finish(one)
    assert (len(kept), kept.octets, one.until) == (1, 1, 10.0)
    assert kept.find(1, 9.9) is one
    assert kept.find(1, 10.0) is None
    assert (len(kept), kept.octets) == (0, 0)


def test_transfer_that_begins_anew_takes_the_place_of_what_was_kept() -> None:
    kept = store()
    old = kept.begin(1, 0.0, 5)
    kept.release(old, 0.0)
    new = kept.begin(1, 1.0)
    assert kept.find(1) is new
    assert (len(kept), kept.octets) == (1, 0)
