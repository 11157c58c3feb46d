"""Queues with a store: what is on disk when a message is accepted, and what is there after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.amqp10.server.test_failing_links import Arrived, In
from tests.container.helpers import bodies, fill, queue_of
from trio_amqp10 import Container, MemoryStore, Message, SqliteStore, StoreError, StoreFullError, StoreTable
from trio_amqp10.amqp10.server.message_terms import is_durable
from trio_amqp10.amqp10.server.native_message import received
from trio_amqp10.broker.nodes.content import Terms
from trio_amqp10.broker.nodes.message_store import MESSAGES
from trio_amqp10.broker.stores import group_commit as journal_module

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class HeldStore(MemoryStore):
    """Says that it has written when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[tuple[Any, Any]] = []
        self.holding = False

    def write(self, batch: Any, done: Any) -> None:
        if self.holding:
            self.held.append((batch, done))
        else:
            super().write(batch, done)

    async def write_one(self) -> None:
        """Write what was asked for, and hold what follows."""
        super().write(*self.held.pop(0))
        await wait_all_tasks_blocked()

    async def write_all(self) -> None:
        """Write what was asked for, and all that follows."""
        self.holding = False
        while self.held:
            super().write(*self.held.pop(0))
        await wait_all_tasks_blocked()


def durable(body: Any, **fields: Any) -> Message:
    return Message(body, durable=True, **fields)


def stored(store: MemoryStore) -> list[Any]:
    """The bodies that the store has, in the order of their queues."""
    rows: list[Any] = sorted(store.rows(MESSAGES), key=lambda row: (row[1], row[2]))
    return [Message.from_payload(row[4]).body for row in rows]


async def contents(container: Container, address: str = "q") -> list[Any]:
    """What a receiver gets, left where it is."""
    async with container.connect() as conn, conn.open_receiver(address, credit=0) as receiver:
        count = queue_of(container, address).available
        if count:
            receiver.grant(count)
        deliveries = [await receiver.receive() for _ in range(count)]
        for delivery in deliveries:
            delivery.release()
        return [delivery.message.body for delivery in deliveries]


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (Message("x", durable=True).to_payload(), True),
        (Message("x", durable=True, priority=9).to_payload(), True),
        (Message("x", durable=False, priority=9).to_payload(), False),
        (Message("x", priority=9).to_payload(), False),
        (Message("x").to_payload(), False),
        (b"\x00\x53\x70\x45\x00\x53\x77\x40", False),
        (b"\x00\x53\x70\xc0\x01\x00\x00\x53\x77\x40", False),
        (b"\x00\x53\x70\xc0\x03\x01\x56\x01\x00\x53\x77\x40", True),
        (b"\x00\x53\x70\xd0\x00\x00\x00\x05\x00\x00\x00\x01\x41\x00\x53\x77\x40", True),
        (b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x70\xc0\x02\x01\x41\x00\x53\x77\x40", True),
        (b"\x00\xa3\x10amqp:header:list\xc0\x02\x01\x41\x00\x53\x77\x40", True),
        (b"\x00\x53\x73\xc1", False),
        (b"\x00\x53\x70\xc0\x02\x01\x99", True),
        (b"\x00\x53\x70", True),
        (b"no sections", True),
        (b"", False),
    ],
)
def test_durability_is_read_from_the_header_however_it_is_encoded(payload: bytes, expected: bool) -> None:
    assert is_durable(payload) is expected


@pytest.mark.parametrize("version", [1, 255])
def test_durability_and_terms_of_a_later_version_of_the_format_are_in_its_header(version: int) -> None:
    message = Message("x", durable=True, priority=7, ttl=5000)
    content = received(version, message.to_payload())
    assert (content.number, content.durable, content.terms) == (version, True, Terms(7, 5000))
    assert not received(version, Message("x", priority=7).to_payload()).durable
    for changed in (
        content.aged(5),
        received(version, Message("x", first_acquirer=True).to_payload()).acquired(failed=True),
        content.dead("q", "expired", 5.0),
        content.published_to("", "q"),
    ):
        assert changed is not content
        assert changed.number == version


def test_message_of_another_format_counts_as_durable_because_it_cannot_be_read() -> None:
    assert received(0x100, Message("x").to_payload()).durable


