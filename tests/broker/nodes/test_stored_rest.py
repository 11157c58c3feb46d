"""Messages that are in the store alone, read page by page, while all else goes on."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, queue_of
from tests.container.mortal import Disk, Mortal
from tests.scaled import scaled
from trio_amqp10 import Container, MemoryStore, Message, SqliteStore, StoreError
from trio_amqp10.amqp10.server.native_message import content_of_message
from trio_amqp10.broker.nodes import message_store, stored_rest
from trio_amqp10.broker.nodes.message_store import MESSAGES

from .test_queue_model import In, Out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@contextmanager
def pages_of(size: int, heads: int, deep: int = 1000) -> Iterator[None]:
    """Cut what a container reads into small pieces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_rest, "DEEP", deep)
        patch.setattr(stored_rest, "PAGE", size)
        patch.setattr(message_store, "HEADS", heads)
        yield


class House:
    """A queue with a store, which lives again and again, and what should be in it."""

    def __init__(self, *, hasty: bool = False, **rules: Any) -> None:
        self.disk = Disk()
        self.hasty = hasty
        self.rules = rules
        self.messages: list[Sent] = []
        self.outs: dict[int, Taker] = {}
        self.faults: list[str] = []
        self.container: Container
        self.queue: amqp.Queue
        self.begin()

    def begin(self) -> None:
        """Begin a life of the container."""
        self.life = Mortal(self.disk, None, done=False, die=lambda: None)
        self.container = Container(store=self.life, wall_clock=lambda: 1e9 + trio.current_time())
        if self.hasty:
            self.container.clock.turns = Hasty
        self.queue = self.add_queue()
        self.container._recover()  # pyright: ignore[reportPrivateUsage]
        self.source = In()
        self.queue.add_inlet(self.source)  # type: ignore[arg-type]

    def add_queue(self) -> amqp.Queue:
        """Add the queue, with its rules, to the container."""
        return self.container.add_queue("q", **self.rules)

    async def restart(self) -> None:
        """End this life, when all is stored, and begin the next."""
        assert self.container.journal is not None
        await self.container.journal.until_safe()
        for sent in self.messages:
            sent.gone = sent.gone or not sent.durable or not sent.accepted
            sent.owner = None
            sent.given, sent.excluded = True, set()
        for out in self.outs.values():
            out.credit = 0
        self.outs.clear()
        self.life.dead = True
        self.begin()

    def make(self, rank: int, ttl: int | None, *, durable: bool) -> Sent:
        """Make what arrives next."""
        return Sent(self, rank, ttl, durable)

    def put(self, count: int, rank: int, ttl: int | None, *, durable: bool) -> None:
        for _ in range(count):
            sent = self.make(rank, ttl, durable=durable)
            self.messages.append(sent)
            self.source.arrivals.append(sent)
        self.queue.on_arrivals(self.source)  # type: ignore[arg-type]

    def out(self, key: int) -> Taker:
        found = self.outs.get(key)
        if found is None:
            found = self.outs[key] = Taker(self, key)
            self.queue.add_outlet(found)  # type: ignore[arg-type]
        return found

    def free(self, out: Taker) -> list[Sent]:
        """What may be given to this outlet, in the order of the queue."""
        now = trio.current_time()
        found = [
            sent
            for sent in self.messages
            if sent.accepted and not sent.gone and sent.owner is None and sent.deadline > now
            if out.may_have(sent.number) and out.key not in sent.excluded
        ]
        return sorted(found, key=lambda sent: sent.place)

    async def check(self) -> None:
        """All that is there is counted, and is given where it is wanted."""
        assert not self.faults
        self.queue.sweep()
        await wait_all_tasks_blocked()
        held = [sent for sent in self.messages if sent.accepted and not sent.gone]
        now = trio.current_time()
        alive = [sent for sent in held if sent.owner is not None or sent.deadline > now]
        owned = [sent for sent in alive if sent.owner is not None]
        assert len(self.queue) == len(alive)
        assert self.queue.available == len(alive) - len(owned)
        assert self.queue.leased == len(owned)
        for out in self.outs.values():
            if out.credit:
                assert not self.free(out), out.key
        rows: list[Any] = self.disk.rows(MESSAGES)
        assert len(rows) == len([sent for sent in alive if sent.durable])
        if self.queue.held.rest is None:
            assert self.queue.held.octets == self.container.watermark.octets - 512 * len(alive)
        if not alive:
            assert (
                self.queue.held.octets
                == self.queue.held.available.octets
                == self.container.watermark.octets
                == 0
            )


