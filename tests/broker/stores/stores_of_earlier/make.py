"""Makes a store as a container of this version leaves it when it is killed, and that of the client it had.

``python tests/broker/stores/stores_of_earlier/make.py FOLDER`` writes ``container.sqlite.gz`` and ``client.sqlite.gz`` there. It runs in a
checkout of an earlier version too: what it uses has been there since the first store. Each folder beside this file is named
after the commit that made what it has; a new one is due when what is written changes. Never change one that is there.

What a container is to find in them is in ``test_stores_of_earlier``. The time of day is ``BORN`` when the container starts.
"""

from __future__ import annotations

import gzip
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import trio
import trio.testing

import trio_amqp10 as amqp
from trio_amqp10.amqp10.spec.messaging import ExpiryPolicy, Source, TerminusDurability
from trio_amqp10.amqp10.wire.values import Described, Symbol

BORN = 1_800_000_000.0
NO_LOCAL = {Symbol("no-local"): Described(Symbol("apache.org:no-local-filter:list"), [])}
FOREIGN = 0x80013700
"""A message format that is none of AMQP's."""


def lasting(store: amqp.TerminusStore) -> dict[str, Any]:
    """Options of a link whose unsettled state survives both ends."""
    return {
        "guarantee": "exactly-once",
        "expiry_policy": ExpiryPolicy.CONNECTION_CLOSE,
        "expiry_timeout": 36_000,
        "durable": True,
        "store": store,
    }


async def messages(container: amqp.Container) -> None:
    """Durable messages of all kinds in ``orders``, which is durable itself, and in ``loose``, which is not."""
    message = amqp.Message
    await container.send("orders", message("plain"))
    await container.send("orders", message("urgent", durable=True, priority=9))
    await container.send("orders", message("idle", priority=0))
    await container.send("orders", message("short-lived", ttl=3_600_000))
    await container.send("orders", message(b"octets", content_type="text/plain", subject="s", message_id=7))
    for number in (1, 2):
        await container.send("orders", message(f"group {number}", group_id="g", group_sequence=number))
    annotated: dict[str, Any] = {
        "application_properties": {"colour": "green", "size": 3},
        "annotations": {Symbol("x-opt-note"): "kept"},
        "footer": {Symbol("x-opt-end"): True},
    }
    await container.send("orders", message({"a": [1, None, "x"]}, **annotated))
    await container.send("orders", message.from_payload(b"\x00not amqp\xff", FOREIGN))
    await container.send("loose", message("in the store", durable=True))
    await container.send("loose", message("gone with the process"))


async def attempts(conn: amqp.Connection, container: amqp.Container) -> None:
    """A failed attempt, a rejection and a transaction, each in a queue of its own."""
    for body in ("failed once", "rejected", "taken in the transaction"):
        await container.send("tries", amqp.Message(body))
    async with conn.open_receiver("tries", credit=3) as receiver:
        failed, rejected, taken = [await receiver.receive() for _ in range(3)]
        failed.modify(delivery_failed=True)
        rejected.reject("amqp:decode-error", "no good")
        async with conn.open_sender("tries") as sender, conn.open_transaction() as txn:
            await sender.send("sent in the transaction", transaction=txn)
            taken.accept(transaction=txn)


async def subscriptions(conn: amqp.Connection, container: amqp.Container) -> None:
    """A subscription of one client, with a filter, and one that all share; a message for both."""
    kept: dict[str, Any] = {
        "address": "news",
        "durable": TerminusDurability.UNSETTLED_STATE,
        "expiry_policy": ExpiryPolicy.NEVER,
    }
    mine = await conn.open_receiver("news", name="mine", source=Source(**kept, filter=NO_LOCAL)).__aenter__()
    shared = Source(**kept, capabilities=(Symbol("shared"), Symbol("global")))
    ours = await conn.open_receiver("news", name="ours", source=shared).__aenter__()
    for receiver in (mine, ours):
        await receiver.detach()
    await container.send("news", amqp.Message("to all", durable=True))
    async with conn.open_sender("news") as sender:
        await sender.send(amqp.Message("not to the client itself", durable=True))


async def manage(conn: amqp.Connection) -> None:
    """A queue and a topic by ``$management``."""
    rules = {"max-length": 7, "overflow": "reject", "dead-letter": "dead", "durable": True}
    async with conn.open_requester("$management") as requester:
        for kind, name, body in (("queue", "made", rules), ("topic", "made too", {"max-backlog": 3})):
            asked = {"operation": "CREATE", "type": kind, "name": name}
            reply = await requester.request(amqp.Message(body, application_properties=asked))
            assert reply.application_properties["statusCode"] == 201


async def live(folder: Path) -> None:
    """All of it, and then the end."""
    container = amqp.Container(
        "house", store=amqp.SqliteStore(folder / "container.sqlite"), wall_clock=lambda: BORN
    )
    container.add_queue("orders", durable=True, dead_letter="dead")
    container.add_queue("tries", durable=True, dead_letter="dead", delivery_limit=5)
    container.add_queue("dead", durable=True)
    container.add_queue("held", durable=True)
    container.add_topic("news")
    container.add_management()
    handled = trio.Event()
    conn: amqp.Connection

    @container.consumer("work")
    async def work(delivery: amqp.Delivery) -> None:
        conn.pump.cancel()  # before the client hears of it
        handled.set()

    store = amqp.SqliteTerminusStore(folder / "client.sqlite")
    async with container.connect(container_id="client", idle_timeout=None) as conn:
        await messages(container)
        await attempts(conn, container)
        await subscriptions(conn, container)
        await manage(conn)
        for body in ("held 1", "held 2", "free"):
            await container.send("held", amqp.Message(body))
        receiver = await conn.open_receiver("held", name="out", credit=0, **lasting(store)).__aenter__()
        receiver.grant(2)
        for _ in range(2):
            await receiver.receive()
        txn = await conn.open_transaction().__aenter__()
        async with conn.open_sender("orders") as sender:
            await sender.send("never committed", transaction=txn)
            out = await conn.open_sender("work", name="in", **lasting(store)).__aenter__()
            await out.transmit("handled once")
            await handled.wait()
            await trio.testing.wait_all_tasks_blocked()
            await container.flush()
            await store.flushed()
            os._exit(0)


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        subprocess.run([sys.executable, __file__, "--live", temporary], check=True)
        for name in ("container.sqlite", "client.sqlite"):
            path = Path(temporary, name)
            with sqlite3.connect(path) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # one file is enough
            connection.close()
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))


if __name__ == "__main__":
    if sys.argv[1] == "--live":
        trio.run(live, Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]))