async def test_queue_has_durable_messages_again_when_the_container_starts_again() -> None:
    store = MemoryStore()
    first = Container(store=store)
    async with first.connect() as conn:
        await fill(conn, "q", durable("a"), durable("b"), durable("urgent", priority=9))
        octets = queue_of(first).octets
        await fill(conn, "q", "gone")
        await fill(conn, "other", durable("c"))
    second = Container(store=store)
    async with second.connect() as conn:
        assert list(second.nodes) == ["q", "other"]
        assert queue_of(second).octets == octets
        async with conn.open_receiver("q") as receiver:
            assert await bodies(receiver, 3) == ["urgent", "a", "b"]
        await fill(conn, "other", durable("d"))
    third = Container(store=store)
    assert await contents(third, "other") == ["c", "d"]
    assert list(third.nodes) == ["other"]


async def test_priorities_above_nine_keep_their_order_when_the_container_starts_again(tmp_path: Path) -> None:
    for sent, expected in ([(3, 200), ["200", "3"]], [(10, 9, 255), ["255", "200", "10", "9", "3"]]):
        with SqliteStore(tmp_path / "store") as store:
            container = Container(store=store)
            container.add_queue("q", max_priority=255)
            async with container.connect() as conn:
                await fill(conn, "q", *[durable(f"{each}", priority=each) for each in sent])
                async with conn.open_receiver("q", credit=0) as receiver:
                    receiver.grant(10)
                    assert await bodies(receiver, len(expected), accept=False) == expected


async def test_queue_keeps_all_its_messages_when_it_is_durable_itself() -> None:
    store = MemoryStore()
    first = Container(store=store)
    first.add_queue("q", durable=True)
    async with first.connect() as conn:
        await fill(conn, "q", "a", "b")
    second = Container(store=store)
    second.add_queue("q", durable=True)
    assert await contents(second) == ["a", "b"]


def test_queue_is_not_durable_when_there_is_no_store() -> None:
    with pytest.raises(amqp.LocalProtocolError, match="needs a container with a store"):
        Container().add_queue("q", durable=True)


async def test_queue_accepts_and_gives_a_durable_message_only_when_it_is_stored() -> None:
    store = HeldStore()
    container = Container(store=store)
    async with (
        container.connect() as conn,
        conn.open_sender("q") as sender,
        conn.open_receiver("q") as receiver,
    ):
        store.holding = True
        delivery = await sender.transmit(durable("a"))
        behind = await sender.transmit("not durable, and not before it")
        await wait_all_tasks_blocked()
        assert delivery.state is None
        assert behind.state is None
        assert len(queue_of(container)) == 2
        assert queue_of(container).available == 0
        await store.write_all()
        assert isinstance(await delivery.outcome(), amqp.Accepted)
        assert isinstance(await behind.outcome(), amqp.Accepted)
        assert await bodies(receiver, 2) == ["a", "not durable, and not before it"]
        assert isinstance(await sender.send("alone"), amqp.Accepted)


@pytest.mark.parametrize(
    ("failure", "condition"),
    [
        (StoreFullError("full"), "amqp:resource-limit-exceeded"),
        (StoreError("broken"), "amqp:internal-error"),
    ],
)
@pytest.mark.logs_errors
async def test_queue_rejects_a_durable_message_when_it_cannot_be_stored(
    failure: StoreError, condition: str
) -> None:
    store = MemoryStore()
    container = Container(store=store)
    async with container.connect() as conn, conn.open_sender("q") as sender:
        store.failure = failure
        with pytest.raises(amqp.DeliveryRejectedError, match=condition):
            await sender.send(durable("a"))
        await sender.send("not durable")
        refused, passes = await sender.transmit(durable("b")), await sender.transmit("behind it")
        assert isinstance(await refused.outcome(), amqp.Rejected)
        assert isinstance(await passes.outcome(), amqp.Accepted)
        store.failure = None
        await sender.send(durable("c"))
        assert queue_of(container).figures["refused"] == 2
        assert await contents(container) == ["not durable", "behind it", "c"]
        assert stored(store) == ["c"]


@pytest.mark.logs_errors
async def test_link_that_fails_at_the_answer_for_what_is_stored_is_ended() -> None:
    class Failing(Arrived):
        def record_acceptance(self) -> None: ...

        def accept(self) -> None:
            raise RuntimeError("broken")

    store = HeldStore()
    container = Container(store=store)
    queue, inlet = container.add_queue("q", durable=True), In()
    inlet.arrivals.append(Failing(durable("a")))
    async with container.connect():
        store.holding = True
        queue.add_inlet(inlet)  # type: ignore[arg-type]
        queue.on_arrivals(inlet)  # type: ignore[arg-type]
        await wait_all_tasks_blocked()
        assert not inlet.closed
        await store.write_all()
    assert inlet.closed
    assert stored(store) == ["a"]