class Hasty:
    """Turns that are over after each step."""

    def is_over(self) -> bool:
        return True

    def later(self, call: Callable[[], object]) -> None:
        trio.lowlevel.current_trio_token().run_sync_soon(call)


class Sent:
    """A message that was sent to the queue, as its arrival."""

    settled = False
    state: Any = None

    def __init__(self, house: House, rank: int, ttl: int | None, durable: bool) -> None:
        self.number = len(house.messages)
        self.place = -rank, self.number
        self.durable = durable
        self.deadline = float("inf") if ttl is None else trio.current_time() + ttl / 1000
        self.content = content_of_message(Message(self.number, durable=durable, priority=rank, ttl=ttl))
        self.accepted = self.gone = self.given = False
        self.owner: Taker | None = None
        self.excluded: set[int] = set()

    def record_acceptance(self) -> None: ...

    def accept(self) -> None:
        assert not self.accepted
        self.accepted = True


class Taker(Out):
    """An outlet that knows what it should be given."""

    def __init__(self, house: House, key: int) -> None:
        super().__init__(key, selective=key > 1)
        self.house = house
        self.leases: list[tuple[Sent, Any]] = []

    def give(self, content: Any, lease: Any, tag: bytes | None = None) -> None:
        sent = self.house.messages[content.as_message().body]
        earlier = [other.number for other in self.house.free(self) if other.place < sent.place]
        wrong = {
            "gone": sent.gone,
            "had by another": sent.owner is not None,
            "expired": sent.deadline <= trio.current_time(),
            f"out of order: {earlier}": bool(earlier),
            "redelivered": lease.redelivered is not sent.given,
        }
        self.house.faults += [
            f"{sent.number} to {self.key}: {fault}" for fault, is_so in wrong.items() if is_so
        ]
        sent.owner, sent.given = self, True
        self.credit -= 1
        self.leases.append((sent, lease))


