"""Messages that are redelivered to any lane, in any order of events.

None is lost, and none comes twice within ``dedup.window``.
"""

from __future__ import annotations

import json
import random
from bisect import bisect_right, insort
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from trio_amqp10.spark.first_copies import first_copies
from trio_amqp10.spark.lane_spool import LaneSpool
from trio_amqp10.spark.lanes_reader import LaneRows
from trio_amqp10.spark.manifest_catalog import Manifest
from trio_amqp10.spark.recent_ids import RecentIds

if TYPE_CHECKING:
    from typing import BinaryIO

    from trio_amqp10.spark.manifest_catalog import Positions
    from trio_amqp10.spark.spool import Slice

LANES = "abcd"
WINDOW = 120
FULL = 60
"""Rows of a lane that wait, from which on it takes no more."""


class Died(BaseException):
    """The process is gone."""


class Objects:
    """An object store, for as many processes as there are."""

    where = "objects"
    remote = True

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    def put(self, name: str, octets: bytes, *, lasting: bool = True) -> None:
        self.held[name] = octets

    def get(self, name: str) -> bytes | None:
        return self.held.get(name)

    def names(self, folder: str) -> list[str]:
        return [name for name in self.held if name.startswith(folder)]

    def times(self, folder: str) -> dict[str, float]:
        return dict.fromkeys(self.names(folder), 0.0)

    def delete(self, name: str) -> None:
        self.held.pop(name, None)

    def source(self, name: str) -> str:
        return name

    def lock(self, name: str, patience: float) -> None:
        return None