@pytest.mark.logs_errors
async def test_queue_detaches_a_link_that_sends_settled_when_it_cannot_store() -> None:
    store = MemoryStore()
    store.failure = StoreFullError("full")
    container = Container(store=store)
    async with container.connect() as conn, conn.open_sender("q", guarantee="at-most-once") as sender:
        await sender.send(durable("a"))
        await wait_all_tasks_blocked()
        with pytest.raises(amqp.LinkDetachedError, match="the store is full"):
            await sender.send(durable("b"))


@pytest.mark.parametrize(
    ("settle", "left"),
    [
        (lambda delivery: delivery.accept(), []),
        (lambda delivery: delivery.reject(), []),
        (lambda delivery: delivery.release(), [(0, {})]),
        (lambda delivery: delivery.modify(delivery_failed=True), [(1, {})]),
        (lambda delivery: delivery.modify(annotations={"x-why": "so"}), [(0, {"x-why": "so"})]),
    ],
    ids=["accepted", "rejected", "released", "failed", "annotated"],
)
async def test_store_follows_what_becomes_of_a_message(
    settle: Callable[[amqp.Delivery], None], left: list[Any]
) -> None:
    store = MemoryStore()
    container = Container(store=store)
    async with container.connect() as conn:
        await fill(conn, "q", durable("a", message_id="1"))
        async with conn.open_receiver("q", credit=0) as receiver:
            receiver.grant(1)
            settle(await receiver.receive())
    found = [Message.from_payload(row[4]) for row in store.rows(MESSAGES)]
    assert [(message.delivery_count, message.annotations) for message in found] == left
    again = Container(store=store)
    assert await contents(again) == ["a"] * len(left)


async def test_store_counts_an_attempt_when_the_receiver_is_gone() -> None:
    store = MemoryStore()
    container = Container(store=store)
    async with container.connect() as conn:
        await fill(conn, "q", durable("a"))
        receiver = await conn.open_receiver("q").__aenter__()
        await receiver.receive()
    (row,) = store.rows(MESSAGES)
    assert Message.from_payload(row[4]).delivery_count == 1


async def test_bare_message_is_the_octets_that_came_when_it_was_stored(tmp_path: Path) -> None:
    # Encoded as nobody here would: long forms, a map with an order, an unknown body of its own.
    bare = (
        b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x73\xd0\x00\x00\x00\x0a\x00\x00\x00\x02\x40\xa0\x03abc"
        b"\x00\x53\x77\xd1\x00\x00\x00\x04\x00\x00\x00\x00"
    )
    header = b"\x00\x53\x70\xd0\x00\x00\x00\x05\x00\x00\x00\x01\x41"
    with SqliteStore(tmp_path / "store") as store:
        container = Container(store=store)
        await container.send("q", Message.from_payload(header + bare))
        async with container.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
            receiver.grant(1)
            (await receiver.receive()).modify(delivery_failed=True)
    with SqliteStore(tmp_path / "store") as store:
        container = Container(store=store)
        async with container.connect() as conn, conn.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            assert delivery.payload.endswith(bare)
            assert delivery.message.durable
            assert delivery.message.delivery_count == 1


async def test_first_acquirer_is_not_promised_again_when_the_container_starts_again() -> None:
    store = MemoryStore()
    await Container(store=store).send("q", durable("a", first_acquirer=True))
    async with Container(store=store).connect() as conn, conn.open_receiver("q") as receiver:
        assert (await receiver.receive()).message.first_acquirer is False


async def test_message_goes_on_to_expire_when_the_container_starts_again(autojump_clock: Any) -> None:
    store = MemoryStore()
    day = 1_700_000_000.0
    start = trio.current_time()

    def wall() -> float:
        return day + trio.current_time() - start

    first = Container(store=store, wall_clock=wall)
    await first.send("q", durable("short", ttl=2_000))
    await first.send("q", durable("long", ttl=60_000))
    await first.send("q", durable("dated", absolute_expiry_time=int((day + 12) * 1000)))
    await trio.sleep(4)
    day += 1  # nobody was there for a second
    second = Container(store=store, wall_clock=wall)
    async with second.connect() as conn, conn.open_receiver("q", credit=0) as receiver:
        receiver.grant(10)
        long, dated = await receiver.receive(), await receiver.receive()
        assert (long.message.body, long.message.ttl) == ("long", 55_000)
        assert dated.message.body == "dated"
        long.release()
        await trio.sleep(8)
        dated.release()
    assert await contents(second) == ["long"]
    assert stored(store) == ["long"]