ops = st.one_of(
    st.tuples(
        st.just("put"),
        st.integers(1, 4),
        st.sampled_from([4, 4, 4, 7, 0]),
        st.sampled_from([None, None, None, 2500]),
        st.booleans() | st.just(True),
    ),
    st.tuples(st.just("credit"), st.integers(0, 3), st.integers(1, 3)),
    st.tuples(
        st.sampled_from(["accept", "accept", "release", "fail", "refuse", "lose"]),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    st.tuples(st.just("leave"), st.integers(0, 3)),
    st.tuples(st.sampled_from(["pull", "tick", "tick"]), st.integers(0, 3)),
    st.tuples(st.sampled_from(["restart", "restart", "wait", "wait", "sleep", "purge"])),
)
stocks = st.lists(st.sampled_from([4, 4, 7]), max_size=12)


@settings(max_examples=scaled(250), deadline=None)
@given(
    st.lists(ops, max_size=40),
    st.integers(1, 3),
    st.integers(0, 5),
    st.sampled_from([1, 3, 1000]),
    stocks,
    st.booleans(),
    st.booleans(),
)
def test_queue_goes_on_as_if_all_were_in_memory(
    script: list[Any], size: int, heads: int, deep: int, stock: list[int], grouped: bool, hasty: bool
) -> None:
    async def main() -> None:
        house = House(grouped=grouped, hasty=hasty)
        for rank in stock:
            house.put(1, rank, None, durable=True)
        await wait_all_tasks_blocked()
        await house.restart()
        for what, *values in script:
            await do(house, what, *values)
            assert not house.faults
        await wait_all_tasks_blocked()
        await house.check()

    with pages_of(size, heads, deep):
        trio.run(main, clock=MockClock())


async def do(house: House, what: str, *values: Any) -> None:
    """Do one operation."""
    if what == "put":
        count, rank, ttl, durable = values
        house.put(count, rank, ttl, durable=durable)
    elif what == "credit":
        out = house.out(values[0])
        out.credit += values[1]
        house.queue.on_demand(out)  # type: ignore[arg-type]
    elif what == "leave":
        gone = house.outs.pop(values[0], None)
        if gone is not None:
            house.queue.remove_outlet(gone)  # type: ignore[arg-type]
            for sent, lease in gone.leases:
                sent.owner = None
                sent.gone = sent.deadline <= trio.current_time()
                lease.lost()
    elif what == "pull":
        out = Taker(house, values[0])
        out.credit = 1
        free = house.free(out)
        assert house.queue.pull(out) is bool(free)  # type: ignore[arg-type]
        for sent, lease in out.leases:
            sent.gone = True
            lease.accepted()
    elif what == "tick":
        for _ in range(values[0]):
            await trio.lowlevel.checkpoint()
    elif what == "wait":
        await wait_all_tasks_blocked()
        await house.check()
    elif what == "sleep":
        await wait_all_tasks_blocked()
        clock = trio.lowlevel.current_clock()
        assert isinstance(clock, MockClock)
        clock.jump(3)
        await house.check()
        await wait_all_tasks_blocked()
        await house.check()
    elif what == "purge":
        now = trio.current_time()
        free = [
            sent
            for sent in house.messages
            if sent.accepted and not sent.gone and sent.owner is None and sent.deadline > now
        ]
        house.queue.sweep()
        count = house.queue.purge()
        assert count >= len(free)
        for sent in free:
            sent.gone = True
    elif what == "restart":
        await house.restart()
    else:
        out = house.outs.get(values[0])  # type: ignore[assignment]
        if out is None or not out.leases:
            return
        sent, lease = out.leases.pop(values[1] % len(out.leases))
        sent.owner = None
        if what == "accept":
            sent.gone = True
            lease.accepted()
            return
        sent.gone = sent.deadline <= trio.current_time()
        if what == "refuse":
            sent.excluded.add(out.key)
        give_back(lease, what)


def give_back(lease: Any, how: str) -> None:
    """Answer for a delivery other than by an acceptance."""
    if how == "release":
        lease.released()
    elif how == "lose":
        lease.lost()
    else:
        lease.modified(failed=how == "fail", undeliverable_here=how == "refuse", annotations=None)


# -- one at a time --------------------------------------------------------------------------


async def stocked(count: int, *, rank: int = 4, **rules: Any) -> House:
    """A house whose queue has so many messages in the store, and a page of two in memory."""
    house = House(**rules)
    house.put(count, rank, None, durable=True)
    await wait_all_tasks_blocked()
    await house.restart()
    return house


@pytest.fixture
def _small_pages() -> Iterator[None]:
    with pages_of(2, 2):
        yield


pytestmark = pytest.mark.usefixtures("_small_pages")


def in_memory(queue: amqp.Queue) -> int:
    return queue.available - queue.held.available.paged_out


async def test_only_the_head_is_in_memory_until_more_is_wanted() -> None:
    house = await stocked(9)
    assert (len(house.queue), house.queue.available, in_memory(house.queue)) == (9, 9, 2)
    assert house.container.watermark.octets < 3 * (512 + 50)
    out = house.out(0)
    out.credit = 3
    house.queue.on_demand(out)  # type: ignore[arg-type]
    await wait_all_tasks_blocked()
    assert [sent.number for sent, _ in out.leases] == [0, 1, 2]
    assert in_memory(house.queue) <= 4
    await house.check()


async def test_queue_that_is_restored_twice_has_its_messages_once() -> None:
    house = await stocked(9)
    house.queue.recover()
    assert (len(house.queue), house.queue.available, in_memory(house.queue)) == (9, 9, 2)
    await house.check()


async def test_head_that_is_all_there_is_needs_no_further_page() -> None:
    house = await stocked(1)
    assert house.queue.held.rest is None


async def test_stored_message_that_arrives_behind_the_horizon_is_left_to_the_store() -> None:
    house = await stocked(5)
    house.put(3, 4, None, durable=True)
    house.put(1, 4, None, durable=False)
    await wait_all_tasks_blocked()
    assert house.queue.held.available.paged_out == 6
    assert in_memory(house.queue) == 3  # with that which is not stored
    await house.check()


async def test_heads_of_all_queues_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    first = Container(store=store)
    for name in ("a", "b", "c"):
        for number in range(4):
            await first.send(name, Message(number, durable=True))
    monkeypatch.setattr(message_store, "HEADS", 3)
    second = Container(store=store)
    async with second.connect() as conn:
        assert [in_memory(queue_of(second, name)) for name in ("a", "b", "c")] == [2, 1, 0]
        async with conn.open_receiver("c") as receiver:
            assert await bodies(receiver, 4) == [0, 1, 2, 3]


async def test_page_of_large_messages_has_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_rest, "PAGE", 500)
    monkeypatch.setattr(message_store, "HEADS", 500)
    monkeypatch.setattr(stored_rest, "PAGE_OCTETS", 2500)
    monkeypatch.setattr(message_store, "HEAD_OCTETS", 4000)
    store = MemoryStore()
    first = Container(store=store)
    for name in ("a", "b", "c"):
        for _ in range(6):
            await first.send(name, Message(bytes(1000), durable=True))
    second = Container(store=store)
    async with second.connect() as conn:
        assert [in_memory(queue_of(second, name)) for name in ("a", "b", "c")] == [3, 3, 0]
        async with conn.open_receiver("a", credit=0) as receiver:
            for left in (2, 4):  # Then fewer octets are left than a page has.
                receiver.grant(1)
                await receiver.receive()
                await wait_all_tasks_blocked()
                assert in_memory(queue_of(second, "a")) == left
            receiver.grant(6)
            assert len(await bodies(receiver, 4)) == 4
            await wait_all_tasks_blocked()
            assert queue_of(second, "a").held.rest is None


