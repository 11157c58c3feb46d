"""Stores that earlier versions left behind are opened, and all is there again; a row that cannot be read is set aside, a file that cannot is a ``StoreError``."""

from __future__ import annotations

import gzip
import logging
import math
import random
import re
import shutil
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.lowlevel

import trio_amqp10 as amqp
from tests.container.helpers import bodies, queue_of
from trio_amqp10 import Container, QueuePolicy, SqliteStore, SqliteTerminusStore, StoreError, Topic
from trio_amqp10.amqp10.spec.messaging import ExpiryPolicy, Source, TerminusDurability

from .stores_of_earlier.make import BORN, FOREIGN, NO_LOCAL, lasting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EARLIER = sorted(
    each.parent for each in Path(__file__).parent.glob("stores_of_earlier/*/container.sqlite.gz")
)


class Found:
    """A copy of what an earlier version left, and a container on it."""

    def __init__(self, folder: Path, earlier: Path) -> None:
        for name in ("container.sqlite", "client.sqlite"):
            (folder / name).write_bytes(gzip.decompress((earlier / f"{name}.gz").read_bytes()))
        self.folder = folder
        self.store = SqliteStore(folder / "container.sqlite")
        self.container = Container("house", store=self.store, wall_clock=lambda: BORN)
        self.handled: list[Any] = []
        for name in ("orders", "tries", "held"):
            self.container.add_queue(name, durable=True, dead_letter="dead")
        self.container.add_queue("dead", durable=True)
        self.container.add_topic("news")
        self.container.add_management()

        @self.container.consumer("work")
        async def work(delivery: amqp.Delivery) -> None:
            self.handled.append(delivery.message.body)

    async def taken(self, address: str, count: int) -> list[amqp.Message]:
        """The next messages of a queue."""
        async with self.container.connect() as conn, conn.open_receiver(address) as receiver:
            found: list[amqp.Message] = []
            with trio.fail_after(60):
                for _ in range(count):
                    delivery = await receiver.receive()
                    found.append(delivery.message)
                    delivery.accept()
            return found


@pytest.fixture(params=EARLIER, ids=lambda each: each.name)
def found(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Found]:
    made = Found(tmp_path, request.param)
    with made.store:
        yield made


def test_there_are_stores_of_earlier_versions() -> None:
    assert len(EARLIER) >= 2


async def test_messages_are_there_again_with_all_that_they_had(found: Found) -> None:
    async with found.container.connect():
        assert len(queue_of(found.container, "orders")) == 9
    urgent, plain, short, octets, one, two, annotated, foreign, idle = await found.taken("orders", 9)
    assert [urgent.body, plain.body, short.body, idle.body] == ["urgent", "plain", "short-lived", "idle"]
    assert (urgent.priority, urgent.durable, plain.priority, idle.priority) == (9, True, 4, 0)
    assert 3_500_000 < short.ttl <= 3_600_000
    assert (octets.body, octets.content_type, octets.subject, octets.message_id) == (
        b"octets",
        "text/plain",
        "s",
        7,
    )
    assert [(each.body, each.group_id, each.group_sequence) for each in (one, two)] == [
        ("group 1", "g", 1),
        ("group 2", "g", 2),
    ]
    assert annotated.body == {"a": [1, None, "x"]}
    assert annotated.application_properties == {"colour": "green", "size": 3}
    assert annotated.annotations == {"x-opt-note": "kept"}
    assert annotated.footer == {"x-opt-end": True}
    assert (foreign.message_format, foreign.to_payload()) == (FOREIGN, b"\x00not amqp\xff")


async def test_message_expires_when_it_would_have_in_its_first_life(tmp_path: Path) -> None:
    for earlier in EARLIER:
        folder = tmp_path / earlier.name
        folder.mkdir()
        Found(folder, earlier).store.close()
        with SqliteStore(folder / "container.sqlite") as store:
            container = Container(store=store, wall_clock=lambda: BORN + 3601)
            queue = container.add_queue("orders", durable=True)
            async with container.connect():
                assert len(queue) == 8


async def test_queue_that_is_made_on_demand_has_its_durable_messages_alone(found: Found) -> None:
    async with found.container.connect():
        assert len(queue_of(found.container, "loose")) == 1
    [message] = await found.taken("loose", 1)
    assert message.body == "in the store"


