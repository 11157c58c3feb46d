"""A row of a store with a value that its column cannot have: it is named and set aside, and all else goes on.

Each column of each table gets each wrong value in turn. Whatever happens then, nothing raises, each error in the log is
about a row that is set aside, what is set aside stays in the file, and the messages of the other rows are delivered.
"""

from __future__ import annotations

import gzip
import logging
import os
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10 import Container, SqliteStore, SqliteTerminusStore
from trio_amqp10.amqp10.peer.sqlite_terminus_store import _DELIVERIES as DELIVERIES  # pyright: ignore[reportPrivateUsage]
from trio_amqp10.amqp10.peer.sqlite_terminus_store import _LINKS as LINKS  # pyright: ignore[reportPrivateUsage]
from trio_amqp10.amqp10.server.link_store import ENDS, TERMINI, UNSETTLED
from trio_amqp10.broker.exchanges.definitions import BINDINGS, EXCHANGES, QUEUES
from trio_amqp10.broker.nodes.message_store import DELAYS, MESSAGES, SUBSCRIPTIONS
from trio_amqp10.broker.stores.node_settings import NODES

from .stores_of_earlier.make import BORN, lasting

pytestmark = pytest.mark.whole

EARLIER: Final = Path(__file__).parent / "stores_of_earlier" / "0909563"
OF_THE_CONTAINER: Final = (
    MESSAGES,
    DELAYS,
    SUBSCRIPTIONS,
    NODES,
    EXCHANGES,
    QUEUES,
    BINDINGS,
    TERMINI,
    ENDS,
    UNSETTLED,
)
OF_A_CLIENT: Final = (LINKS, DELIVERIES)
COLUMNS: Final = [
    pytest.param(name, table, column, id=f"{table.name}.{column}")
    for name, tables in (("container", OF_THE_CONTAINER), ("client", OF_A_CLIENT))
    for table in tables
    for column in table.columns
]
WRONG: Final = (
    *(
        "NULL",
        "'a'",
        "''",
        "x'ff00'",
        "x''",
        "-7",
        "1.5",
        "9e999",
        "-9e999",
        "9007199254740993",
        "4611686018427387904",
    ),
    *("CAST(x'61ff62' AS TEXT)", "'[]'", "'{}'", """'{"a": 1}'""", "'7:zz'", "x'005324c0'", "x'0053284500'"),
)

SOME: Final = 4
"""Values that a column gets; with ``HYPOTHESIS_PROFILE=explore`` it gets all."""


def values_for(column: str) -> tuple[str, ...]:
    """Other values for each column, so that all are had by some."""
    if os.environ.get("HYPOTHESIS_PROFILE") == "explore":
        return WRONG
    first = zlib.crc32(column.encode()) % len(WRONG)
    return (WRONG * 2)[first : first + SOME]