class Process:
    """The store as one process sees it, which may die while it writes."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.dies: str | None = None
        self.flying: list[tuple[str, bytes]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objects, name)

    def put(self, name: str, octets: bytes, *, lasting: bool = True) -> None:
        if self.dies is not None and name.startswith("manifests"):
            if self.dies == "flying":  # the request is under way, and the store has not done it yet
                self.flying.append((name, octets))
            raise Died
        self._objects.put(name, octets)


def key(message: int) -> str:
    return f"ulong:{message}"


@dataclass
class Receiver:
    """The state of one receiver of the queue."""

    lane: str
    process: Process
    spool: LaneSpool
    seen: RecentIds
    taken: list[int] = field(default_factory=list)
    stored: list[int] = field(default_factory=list)
    """Published, and not accepted yet."""
    connected: bool = True


class Lanes:
    """A queue, receivers of lanes that die, or are taken for dead, and a query."""

    def __init__(self) -> None:
        self.objects = Objects()
        self.queue: list[int] = []
        self.sent = 0
        self.receivers: list[Receiver] = []
        self.flying: list[tuple[str, bytes]] = []
        self.landed: set[Manifest] = set()
        self.places: defaultdict[int, list[tuple[str, str, int]]] = defaultdict(list)
        self.order: dict[str, list[tuple[str, int]]] = {lane: [] for lane in LANES}
        self.epochs: dict[str, list[int]] = {}
        self.apart: dict[int, int] = {}
        self.most_waiting = 0
        self.arrived: Counter[int] = Counter()
        self.rows = LaneRows(self.objects, window=WINDOW)
        self.position: Positions = {}
        self.batch: tuple[Positions, Positions, list[Slice]] | None = None
        for lane in LANES:
            self.begin(lane)

    # -- the true state, independent of the code under test ---------------------------------

    def look(self) -> None:
        """Note what has landed."""
        for name in self.objects.names("manifests"):
            each = Manifest.parse(name)
            assert each is not None
            if each not in self.landed:
                self.landed.add(each)
                self.epochs.setdefault(each.key, [each.first, 0])[1] = each.end
                for row, message in enumerate(self.messages(each.segment), each.first):
                    self.measure(message)
                    insort(self.order[each.lane], (each.epoch, row))
                    self.places[message].append((each.lane, each.epoch, row))
        self.most_waiting = max(self.most_waiting, *map(self.waiting, self.order))

    def measure(self, message: int) -> None:
        """How many rows are behind the copies of a message that is landing."""
        for lane, epoch, row in self.places[message]:
            order = self.order[lane]
            behind = len(order) - bisect_right(order, (epoch, row))
            self.apart[message] = max(behind, self.apart.get(message, 0))

    def waiting(self, lane: str) -> int:
        return sum(
            end - self.position.get(key, first)
            for key, (first, end) in self.epochs.items()
            if key.startswith(f"{lane}/")
        )

    def messages(self, segment: str) -> list[int]:
        found: list[int] = json.loads(self.objects.held[segment])
        return found

    # -- the queue --------------------------------------------------------------------------

    def send(self, count: int) -> None:
        self.queue += range(self.sent, self.sent + count)
        self.sent += count

    def give_back(self, one: Receiver) -> None:
        if one.connected:
            self.queue = one.stored + one.taken + self.queue
        one.stored = []

    # -- receivers --------------------------------------------------------------------------

    def begin(self, lane: str) -> None:
        if any(one.lane == lane and one.connected for one in self.receivers):
            return
        process = Process(self.objects)
        spool = LaneSpool("", lane, keep=WINDOW, patience=0.0, store=process)
        seen = RecentIds(WINDOW)
        for segment in spool.segments:
            seen.add(map(key, self.messages(segment)))
        self.receivers.append(Receiver(lane, process, spool, seen))

    def choose(self, place: int, *, connected: bool = False) -> Receiver | None:
        possible = [one for one in self.receivers if one.connected or not connected]
        return possible[place % len(possible)] if possible else None

    def take(self, place: int, count: int) -> None:
        one = self.choose(place, connected=True)
        if one is not None and self.waiting(one.lane) < FULL:
            one.taken += self.queue[:count]
            del self.queue[:count]

    def publish(self, place: int) -> None:
        one = self.choose(place)
        if one is not None:
            self.write(one)

    def give(self, one: Receiver, count: int, *, settled: bool = True) -> None:
        """Send so many, and have one receiver take and store all that the queue has."""
        self.send(count)
        one.taken, self.queue = self.queue, []
        self.write(one)
        if settled:
            one.stored = []

    def write(self, one: Receiver) -> None:
        fresh = [one.taken[at] for at in one.seen.fresh([*map(key, one.taken)])]

        def fill(file: BinaryIO) -> None:
            file.write(json.dumps(fresh).encode())

        if fresh:
            one.spool.write(len(fresh), fill, ids=[*map(key, fresh)])
            one.seen.add(map(key, fresh))
        one.stored += one.taken
        one.taken = []
        self.look()

    def settle(self, place: int) -> None:
        one = self.choose(place, connected=True)
        if one is not None:
            one.stored = []

    def reconnect(self, place: int) -> None:
        one = self.choose(place, connected=True)
        if one is not None:
            self.give_back(one)
            one.taken = []

    def be_taken_for_dead(self, place: int) -> None:
        one = self.choose(place, connected=True)
        if one is not None:
            self.give_back(one)
            one.connected = False

    def die(self, place: int, dies: str) -> None:
        one = self.choose(place)
        if one is None:
            return
        if dies != "now":
            one.process.dies = dies
            try:
                self.write(one)
            except Died:
                self.flying += one.process.flying
        self.give_back(one)
        self.receivers.remove(one)

    def land(self) -> None:
        """Store the names that processes were writing when they died."""
        for name, octets in self.flying:
            self.objects.put(name, octets)
        self.flying = []
        self.look()

    # -- the query --------------------------------------------------------------------------

    def read(self, most: int, look: bool) -> None:
        if look:
            self.rows.expire()
        end = self.rows.ends(self.position)
        if not self.rows.rows(self.position, end):
            return
        end = self.rows.cut(self.position, end, most, None)
        assert 0 < self.rows.rows(self.position, end) <= most
        slices = self.plan(self.position, end)
        self.batch = self.position, end, slices
        for each in slices:
            self.arrived.update(self.messages(str(each.source))[each.start : each.stop])
        self.position = end

    def plan(self, start: Positions, end: Positions) -> list[Slice]:
        return first_copies(*self.rows.identified(start, end))

    def release(self) -> None:
        self.rows.release(self.position)

    def begin_query_again(self) -> None:
        self.rows = LaneRows(self.objects, window=WINDOW)
        self.rows.expire()
        if self.batch is not None and not all(
            self.rows.consumed.get(each, 0) >= row for each, row in self.batch[1].items()
        ):
            start, end, slices = self.batch
            assert self.plan(start, end) == slices

    # -- what came of it --------------------------------------------------------------------

    def finish(self) -> None:
        """Receive and read all that is left."""
        while self.receivers:
            self.die(0, "now")
        self.land()
        self.read_all()
        self.begin("a")
        while self.queue:
            self.take(0, 20)
            self.publish(0)
            self.settle(0)
            self.read_all()

    def read_all(self) -> None:
        self.rows.expire()
        while self.rows.rows(self.position, self.rows.ends(self.position)):
            self.read(20, look=True)

    @property
    def twice(self) -> set[int]:
        return {message for message, times in self.arrived.items() if times > 1}

    @property
    def promised(self) -> set[int]:
        """Messages whose copies are so near to each other that they are known."""
        return {each for each, rows in self.apart.items() if rows + self.most_waiting < WINDOW}


@settings(max_examples=20, deadline=None)
@given(
    st.tuples(st.integers(0, 30), st.integers(0, 30)),
    st.tuples(st.integers(0, 20), st.integers(0, 20)),
    st.integers(1, 5),
)
@example(
    (30, 30), (10, 10), 0
)  # the messages that were not accepted are the last of a lane that gets no more
@example((30, 30), (20, 0), 0)  # or their copies are
def test_copies_are_known_however_unevenly_messages_come(
    waiting: tuple[int, int], coming: tuple[int, int], more: int
) -> None:
    """A receiver dies before it accepts its last messages, which go to another lane.

    Each batch has as many rows as come meanwhile.
    """
    lanes = Lanes()
    one, other = lanes.receivers[:2]
    lanes.give(one, waiting[0])
    lanes.give(other, waiting[1])
    lanes.give(one, 5, settled=False)
    lanes.receivers.remove(one)
    lanes.give_back(one)
    lanes.give(other, 0)
    lanes.begin(one.lane)
    successor = lanes.receivers[-1]
    lanes.give(successor, coming[0])
    for _ in range(40):
        lanes.give(successor, coming[0])
        lanes.give(other, coming[1])
        lanes.read(sum(coming) + more, look=True)
        lanes.release()
    lanes.finish()
    assert {*lanes.arrived} == {*range(lanes.sent)}
    assert not lanes.twice & lanes.promised


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_none_is_lost_and_none_within_the_window_comes_twice(seed: int) -> None:
    chance = random.Random(seed)
    lanes = Lanes()
    favour = chance.choice([0.0, 0.5, 0.8])  # of the receiver that is oldest

    def one() -> int:
        return 0 if chance.random() < favour else chance.randrange(8)

    steps = {
        lambda: lanes.send(chance.randint(1, 40)): 12,
        lambda: lanes.take(one(), chance.randint(1, 20)): 10,
        lambda: lanes.publish(one()): 10,
        lambda: lanes.settle(one()): 10,
        lambda: lanes.read(chance.randint(1, 30), look=chance.random() < 0.5): chance.choice([3, 6]),
        lanes.release: 3,
        lambda: lanes.begin(chance.choice(LANES)): 5,
        lambda: lanes.die(one(), chance.choice(["now", "written", "flying"])): chance.choice([0.2, 1]),
        lambda: lanes.be_taken_for_dead(one()): chance.choice([0, 0.2]),
        lambda: lanes.reconnect(one()): chance.choice([0, 0.5]),
        lanes.land: 2,
        lanes.begin_query_again: chance.choice([0, 0.2]),
    }
    for step in chance.choices([*steps], [*steps.values()], k=400):
        step()
    lanes.finish()
    assert {*lanes.arrived} == {*range(lanes.sent)}
    assert not lanes.twice & lanes.promised