async def test_attempts_dead_letters_and_transactions_are_as_they_were(found: Found) -> None:
    failed, sent = await found.taken("tries", 2)
    assert (failed.body, failed.delivery_count) == ("failed once", 1)
    assert sent.body == "sent in the transaction"
    [dead] = await found.taken("dead", 1)
    assert dead.body == "rejected"
    assert dead.annotations["x-opt-deadletter-source"] == "tries"
    assert dead.annotations["x-opt-deadletter-reason"] == "rejected"
    async with found.container.connect():
        assert len(queue_of(found.container, "tries")) == len(queue_of(found.container, "dead")) == 0


async def test_subscriptions_are_there_again_with_their_messages(found: Found) -> None:
    kept: dict[str, Any] = {
        "address": "news",
        "durable": TerminusDurability.UNSETTLED_STATE,
        "expiry_policy": ExpiryPolicy.NEVER,
    }
    shared = Source(**kept, capabilities=("shared", "global"))
    async with found.container.connect(container_id="client") as conn:
        topic = found.container.nodes["news"]
        assert isinstance(topic, Topic)
        assert {
            each.subscription_terms.name: each.subscription_terms.lasting
            for each in topic.subscriptions.values()
        } == {
            "mine": math.inf,
            "ours": math.inf,
        }
        mine = Source(**kept, filter=NO_LOCAL)
        async with conn.open_receiver("news", name="mine", source=mine) as receiver:
            assert await bodies(receiver, 1) == ["to all"]
            await receiver.detach()
        async with (
            found.container.connect(container_id="another") as other,
            other.open_receiver("news", name="ours", source=shared) as receiver,
        ):
            assert await bodies(receiver, 2) == ["to all", "not to the client itself"]
            await receiver.detach()
        assert len(topic.subscriptions) == 2


async def test_nodes_of_management_are_there_again_with_their_rules(found: Found) -> None:
    async with found.container.connect():
        queue, topic = queue_of(found.container, "made"), found.container.nodes["made too"]
        assert queue.policy == QueuePolicy(max_length=7, overflow="reject", dead_letter="dead")
        assert queue.durable
        assert isinstance(topic, Topic)
        assert topic.max_backlog == 3


async def test_links_go_on_where_they_were_at_both_ends(found: Found) -> None:
    with SqliteTerminusStore(found.folder / "client.sqlite") as store:
        async with found.container.connect(container_id="client") as conn:
            held = queue_of(found.container, "held")
            assert (len(held), held.leased) == (3, 2)
            async with found.container.connect() as other, other.open_receiver("held") as receiver:
                assert await bodies(receiver, 1) == ["free"]
            async with conn.open_sender("work", name="in", **lasting(store)) as sender:
                with trio.fail_after(60):
                    while sender.unsettled:
                        await trio.lowlevel.checkpoint()
            assert found.handled == []  # it was handled in the first life
            async with conn.open_receiver("held", name="out", **lasting(store)) as receiver:
                with trio.fail_after(60):
                    for body in ("held 1", "held 2"):
                        delivery = await receiver.receive()
                        assert delivery.message.body == body
                        delivery.accept()
                        await delivery.wait_settled()
            assert len(held) == 0
    await found.container.flush()
    with sqlite3.connect(found.folder / "copy") as copy:
        found.store.close()
        shutil.copy(found.folder / "container.sqlite", found.folder / "copy")
        assert copy.execute("SELECT * FROM unsettled").fetchall() == []
    copy.close()


async def test_redirect_is_kept_in_a_store_that_had_no_table_for_it(found: Found) -> None:
    url = "amqp://b.example:5672/orders"
    async with found.container.connect():
        await found.container.management.redirect("orders", url)
    found.store.close()
    with SqliteStore(found.folder / "container.sqlite") as store:
        container = Container("house", store=store, wall_clock=lambda: BORN)
        queue = container.add_queue("orders", durable=True)
        async with container.connect() as conn:
            assert (await container.management.queue("orders")).redirect == url
            assert len(queue) == 9
            with pytest.raises(amqp.LinkRedirectError):
                await conn.open_receiver("orders").__aenter__()


# -- what cannot be read --------------------------------------------------------------------------


def damaged(path: Path, make: Callable[[bytes], bytes]) -> None:
    path.write_bytes(make(path.read_bytes()))