async def test_deleted_queue_takes_from_the_watermark_what_was_in_memory() -> None:
    house = await stocked(9)
    await house.container.management.delete(house.queue.address)
    await wait_all_tasks_blocked()
    assert house.container.watermark.octets == 0


async def test_resumed_lease_behind_the_horizon_survives_a_purge() -> None:
    house = House()
    house.put(6, 4, None, durable=True)
    await wait_all_tasks_blocked()
    house.life.dead = True
    rows: list[Any] = house.disk.rows(MESSAGES)
    container = Container(store=house.disk)
    queue = container.add_queue("q")
    found: Any = container._message_store  # pyright: ignore[reportPrivateUsage]
    leases: list[Any] = []

    def resume(lease: Any, _content: Any) -> str:
        leases.append(lease)
        return "key"

    found.read_ahead([rows[4][0]])
    found.resume_by(rows[4][0], resume)
    container._recover()  # pyright: ignore[reportPrivateUsage]
    assert (len(queue), queue.leased, queue.available) == (6, 1, 5)
    assert queue.purge() == 5
    await wait_all_tasks_blocked()
    assert [row[0] for row in house.disk.rows(MESSAGES)] == [rows[4][0]]
    leases[0].released()
    assert (queue.available, in_memory(queue)) == (1, 1)


async def test_page_that_was_under_way_brings_nothing_back_after_a_purge() -> None:
    house = await stocked(8, hasty=True)
    out = house.out(0)
    out.credit = 8
    house.queue.on_demand(out)  # type: ignore[arg-type]
    while house.queue.held.available.paged_out > 5:
        await trio.lowlevel.checkpoint()
    assert house.queue.held.rest is not None
    assert house.queue.held.rest.reading is not None  # One message of the page is read.
    given = len(out.leases)
    house.queue.purge()
    for sent in house.messages[given:]:
        sent.gone = sent.owner is None
    await wait_all_tasks_blocked()
    await house.check()


@pytest.mark.parametrize("again", [False, True])
async def test_deleted_queue_leaves_nothing_in_the_store(again: bool) -> None:
    house = await stocked(8)
    house.container.remove_node("q")
    if again:
        queue = house.container.add_queue("q", durable=True)
        await house.container.send("q", "new")
        assert len(queue) == 1
    await wait_all_tasks_blocked()
    assert len(house.disk.rows(MESSAGES)) == again
    await house.restart()
    assert len(house.queue) == again


async def test_queue_that_is_deleted_before_it_was_read_leaves_nothing_in_the_store() -> None:
    house = await stocked(4)
    house.life.dead = True
    container = Container(store=house.disk)
    container.add_queue("q")
    container.remove_node("q")
    await wait_all_tasks_blocked()
    assert house.disk.rows(MESSAGES) == []


async def test_messages_expire_although_no_page_is_wanted(autojump_clock: MockClock) -> None:
    store = MemoryStore()

    def wall() -> float:
        return 1e9 + trio.current_time()

    first = Container(store=store, wall_clock=wall)
    first.add_queue("q", dead_letter="dead")
    for number in range(7):
        await first.send("q", Message(number, durable=True, ttl=60_000 if number % 2 else None))
    second = Container(store=store, wall_clock=wall)
    second.add_queue("q", dead_letter="dead")
    async with second.connect():
        await trio.sleep(61)
        assert len(queue_of(second)) == 4
        assert len(queue_of(second, "dead")) == 3


