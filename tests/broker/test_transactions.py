"""Transactions of a container without any protocol: posts by node, answers to leases, one commit, rollback."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.broker.nodes.message_store import MESSAGES
from trio_amqp10.broker.stores import StoreError, StoreFullError
from trio_amqp10.broker.stores.group_commit import Journal
from trio_amqp10.broker.transactions import LeaseAnswer, Transaction
from trio_amqp10.container import Lease, Node, RefusedError

from .nodes.test_pull import Out
from .transactions import Failing, HeldMessages, Posted, Room, length_of

if TYPE_CHECKING:
    from trio_amqp10.broker.stores.base import Store


class Storing(Failing):
    stores_messages = True  # type: ignore[assignment]


@pytest.fixture
def failing_store() -> amqp.MemoryStore:
    return amqp.MemoryStore()


async def test_transaction_posts_to_all_its_nodes_at_the_commit_and_not_before(store: Store | None) -> None:
    room = Room(store)
    one, two = room.queue("one"), room.queue("two")
    txn = room.begin()
    arrivals = [Posted(number, durable=number % 2 == 0) for number in range(4)]
    for arrival in arrivals:
        room.post(txn, one if arrival.message.body < 3 else two, arrival)
    assert length_of(room, "one", "two") == [0, 0]
    assert room.watermark.octets > 0
    assert len(one.inlets) == 1
    assert await room.commit(txn) is None
    assert (one.available, two.available) == (3, 1)
    assert [arrival.state for arrival in arrivals] == ["accepted"] * 4
    assert room.watermark.octets == 0
    assert one.inlets == {}


async def test_transaction_that_is_rolled_back_posts_nothing(store: Store | None) -> None:
    room = Room(store)
    txn, arrival, lease = room.begin(), Posted("a", durable=True), HeldMessages()
    room.post(txn, room.queue("q"), arrival)
    txn.add(LeaseAnswer(lease, lease.accepted, removes=True, undo=lease.released))
    txn.rollback()
    assert length_of(room, "q") == [0]
    assert (arrival.state, lease.said, room.watermark.octets, room.rolled_back) == (None, ["released"], 0, 1)
    assert room.queue("q").inlets == {}
    assert await room.commit(txn) is None  # of nothing
    assert length_of(room, "q") == [0]


async def test_transaction_answers_its_leases_at_the_commit_but_for_those_that_were_dropped(
    store: Store | None,
) -> None:
    room = Room(store)
    txn, kept, dropped = (
        room.begin(),
        HeldMessages(room.container.journal),
        HeldMessages(room.container.journal),
    )
    answers = [LeaseAnswer(each, each.accepted, removes=True, undo=each.released) for each in (kept, dropped)]
    for answer in answers:
        txn.add(answer)
        txn.add(answer)
    txn.drop(answers[1])
    assert kept.said == []
    assert await room.commit(txn) is None
    assert kept.said == (["accepted"] if store is None else ["deleted", "accepted"])
    assert dropped.said == []


async def test_transaction_deletes_only_what_is_gone_for_good() -> None:
    room = Room(amqp.MemoryStore())
    txn, lease = room.begin(), HeldMessages(room.container.journal)
    txn.add(LeaseAnswer(lease, lease.released, removes=False, undo=lease.accepted))
    assert await room.commit(txn) is None
    assert lease.said == ["released"]


class Channel:
    """A consumer of a protocol whose acknowledgements wait for the commit, and are undone by a rollback."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.unacked: list[Lease] = []
        self.txn = room.begin()

    def get(self, queue: Any) -> None:
        out = Out()
        assert queue.pull(out)
        self.unacked += out.leases

    def ack(self) -> None:
        lease = self.unacked.pop(0)
        undo = partial(self.unacked.append, lease)
        self.txn.add(LeaseAnswer(lease, lease.accepted, removes=True, undo=undo))

    async def commit(self) -> tuple[str, str] | None:
        txn, self.txn = self.txn, self.room.begin()
        return await self.room.commit(txn)

    def rollback(self) -> None:
        self.txn.rollback()
        self.txn = self.room.begin()


