"""A commit that a peer confirms has done all of it; one that it refuses has done nothing, in every protocol and with any store.

AMQP 1.0, 4.4; AMQP 0-9-1 and 10.3, class tx; AMQP/Fast, 3.3.4.
"""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import trio_amqp10 as amqp
from tests.conftest import run_limited
from trio_amqp10.amqp10.server.native_message import content_of_message
from trio_amqp10.broker.nodes.message_store import MESSAGES
from trio_amqp10.broker.stores import StoreError
from trio_amqp10.container import Node, Queue, RefusedError, Topic
from trio_amqp10.net import read_turns

from .protocols import PROTOCOLS
from .transaction_scripts import Place, TransactionScript, Work

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
    from pathlib import Path

    from trio_amqp10.broker.exchanges.topology import Topology
    from trio_amqp10.broker.nodes.node import Arrival
    from trio_amqp10.broker.stores.base import Store
    from trio_amqp10.container import Inlet

    from .protocols import ProtocolUnderTest

NAMES = [name for name, entry in PROTOCOLS.items() if entry.transactions is not None]
SMALL = {"x-max-length": 1, "x-overflow": "reject-publish"}


@pytest.fixture(params=["no store", "memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store | None]:
    if request.param == "no store":
        yield None
    elif request.param == "memory":
        yield amqp.MemoryStore()
    else:
        with amqp.SqliteStore(tmp_path / "store") as made:
            yield made


@pytest.fixture(params=NAMES)
def protocol(request: pytest.FixtureRequest) -> ProtocolUnderTest:
    return PROTOCOLS[request.param]


@dataclass
class Room:
    """A container that serves one protocol.

    Attributes:
        container: with a queue ``source`` that has one message, a queue ``free`` that is empty and has no bound, and a topic
            ``news`` with a subscription that nobody reads, which takes one message.
        broker: its exchanges.
        script: the transactions of the protocol.
        port: where it is served.
        stop: ends the service, and every connection with it.
    """

    container: amqp.Container
    broker: Topology
    script: TransactionScript
    port: int
    stop: Callable[[], object]

    def queue(self, name: str) -> Queue:
        node = self.container.nodes[name]
        assert isinstance(node, Queue)
        return node

    def lengths(self, *names: str) -> list[int]:
        return [len(self.queue(name)) for name in names]

    def fill(self, name: str) -> None:
        """Put a message into a queue, as if it had always been there."""
        assert self.queue(name).gather(content_of_message(amqp.Message(b"before")), None)

    async def idle(self, *names: str) -> None:
        """Wait until nobody has a message of these queues."""
        while any(self.queue(name).leased for name in names):
            await trio.lowlevel.checkpoint()


@asynccontextmanager
async def served(protocol: ProtocolUnderTest, store: Store | None, **options: Any) -> AsyncGenerator[Room]:
    container = amqp.Container("hub", store=store, **options)
    container.add_queue("source", durable=store is not None)
    container.add_queue("free", durable=store is not None)
    container.add_queue("ping")
    container.add_topic("news", max_backlog=1, overflow="reject")
    broker = container.add_broker()
    await container.send("source", b"source")
    others = [] if protocol.name == "1.0" else [protocol.name]
    assert protocol.transactions is not None
    async with (
        container.connect(container_id="reader") as reader,
        reader.open_receiver("news", credit=0),
        trio.open_nursery() as nursery,
    ):
        service = trio.CancelScope()

        async def serve(task_status: trio.TaskStatus[Any]) -> None:
            with service:
                await container.serve("amqp://127.0.0.1:0", dialects=others, task_status=task_status)

        (listener,) = await nursery.start(serve)
        with trio.fail_after(60):
            yield Room(container, broker, protocol.transactions, listener.port, service.cancel)
        nursery.cancel_scope.cancel()


async def work_on(work: Work, *places: Place) -> None:
    """Acknowledge a message, and send one to ``free`` and to each place."""
    assert await work.take("source") == b"source"
    await work.send(Place("free"), b"free")
    for place in places:
        await work.send(place, b"place")


# -- what stands against a commit ----------------------------------------------------------------


def full_queue(room: Room, *, durable: bool = False) -> list[Place]:
    room.broker.declare_queue("small", SMALL, durable=durable)
    room.fill("small")
    return [Place("small")]


def full_queue_of_the_program(room: Room) -> list[Place]:
    room.container.add_queue("small", max_length=1, overflow="reject")
    room.fill("small")
    return [Place("small")]


def too_many_together(room: Room) -> list[Place]:
    room.broker.declare_queue("small", SMALL)
    return [Place("small"), Place("small")]


def too_many_by_two_ways(room: Room) -> list[Place]:
    room.broker.declare_queue("small", SMALL)
    room.broker.bind("amq.fanout", "queue", "small")
    return [Place("small"), Place("amq.fanout", "exchange")]


def one_full_queue_of_several(room: Room) -> list[Place]:
    full_queue(room)
    room.broker.declare_queue("other")
    for name in ("other", "small"):
        room.broker.bind("amq.fanout", "queue", name)
    return [Place("amq.fanout", "exchange")]


def full_queue_behind_an_alternate_exchange(room: Room) -> list[Place]:
    full_queue(room)
    room.broker.declare_exchange("first", "direct", arguments={"alternate-exchange": "amq.fanout"})
    room.broker.bind("amq.fanout", "queue", "small")
    return [Place("first", "exchange")]


def full_queue_that_sends_dead_letters(room: Room) -> list[Place]:
    room.broker.declare_queue("dead")
    room.broker.bind("amq.fanout", "queue", "dead")
    rules = {**SMALL, "x-overflow": "reject-publish-dlx", "x-dead-letter-exchange": "amq.fanout"}
    room.broker.declare_queue("small", rules)
    room.fill("small")
    return [Place("small")]


def full_topic(room: Room) -> list[Place]:
    topic = room.container.nodes["news"]
    assert isinstance(topic, Topic)
    (subscription,) = topic.subscriptions.values()
    subscription.put(content_of_message(amqp.Message(b"before")), None)
    return [Place("news", "topic")]


class Picky(Node):
    """A node of a program, which says beforehand what it does not take."""

    accepts_senders = True
    got: list[bytes]

    def holders(self, inlet: Inlet, arrival: Arrival) -> Iterable[Node]:
        if bytes(arrival.message.body) == b"place":
            raise RefusedError("app:picky", "not this")
        return super().holders(inlet, arrival)

    def on_arrivals(self, inlet: Inlet) -> None:
        while (arrival := inlet.take()) is not None:
            arrival.reject("app:picky", "not this")


class Narrow(Picky):
    """A node of a program, which has room for no message."""

    def holders(self, inlet: Inlet, arrival: Arrival) -> Iterable[Node]:
        return (self,)

    def check_room(self, messages: int, octets: int) -> None:
        assert (messages, octets > 0) == (1, True)
        raise RefusedError("amqp:resource-limit-exceeded", "no room")


class Storing(Picky):
    """A node of a program, which says nothing beforehand, and takes part in the commit."""

    stores_messages = True

    def holders(self, inlet: Inlet, arrival: Arrival) -> Iterable[Node]:
        return (self,)


def picky_node(room: Room) -> list[Place]:
    room.container.add_node(Picky("mine"))
    return [Place("mine", "node")]


def narrow_node(room: Room) -> list[Place]:
    room.container.add_node(Narrow("mine"))
    return [Place("mine", "node")]


OBSTACLES = (
    full_queue,
    partial(full_queue, durable=True),
    full_queue_of_the_program,
    too_many_together,
    too_many_by_two_ways,
    one_full_queue_of_several,
    full_queue_behind_an_alternate_exchange,
    full_queue_that_sends_dead_letters,
    full_topic,
    picky_node,
    narrow_node,
)


def _name(obstacle: Any) -> str:
    return "full_durable_queue" if isinstance(obstacle, partial) else str(obstacle.__name__)


@pytest.mark.parametrize("obstacle", OBSTACLES, ids=_name)
async def test_commit_is_refused_and_does_nothing_if_one_message_would_be_refused(
    protocol: ProtocolUnderTest, store: Store | None, obstacle: Callable[[Room], list[Place]]
) -> None:
    async with served(protocol, store) as room:
        places = obstacle(room)
        named = [place.name for place in places if place.kind == "queue"]
        before = room.lengths(*named)
        async with room.script.begin(room.port) as work:
            await work_on(work, *places)
            assert await work.commit() is False
        await room.idle("source")
        assert room.lengths("source", "free", *named) == [1, 0, *before]
        assert all(not len(room.queue(name)) for name in ("dead", "other") if name in room.container.nodes)
        assert not [node for node in room.container.nodes.values() if node.inlets and node.address == "free"]


async def test_commit_does_all_of_it_if_nothing_stands_against_it(
    protocol: ProtocolUnderTest, store: Store | None
) -> None:
    async with served(protocol, store) as room:
        room.broker.declare_queue("small", SMALL)
        room.broker.declare_queue("other", {"x-max-length": 1, "x-overflow": "reject-publish"}, durable=False)
        room.broker.bind("amq.fanout", "queue", "small")
        room.broker.bind("amq.fanout", "queue", "other")
        taken: list[bytes] = []

        @room.container.consumer("handler")
        async def handle(delivery: amqp.Delivery) -> None:
            taken.append(bytes(delivery.message.body))

        async with room.script.begin(room.port) as work:
            places = [Place("amq.fanout", "exchange"), Place("news", "topic"), Place("handler", "node")]
            await work_on(work, *places)
            assert (room.lengths("source", "free", "small", "other"), taken) == ([1, 0, 0, 0], [])
            assert await work.commit() is True
            assert room.lengths("source", "free", "small", "other") == [0, 1, 1, 1]
        while not taken:
            await trio.lowlevel.checkpoint()
        assert room.container.nodes["news"].statistics()["messages"] == 1


@pytest.mark.parametrize("what", ["node", "queue", "exchange", "queue of an exchange"])
async def test_commit_tells_the_truth_if_a_node_is_deleted_before_it(
    protocol: ProtocolUnderTest, store: Store | None, what: str
) -> None:
    async with served(protocol, store) as room:
        room.broker.declare_queue("bound")
        room.broker.bind("amq.fanout", "queue", "bound")
        room.broker.declare_exchange("e", "fanout")
        room.broker.bind("e", "queue", "bound")
        room.container.add_node(Picky("mine"))
        place, address = {
            "node": (Place("mine", "node"), "mine"),
            "queue": (Place("bound"), "bound"),
            "exchange": (Place("e", "exchange"), "/exchanges/e"),
            "queue of an exchange": (Place("amq.fanout", "exchange"), "bound"),
        }[what]
        queue = room.queue("bound")
        async with room.script.begin(room.port) as work:
            await work.take("source")
            await work.send(Place("free"), b"free")
            await work.send(place, b"other")
            await until_posted(room, work)
            room.container.remove_node(address)
            done = await work.commit()
        await room.idle("source")
        # RabbitMQ knows the queues when the message is published: then the exchange is not needed any more.
        assert done is (what == "exchange" and room.script.routes_at_once)
        assert room.lengths("source", "free") == ([0, 1] if done else [1, 0])
        assert len(queue) == (1 if done else 0)


async def until_posted(room: Room, work: Work) -> None:
    """Wait until the peer has read all that was sent: what it is asked for next is answered."""
    await room.container.send("ping", b"ping")
    assert await work.take("ping") == b"ping"


async def test_message_that_reaches_no_queue_fails_the_commit_unless_the_protocol_drops_it(
    protocol: ProtocolUnderTest, store: Store | None
) -> None:
    async with served(protocol, store) as room:
        async with room.script.begin(room.port) as work:
            await work_on(work, Place("amq.direct", "exchange"))
            done = await work.commit()
        await room.idle("source")
        assert done is room.script.drops_unroutable
        assert room.lengths("source", "free") == ([0, 1] if done else [1, 0])


async def test_commit_fails_if_a_permission_is_withdrawn_before_it(
    protocol: ProtocolUnderTest, store: Store | None
) -> None:
    refused: set[str] = set()

    def authorise(access: amqp.Access) -> bool:
        return access.address not in refused

    async with served(protocol, store, authorise=authorise) as room:
        room.container.add_queue("other")
        async with room.script.begin(room.port) as work:
            await work.send(Place("other"), b"other")
            await work.take("source")
            await work.send(Place("free"), b"free")
            await until_posted(room, work)
            refused.add("other")
            room.container.review()
            assert await work.commit() is False
        await room.idle("source")
        assert room.lengths("source", "free", "other") == [1, 0, 0]


async def test_durable_message_to_a_container_that_refuses_them_fails_the_commit(
    protocol: ProtocolUnderTest,
) -> None:
    async with served(protocol, None, refuse_durable=True) as room:
        for durable in (True, False):
            async with room.script.begin(room.port) as work:
                await work.send(Place("free"), b"free", durable=durable)
                assert await work.commit() is not durable
        assert room.lengths("free") == [1]


@pytest.mark.parametrize("store", ["memory", "file"], indirect=True)
async def test_node_that_refuses_before_the_transaction_is_decided_has_it_rolled_back(
    protocol: ProtocolUnderTest, store: Store
) -> None:
    async with served(protocol, store) as room:
        room.container.add_node(Storing("mine"))
        async with room.script.begin(room.port) as work:
            await work_on(work, Place("mine", "node"))
            assert await work.commit() is False
        await room.idle("source")
        assert room.lengths("source", "free") == [1, 0]
        assert [row[1] for row in store.rows(MESSAGES)] == ["source"]


@pytest.mark.parametrize("by_exchange", [False, True])
async def test_queue_that_makes_its_senders_wait_holds_what_is_committed_sooner_or_later(
    protocol: ProtocolUnderTest, store: Store | None, by_exchange: bool
) -> None:
    """No answer waits for other traffic."""
    async with served(protocol, store) as room:
        small = room.container.add_queue("small", max_length=1, overflow="wait")
        room.broker.bind("amq.fanout", "queue", "small")
        place = Place("amq.fanout", "exchange") if by_exchange else Place("small")
        async with room.script.begin(room.port) as work:
            await work_on(work, place, place)
            assert await work.commit() is True
            assert room.lengths("source", "free") == [0, 1]
            taken = 0
            while taken < 2:
                taken += small.purge()
                await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("kind", ["added", "declared", "by exchange"])
async def test_queue_that_drops_its_oldest_for_a_commit_loses_none(
    protocol: ProtocolUnderTest, store: Store | None, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dead letters take several turns, and a store has them later."""
    monkeypatch.setattr(read_turns, "_LENGTH", 0.0)
    async with served(protocol, store) as room:
        dead = room.container.add_queue("dead", durable=store is not None)
        if kind == "added":
            room.container.add_queue("small", max_length=3, overflow="drop-oldest", dead_letter="dead")
        else:
            letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
            room.broker.declare_queue("small", {"x-max-length": 3, **letters}, durable=True)
            room.broker.bind("amq.fanout", "queue", "small")
        place = Place("amq.fanout", "exchange") if kind == "by exchange" else Place("small")
        async with room.script.begin(room.port) as work:
            for number in range(10):
                await work.send(place, b"%d" % number)
            assert await work.commit() is True
        while len(dead) < 7 or room.queue("small").held.bound_for_death:
            await trio.lowlevel.checkpoint()
        assert room.lengths("small", "dead") == [3, 7]


class Stopping(amqp.MemoryStore):
    """A store whose writes are held until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = False
        self.held: list[Callable[[], None]] = []

    def write(self, batch: Any, done: Any) -> None:
        if self.holds:
            self.held.append(partial(super().write, batch, done))
        else:
            super().write(batch, done)

    def go_on(self) -> None:
        self.holds = False
        held, self.held = self.held, []
        for write in held:
            write()


async def test_room_that_a_commit_was_promised_is_not_given_to_others_while_it_is_written(
    protocol: ProtocolUnderTest,
) -> None:
    store = Stopping()
    async with served(protocol, store) as room:
        small, _ = room.broker.declare_queue("small", SMALL, durable=False)
        answers: list[bool] = []
        async with room.script.begin(room.port) as one, room.script.begin(room.port) as other:
            await work_on(one, Place("small"))
            await other.send(Place("small"), b"other")
            store.holds = True

            async def commit() -> None:
                answers.append(await one.commit())

            async with trio.open_nursery() as nursery:
                nursery.start_soon(commit)
                while not store.held:
                    await trio.lowlevel.checkpoint()
                assert (len(small), small.available, answers) == (1, 0, [])
                assert await other.commit() is False
                assert answers == []
                store.go_on()
            assert answers == [True]
        assert (len(small), small.available) == (1, 1)
        assert room.lengths("source", "free") == [0, 1]


@pytest.mark.parametrize("fails", [False, pytest.param(True, marks=pytest.mark.logs_errors)])
async def test_commit_whose_answer_is_lost_is_in_doubt_and_does_all_or_nothing(
    protocol: ProtocolUnderTest, fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    store = Stopping()
    raised: list[Exception] = []
    async with served(protocol, store) as room:
        with suppress(amqp.AmqpError, trio.ClosedResourceError):
            async with room.script.begin(room.port) as work:
                await work_on(work)
                await until_posted(room, work)
                store.holds = True

                async def stop() -> None:
                    while not store.held:
                        await trio.lowlevel.checkpoint()
                    room.stop()

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(stop)
                    try:
                        await work.commit()
                    except Exception as lost:
                        raised.append(lost)
        assert [type(each) for each in raised] == [room.script.in_doubt]
        while len(room.container.connected) > 1:  # all but the reader are gone
            await trio.lowlevel.checkpoint()
        if fails:
            store.failure = StoreError("cut")
        store.go_on()
        await trio.testing.wait_all_tasks_blocked(0.01)
        store.failure = None
        assert room.lengths("source", "free") == ([1, 0] if fails else [0, 1])
        assert room.queue("source").available == len(room.queue("source"))
    caplog.clear()


@pytest.mark.logs_errors
async def test_commit_that_the_store_fails_does_nothing(
    protocol: ProtocolUnderTest, caplog: pytest.LogCaptureFixture
) -> None:
    store = amqp.MemoryStore()
    async with served(protocol, store) as room:
        small, _ = room.broker.declare_queue("small", SMALL, durable=False)
        async with room.script.begin(room.port) as work:
            await work_on(work, Place("small"), Place("news", "topic"))
            await until_posted(room, work)
            store.failure = StoreError("broken")
            with pytest.raises((amqp.AmqpError, AssertionError)):
                assert await work.commit()
            store.failure = None
        await room.idle("source")
        assert (len(small), room.lengths("source", "free")) == (0, [1, 0])
        assert room.container.nodes["news"].statistics()["messages"] == 0
    caplog.clear()


# -- any transaction, by a model -----------------------------------------------------------------

PLACES: Final = {
    "free": Place("free"),
    "one": Place("one"),  # a declared queue that survives, and takes one message
    "two": Place("two"),  # a queue that does not, and takes two
    "plain": Place("plain"),  # a queue of the program that takes two, and has durable ones on disk
    "both": Place("amq.fanout", "exchange"),  # leads to "one" and "two"
    "none": Place("amq.direct", "exchange"),  # leads to no queue
    "news": Place("news", "topic"),
    "handler": Place("handler", "node"),
}
STEPS = st.lists(st.sampled_from(["take", *PLACES]), min_size=1, max_size=4)
PLANS = st.lists(st.tuples(STEPS, st.booleans(), st.booleans()), min_size=1, max_size=4)
"""Transactions: what each does, whether its messages are durable, and whether the store fails when it is committed."""
LIMITS: Final = {"one": 1, "two": 2, "plain": 2, "news": 1}


class Model:
    """How many messages each node has."""

    def __init__(self, script: TransactionScript) -> None:
        self.held = dict.fromkeys(("free", "one", "two", "plain", "news", "handler"), 0)
        self.source = 3
        self._script = script

    def after(self, steps: list[str]) -> dict[str, int] | None:
        """What there is after a transaction; None if it must be refused."""
        held = dict(self.held)
        for step in steps:
            if step == "none" and not self._script.drops_unroutable:
                return None
            for name in {"both": ("one", "two"), "none": (), "take": ()}.get(step, (step,)):
                held[name] += 1
        if any(held[name] > limit and held[name] > self.held[name] for name, limit in LIMITS.items()):
            return None
        return held


def content_counts(room: Room, handled: list[bytes]) -> dict[str, int]:
    counts = {name: len(room.queue(name)) for name in ("free", "one", "two", "plain")}
    counts["news"] = room.container.nodes["news"].statistics()["messages"]
    return counts | {"handler": len(handled)}


@pytest.mark.parametrize(
    "stores", [False, pytest.param(True, marks=pytest.mark.logs_errors)], ids=["no store", "store"]
)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plans=PLANS)
def test_any_transactions_do_all_or_nothing_and_what_is_answered_is_what_happened(
    protocol: ProtocolUnderTest, stores: bool, plans: list[tuple[list[str], bool, bool]]
) -> None:
    run_limited(partial(run_plans, protocol, stores, plans))


async def run_plans(
    protocol: ProtocolUnderTest, stores: bool, plans: list[tuple[list[str], bool, bool]]
) -> None:
    store = amqp.MemoryStore() if stores else None
    handled: list[bytes] = []
    stored: Counter[str] = Counter()
    async with served(protocol, store) as room:
        model = Model(room.script)
        for _ in range(2):
            await room.container.send("source", b"source")
        room.broker.declare_queue("one", SMALL)
        room.broker.declare_queue("two", {**SMALL, "x-max-length": 2}, durable=False)
        room.container.add_queue("plain", max_length=2, overflow="reject")
        for name in ("one", "two"):
            room.broker.bind("amq.fanout", "queue", name)

        @room.container.consumer("handler")
        async def handle(delivery: amqp.Delivery) -> None:
            handled.append(bytes(delivery.message.body))

        for planned, durable, fails in plans:
            takes = min(planned.count("take"), model.source)
            steps = [step for step in planned if step != "take"]
            expected = model.after(steps)
            async with room.script.begin(room.port) as work:
                for _ in range(takes):
                    await work.take("source")
                for step in steps:
                    await work.send(PLACES[step], b"x" * 10, durable=durable)
                if store is not None and fails:
                    await until_posted(room, work)
                    store.failure = StoreError("cut")
                try:
                    done = await work.commit()
                except amqp.AmqpError:
                    assert fails  # 0-9-1 ends the connection for a fault of the server
                    done = False
                if store is not None:
                    store.failure = None
            await room.idle("source", "ping")
            if store is not None and fails:
                assert not done or expected is not None  # perhaps it had nothing to write
                room.queue("ping").purge()
            else:
                assert done is (expected is not None), (steps, durable, content_counts(room, handled))
            if done and expected is not None:
                model.held, model.source = expected, model.source - takes
                stored.update(stored_by(steps, durable=durable))
            while len(handled) < model.held["handler"]:
                await trio.lowlevel.checkpoint()
            assert content_counts(room, handled) == model.held
            assert len(room.queue("source")) == model.source
    if store is not None:
        rows = Counter(row[1] for row in store.rows(MESSAGES))
        assert rows == +(stored + Counter(source=model.source)), "as it is after a restart"


def stored_by(steps: list[str], *, durable: bool) -> list[str]:
    """The queues that have a message of such a transaction on disk."""
    kept = {"both": "one", "one": "one", "plain": "plain"}
    found = ["free" for step in steps if step == "free"]
    return found + [kept[step] for step in steps if durable and step in kept]