async def test_messages_that_expire_later_stay_in_the_store_until_then(autojump_clock: MockClock) -> None:
    store = MemoryStore()

    def wall() -> float:
        return 1e9 + trio.current_time()

    first = Container(store=store, wall_clock=wall)
    first.add_queue("q")
    for number in range(20):
        ttl = {5: 3_000, 12: 60_000, 17: 20_000}.get(number)
        await first.send("q", Message(number, durable=True, ttl=ttl))
    with pages_of(3, 3):
        second = Container(store=store, wall_clock=wall)
        queue = second.add_queue("q")
        async with second.connect():
            await second.send("q", Message("short", durable=True, ttl=1_000))
            await trio.sleep(2.9)
            assert queue.held.rest is not None
            assert (queue.held.rest.count, len(queue)) == (17, 20)
            await trio.sleep(0.2)
            assert queue.held.rest is None
            assert len(queue) == 19
            await trio.sleep(60)
            assert len(queue) == 17
        third = Container(store=store, wall_clock=wall)
        queue = third.add_queue("q")
        async with third.connect():
            await trio.sleep(100)
            assert queue.held.rest is not None
            assert len(queue) == 17


async def test_dead_letters_of_a_deleted_queue_are_all_its_messages() -> None:
    house = await stocked(7, dead_letter="dead")
    dead = house.container.add_queue("dead", durable=True)
    assert house.queue.end_available() == 7
    await wait_all_tasks_blocked()
    assert (len(house.queue), len(dead)) == (0, 7)


@pytest.mark.parametrize(
    ("ranks", "left"), [([4] * 7, range(1, 8)), ([7, 4, 7, 7, 0, 4, 7], [0, 1, 2, 3, 5, 6, 7])]
)
async def test_oldest_of_the_lowest_priority_makes_room(ranks: list[int], left: list[int]) -> None:
    house = House(max_length=7, overflow="drop-oldest")
    for rank in ranks:
        house.put(1, rank, None, durable=True)
    await wait_all_tasks_blocked()
    await house.restart()
    if len(set(ranks)) == 1:
        assert in_memory(house.queue) == 2
        out = house.out(0)
        out.credit = 2  # All that are in memory are leased, and stay.
        house.queue.on_demand(out)  # type: ignore[arg-type]
        for sent, lease in out.leases:
            sent.owner = None
            lease.released()
    house.put(1, 4, None, durable=True)
    await wait_all_tasks_blocked()
    rows: list[Any] = house.disk.rows(MESSAGES)
    assert sorted(Message.from_payload(row[4]).body for row in rows) == list(left)


async def test_oldest_in_the_store_makes_room_if_those_in_memory_are_leased() -> None:
    house = await stocked(7, max_length=7, overflow="drop-oldest")
    out = house.out(0)
    out.credit = 2
    house.queue.on_demand(out)  # type: ignore[arg-type]
    await wait_all_tasks_blocked()
    house.put(3, 7, None, durable=True)
    await wait_all_tasks_blocked()
    rows: list[Any] = house.disk.rows(MESSAGES)
    assert sorted(Message.from_payload(row[4]).body for row in rows) == [0, 1, 5, 6, 7, 8, 9]


async def test_policy_that_needs_all_messages_reads_them() -> None:
    house = House()
    for rank in (4, 7, 4, 7, 4, 7):
        house.put(1, rank, None, durable=True)
    await wait_all_tasks_blocked()
    await house.restart()
    assert house.queue.held.rest is not None
    house.queue.update(amqp.QueuePolicy(max_length=9, overflow="drop-oldest"))
    assert house.queue.held.rest is None
    assert in_memory(house.queue) == 6


class Broken(MemoryStore):
    """A store that cannot read pages for some time."""

    broken = False

    def read(self, page: Any) -> Any:
        if self.broken:
            raise StoreError("the disk is broken")
        return super().read(page)

    def fetch(self, page: Any, found: Any) -> None:
        if not self.broken:
            super().fetch(page, found)
        else:
            trio.lowlevel.current_trio_token().run_sync_soon(found, [], StoreError("the disk is broken"))