async def look_at_all(folder: Path) -> None:
    """Open both stores, and read all that is there; raises ``StoreError`` where that cannot be."""
    with SqliteStore(folder / "container.sqlite") as store:
        container = Container("house", store=store, wall_clock=lambda: BORN)
        for name in ("orders", "held"):
            container.add_queue(name, durable=True)
        container.add_topic("news")
        async with container.connect(container_id="client"):
            pass
    with SqliteTerminusStore(folder / "client.sqlite") as links:
        async with (
            Container("house").connect(container_id="client") as conn,
            conn.open_sender("q", name="in", **lasting(links)),
            conn.open_receiver("q", name="out", **lasting(links)),
        ):
            pass


@pytest.fixture
def left(tmp_path: Path) -> Path:
    Found(tmp_path, next(each for each in EARLIER if each.name == "0909563")).store.close()
    return tmp_path


async def test_store_without_a_version_is_carried_on(left: Path) -> None:
    with sqlite3.connect(left / "container.sqlite") as copy:
        copy.execute("PRAGMA user_version=0")
    copy.close()
    await look_at_all(left)
    with sqlite3.connect(left / "container.sqlite") as copy:
        assert copy.execute("PRAGMA user_version").fetchone() == (1,)
    copy.close()


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
async def test_store_that_was_cut_short_is_refused_by_name(left: Path, share: float) -> None:
    damaged(left / "container.sqlite", lambda octets: octets[: int(len(octets) * share)])
    with pytest.raises(StoreError, match=r"container\.sqlite"):
        await look_at_all(left)


@pytest.mark.logs_errors
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("container", "UPDATE nodes SET rules = '{'"),
        ("container", "UPDATE ends SET terminus = x'ff'"),
        ("container", "UPDATE termini SET durable = 'much'"),
        ("container", "UPDATE messages SET place = 'last'"),
        ("container", "UPDATE messages SET node = NULL"),
        ("container", "UPDATE messages SET failures = 'a'"),
        ("container", "UPDATE subscriptions SET lasting = 'long'"),
        ("client", "UPDATE link_deliveries SET state = x'ff'"),
        ("client", "UPDATE link_deliveries SET place = 'last'"),
    ],
)
async def test_row_that_makes_no_sense_is_named_and_set_aside(
    left: Path, name: str, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = change.split()[1]
    with sqlite3.connect(left / f"{name}.sqlite") as copy:
        copy.execute(change)
        (rows,) = copy.execute(f"SELECT count(*) FROM {table}").fetchone()
    copy.close()
    await look_at_all(left)
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(said) == rows
    for each in said:
        assert re.search(
            rf"{name}\.sqlite'.*>: the row .* of the table {table} cannot be read, and is set aside", each
        )


@pytest.mark.logs_errors
async def test_message_that_comes_later_does_not_take_the_row_of_one_that_was_set_aside(left: Path) -> None:
    with sqlite3.connect(left / "container.sqlite") as copy:
        copy.execute("UPDATE messages SET failures = 'a' WHERE id = (SELECT max(id) FROM messages)")
        before = copy.execute("SELECT * FROM messages WHERE failures = 'a'").fetchall()
    copy.close()
    with SqliteStore(left / "container.sqlite") as store:
        container = Container("house", store=store, wall_clock=lambda: BORN)
        await container.send("loose", amqp.Message("new", durable=True))
        assert container.statistics()["rows_set_aside"] == 1
    with sqlite3.connect(left / "container.sqlite") as copy:
        assert copy.execute("SELECT * FROM messages WHERE failures = 'a'").fetchall() == before
    copy.close()


def flawed(name: str, whole: bytes) -> Iterator[bytes]:
    """The file, each time with 64 octets of another page that are something else."""
    chance = random.Random(name)
    for page in range(0, len(whole), 4096):
        octets = bytearray(whole)
        for _ in range(64):
            octets[page + chance.randrange(4096)] = chance.randrange(256)
        yield bytes(octets)


@pytest.mark.logs_errors
@pytest.mark.parametrize("name", ["container.sqlite", "client.sqlite"])
async def test_store_with_a_damaged_page_is_refused_by_name_or_read(left: Path, name: str) -> None:
    refused: list[str] = []
    for octets in flawed(name, (left / name).read_bytes()):
        for beside in ("-wal", "-shm"):
            (left / f"{name}{beside}").unlink(missing_ok=True)
        (left / name).write_bytes(octets)
        try:
            await look_at_all(left)
        except StoreError as error:
            refused.append(str(error))
    assert refused
    assert all(name in each for each in refused)
