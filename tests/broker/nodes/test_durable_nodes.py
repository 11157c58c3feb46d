"""A node of one's own that stores its messages: in transactions, with leases that survive a restart."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.amqp10.server.kept_links import Life, lasting
from tests.container.mortal import Disk, Mortal
from trio_amqp10.amqp10.server.link_store import UNSETTLED
from trio_amqp10.broker.stores import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TABLE = amqp.StoreTable("parcels", ("id", "octets"))


class Parcel(amqp.Lease):
    """A stored message, and the lease on it."""

    def __init__(self, office: Office, number: int, message: amqp.Message) -> None:
        self.office, self.number, self.message = office, number, message
        self.times = 0
        self.deleted = False

    @property
    def record(self) -> str:
        return f"{self.office.address} {self.number}"

    @property
    def redelivered(self) -> bool:
        return self.times > 1

    def delete_in_commit(self) -> Callable[[], object]:
        self.office.journal.note(TABLE, self.number, None)
        self.deleted = True

        def undo() -> None:
            self.deleted = False

        return undo

    def accepted(self) -> None:
        if not self.deleted:
            self.office.journal.drop(TABLE, self.number)

    def rejected(
        self, condition: str | None, description: str | None, info: Mapping[Any, Any] | None = None
    ) -> None:
        self.accepted()

    def released(self) -> None:
        self.office.offer(self)

    def modified(
        self, *, failed: bool, undeliverable_here: bool, annotations: Mapping[Any, Any] | None
    ) -> None:
        self.released()

    def lost(self) -> None:
        self.released()


class Office(amqp.Node):
    """Stores every message, and gives each to one receiver."""

    accepts_senders = accepts_receivers = leases_messages = stores_messages = True  # type: ignore[assignment]

    def __init__(self, address: str = "office") -> None:
        super().__init__(address)
        self.parcels: deque[Parcel] = deque()
        self.last = 0

    @property
    def journal(self) -> amqp.Journal:
        assert self.container is not None
        assert self.container.journal is not None
        return self.container.journal

    def recover(self) -> None:
        assert self.container is not None
        for number, octets in self.journal.rows(TABLE):
            assert isinstance(number, int)
            assert isinstance(octets, bytes)
            self.last = number
            parcel = Parcel(self, number, amqp.Message.from_payload(octets))
            parcel.times = 1
            if self.container.resume_lease(parcel, parcel.message) is None:
                self.parcels.append(parcel)

    def on_arrivals(self, inlet: amqp.Inlet) -> None:
        while (arrival := inlet.take()) is not None:
            self.last += 1
            parcel = Parcel(self, self.last, arrival.message)
            octets = arrival.message.to_payload()
            self.journal.note(TABLE, self.last, (self.last, octets), len(octets))
            arrival.record_acceptance()

            def stored(
                failure: StoreError | None, arrival: amqp.Arrival = arrival, parcel: Parcel = parcel
            ) -> None:
                if failure is None:
                    arrival.accept()
                    self.offer(parcel)
                elif not arrival.keep():
                    arrival.reject("app:not-stored", str(failure))

            self.journal.after(stored)

    def offer(self, parcel: Parcel) -> None:
        self.parcels.append(parcel)
        for outlet in list(self.outlets):
            self.on_demand(outlet)

    def on_demand(self, outlet: amqp.Outlet) -> None:
        while self.parcels and outlet.ready():
            parcel = self.parcels.popleft()
            parcel.times += 1
            outlet.give(parcel.message, parcel)
        outlet.rest(len(self.parcels))

    def pull(self, outlet: amqp.Outlet) -> bool:
        if self.parcels:
            self.on_demand(outlet)
            return True
        return False


@pytest.fixture
def disk() -> Disk:
    return Disk()


def alive(disk: Disk) -> tuple[Life, Office]:
    life, office = Life(disk), Office()
    life.container.add_node(office)
    life.container.add_queue("q", durable=True)
    return life, office


def stored(disk: Disk) -> list[Any]:
    return [amqp.Message.from_payload(row[1]).body for row in disk.rows(TABLE)]  # type: ignore[arg-type]


async def test_node_of_ones_own_has_its_messages_after_a_restart(disk: Disk) -> None:
    life, _ = alive(disk)
    await life.container.send("office", "a")
    await life.container.send("office", "b")
    await life.end()
    life, office = alive(disk)
    async with life.program() as conn, conn.open_receiver("office") as receiver:
        delivery = await receiver.receive()
        assert delivery.message.body == "a"
        delivery.accept()
        await wait_all_tasks_blocked()
        assert stored(disk) == ["b"]
    assert [parcel.message.body for parcel in office.parcels] == ["b"]


@pytest.mark.logs_errors
async def test_node_of_ones_own_shares_the_commit_of_a_transaction_with_queues(disk: Disk) -> None:
    life, office = alive(disk)
    await life.container.send("office", "old")
    async with (
        life.program() as conn,
        conn.open_sender("office") as sender,
        conn.open_sender("q") as other,
        conn.open_receiver("office", credit=0) as receiver,
    ):
        receiver.grant(1)
        delivery = await receiver.receive()
        disk.failure = StoreError("broken")
        with pytest.raises(amqp.TransactionRolledBackError):
            async with conn.open_transaction() as txn:
                await sender.send("new", transaction=txn)
                await other.send("also new", transaction=txn)
                delivery.accept(transaction=txn)
        disk.failure = None
        await wait_all_tasks_blocked()
        assert stored(disk) == ["old"]
        assert [parcel.message.body for parcel in office.parcels] == ["old"]
        receiver.grant(1)
        delivery = await receiver.receive()
        commits = disk.commits
        async with conn.open_transaction() as txn:
            await sender.send("new", transaction=txn)
            await other.send("also new", transaction=txn)
            delivery.accept(transaction=txn)
        assert disk.commits - commits == 1
        assert stored(disk) == ["new"]
        assert [parcel.message.body for parcel in office.parcels] == ["new"]


async def test_node_of_ones_own_takes_back_what_was_acquired_in_a_transaction_when_it_is_rolled_back(
    disk: Disk,
) -> None:
    life, office = alive(disk)
    await life.container.send("office", "a")
    async with life.program() as conn, conn.open_receiver("office", credit=0) as receiver:
        async with conn.open_transaction() as txn:
            receiver.grant(1)
            delivery = await receiver.receive()
            delivery.accept(transaction=txn)
            await txn.rollback()
        await wait_all_tasks_blocked()
        assert [parcel.message.body for parcel in office.parcels] == ["a"]
        assert stored(disk) == ["a"]


@pytest.mark.parametrize("outcome", ["accept", "release"])
async def test_lease_on_a_message_of_ones_own_node_survives_a_restart(disk: Disk, outcome: str) -> None:
    life, _ = alive(disk)
    await life.container.send("office", "a")
    await life.container.send("office", "b")
    store = amqp.MemoryTerminusStore()
    async with life.program() as conn:
        receiver = await conn.open_receiver("office", **lasting(store=store, credit=0)).__aenter__()
        receiver.grant(1)
        delivery = await receiver.receive()
        [row] = disk.rows(UNSETTLED)
        assert row[4] == "office 1"
        getattr(delivery, outcome)()
        conn.pump.cancel()  # before it is told
        await life.end(conn)
    life, office = alive(disk)
    async with life.program("another") as conn, conn.open_receiver("office", credit=0) as receiver:
        receiver.grant(2)
        other = await receiver.receive()
        assert other.message.body == "b"  # the first is nobody else's
        other.accept()
        async with (
            life.program() as again,
            again.open_receiver("office", **lasting(store=store, credit=0)),
        ):
            await wait_all_tasks_blocked()
        if outcome == "release":
            third = await receiver.receive()
            assert third.message.body == "a"
            third.accept()
        await wait_all_tasks_blocked()
    assert stored(disk) == []
    assert not disk.rows(UNSETTLED)
    assert not office.parcels


async def test_lease_on_a_message_of_ones_own_node_comes_back_when_its_link_does_not(
    disk: Disk, autojump_clock: Any
) -> None:
    life, _ = alive(disk)
    await life.container.send("office", "a")
    async with life.program() as conn:
        receiver = await conn.open_receiver(
            "office", **lasting(5, store=amqp.MemoryTerminusStore(), credit=0)
        ).__aenter__()
        receiver.grant(1)
        await receiver.receive()
        await life.end(conn)
    life, office = alive(disk)
    async with life.program("another") as conn, conn.open_receiver("office", credit=0) as receiver:
        assert not office.parcels
        await trio.sleep(6)
        assert [(parcel.message.body, parcel.times) for parcel in office.parcels] == [("a", 1)]
        receiver.grant(1)
        (await receiver.receive()).accept()
        await wait_all_tasks_blocked()
    assert stored(disk) == []


async def test_lease_on_a_message_of_a_node_that_is_gone_is_forgotten(disk: Disk) -> None:
    life, _ = alive(disk)
    await life.container.send("office", "a")
    store = amqp.MemoryTerminusStore()
    async with life.program() as conn:
        receiver = await conn.open_receiver("office", **lasting(store=store, credit=0)).__aenter__()
        receiver.grant(1)
        await receiver.receive()
        await life.end(conn)
    life = Life(disk)
    other = Office("other")
    life.container.add_node(other)
    life.container.add_queue("office", durable=True)
    async with life.program() as conn, conn.open_receiver("office", **lasting(store=store, credit=0)):
        await wait_all_tasks_blocked()
        assert not disk.rows(UNSETTLED)


def test_container_without_a_store_has_no_journal_for_its_nodes() -> None:
    container, office = amqp.Container(), Office()
    container.add_node(office)
    assert office.container is not None
    assert office.container.journal is None
    message = amqp.Message("a")
    assert office.container.resume_lease(Parcel(office, 1, message), message) is None


async def test_node_that_is_added_while_the_container_runs_is_recovered_then() -> None:
    class Late(amqp.Node):
        recovered = 0

        def recover(self) -> None:
            self.recovered += 1

    early, late, never = Late("early"), Late("late"), Late("never")
    container = amqp.Container(store=Mortal(Disk(), None, done=True, die=lambda: None))  # type: ignore[arg-type]
    container.add_node(early)
    async with container.connect():
        container.add_node(late)
    async with container.connect():
        assert (early.recovered, late.recovered) == (1, 1)
    other = amqp.Container()
    other.add_node(never)
    async with other.connect():
        assert never.recovered == 0