@pytest.mark.logs_errors
async def test_page_that_cannot_be_read_is_tried_again(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = Broken()
    first = Container(store=store)
    for number in range(6):
        await first.send("q", Message(number, durable=True))
    second = Container(store=store)
    async with second.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        store.broken = True
        receiver.grant(6)
        assert await bodies(receiver, 2) == [0, 1]
        await trio.sleep(25)
        assert (
            caplog.text.count("a page of its messages cannot be read; it is tried again: the disk is broken")
            == 3
        )
        with pytest.raises(StoreError, match="the disk is broken"):
            queue_of(second).page_in_now()
        store.broken = False
        assert await bodies(receiver, 4) == [2, 3, 4, 5]


async def test_page_that_cannot_be_read_at_once_does_not_stop_the_one_on_its_way() -> None:
    house = await stocked(6)
    out = house.out(0)
    out.credit = 6
    house.queue.on_demand(out)  # type: ignore[arg-type]

    def broken(_page: Any) -> Any:
        raise StoreError("the disk is broken")

    house.disk.read = broken  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="the disk is broken"):
        house.queue.page_in_now()
    del house.disk.read  # type: ignore[method-assign]
    await wait_all_tasks_blocked()
    assert [sent.number for sent, _ in out.leases] == [*range(6)]


async def test_page_of_a_closed_store_is_no_fault_of_the_program(caplog: pytest.LogCaptureFixture) -> None:
    house = await stocked(5)

    def closed(_page: Any, _found: Any) -> None:
        raise StoreError("the store is closed")

    house.disk.fetch = closed  # type: ignore[method-assign, assignment]
    out = house.out(0)
    out.credit = 5
    house.queue.on_demand(out)  # type: ignore[arg-type]
    await wait_all_tasks_blocked()
    assert len(out.leases) == 2
    assert not caplog.records


def test_page_that_an_earlier_run_began_is_read_again() -> None:
    store = MemoryStore()

    async def stock() -> None:
        for number in range(6):
            await first.send("q", Message(number, durable=True))

    async def begin() -> None:
        store.fetch = lambda _page, _found: None  # type: ignore[method-assign]
        async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
            receiver.grant(6)
            assert await bodies(receiver, 2) == [0, 1]

    async def go_on() -> None:
        del store.fetch  # type: ignore[method-assign]
        async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
            receiver.grant(6)
            with trio.fail_after(10):
                assert await bodies(receiver, 4) == [2, 3, 4, 5]

    first = Container(store=store)
    trio.run(stock)
    container = Container(store=store)
    trio.run(begin)
    trio.run(go_on)


@pytest.mark.logs_errors
async def test_rows_that_are_damaged_or_missing_leave_the_counts_right() -> None:
    house = await stocked(8)
    rows: dict[int, Any] = house.disk._tables[MESSAGES]  # type: ignore[assignment]  # pyright: ignore[reportPrivateUsage]
    keys = sorted(rows)
    del rows[keys[3]]
    rows[keys[5]] = (*rows[keys[5]][:9], "many")
    rows[keys[6]] = (*rows[keys[6]][:4], "text", *rows[keys[6]][5:])
    out = house.out(0)
    out.credit = 8
    house.queue.on_demand(out)  # type: ignore[arg-type]
    await wait_all_tasks_blocked()
    assert [sent.number for sent, _ in out.leases] == [0, 1, 2, 4, 7]
    assert (len(house.queue), house.queue.leased, house.queue.available) == (5, 5, 0)
    for _, lease in out.leases:
        lease.accepted()
    assert house.queue.octets == house.queue.held.available.octets == house.container.watermark.octets == 0
    assert house.container.statistics()["rows_set_aside"] == 2


@pytest.mark.logs_errors
@pytest.mark.parametrize("place", [9 << 48, "text"])
async def test_message_before_the_place_of_a_damaged_row_is_not_lost(
    place: int | str, tmp_path: Path
) -> None:
    path = tmp_path / "store"
    with SqliteStore(path) as store:
        first = Container(store=store)
        for number in range(4):
            await first.send("q", Message(number, durable=True))
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE messages SET place = ?, failures = 'many' WHERE id = 4", (place,))
        database.commit()
    with SqliteStore(path) as store:
        second = Container(store=store)
        async with second.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
            queue_of(second).page_in_now()  # Its last row is the damaged one.
            await second.send("q", Message(4, durable=True))
            receiver.grant(4)
            with trio.fail_after(60):
                assert await bodies(receiver, 4) == [0, 1, 2, 4]


async def test_rest_does_not_remember_messages_whose_place_is_read() -> None:
    house = await stocked(6)
    house.put(3, 7, None, durable=True)
    await wait_all_tasks_blocked()
    rest = house.queue.held.rest
    assert rest is not None
    assert not rest.ahead
    house.put(1, 0, None, durable=False)
    out = house.out(0)
    out.credit = 10
    house.queue.on_demand(out)  # type: ignore[arg-type]
    await wait_all_tasks_blocked()
    assert [sent.number for sent, _ in out.leases] == [6, 7, 8, *range(6), 9]
    await house.check()