async def test_transaction_moves_messages_from_queue_to_queue_and_a_rollback_leaves_them_leased(
    store: Store | None,
) -> None:
    room = Room(store)
    source, target = room.queue("source"), room.queue("target")
    await room.container.send("source", amqp.Message("a", durable=True))
    channel = Channel(room)
    channel.get(source)
    channel.ack()
    room.post(channel.txn, target, Posted("b", durable=True))
    channel.rollback()
    assert (source.leased, source.available, len(target), len(channel.unacked)) == (1, 0, 0, 1)
    assert restarted(store) == ({} if store is None else {"source": ["a"]})
    channel.ack()
    room.post(channel.txn, target, Posted("b", durable=True))
    assert await channel.commit() is None
    assert (len(source), target.available, channel.unacked) == (0, 1, [])
    assert restarted(store) == ({} if store is None else {"target": ["b"]})


def restarted(store: Store | None) -> dict[str, list[Any]]:
    """What another container would find in the store."""
    found: dict[str, list[Any]] = {}
    for row in () if store is None else store.rows(MESSAGES):
        found.setdefault(str(row[1]), []).append(amqp.Message.from_payload(row[4]).body)  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    ("failure", "why"),
    [(StoreFullError("full"), "the store is full"), (StoreError("broken"), "the store failed")],
)
@pytest.mark.logs_errors
async def test_transaction_does_nothing_when_the_store_fails(
    failure: StoreError, why: str, failing_store: amqp.MemoryStore
) -> None:
    room = Room(failing_store)
    txn, lease = room.begin(), HeldMessages(room.container.journal)
    room.post(txn, room.queue("first"), Posted("not durable"))
    room.post(txn, room.queue("second"), Posted("durable", durable=True))
    txn.add(LeaseAnswer(lease, lease.accepted, removes=True, undo=lease.released))
    failing_store.failure = failure
    assert await room.commit(txn) == ("amqp:transaction:rollback", why)
    assert length_of(room, "first", "second") == [0, 0]
    assert lease.said == ["deleted", "undone", "released"]


async def test_transaction_gives_nothing_away_before_its_commit_is_on_disk(
    failing_store: amqp.MemoryStore,
) -> None:
    """The first node is given a message that needs no disk, and the store is idle."""
    room = Room(failing_store)
    txn = room.begin()
    room.post(txn, room.queue("first"), Posted("not durable"))
    room.post(txn, room.queue("second"), Posted("durable", durable=True))
    txn.commit(lambda: None)
    assert room.queue("first").available == 0
    await wait_all_tasks_blocked()
    assert room.queue("first").available == 1


@pytest.mark.logs_errors
async def test_transaction_tells_no_outcome_of_a_topic_before_its_commit_is_on_disk(
    failing_store: amqp.MemoryStore,
) -> None:
    room = Room(failing_store)
    topic = room.container.add_topic("news")
    async with (
        room.container.connect(container_id="reader") as conn,
        conn.open_receiver("news", name="kept", durable=1, expiry_policy="never"),
    ):
        assert topic.stores_messages
        assert await outcome_of_failed_commit(room, topic, failing_store) != "accepted"


@pytest.mark.logs_errors
async def test_transaction_tells_no_outcome_of_an_exchange_before_its_commit_is_on_disk(
    failing_store: amqp.MemoryStore,
) -> None:
    room = Room(failing_store)
    topology = room.container.add_broker()
    topology.declare_queue("one")
    topology.bind("amq.fanout", "queue", "one")
    exchange = room.container.nodes["/exchanges/amq.fanout"]
    assert await outcome_of_failed_commit(room, exchange, failing_store) != "accepted"


