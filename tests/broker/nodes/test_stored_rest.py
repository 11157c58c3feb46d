"""Messages that are in the store alone, read page by page, while all else goes on."""

from __future__ import annotations

from contextlib import contextmanager
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
from trio_amqp10 import Container, MemoryStore, Message, StoreError
from trio_amqp10.amqp10.server.native_message import content_of_message
from trio_amqp10.broker.nodes import message_store, stored_rest
from trio_amqp10.broker.nodes.message_store import MESSAGES

from .test_queue_model import In, Out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def pages_of(size: int, heads: int) -> Iterator[None]:
    """Cut what a container reads into small pieces."""
    with pytest.MonkeyPatch.context() as patch:
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
        self.queue = self.container.add_queue("q", **self.rules)
        self.container._recover()  # pyright: ignore[reportPrivateUsage]
        self.source = In()
        self.queue.add_inlet(self.source)  # type: ignore[arg-type]

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

    def put(self, count: int, rank: int, ttl: int | None, *, durable: bool) -> None:
        for _ in range(count):
            sent = Sent(self, rank, ttl, durable)
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
            assert self.queue.held.octets == self.queue.held.available.octets == self.container.watermark.octets == 0


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
        self.house.faults += [f"{sent.number} to {self.key}: {fault}" for fault, is_so in wrong.items() if is_so]
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
@given(st.lists(ops, max_size=40), st.integers(1, 3), st.integers(0, 5), stocks, st.booleans(), st.booleans())
def test_queue_goes_on_as_if_all_were_in_memory(
    script: list[Any], size: int, heads: int, stock: list[int], grouped: bool, hasty: bool
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

    with pages_of(size, heads):
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
        out = house.outs.pop(values[0], None)  # type: ignore[assignment]
        if out is not None:
            house.queue.remove_outlet(out)  # type: ignore[arg-type]
            for sent, lease in out.leases:
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
        if what == "release":
            lease.released()
        elif what == "lose":
            lease.lost()
        elif what == "fail":
            lease.modified(failed=True, undeliverable_here=False, annotations=None)
        else:
            sent.excluded.add(out.key)
            lease.modified(failed=False, undeliverable_here=True, annotations=None)