async def test_waiting_consumers_look_again_by_priority() -> None:
    house = await stocked(4)
    taken: list[int] = []

    class Noting(Taker):
        def give(self, content: Any, lease: Any, tag: bytes | None = None) -> None:
            taken.append(self.key)
            super().give(content, lease, tag)

    outs = [Noting(house, 0), Noting(house, 1)]
    outs[1].subscription_terms = amqp.SubscriptionTerms(name="", priority=5)
    for out in outs:
        house.queue.add_outlet(out)  # type: ignore[arg-type]
        out.credit = 2
    for out in outs:  # The first takes both that are in memory.
        house.queue.on_demand(out)  # type: ignore[arg-type]
    outs[0].credit = 1
    house.queue.on_demand(outs[0])  # type: ignore[arg-type]
    await wait_all_tasks_blocked()
    assert taken == [0, 0, 1, 1]


async def test_outlet_that_leaves_while_it_waits_for_a_page_is_forgotten() -> None:
    house = await stocked(6)
    browser = Out(0, copying=True)
    outs = [house.out(1), browser]
    house.queue.add_outlet(browser)  # type: ignore[arg-type]
    for out in outs:
        out.credit = 6
        house.queue.on_demand(out)  # type: ignore[arg-type]
        house.queue.remove_outlet(out)  # type: ignore[arg-type]
    del house.outs[1]
    await wait_all_tasks_blocked()
    assert not house.queue._paging  # pyright: ignore[reportPrivateUsage]


async def test_browser_sees_all_of_a_queue_once_in_order() -> None:
    house = await stocked(7)
    browser = Out(0, copying=True)
    house.queue.add_outlet(browser)  # type: ignore[arg-type]
    browser.credit = 9
    house.queue.on_demand(browser)  # type: ignore[arg-type]
    house.put(1, 4, None, durable=True)
    await wait_all_tasks_blocked()
    assert browser.seen == [*range(8)]
    puller = Out(0, copying=True, selective=True)
    puller.may_have = lambda number: number == 6  # type: ignore[method-assign]
    await house.restart()
    puller.credit = 1
    assert house.queue.pull(puller)  # type: ignore[arg-type]
    assert puller.seen == [6]


async def test_drain_ends_after_the_last_page() -> None:
    store = MemoryStore()
    first = Container(store=store)
    async with first.connect() as conn:
        await fill(conn, "q", *[Message(number, durable=True) for number in range(9)])
    second = Container(store=store)
    async with second.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        receiver.grant(20)
        assert [delivery.message.body for delivery in await receiver.drain()] == [*range(9)]


async def test_management_browses_gets_and_moves_all_messages() -> None:
    house = await stocked(9)
    management = house.container.management
    assert [each.place for each in await management.browse("q", 20)] == [*range(9)]
    await house.restart()
    management = house.container.management
    target = house.container.add_queue("target", durable=True)
    assert [each.place for each in await management.get("q", 4, outcome="release")] == [0, 1, 2, 3]
    assert await management.move("q", "target") == 9
    assert (len(house.queue), len(target)) == (0, 9)
    await house.restart()
    status = await house.container.management.queue("target")
    assert (status.depth, status.ready) == (9, 9)
    assert await house.container.management.purge("target") == 9
    await wait_all_tasks_blocked()
    assert house.disk.rows(MESSAGES) == []


async def test_age_of_a_message_goes_on_after_a_restart(autojump_clock: MockClock) -> None:
    house = House()
    house.put(5, 4, None, durable=True)
    await wait_all_tasks_blocked()
    await trio.sleep(100)
    await house.restart()
    found = await house.container.management.browse("q", 9)
    assert [each.age for each in found] == [pytest.approx(100, abs=1)] * 5


