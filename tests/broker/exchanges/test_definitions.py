"""What is durable is there again after a restart; what could not be written is undone."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill
from trio_amqp10.amqp091.wire.typed_values import Int8
from trio_amqp10.broker.exchanges.definitions import BINDINGS, EXCHANGES, QUEUES
from trio_amqp10.broker.exchanges.faults import LockedError, PreconditionError
from trio_amqp10.broker.stores.base import StoreError, StoreFullError
from trio_amqp10.broker.stores.memory_store import MemoryStore
from trio_amqp10.broker.stores.sqlite_store import SqliteStore
from trio_amqp10.container import Container

from .helpers import Connection, names

if TYPE_CHECKING:
    from pathlib import Path

    from trio_amqp10.broker.exchanges.topology import Topology

ONE: Any = Connection()


def start(store: Any) -> tuple[Container, Topology]:
    container = Container("c", strict=True, store=store)
    return container, container.add_broker()


def shown(broker: Topology) -> list[Any]:
    return [
        {name: queue.properties for name, queue in broker.queues.items()},
        {name: exchange.properties for name, exchange in broker.exchanges.items() if "amq" not in name},
        list(broker.bindings),
    ]


async def safe(broker: Topology) -> StoreError | None:
    """Wait until all that was declared is stored, or was not."""
    done = trio.Event()
    failures: list[StoreError | None] = []

    def after(failure: StoreError | None) -> None:
        failures.append(failure)
        done.set()

    broker.when_stored(after)
    await done.wait()
    return failures[0]


def declare(broker: Topology) -> None:
    broker.declare_queue("q", {"x-max-length": Int8(5), "x-note": b"\xff", "$": 1.5})
    broker.declare_queue("goes", auto_delete=True)
    broker.declare_queue("brief", durable=False)
    broker.declare_queue("mine", exclusive=True, peer=ONE)
    broker.declare_exchange("e", "headers", arguments={"alternate-exchange": "amq.fanout"})
    broker.declare_exchange("inner", "topic", auto_delete=True, internal=True)
    broker.declare_exchange("brief", durable=False)
    for queue in ("q", "brief", "mine"):
        broker.bind("e", "queue", queue, "", {"a": None, "b": [1, {"c": True}]})
        broker.bind("brief", "queue", queue)
    broker.bind("e", "exchange", "inner")
    broker.bind("amq.topic", "queue", "q", "a.#")
    broker.bind("inner", "exchange", "brief")


async def test_durable_definitions_are_there_after_a_restart_and_no_others(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "store") as store:
        container, broker = start(store)
        declare(broker)
        assert await safe(broker) is None
        await container.flush()
    with SqliteStore(tmp_path / "store") as store:
        container, broker = start(store)
        queues, exchanges, bindings = shown(broker)
        assert queues == {
            "q": {"durable": True, "auto_delete": False, "x-max-length": 5, "x-note": b"\xff", "$": 1.5},
            "goes": {"durable": True, "auto_delete": True},
        }
        assert broker.queues["q"].policy.max_length == 5
        assert exchanges.keys() == {"", "e", "inner"}
        assert exchanges["e"]["alternate-exchange"] == "amq.fanout"
        assert (exchanges["inner"]["auto_delete"], exchanges["inner"]["internal"]) == (True, True)
        assert sorted((each.source, *each.destination, each.key) for each in bindings) == [
            ("amq.topic", "queue", "q", "a.#"),
            ("e", "exchange", "inner", ""),
            ("e", "queue", "q", ""),
        ]
        assert names(broker, "e", "", headers={"a": 0, "b": [1, {"c": True}]}) == ["q"]
        broker.declare_queue("q", {"x-max-length": 5})
        broker.delete_exchange("e")
        broker.delete_queue("goes")
        broker.unbind("amq.topic", "queue", "q", "a.#")
        assert await safe(broker) is None
        await container.flush()
    with SqliteStore(tmp_path / "store") as store:
        queues, exchanges, bindings = shown(start(store)[1])
        assert (queues.keys(), exchanges.keys(), bindings) == ({"q"}, {"", "inner"}, [])


async def test_exchanges_of_the_broker_have_no_row() -> None:
    store = MemoryStore()
    start(store)
    assert [list(store.rows(table)) for table in (EXCHANGES, QUEUES, BINDINGS)] == [[], [], []]


async def test_messages_of_durable_queues_are_there_after_a_restart() -> None:
    store = MemoryStore()
    container, broker = start(store)
    for name, durable in (("q", True), ("brief", False)):
        broker.declare_queue(name, durable=durable)
        broker.bind("amq.fanout", "queue", name)
    broker.declare_queue("mine", exclusive=True, peer=ONE)
    broker.bind("amq.fanout", "queue", "mine", peer=ONE)
    async with container.connect() as conn:
        await fill(conn, "/exchanges/amq.fanout", amqp.Message("kept", durable=True), amqp.Message("gone"))
    container, broker = start(store)
    async with container.connect() as conn, conn.open_receiver("q") as receiver:
        assert await bodies(receiver, 1) == ["kept"]
    assert list(broker.queues) == ["q"]


async def test_restored_queue_is_named_with_its_virtual_host() -> None:
    store = MemoryStore()
    start(store)[1].declare_queue("q")
    await wait_all_tasks_blocked()
    _, broker = start(store)
    broker.virtual_host = "a.example"
    with pytest.raises(LockedError, match=r"locked queue 'q' in vhost 'a\.example'"):
        broker.declare_queue("q", exclusive=True, peer=ONE)


async def test_broker_that_is_added_late_has_its_messages_too() -> None:
    store = MemoryStore()
    container, broker = start(store)
    broker.declare_queue("q")
    async with container.connect() as conn:
        await fill(conn, "q", amqp.Message("kept", durable=True))
    container = Container("c", strict=True, store=store)
    async with container.connect():
        pass
    broker = container.add_broker()
    assert len(broker.queues["q"]) == 1


@pytest.mark.logs_errors
async def test_declaration_that_could_not_be_written_is_undone() -> None:
    store = MemoryStore()
    container, broker = start(store)
    broker.declare_queue("before")
    broker.declare_exchange("before")
    assert await safe(broker) is None
    before = shown(broker)
    store.failure = StoreFullError("full")
    broker.declare_queue("q")
    broker.declare_exchange("e")
    broker.bind("e", "queue", "q")
    broker.bind("before", "queue", "before", "k")
    assert isinstance(await safe(broker), StoreFullError)
    assert shown(broker) == before
    assert "q" not in container.nodes
    store.failure = None
    broker.declare_queue("q")
    assert await safe(broker) is None
    assert start(store)[1].queues.keys() == {"before", "q"}


async def test_name_that_the_store_cannot_have_does_no_harm_to_what_is_stored_with_it(tmp_path: Path) -> None:
    """All that is noted before the next write is one batch: of other clients too."""
    path = str(tmp_path / "store.db")
    with SqliteStore(path) as store:
        container, broker = start(store)
        async with container.connect():
            broker.declare_queue("of another client")
            for name in ("\udcff", "a\udcff"):
                with pytest.raises(PreconditionError, match="not UTF-8"):
                    broker.declare_queue(name)
                with pytest.raises(PreconditionError, match="not UTF-8"):
                    broker.declare_exchange(name)
            assert await safe(broker) is None
            broker.declare_queue("\udcff", durable=False)
            broker.declare_queue("a\udcff", exclusive=True, peer=ONE)
            broker.declare_exchange("\udcff", durable=False)
            broker.bind("\udcff", "queue", "of another client", "\udcff")
            broker.bind("amq.topic", "queue", "of another client", "\udcff", {"\udcff": "\udcff"})
            assert await safe(broker) is None
    with SqliteStore(path) as store:
        _, broker = start(store)
        assert list(broker.queues) == ["of another client"]
        assert [each.arguments for each in broker.bindings] == [{"\udcff": "\udcff"}]


@pytest.mark.logs_errors
async def test_declaration_again_survives_the_failure_of_an_earlier_one() -> None:
    store = MemoryStore()
    _, broker = start(store)
    broker.declare_queue("q")
    broker.declare_exchange("e")
    assert await safe(broker) is None
    store.failure = StoreFullError("full")
    broker.declare_queue("r")
    broker.declare_exchange("f")
    broker.bind("e", "queue", "q", "k")
    await trio.lowlevel.checkpoint()
    await wait_all_tasks_blocked()
    store.failure = None
    broker.declare_queue("r")
    broker.declare_exchange("f")
    broker.bind("e", "queue", "q", "k")
    assert await safe(broker) is None
    again = start(store)[1]
    assert again.queues.keys() == {"q", "r"}
    assert "f" in again.exchanges
    assert names(again, "e", "k") == ["q"]


@pytest.mark.logs_errors
async def test_failure_does_not_undo_what_was_declared_anew_meanwhile() -> None:
    store = MemoryStore()
    _, broker = start(store)
    store.failure = StoreFullError("full")
    broker.declare_queue("q")
    broker.declare_exchange("e")
    broker.bind("amq.direct", "exchange", "e")
    broker.delete_queue("q")
    broker.delete_exchange("e")
    broker.declare_queue("q", durable=False)
    broker.declare_exchange("e", durable=False)
    broker.bind("amq.direct", "exchange", "e")
    await safe(broker)
    assert (list(broker.queues), "e" in broker.exchanges, len(broker.bindings)) == (["q"], True, 1)
    store.failure = None


@pytest.mark.logs_errors
async def test_deletion_that_could_not_be_written_is_written_with_the_next_change() -> None:
    store = MemoryStore()
    _, broker = start(store)
    broker.declare_queue("q")
    assert await safe(broker) is None
    store.failure = StoreFullError("full")
    broker.delete_queue("q")
    assert isinstance(await safe(broker), StoreFullError)
    store.failure = None
    broker.declare_queue("other")
    assert await safe(broker) is None
    assert start(store)[1].queues.keys() == {"other"}


@pytest.mark.logs_errors
async def test_definition_that_cannot_be_made_again_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    _, broker = start(store)
    broker.declare_queue("q")
    broker.declare_queue("r")
    broker.bind("amq.direct", "queue", "q", "k")
    broker.bind("amq.direct", "queue", "r", "k")
    assert await safe(broker) is None
    container = Container("c", strict=True, store=store)
    container.add_topic("q")
    with caplog.at_level(logging.ERROR):
        broker = container.add_broker()
    assert [record.getMessage().split(" of the store")[0] for record in caplog.records] == [
        "queue_arguments 'q'",
        caplog.records[1].getMessage().split(" of the store")[0],
    ]
    assert "is not there" in caplog.records[1].getMessage()
    assert names(broker, "amq.direct", "k") == ["r"]


@pytest.mark.parametrize(
    ("table", "row"),
    [
        (EXCHANGES, "no JSON"),
        (QUEUES, '{"arguments": {}}'),
        (BINDINGS, '{"source": "amq.direct"}'),
        (EXCHANGES, '{"kind": "odd"}'),
    ],
)
@pytest.mark.logs_errors
async def test_damaged_row_is_named_and_set_aside(
    table: Any, row: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    store.rows(table)
    store.write({table: {"x": ("x", row)}}, lambda _: None)
    container, _ = start(store)
    assert f"the row 'x' of the table {table.name} cannot be read, and is set aside" in caplog.text
    assert container.statistics()["rows_set_aside"] == 1
    assert store.rows(table) == [("x", row)]


def test_without_a_store_all_is_safe_at_once() -> None:
    _, broker = start(None)
    told: list[StoreError | None] = []
    broker.declare_queue("q")
    broker.when_stored(told.append)
    assert told == [None]