def made(store: amqp.Store) -> Container:
    container = Container("house", store=store, wall_clock=lambda: BORN)
    for name in ("orders", "tries", "held"):
        container.add_queue(
            name, durable=True, dead_letter="dead", delivery_limit=2, grouped=name == "orders"
        )
    container.add_queue("dead", durable=True)
    container.add_topic("news")
    container.add_broker()
    container.add_management()
    return container


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stores that have rows in all tables."""
    folder = tmp_path_factory.mktemp("whole")
    for name in ("container.sqlite", "client.sqlite"):
        (folder / name).write_bytes(gzip.decompress((EARLIER / f"{name}.gz").read_bytes()))

    async def add() -> None:
        with SqliteStore(folder / "container.sqlite") as store:
            container = made(store)
            async with container.connect() as connection:
                broker = container.broker
                assert broker is not None
                broker.declare_exchange("shop", "headers")
                broker.declare_queue("declared", arguments={"x-max-length": 7})
                broker.bind("shop", "queue", "declared", "k", {"x-match": "all", "colour": "green"})
                await container.send("tries", amqp.Message("delayed", durable=True))
                async with connection.open_receiver("tries", credit=10) as receiver:
                    while (delivery := await receiver.receive()).message.body != "delayed":
                        delivery.release()
                    due = {"x-opt-delivery-time": int(BORN + 3600) * 1000}
                    delivery.modify(delivery_failed=True, annotations=due)
                await container.flush()

    trio.run(add)
    return folder


def execute(path: Path, statement: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(path)) as database:
        database.text_factory = bytes
        found = database.execute(statement, values).fetchall()
        database.commit()
    return found


async def open_both(folder: Path) -> None:
    """Open both stores, and use no link: that would store a row of its own in place of one that cannot be read."""
    with SqliteStore(folder / "container.sqlite") as store:
        async with made(store).connect():
            pass
    SqliteTerminusStore(folder / "client.sqlite").close()


async def use_all(folder: Path) -> tuple[list[Any], int]:
    """Open both stores and use all that is there: the bodies received, and how many rows the container set aside."""
    received: list[Any] = []
    with (
        SqliteStore(folder / "container.sqlite") as store,
        SqliteTerminusStore(folder / "client.sqlite") as links,
    ):
        container = made(store)
        with trio.fail_after(60):
            async with container.connect(container_id="client") as connection:
                for name in ("out", "in"):
                    opening = (
                        connection.open_receiver("held", name=name, credit=0, **lasting(links))
                        if name == "out"
                        else connection.open_sender("work", name=name, **lasting(links))
                    )
                    try:
                        async with opening:
                            await wait_all_tasks_blocked()
                    except amqp.AmqpError as refused:
                        received.append(refused)
            async with container.connect() as connection:
                for address in [*container.nodes]:
                    node = container.nodes[address]
                    if not isinstance(node, amqp.Queue):
                        continue
                    for outcome in ("fail", "reject", "accept"):
                        async with connection.open_receiver(address, credit=0) as receiver:
                            receiver.grant(100)
                            for delivery in await receiver.drain():
                                received.append(delivery.payload)
                                if outcome == "fail":
                                    delivery.modify(delivery_failed=True)
                                elif outcome == "reject":
                                    delivery.reject()
                                else:
                                    delivery.accept()
                    assert node.statistics()["messages"] >= 0
                assert container.broker is not None
                async with connection.open_sender("/exchanges/amq.direct/k") as sender:
                    await sender.transmit("x")
            await container.flush()
        aside = container.statistics()["rows_set_aside"]
    return received, aside


def fill(folder: Path, whole: Path) -> None:
    """Have nothing but copies of the whole stores in a folder."""
    for each in folder.iterdir():
        each.unlink()
    for each in whole.glob("*.sqlite"):
        shutil.copy(each, folder)


def plain(records: list[logging.LogRecord], folder: Path) -> None:
    """Each error is about a row of the file, by its table, and none has a traceback."""
    for record in records:
        if record.levelno >= logging.ERROR:
            said = record.getMessage()
            assert record.exc_info is None, said
            if "nothing here can read, are held as they are" in said:  # another protocol may bring its form
                continue
            assert "is set aside" in said or "cannot be made again" in said, said
            assert str(folder) in said or "cannot be made again" in said, said


@pytest.mark.parametrize(("name", "table", "column"), COLUMNS)
async def test_row_with_a_wrong_value_is_set_aside_and_all_else_goes_on(
    name: str,
    table: amqp.StoreTable,
    column: str,
    whole: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    request: pytest.FixtureRequest,
) -> None:
    path = tmp_path / f"{name}.sqlite"
    logged = 0
    for wrong in values_for(f"{table.name}.{column}"):
        fill(tmp_path, whole)
        (chosen,) = execute(path, f"SELECT rowid FROM {table.name} ORDER BY 1 DESC LIMIT 1")[0]
        try:
            execute(path, f"UPDATE {table.name} SET {column} = {wrong} WHERE rowid = ?", chosen)
        except sqlite3.Error:
            continue  # SQLite itself refuses it: a key that is no number, or NULL
        if column == "id" and table.key is int:
            chosen = int(wrong)
        (before,) = execute(path, f"SELECT * FROM {table.name} WHERE rowid = ?", chosen)
        caplog.clear()
        await open_both(tmp_path)
        logged += len([each for each in caplog.records if each.levelno >= logging.ERROR])
        if any(f"of the table {table.name} cannot be read" in each.getMessage() for each in caplog.records):
            assert execute(path, f"SELECT * FROM {table.name} WHERE rowid = ?", chosen) == [before], wrong
        caplog.clear()
        received, aside = await use_all(tmp_path)
        plain(caplog.records, tmp_path)
        errors = [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR]
        logged += len(errors)
        if name == "container":
            assert aside == len([said for said in errors if "is set aside" in said]), wrong
        bodies = b"".join(each for each in received if isinstance(each, bytes))
        spared = [b"plain", b"urgent", b"idle", b"group 1", b"sent in the transaction", b"free"]
        missing = [body for body in spared if body not in bodies]
        assert len(missing) <= (1 if table is MESSAGES else 0), (wrong, missing)
    if logged:
        request.applymarker(pytest.mark.logs_errors)