async def outcome_of_failed_commit(room: Room, node: Node, store: amqp.MemoryStore) -> object:
    """What becomes of a message that needs no disk, posted with one that does."""
    txn, posted = room.begin(), Posted("not durable")
    room.post(txn, node, posted)
    store.failure = StoreFullError("full")
    room.post(txn, room.queue("second"), Posted("durable", durable=True))
    txn.commit(lambda: None)
    assert posted.state is None
    await wait_all_tasks_blocked()
    store.failure = None
    return posted.state


async def test_transaction_fails_for_too_many_octets_and_for_a_node_that_goes() -> None:
    room = Room()
    txn = room.begin(max_octets=20)
    room.post(txn, room.queue("q"), Posted("x" * 20))
    assert txn.failure is not None
    assert "max_unsettled_octets=20" in txn.failure[1]
    assert room.watermark.octets == 0
    txn = room.begin()
    room.post(txn, room.queue("q"), Posted("x"))
    room.container.remove_node("q")
    assert txn.failure == ("amqp:transaction:rollback", "'q' is gone")
    assert await room.commit(txn) == txn.failure


async def test_transaction_fails_when_a_node_has_no_room_or_takes_nothing_any_more(
    store: Store | None,
) -> None:
    room = Room(store)
    queue = room.queue("q", max_length=1, overflow="reject")
    txn = room.begin()
    room.post(txn, queue, Posted("a"), Posted("b"))
    room.post(txn, room.queue("other"), Posted("c"))
    fate = await room.commit(txn)
    assert fate is not None
    assert "no room for 2 messages" in fate[1]
    assert length_of(room, "q", "other") == [0, 0]


async def test_transaction_is_rolled_back_when_a_node_refuses_a_message_that_is_posted(
    store: Store | None,
) -> None:
    room = Room(store)
    txn, lease = room.begin(), HeldMessages()
    txn.add(LeaseAnswer(lease, lease.accepted, removes=True, undo=lease.released))
    room.post(txn, room.queue("q"), Posted("a"))
    with pytest.raises(RefusedError, match="takes no messages"):
        room.post(txn, Node("n"), Posted("a"))
    assert lease.said == ["released"]
    why = "a message was refused, amqp:not-allowed: 'n' takes no messages"
    assert await room.commit(txn) == ("amqp:transaction:rollback", why)
    assert txn.cause == "amqp:not-allowed"
    assert length_of(room, "q") == [0]


async def test_what_is_added_to_a_transaction_that_has_failed_is_undone_at_its_commit() -> None:
    room = Room()
    txn, lease = room.begin(), HeldMessages()
    txn.fail("app:failed", "for a test")
    txn.add(LeaseAnswer(lease, lease.accepted, removes=True, undo=lease.released))
    room.post(txn, room.queue("q"), Posted("a"))
    assert await room.commit(txn) == ("app:failed", "for a test")
    assert (lease.said, room.watermark.octets, room.queue("q").inlets) == (["released"], 0, {})


@pytest.mark.logs_errors
async def test_transaction_is_rolled_back_when_a_node_fails_before_anything_was_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(Failing):
        def check_room(self, messages: int, octets: int) -> None:
            raise ZeroDivisionError

    room = Room()
    txn, lease = room.begin(), HeldMessages()
    room.post(txn, Broken(0), Posted("a"))
    txn.add(LeaseAnswer(lease, lease.accepted, removes=True, undo=lease.released))
    assert await room.commit(txn) == ("amqp:transaction:rollback", "a node failed")
    assert lease.said == ["released"]
    assert room.watermark.octets == 0
    assert "could not be committed" in caplog.text
    caplog.clear()


# -- nodes that raise when they are given their messages -------------------------------------------