async def test_queue_is_not_there_again_when_all_its_messages_have_expired(autojump_clock: Any) -> None:
    store = MemoryStore()
    start = trio.current_time()

    def wall() -> float:
        return 1_700_000_000.0 + trio.current_time() - start

    first = Container(store=store, wall_clock=wall)
    await first.send("q", durable("a", ttl=1000))
    await first.send("q", durable("b", ttl=1000))
    await trio.sleep(2)
    second = Container(store=store, wall_clock=wall)
    async with second.connect():
        assert not second.nodes
    assert stored(store) == []


async def test_strict_container_leaves_messages_in_the_store_when_their_queue_is_not_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    await Container(store=store).send("q", durable("a"))
    strict = Container(store=store, strict=True)
    async with strict.connect() as conn:
        with pytest.raises(amqp.LinkRefusedError, match="not-found"):
            await conn.open_receiver("q").__aenter__()
        assert "'q'" in caplog.text
        strict.add_queue("q")
        assert await contents(strict) == ["a"]


async def test_store_forgets_the_messages_when_their_queue_is_removed() -> None:
    store = HeldStore()
    container = Container(store=store)
    await container.send("q", durable("a"))
    store.holding = True
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await sender.transmit(durable("on its way"))
        await wait_all_tasks_blocked()
        queue = queue_of(container)
        container.remove_node("q")
        await store.write_all()
        assert (len(queue), queue.octets, queue.leased) == (0, 0, 0)
        with pytest.raises(amqp.LinkDetachedError, match="resource-deleted"):
            await sender.send("b")
    assert stored(store) == []
    assert list(Container(store=store).nodes) == []


async def test_temporary_queue_is_not_stored() -> None:
    store = MemoryStore()
    container = Container(store=store)
    async with container.connect() as conn, conn.open_sender(None) as sender:
        await sender.send(durable("a", to="q"))
    target = amqp.Target(dynamic=True)
    async with container.connect() as conn, conn.open_sender(None, target=target) as sender:
        await sender.send(durable("b"))
        assert stored(store) == ["a"]


async def test_queue_takes_no_more_when_the_store_does_not_keep_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "_MOST_ROWS", 5)
    store = HeldStore()
    container = Container(store=store)
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await sender.send(durable(0))
        store.holding = True
        deliveries = [await sender.transmit(durable(number)) for number in range(1, 31)]
        await wait_all_tasks_blocked()
        assert len(queue_of(container)) < 20
        await store.write_all()
        for delivery in deliveries:
            assert isinstance(await delivery.outcome(), amqp.Accepted)
    assert stored(store) == list(range(31))


async def test_full_queue_takes_the_next_when_a_stored_message_is_gone() -> None:
    store = MemoryStore()
    container = Container(store=store)
    container.add_queue("q", max_length=1)
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await sender.send(durable("a"))
        waiting = await sender.transmit(durable("b"))
        await wait_all_tasks_blocked()
        assert waiting.state is None
        async with conn.open_receiver("q") as receiver:
            assert await bodies(receiver, 2) == ["a", "b"]
    assert stored(store) == []


async def test_dead_letter_is_stored_before_its_message_is_gone() -> None:
    store = MemoryStore()
    container = Container(store=store)
    container.add_queue("q", dead_letter="dead", delivery_limit=1)
    async with container.connect() as conn:
        await fill(conn, "q", durable("a"), durable("b"))
        async with conn.open_receiver("q") as receiver:
            (await receiver.receive()).reject()
            (await receiver.receive()).modify(delivery_failed=True)
    rows: list[Any] = store.rows(MESSAGES)
    assert {row[1] for row in rows} == {"dead"}
    assert stored(store) == ["a", "b"]
    assert await contents(Container(store=store), "dead") == ["a", "b"]


async def test_dead_letter_is_stored_and_its_message_gone_in_one_step() -> None:
    store = HeldStore()
    container = Container(store=store)
    container.add_queue("q", dead_letter="dead")
    async with container.connect() as conn:
        await fill(conn, "q", durable("a"))
        async with conn.open_receiver("q") as receiver:
            delivery = await receiver.receive()
            store.holding = True
            delivery.reject()
            await wait_all_tasks_blocked()
            MemoryStore.write(store, *store.held.pop(0))
            rows: list[Any] = list(store.rows(MESSAGES))
            assert [row[1] for row in rows] == ["dead"]
            await store.write_all()


@pytest.mark.logs_errors
async def test_dead_letter_stays_where_it_was_when_it_cannot_be_stored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    container = Container(store=store)
    container.add_queue("q", dead_letter="dead")
    async with container.connect() as conn:
        await fill(conn, "q", durable("a"))
        store.failure = StoreFullError("full")
        async with conn.open_receiver("q") as receiver:
            (await receiver.receive()).reject()
            await wait_all_tasks_blocked()
        assert "the message stays in its queue" in caplog.text
        store.failure = None
        await fill(conn, "other", durable("b"))
    rows: list[Any] = store.rows(MESSAGES)
    assert sorted(row[1] for row in rows) == ["other", "q"]


