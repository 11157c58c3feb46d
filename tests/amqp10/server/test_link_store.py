"""Termini that survive the container (2.6.1, 2.6.5, 3.5.5, 3.5.6)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.wire import on_the_wire
from trio_amqp10.amqp10.engine.settlement import Settlement
from trio_amqp10.amqp10.peer.errors import LinkRefusedError
from trio_amqp10.amqp10.server import link_store
from trio_amqp10.amqp10.server.link_store import ENDS, TERMINI, UNSETTLED
from trio_amqp10.amqp10.spec.messaging import Modified, Released, Source, Target
from trio_amqp10.amqp10.spec.transport import Role, Transfer
from trio_amqp10.broker.nodes.message_store import MESSAGES
from trio_amqp10.broker.stores import StoreError, StoreFullError

from .kept_links import POLICY, Life, lasting

if TYPE_CHECKING:
    from tests.container.mortal import Disk
    from trio_amqp10.amqp10.peer.connection import Connection

DURABLE = amqp.TerminusDurability.UNSETTLED_STATE


async def holding(
    life: Life, store: amqp.TerminusStore, *, count: int = 1, **more: Any
) -> tuple[list[amqp.Delivery], Connection]:
    """A program that has got messages, and said nothing of them when the container was killed."""
    async with life.program() as conn:
        receiver = await conn.open_receiver("q", **lasting(store=store, credit=0, **more)).__aenter__()
        receiver.grant(count)
        deliveries = [await receiver.receive() for _ in range(count)]
        await life.end(conn)
    return deliveries, conn


# -- what is granted ----------------------------------------------------------------------------


async def test_container_grants_what_it_can_keep(disk: Disk) -> None:
    life = Life(disk)
    life.queue()
    life.container.add_topic("news")

    @life.container.producer("clock")
    async def tick(sender: amqp.Sender) -> None:
        await trio.sleep_forever()

    async with life.program() as conn:
        for durable in amqp.TerminusDurability:
            async with conn.open_sender("q", **lasting(durable=durable)) as sender:
                assert sender.remote.target.durable == durable
            async with conn.open_receiver("q", **lasting(durable=durable)) as receiver:
                assert receiver.remote.source.durable == durable
        async with conn.open_receiver("news", **lasting()) as receiver:
            assert receiver.remote.source.durable == DURABLE
        async with conn.open_receiver("clock", **lasting()) as receiver:
            assert receiver.remote.source.durable == 0  # what a handler sends is not in the store
        dynamic = Source(dynamic=True, durable=DURABLE, expiry_policy=POLICY.NEVER)
        async with conn.open_receiver(None, source=dynamic) as receiver:
            assert receiver.remote.source.durable == 0
        target = Target(dynamic=True, durable=DURABLE, expiry_policy=POLICY.NEVER)
        async with conn.open_sender(None, target=target) as sender:
            assert sender.remote.target.durable == 0
        await wait_all_tasks_blocked()
        assert not disk.rows(TERMINI)


async def test_container_without_a_store_keeps_nothing_durably() -> None:
    container = amqp.Container()
    async with container.connect() as conn, conn.open_sender("q", **lasting()) as sender:
        assert (sender.remote.target.durable, sender.remote.target.timeout) == (0, 60)


@pytest.mark.parametrize(
    ("options", "durable"),
    [
        ({"guarantee": "exactly-once"}, DURABLE),
        ({"guarantee": "exactly-once", "durable": False}, 0),
        ({"guarantee": "at-least-once"}, 0),
        ({"guarantee": "at-least-once", "name": "x", "store": amqp.MemoryTerminusStore()}, DURABLE),
        ({"guarantee": "at-least-once", "durable": 1}, 1),
    ],
)
async def test_link_that_comes_back_asks_for_its_state_to_survive(
    options: dict[str, Any], durable: int, disk: Disk
) -> None:
    life = Life(disk)
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(life.container.serve, "amqp://127.0.0.1:0")
        dialling = amqp.open_connection(listener.url, reconnect=True)
        async with dialling as conn, conn.open_sender("q", **options):
            [seen] = [link for each in life.container.conversations for link in each.connection.links]
            assert seen.remote.target.durable == durable
        nursery.cancel_scope.cancel()


async def test_one_user_cannot_have_all_that_is_kept(disk: Disk) -> None:
    life = Life(disk)
    life.container.termini = type(life.container.termini)(
        trio.current_time, lambda _when, _call: Any, limit_each=1
    )
    users = amqp.sasl.Server(users={"ada": "a"})
    ada = amqp.sasl.Plain("ada", "a")
    async with life.program() as conn, life.program("other", users=users, sasl=ada) as other:
        async with (
            conn.open_sender("q", **lasting(name="a")) as kept,
            conn.open_sender("q", **lasting(name="b")) as not_kept,
            other.open_sender("q", **lasting(name="c")) as another,
        ):
            assert [each.remote.target.timeout for each in (kept, not_kept, another)] == [60, 0, 60]
        async with conn.open_sender("q", **lasting(name="b")) as again:
            assert again.remote.target.timeout == 60


# -- a peer that sends --------------------------------------------------------------------------


async def test_container_remembers_what_a_handler_has_accepted(disk: Disk) -> None:
    handled: list[Any] = []
    store = amqp.MemoryTerminusStore()

    def alive() -> Life:
        life = Life(disk)

        @life.container.consumer("work")
        async def take(delivery: amqp.Delivery) -> None:
            handled.append(delivery.message.body)

        return life

    life = alive()
    async with life.program() as conn:
        sender = await conn.open_sender("work", **lasting(store=store)).__aenter__()
        delivery = await sender.transmit("one")
        while not handled:
            await trio.lowlevel.checkpoint()
        conn.pump.cancel()  # before it is told
        await life.end(conn)
    async with alive().program() as conn, conn.open_sender("work", **lasting(store=store)) as sender:
        assert await delivery.outcome() == amqp.Accepted()
        await sender.send("two")
    assert handled == ["one", "two"]
    assert not disk.rows(UNSETTLED)


async def test_container_keeps_nothing_of_what_it_refused(disk: Disk) -> None:
    life = Life(disk)
    life.queue(max_length=1, overflow="reject")
    async with life.program() as conn, conn.open_sender("q", **lasting()) as sender:
        await sender.send("one")
        with pytest.raises(amqp.DeliveryRejectedError):
            await sender.send("two")
        await wait_all_tasks_blocked()
        assert not disk.rows(UNSETTLED)


@pytest.mark.logs_errors
async def test_container_tells_of_a_store_that_is_full_where_a_message_should_be_kept(disk: Disk) -> None:
    life = Life(disk)
    life.queue()
    async with life.program() as conn, conn.open_sender("q", **lasting()) as sender:
        disk.failure = StoreFullError("full")
        with pytest.raises(amqp.DeliveryRejectedError, match="the store is full"):
            await sender.send("one")
        disk.failure = None
        await sender.send("two")
        await wait_all_tasks_blocked()
        assert not disk.rows(UNSETTLED)


@pytest.mark.logs_errors
async def test_sender_gets_no_credit_before_its_terminus_is_stored(disk: Disk) -> None:
    life = Life(disk)
    life.queue()
    async with life.program() as conn:
        disk.failure = StoreError("broken")
        with pytest.raises(amqp.LinkDetachedError, match="the store failed"):
            async with conn.open_sender("q", **lasting()) as sender:
                await sender.send("one")
        disk.failure = None
        async with conn.open_sender("q", **lasting()) as sender:
            await sender.send("one")


@pytest.mark.logs_errors
async def test_receiver_is_detached_when_its_terminus_cannot_be_stored(
    disk: Disk, autojump_clock: MockClock
) -> None:
    life = Life(disk)
    life.queue()
    async with life.program() as conn:
        disk.failure = StoreError("broken")
        with pytest.raises((LinkRefusedError, amqp.LinkDetachedError), match="the store failed"):
            async with conn.open_receiver("q", **lasting()) as receiver:
                with trio.fail_after(5):
                    await receiver.receive()
        disk.failure = None
        async with conn.open_receiver("q", **lasting()):
            await wait_all_tasks_blocked()
            assert len(list(disk.rows(TERMINI))) == 1


async def test_sender_that_never_settles_cannot_fill_the_store(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(link_store, "MOST", 3)
    life = Life(disk)
    queue = life.queue()
    async with life.program() as conn:
        unsettled: list[Any] = []
        with monkeypatch.context() as patch:
            patch.setattr(Settlement, "settle_outgoing", lambda _, delivery: unsettled.append(delivery))
            sender = await conn.open_sender("q", **lasting()).__aenter__()
            with trio.move_on_after(5) as waited:
                for body in range(10):
                    await sender.transmit(body)
            assert waited.cancelled_caught
            assert len(queue) == len(disk.rows(UNSETTLED)) == 3  # there is no credit for more
        for settled in range(1, 4):  # as it settles one, it may send one
            unsettled.pop(0).settle()
            await sender.send("more")
            assert len(queue) == 3 + settled
        for delivery in unsettled:
            delivery.settle()
        await sender.aclose()
    await wait_all_tasks_blocked()
    assert not disk.rows(UNSETTLED)


async def test_link_lives_however_many_messages_it_accepts(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_store, "MOST", 3)
    life = Life(disk)
    queue = life.queue()
    async with life.program() as conn, conn.open_sender("q", **lasting()) as sender:
        for number in range(10):  # 50 messages, ever 5 of them at once
            sent = [await sender.transmit(f"{number} {each}") for each in range(5)]
            for delivery in sent:
                assert isinstance(await delivery.outcome(), amqp.Accepted)
    await wait_all_tasks_blocked()
    assert len(queue) == 50
    assert not disk.rows(UNSETTLED)


async def test_link_that_was_not_durable_becomes_so_with_what_it_has_and_back(disk: Disk) -> None:
    life, store = Life(disk), amqp.MemoryTerminusStore()
    life.queue()
    await life.container.send("q", "one")
    async with life.program() as conn:
        sender = await conn.open_sender("q", **lasting(store=store, durable=False)).__aenter__()
        receiver = await conn.open_receiver("q", **lasting(store=store, durable=False, credit=0)).__aenter__()
        await receiver.receive()
        delivery = await sender.transmit("two")
        await wait_all_tasks_blocked()
        await receiver.detach()
        await sender.detach()
        assert not disk.rows(TERMINI)
        for level, rows in ((2, 1), (1, 0), (2, 1), (0, 0)):
            receiver = await conn.open_receiver(
                "q", **lasting(store=store, durable=level, credit=0)
            ).__aenter__()
            await wait_all_tasks_blocked()
            assert (len(disk.rows(TERMINI)), len(disk.rows(UNSETTLED))) == (level > 0, rows)
            await receiver.detach()
        sender = await conn.open_sender("q", **lasting(store=store)).__aenter__()
        assert await delivery.outcome() == amqp.Accepted()


# -- a peer that receives -----------------------------------------------------------------------


async def test_lease_is_nobody_elses_after_a_restart_until_its_consumer_comes_back(disk: Disk) -> None:
    life, store = Life(disk), amqp.MemoryTerminusStore()
    life.queue()
    for body in ("one", "two"):
        await life.container.send("q", body)
    [held], _ = await holding(life, store)
    life = Life(disk)
    queue = life.queue()
    async with life.program("other") as conn, conn.open_receiver("q") as other:
        delivery = await other.receive()
        assert delivery.message.body == "two"
        delivery.accept()
        assert (len(queue), queue.leased) == (2, 2)
    async with life.program() as conn, conn.open_receiver("q", **lasting(store=store)):
        held.accept()
        await held.wait_settled()
        assert len(queue) == 0
    await wait_all_tasks_blocked()
    assert not disk.rows(UNSETTLED)


async def test_lease_comes_back_to_its_queue_when_its_terminus_expires_after_a_restart(
    disk: Disk, autojump_clock: Any
) -> None:
    life, store = Life(disk), amqp.MemoryTerminusStore()
    life.queue()
    await life.container.send("q", "one")
    await holding(life, store)
    life = Life(disk)
    queue = life.queue()
    async with life.program("other") as conn, conn.open_receiver("q") as other:
        before = trio.current_time()
        delivery = await other.receive()
        assert 59 <= trio.current_time() - before <= 61
        assert delivery.message.delivery_count == 1
        delivery.accept()
    assert len(queue) == 0
    assert not disk.rows(TERMINI)


@pytest.mark.parametrize(
    ("default", "known", "attempts"),
    [
        (None, True, 1),
        (Released(), True, 0),
        (Released(), False, 1),
        (Modified(delivery_failed=True, undeliverable_here=True), True, 1),
    ],
)
async def test_default_outcome_counts_when_the_terminus_expires_after_a_restart(
    disk: Disk, default: Any, known: bool, attempts: int, autojump_clock: Any
) -> None:
    life = Life(disk)
    life.queue()
    await life.container.send("q", "one")
    asked = Source(
        address="q", durable=2, expiry_policy=POLICY.CONNECTION_CLOSE, timeout=60, default_outcome=default
    )
    async with on_the_wire(life.container, "program") as peer:
        await peer.attach("q", Role.RECEIVER, name="x", source=asked)
        await peer.grant(1)
        await peer.skip_to(Transfer)
        await life.end()
    if not known:  # a store of an earlier version
        disk._tables[ENDS].clear()  # pyright: ignore[reportPrivateUsage]
    life = Life(disk)
    queue = life.queue()
    async with life.program("other"):
        await trio.sleep(61)
        assert queue.available == 1
    async with on_the_wire(life.container, "program") as peer:
        await peer.attach("q", Role.RECEIVER, name="x")
        await peer.grant(1)
        await wait_all_tasks_blocked()
        assert queue.leased == 1  # the terminus that found it undeliverable is gone
    async with life.program("other") as conn, conn.open_receiver("q", credit=0) as other:
        delivery = await other.receive()
        assert delivery.message.delivery_count == attempts + 1


async def test_time_that_a_terminus_has_left_goes_on_after_a_restart(disk: Disk, autojump_clock: Any) -> None:
    life = Life(disk)
    life.queue()
    async with life.program() as conn:
        await conn.open_sender("q", **lasting()).__aenter__()
        conn.pump.cancel()
        await conn.pump.finished.wait()
    async with life.program("other"):
        await trio.sleep(40)
        await life.end()
        life = Life(disk)
        async with life.program("other"):
            await trio.sleep(15)
            assert len(life.container.termini) == 1
            await trio.sleep(10)
            assert len(life.container.termini) == 0
    await wait_all_tasks_blocked()
    assert not disk.rows(TERMINI)


async def test_link_that_never_expires_is_there_after_a_restart(disk: Disk, autojump_clock: Any) -> None:
    life, store = Life(disk), amqp.MemoryTerminusStore()
    life.queue()
    await life.container.send("q", "one")
    [held], _ = await holding(life, store, expiry_policy=POLICY.NEVER, expiry_timeout=0)
    life = Life(disk)
    queue = life.queue()
    async with life.program("other"):
        await trio.sleep(3000)
    async with life.program() as conn, conn.open_receiver("q", **lasting(store=store)):
        held.accept()
        await held.wait_settled()
    assert len(queue) == 0


async def test_consumer_that_forgot_its_link_gets_its_message_anew_after_a_restart(disk: Disk) -> None:
    life = Life(disk)
    life.queue()
    await life.container.send("q", "one")
    await holding(life, amqp.MemoryTerminusStore())
    life = Life(disk)
    life.queue()
    async with life.program() as conn, conn.open_receiver("q", **lasting()) as again:
        delivery = await again.receive()
        assert delivery.message.delivery_count == 1
        delivery.accept()
        await delivery.wait_settled()
    await wait_all_tasks_blocked()
    assert not disk.rows(UNSETTLED)


async def test_link_of_another_user_is_not_given_away_after_a_restart(disk: Disk) -> None:
    users = amqp.sasl.Server(users={"ada": "a", "bob": "b"})
    ada, bob = (amqp.sasl.Plain(name, name[0]) for name in ("ada", "bob"))
    life = Life(disk)
    life.queue()
    async with life.program(users=users, sasl=ada) as conn:
        await conn.open_sender("q", **lasting()).__aenter__()
        await life.end(conn)
    life = Life(disk)
    life.queue()
    async with (
        life.program(users=users, sasl=bob) as conn,
        conn.open_sender("q", **lasting()) as other,
        life.program(users=users, sasl=ada) as mine,
        mine.open_sender("q", **lasting()) as sender,
    ):
        assert len(life.container.termini) == 2
        await other.send("another's")
        await sender.send("mine still")


@pytest.mark.parametrize("user", ["ada", None])
async def test_terminus_of_an_older_store_is_found_by_whose_it_was(disk: Disk, user: str | None) -> None:
    """Its rows were named without the user, who stood beside the name."""
    users = amqp.sasl.Server(users={"ada": "a", "bob": "b"}, anonymous=True)
    ada = amqp.sasl.Plain("ada", "a")
    owner, other = (ada, amqp.sasl.Anonymous()) if user else (amqp.sasl.Anonymous(), ada)
    life, store = Life(disk), amqp.MemoryTerminusStore()
    life.queue()
    await life.container.send("q", "one")
    async with life.program(users=users, sasl=owner) as conn:
        receiver = await conn.open_receiver("q", **lasting(store=store)).__aenter__()
        held = await receiver.receive()
        await life.end(conn)
    make_older(disk)
    for _ in range(2):  # the first life writes them anew
        life = Life(disk)
        queue = life.queue()
        async with life.program(users=users, sasl=other) as conn:
            async with conn.open_receiver("q", **lasting()) as theirs:
                await wait_all_tasks_blocked()
                assert (theirs.buffered, queue.leased) == (0, 1)
            await life.end(conn)
    life = Life(disk)
    queue = life.queue()
    async with life.program(users=users, sasl=owner) as conn:
        async with conn.open_receiver("q", **lasting(store=store)):
            held.accept()
            await held.wait_settled()
        await life.end(conn)
    assert (len(queue), disk.rows(TERMINI), disk.rows(UNSETTLED)) == (0, [], [])


def make_older(disk: Disk) -> None:
    """Name the rows of links as they were named before users were part of the name."""
    names: dict[Any, str] = {}
    changes: dict[Any, dict[Any, Any]] = {TERMINI: {}, UNSETTLED: {}}
    for row in disk.rows(TERMINI):
        names[row[0]] = json.dumps([row[1], row[2], row[3]])
        changes[TERMINI] |= {row[0]: None, names[row[0]]: (names[row[0]], *row[1:])}
    for key, terminus, place, tag, record in disk.rows(UNSETTLED):
        name = names[terminus]
        older = f"{name} {cast('bytes', tag).hex()}"
        changes[UNSETTLED] |= {key: None, older: (older, name, place, tag, record)}
    assert names
    assert changes[UNSETTLED]
    disk.write(changes, lambda _failure: None)


@pytest.mark.parametrize("outcome", ["release", "modify", "reject"])
async def test_message_that_was_not_accepted_goes_on_as_its_consumer_says_after_a_restart(
    outcome: str, disk: Disk
) -> None:
    life, store = Life(disk), amqp.MemoryTerminusStore()
    life.queue()
    await life.container.send("q", "one")
    [held], _ = await holding(life, store)
    getattr(held, outcome)()
    life = Life(disk)
    queue = life.queue()
    async with life.program() as conn, conn.open_receiver("q", **lasting(store=store, credit=0)):
        await held.wait_settled()
    assert len(queue) == (outcome != "reject")
    assert queue.leased == 0
    assert not disk.rows(UNSETTLED)


async def test_message_expires_where_its_consumer_gives_it_back_too_late(
    disk: Disk, autojump_clock: Any
) -> None:
    life, store = Life(disk), amqp.MemoryTerminusStore()
    life.queue()
    await life.container.send("q", amqp.Message("one", ttl=5000))
    [held], _ = await holding(life, store)
    life = Life(disk)
    queue = life.queue()
    async with life.program("other"):
        await trio.sleep(10)
    assert len(queue) == 1
    held.release()
    async with life.program() as conn, conn.open_receiver("q", **lasting(store=store)):
        await held.wait_settled()
    assert len(queue) == 0
    assert queue.figures["expired"] == 1


async def test_group_stays_with_its_consumer_after_a_restart(disk: Disk) -> None:
    life, store = Life(disk), amqp.MemoryTerminusStore()
    life.queue(grouped=True)
    for body in ("one", "two", "three"):
        await life.container.send("q", amqp.Message(body, group_id="g" if body != "three" else None))
    [held, also], _ = await holding(life, store, count=2)
    assert [each.message.body for each in (held, also)] == ["one", "two"]
    also.release()
    life = Life(disk)
    queue = life.queue(grouped=True)
    async with life.program("other") as conn, conn.open_receiver("q") as other:
        assert (await other.receive()).message.body == "three"
        async with life.program() as mine, mine.open_receiver("q", **lasting(store=store, credit=0)):
            await also.wait_settled()
            assert queue.leased == 2  # nobody else gets "two" while "one" is out
            held.accept()
            await held.wait_settled()
            assert (await other.receive()).message.body == "two"


async def test_subscription_goes_on_with_what_its_receiver_has_after_a_restart(disk: Disk) -> None:
    life, store = Life(disk), amqp.MemoryTerminusStore()
    life.container.add_topic("news")
    async with life.program() as conn:
        receiver = await conn.open_receiver("news", **lasting(store=store)).__aenter__()
        for body in ("one", "two"):
            await life.container.send("news", amqp.Message(body, durable=True))
        held = await receiver.receive()
        await life.end(conn)
    held.accept()
    life = Life(disk)
    topic = life.container.add_topic("news")
    async with life.program() as conn, conn.open_receiver("news", **lasting(store=store)) as again:
        await held.wait_settled()
        delivery = await again.receive()
        assert delivery.message.body == "two"
        delivery.accept()
        await delivery.wait_settled()
        assert topic.statistics()["messages"] == 0


async def test_lease_on_a_message_whose_queue_is_not_there_is_forgotten(disk: Disk) -> None:
    life, store = Life(disk), amqp.MemoryTerminusStore()
    life.queue()
    await life.container.send("q", "one")
    [held], _ = await holding(life, store)
    held.accept()
    life = Life(disk)
    life.container.strict = True
    life.container.add_queue("other")
    async with life.program() as conn, conn.open_receiver("other", **lasting(store=store)):
        await held.wait_settled()  # as if it had been settled here
        await wait_all_tasks_blocked()
        assert not disk.rows(UNSETTLED)
        assert len(life.queue()) == 1
        assert life.container.nodes["q"].statistics()["available"] == 1


async def test_lease_on_a_message_that_is_gone_is_forgotten(disk: Disk) -> None:
    life, store = Life(disk), amqp.MemoryTerminusStore()
    life.queue()
    await life.container.send("q", "one")
    await holding(life, store)
    life = Life(disk)
    life.queue()
    async with life.program("other"):
        life.container.remove_node("q")
        await life.end()
    life = Life(disk)
    life.queue()
    async with life.program("other"):
        await wait_all_tasks_blocked()
        assert len(disk.rows(TERMINI)) == 1
        assert not disk.rows(UNSETTLED)


async def test_message_that_is_acquired_in_a_transaction_is_not_lent(disk: Disk) -> None:
    life = Life(disk)
    queue = life.queue()
    for body in ("one", "two"):
        await life.container.send("q", body)
    async with life.program() as conn, conn.open_receiver("q", **lasting(credit=0)) as receiver:
        receiver.grant(1)
        lent = await receiver.receive()
        async with conn.open_transaction() as txn:
            receiver.grant(1, transaction=txn)
            acquired = await receiver.receive()
            acquired.accept(transaction=txn)
            lent.accept(transaction=txn)
        assert len(queue) == 0
    await wait_all_tasks_blocked()
    assert not disk.rows(UNSETTLED)


async def test_message_of_a_subscription_that_ends_while_it_is_lent_is_gone_with_it(disk: Disk) -> None:
    life = Life(disk)
    life.container.add_topic("news")
    async with life.program() as conn:
        receiver = await conn.open_receiver("news", **lasting(credit=0)).__aenter__()
        await life.container.send("news", amqp.Message("one", durable=True, first_acquirer=True))
        held = disk.held = []
        receiver.grant(1)
        await wait_all_tasks_blocked()
        assert len(held) == 1  # its lease is written, and nobody was told yet
        await receiver.aclose()
        disk.held = None
        held[0]()
        await wait_all_tasks_blocked()
    assert not disk.rows(MESSAGES)
    assert not disk.rows(UNSETTLED)


# -- what is not sent after all -----------------------------------------------------------------


async def test_message_too_large_for_a_link_that_is_kept_stays_for_others_with_nothing_noted(
    disk: Disk,
) -> None:
    life = Life(disk)
    queue = life.queue()
    async with life.program() as conn, life.program("other") as other:
        async with conn.open_sender("q") as sender:
            for body in (bytes(1000), b"1", bytes(1000)):
                await sender.send(body)
        async with conn.open_receiver("q", **lasting(max_message_size=100)) as receiver:
            delivery = await receiver.receive()
            assert delivery.message.body == b"1"
            delivery.accept()
            with pytest.raises(amqp.LinkDetachedError) as detached:
                await receiver.receive()
            assert detached.value.condition == "amqp:link:message-size-exceeded"
        await wait_all_tasks_blocked()
        assert (queue.available, queue.leased) == (2, 0)
        assert not disk.rows(UNSETTLED)
        async with other.open_receiver("q") as reader:
            for _ in range(2):
                (await reader.receive()).accept()
            await wait_all_tasks_blocked()
        assert not len(queue)
        await life.end(conn, other)


async def test_delivery_that_a_link_held_before_is_not_sent_again_to_one_that_takes_less(disk: Disk) -> None:
    life = Life(disk)
    queue = life.queue()
    async with life.program("other") as other:
        async with other.open_sender("q") as sender:
            await sender.send(bytes(1000))
        async with life.program() as conn:
            receiver = await conn.open_receiver("q", **lasting(credit=1)).__aenter__()
            await receiver.receive()
            conn.pump.cancel()
        async with life.program() as conn:
            with pytest.raises(amqp.LinkDetachedError) as detached:
                async with conn.open_receiver("q", **lasting(max_message_size=100)) as receiver:
                    await receiver.receive()
            assert detached.value.condition == "amqp:link:message-size-exceeded"
        await wait_all_tasks_blocked()
        assert (queue.available, queue.leased) == (1, 0)
        await life.end(other)