@pytest.mark.parametrize("octets", [False, True])
async def test_very_deep_queue_leaves_new_messages_to_the_store(
    octets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_rest, "DEEP_OCTETS" if octets else "DEEP", 100 if octets else 4)
    house = House()
    house.put(20, 4, None, durable=True)
    await wait_all_tasks_blocked()
    assert (len(house.queue), house.queue.available) == (20, 20)
    kept = in_memory(house.queue)
    assert 7 <= kept <= 12 if octets else kept == 5
    house.put(1, 9, None, durable=True)  # It goes before all others, so it stays in memory.
    await wait_all_tasks_blocked()
    assert in_memory(house.queue) == kept + 1
    out = house.out(0)
    out.credit = 30
    house.queue.on_demand(out)  # type: ignore[arg-type]
    await wait_all_tasks_blocked()
    assert [sent.number for sent, _ in out.leases] == [20, *range(20)]
    await house.check()
    assert house.queue.held.rest is None


async def test_very_deep_queue_keeps_what_somebody_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_rest, "DEEP", 4)
    house = House()
    picky = Taker(house, 5)  # It takes what 5 does not divide.
    picky.may_have = lambda number: number >= 8  # type: ignore[method-assign]
    picky.selective = True
    house.queue.add_outlet(picky)  # type: ignore[arg-type]
    picky.credit = 3
    house.queue.on_demand(picky)  # type: ignore[arg-type]
    house.put(12, 4, None, durable=True)
    await wait_all_tasks_blocked()
    assert [sent.number for sent, _ in picky.leases] == [8, 9, 10]
    browser = Out(0, copying=True)
    house.queue.add_outlet(browser)  # type: ignore[arg-type]
    browser.credit = 20
    house.queue.on_demand(browser)  # type: ignore[arg-type]
    house.put(3, 4, None, durable=True)
    await wait_all_tasks_blocked()
    assert browser.seen == [*range(8), 11, 12, 13, 14]


async def test_queue_that_counts_bodies_keeps_all_messages_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_rest, "DEEP", 2)
    store = MemoryStore()
    for _ in range(2):
        container = Container(store=store)
        broker = container.add_broker(like_rabbitmq=True)
        broker.declare_queue("bounded", arguments={"x-max-length-bytes": 10_000})
        broker.declare_queue("free")
        for name in ("bounded", "free"):
            for number in range(4):
                await container.send(name, Message(number, durable=True))
        bounded, free = queue_of(container, "bounded"), queue_of(container, "free")
        assert bounded.held.available.paged_out == 0
        assert free.held.available.paged_out > 0
    assert len(bounded) == len(free) == 8


def like_rabbitmq(store: MemoryStore, **arguments: Any) -> tuple[Container, amqp.Queue]:
    """A container with a queue "q" that has limits of RabbitMQ's."""
    container = Container(store=store)
    broker = container.add_broker(like_rabbitmq=True)
    broker.declare_queue("q", arguments=arguments)
    return container, queue_of(container)


def stored_bodies(store: MemoryStore) -> list[Any]:
    rows: list[Any] = store.rows(MESSAGES)
    return [Message.from_payload(row[4]).body for row in rows]


async def test_bound_like_rabbitmqs_holds_for_messages_that_are_left_to_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stored_rest, "DEEP", 1)
    store = MemoryStore()
    container, queue = like_rabbitmq(store, **{"x-max-length": 5})
    for number in range(7):
        await container.send("q", Message(number, durable=True))
    assert queue.held.available.paged_out > 0
    assert (len(queue), queue.figures["dropped"]) == (5, 2)
    assert stored_bodies(store) == [2, 3, 4, 5, 6]


async def test_page_that_is_read_to_drop_its_messages_loses_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stored_rest, "PAGE", 3)
    monkeypatch.setattr(message_store, "HEADS", 0)
    store = MemoryStore()
    container, _ = like_rabbitmq(store)
    for number in range(6):
        await container.send("q", Message(number, durable=True))
    container, queue = like_rabbitmq(store)
    async with container.connect():
        queue.update(replace(queue.policy, max_length=5, overflow="drop-oldest"))
        await container.send("q", Message("not stored"))
        assert (len(queue), queue.figures["dropped"]) == (5, 2)
    assert stored_bodies(store) == [2, 3, 4, 5]


async def test_message_that_becomes_the_first_behind_the_horizon_expires(autojump_clock: MockClock) -> None:
    store = MemoryStore()
    container, _ = like_rabbitmq(store)
    for number in range(2):
        await container.send("q", Message(number, durable=True))
    container, queue = like_rabbitmq(store)
    async with container.connect():
        await container.send("q", Message(2, durable=True, ttl=1000))
        await trio.sleep(2)
        assert len(queue) == 3  # It is not the first.
        assert len(await container.management.get("q", 2, outcome="accept")) == 2
        await trio.sleep(1)
        assert len(queue) == 0