async def test_failures_are_counted_on_when_the_container_starts_again() -> None:
    store = MemoryStore()
    for _ in range(2):
        container = Container(store=store)
        container.add_queue("q", delivery_limit=2, durable=True)
        async with container.connect() as conn:
            if not store.rows(MESSAGES):
                await fill(conn, "q", "a")
            async with conn.open_receiver("q", credit=0) as receiver:
                receiver.grant(1)
                (await receiver.receive()).modify(delivery_failed=True)
    assert store.rows(MESSAGES) == []


async def test_groups_go_on_when_the_container_starts_again() -> None:
    store = MemoryStore()
    first = Container(store=store)
    first.add_queue("q", grouped=True)
    for body in ("a1", "a2"):
        await first.send("q", durable(body, group_id="a"))
    await first.send("q", durable("b1", group_id="b"))
    second = Container(store=store)
    second.add_queue("q", grouped=True)
    async with (
        second.connect() as conn,
        conn.open_receiver("q", credit=0) as one,
        conn.open_receiver("q", credit=0) as other,
    ):
        one.grant(1)
        held = await one.receive()
        other.grant(2)
        assert (await other.receive()).message.body == "b1"
        await wait_all_tasks_blocked()
        assert held.message.body == "a1"
        assert queue_of(second).leased == 2


async def test_message_that_had_expired_when_it_came_dies_on_disk_too() -> None:
    store = MemoryStore()
    container = Container(store=store)
    container.add_queue("q", dead_letter="dead")
    await container.send("q", durable("late", absolute_expiry_time=1))
    await wait_all_tasks_blocked()
    rows: list[Any] = store.rows(MESSAGES)
    assert [row[1] for row in rows] == ["dead"]


async def test_queue_counts_what_is_on_its_way_as_held_and_not_as_leased() -> None:
    store = HeldStore()
    container = Container(store=store)
    await container.send("q", durable("a"))
    store.holding = True
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await sender.transmit(durable("b"))
        await sender.transmit(durable("c"))
        await wait_all_tasks_blocked()
        queue = queue_of(container)
        assert (len(queue), queue.available, queue.leased) == (3, 1, 0)
        await store.write_all()
        assert (len(queue), queue.available, queue.leased) == (3, 3, 0)


async def test_finish_waits_for_the_store() -> None:
    store = HeldStore()
    container = Container(store=store)
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await sender.send("first")
        store.holding = True
        delivery = await sender.transmit(durable("a"))
        await wait_all_tasks_blocked()
        finished: list[bool] = []

        async def finish() -> None:
            finished.append(await container.finish())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(finish)
            await wait_all_tasks_blocked()
            assert not finished
            await store.write_all()
        assert finished == [True]
        assert isinstance(await delivery.outcome(), amqp.Accepted)


async def test_connection_that_ends_waits_for_what_it_left_and_not_for_what_others_go_on_to_store() -> None:
    store = HeldStore()
    container = Container(store=store)
    container.add_queue("q", durable=True)
    async with container.connect(), trio.open_nursery() as others:
        store.holding = True
        async with trio.open_nursery() as nursery:

            async def come_and_go() -> None:
                async with container.connect():
                    others.start_soon(container.send, "q", "of the one that goes")

            nursery.start_soon(come_and_go)
            await wait_all_tasks_blocked()
            for number in (1, 2):
                assert nursery.child_tasks
                others.start_soon(container.send, "q", f"of another, {number}")
                await wait_all_tasks_blocked()
                await store.write_one()
            assert not nursery.child_tasks
        assert store.held
        await store.write_all()


async def test_last_connection_that_ends_waits_for_all_that_follows_from_what_it_left() -> None:
    store = HeldStore()
    container = Container(store=store)
    journal = container.journal
    assert journal is not None
    things = StoreTable("things", ("id",))
    store.rows(things)

    def note(number: int) -> None:
        journal.note(things, number, (number,))
        if number < 4:
            journal.after(lambda _failure: note(number + 1))

    async with trio.open_nursery() as nursery:

        async def come_and_go() -> None:
            async with container.connect():
                store.holding = True
                note(1)

        nursery.start_soon(come_and_go)
        for _ in range(4):
            await wait_all_tasks_blocked()
            assert nursery.child_tasks
            await store.write_one()
        assert not nursery.child_tasks
    assert store.rows(things) == [(1,), (2,), (3,), (4,)]