@pytest.mark.logs_errors
@pytest.mark.parametrize("taken", [0, 1, 2])
@pytest.mark.parametrize("store", ["memory", "sqlite"], indirect=True)
async def test_storing_node_that_fails_has_the_transaction_rolled_back_and_nothing_is_written(
    store: Store, taken: int, caplog: pytest.LogCaptureFixture
) -> None:
    room = Room(store)
    before, after = room.queue("before"), room.queue("after")
    failing = Storing(1, after=taken)
    room.container.add_node(failing)
    lease = HeldMessages(room.container.journal)

    def fill(txn: Transaction) -> Transaction:
        for node in (before, failing, after):
            room.post(txn, node, Posted("durable", durable=True), Posted("other"))
        txn.add(LeaseAnswer(lease, lease.accepted, removes=True, undo=lease.released))
        return txn

    assert await room.commit(fill(room.begin())) == ("amqp:transaction:rollback", "a node failed")
    assert length_of(room, "before", "after") == [0, 0]
    assert lease.said == ["deleted", "undone", "released"]
    assert all(not node.inlets for node in (before, failing, after))
    assert room.watermark.octets == 0
    assert "could not be committed" in caplog.text
    caplog.clear()
    lease.said.clear()
    failing.got.clear()
    assert await room.commit(fill(room.begin())) is None
    assert (before.available, after.available, failing.got) == (2, 2, ["durable", "other"])
    assert lease.said == ["deleted", "accepted"]
    if isinstance(store, amqp.MemoryStore):
        assert len(store.rows(MESSAGES)) == 2


async def test_node_that_is_deleted_while_the_commit_is_written_leaves_its_messages_to_their_sender(
    caplog: pytest.LogCaptureFixture,
) -> None:
    room = Room(amqp.MemoryStore())
    node = Failing(0)
    room.container.add_node(node)
    txn, arrival = room.begin(), Posted("a")
    room.post(txn, node, arrival)
    room.post(txn, room.queue("q"), Posted("b", durable=True))
    told: list[Any] = []
    txn.commit(lambda: told.append(txn.failure))
    assert (txn.committing, told) == (True, [])
    room.container.remove_node("failing")
    await wait_all_tasks_blocked()
    assert told == [None]
    assert (arrival.state, node.got, room.queue("q").available) == ("released", [], 1)
    caplog.clear()


@pytest.mark.logs_errors
async def test_answer_that_fails_does_not_keep_the_others_from_being_given(
    caplog: pytest.LogCaptureFixture,
) -> None:
    room = Room()
    txn, lease = room.begin(), HeldMessages()

    def fail() -> None:
        raise ZeroDivisionError

    def refuse() -> None:
        raise RefusedError("app:late", "too late")

    for call in (fail, refuse, lease.accepted):
        txn.add(LeaseAnswer(lease, call, removes=True, undo=lease.released))
    assert await room.commit(txn) is None
    assert lease.said == ["accepted"]
    assert "ZeroDivisionError" in caplog.text
    caplog.clear()


# -- the journal ----------------------------------------------------------------------------------


async def test_journal_writes_nothing_of_a_transaction_that_is_given_up_but_what_was_dropped(
    failing_store: amqp.MemoryStore,
) -> None:
    table = amqp.StoreTable("things", ("id", "what"))
    journal = Journal(failing_store)
    assert list(journal.rows(table)) == []
    journal.note(table, 1, (1, "old"))
    journal.note(table, 2, (2, "old"))
    await journal.flushed()
    told: list[Any] = []

    def prepare() -> None:
        with journal.transaction():
            journal.note(table, 1, (1, "new"))
            journal.drop(table, 2)
            journal.after(told.append)
            raise ZeroDivisionError

    journal.note(table, 3, (3, "before"))
    with pytest.raises(ZeroDivisionError):
        prepare()
    assert not journal.committing
    (failure,) = told
    assert isinstance(failure, StoreError)
    await journal.flushed()
    assert list(failing_store.rows(table)) == [(1, "old"), (3, "before")]
    with journal.transaction():
        journal.after(told.append)
        assert len(told) == 1
    await journal.flushed()
    assert told == [failure, None]
