"""Sending the messages of a task: outcomes, retries, transactions and ledgers."""

from __future__ import annotations

import logging
import ssl
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import trio
import trustme
from pyarrow import parquet

import trio_amqp10 as amqp
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.spark import rejected_rows
from trio_amqp10.spark.connections import GaveUpError
from trio_amqp10.spark.message_encoder import OutgoingBatch
from trio_amqp10.spark.options import SinkOptions
from trio_amqp10.spark.sink_delivery import Report, SinkError, TaskName, send_all
from trio_amqp10.spark.spool import SpoolError
from trio_amqp10.spark.storage import open_store

from .desk import dotted
from .peers import lacks
from .server import Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from trio_amqp10.spark.storage import Store

    from .peers import Peer

NAME = TaskName("query", 3, 1)


def send(
    peer: Peer,
    count: int,
    *,
    name: TaskName = NAME,
    at: dict[int, Callable[[], None]] | None = None,
    address: str = "",
    **given: str,
) -> Report:
    """Send messages, by default to ``out``; calls may be made before some of them."""
    address = address or peer.address("out")
    options = SinkOptions.parse({"url": peer.url, "address": address} | dotted(given))

    async def outbound() -> AsyncIterator[OutgoingBatch]:
        for number in range(count):
            if at is not None and number in at:
                await trio.to_thread.run_sync(at[number])
            await trio.lowlevel.checkpoint()
            yield OutgoingBatch([address], [amqp.Message(b"%d" % number)])

    async def main() -> Report:
        return await send_all(outbound(), options, name)

    return trio.run(main)


def bodies(peer: Peer, name: str = "out") -> list[Any]:
    return [message.body for message in peer.take(name)]


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


TRANSACTIONS = lacks("transactions")


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({}, id="none"),
        pytest.param({"transactions": "task"}, id="task", marks=TRANSACTIONS),
        pytest.param({"transactions": "ledger", "ledger": "ledger"}, id="ledger", marks=TRANSACTIONS),
    ],
)
def test_all_messages_arrive_in_order(peer: Peer, given: dict[str, str]) -> None:
    assert send(peer, 3000, maxInFlight="100", **given) == Report(3000, 3000, 0)
    assert bodies(peer) == numbers(3000)


@pytest.mark.parametrize(
    ("transactions", "left"), [("none", 20), pytest.param("task", 0, marks=TRANSACTIONS)]
)
def test_failure_of_a_task_leaves_nothing_of_a_transaction(peer: Peer, transactions: str, left: int) -> None:
    def fail() -> None:
        raise RuntimeError("the task fails")

    with pytest.raises(RuntimeError, match="the task fails"):
        send(peer, 50, at={20: fail}, transactions=transactions, maxInFlight="5")
    assert len(bodies(peer)) == left


@TRANSACTIONS
def test_ledger_lets_a_task_happen_once(server: Server) -> None:
    given = {"transactions": "ledger", "ledger": "ledger"}
    assert send(server, 10, **given) == Report(10, 10, 0)
    assert send(server, 10, **given) == Report(10, 10, 0, already_there=True)
    assert bodies(server) == numbers(10)
    assert not send(server, 10, name=TaskName("query", 3, 2), **given).already_there
    assert send(server, 1, name=TaskName("it's", 0, 0), **given) == Report(1, 1, 0)
    assert send(server, 1, name=TaskName("it's", 0, 0), **given).already_there


@TRANSACTIONS
def test_of_two_attempts_at_a_time_one_counts(server: Server) -> None:
    reports: list[Report] = []
    given = {"transactions": "ledger", "ledger": "ledger"}

    def zombie() -> None:
        reports.append(send(server, 10, **given))

    def overtaken() -> None:
        thread = threading.Thread(target=zombie)
        thread.start()
        thread.join()

    reports.append(send(server, 10, at={9: overtaken}, **given))
    assert [report.already_there for report in reports] == [False, True]
    assert bodies(server) == numbers(10)


@TRANSACTIONS
def test_record_that_is_claimed_is_waited_for(server: Server) -> None:
    """Another attempt is about to commit: its record is what counts, once it is there."""
    begun, end = threading.Event(), threading.Event()

    def hold() -> None:
        async def main() -> None:
            async with (
                amqp.open_connection(server.url) as connection,
                connection.open_sender("ledger") as sender,
                connection.open_transaction() as transaction,
            ):
                record = amqp.Message(
                    '{"sent": 7, "accepted": 7, "rejected": 0}',
                    message_id=str(NAME),
                    application_properties={"spark_task": str(NAME)},
                )
                await sender.send(record, transaction=transaction)
                begun.set()
                await trio.to_thread.run_sync(end.wait)

        trio.run(main)

    thread = threading.Thread(target=hold)
    thread.start()
    assert begun.wait(10)
    timer = threading.Timer(0.5, end.set)
    timer.start()
    assert send(server, 10, transactions="ledger", ledger="ledger") == Report(7, 7, 0, already_there=True)
    thread.join()
    assert bodies(server) == []


@TRANSACTIONS
def test_node_that_takes_a_record_twice_is_no_ledger(server: Server) -> None:
    with pytest.raises(LocalProtocolError, match="'queue' cannot be a ledger: it takes a record twice"):
        send(server, 1, transactions="ledger", ledger=server.address("queue"))
    assert (server.held("queue"), bodies(server)) == (0, [])


@TRANSACTIONS
def test_ledger_keeps_the_records_of_the_last_two_batches(server: Server) -> None:
    given = {"transactions": "ledger", "ledger": "ledger"}
    for batch in range(4):
        for partition in range(2):
            send(server, 1, name=TaskName("query", batch, partition), **given)
    assert server.held("ledger") == 4
    for batch in (2, 3):
        assert send(server, 1, name=TaskName("query", batch, 0), **given).already_there
    with pytest.raises(amqp.DeliveryRejectedError, match="batch 1 of 'query' is over"):
        send(server, 1, name=TaskName("query", 1, 0), **given)
    assert len(bodies(server)) == 8
    send(server, 1, name=TaskName("other", 0, 0), **given)
    send(server, 1, name=TaskName("write", 0, 0, replayed=False), **given)
    assert server.held("ledger") == 6


@TRANSACTIONS
def test_task_is_not_looked_for_unless_it_was_there(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    async def look(*_: object) -> None:
        raise AssertionError("it has to look through the records")

    monkeypatch.setattr("trio_amqp10.spark.sink_delivery._look_up", look)
    send(server, 1, transactions="ledger", ledger="ledger")
    with pytest.raises(AssertionError, match="look through"):
        send(server, 1, transactions="ledger", ledger="ledger")


def test_rows_that_cannot_be_read_to_the_end_fail_the_task(peer: Peer) -> None:
    """The error is not taken for a lost connection, after which no row would be left to send."""

    def fail() -> None:
        raise OSError("a batch of 10 octets ends after 3")

    with pytest.raises(SinkError, match="the rows cannot be read: a batch of 10 octets ends after 3"):
        send(peer, 5, at={2: fail})


def test_lost_connection_is_made_anew_and_what_is_in_doubt_sent_again(peer: Peer) -> None:
    def interrupt() -> None:
        peer.down()
        peer.up()

    report = send(peer, 1000, at={300: interrupt, 700: interrupt}, maxInFlight="50")
    assert (report.sent, report.accepted) == (1000, 1000)
    found = bodies(peer)
    assert {*found} == {*numbers(1000)}
    assert len(found) <= 1000 + 2 * 50


def test_peer_that_stays_away_fails_the_task(peer: Peer) -> None:
    with pytest.raises(GaveUpError, match=r"no success for 0\.3 s"):
        send(peer, 10, at={5: peer.down}, reconnect_timeout="300ms")


@pytest.mark.parametrize("given", [{"onReject": "fail"}, {"onReject": "drop"}], ids=str)
def test_message_that_a_full_queue_rejects_fails_the_task_or_is_dropped_and_counted(
    peer: Peer, given: dict[str, str]
) -> None:
    address = peer.bounded("few", 3)
    if given["onReject"] == "drop":
        assert send(peer, 10, address=address, maxInFlight="1", **given) == Report(10, 3, 7)
    else:
        with pytest.raises(SinkError, match="rejected"):
            send(peer, 10, address=address, maxInFlight="1", **given)


ROWS = pa.RecordBatch.from_pydict({"n": list(range(8))})
UNFIT, TOO_LARGE, REJECTED, NOWHERE = 1, 3, 5, 6
"""The rows that are not accepted."""
REFUSAL = ("app:no", "a message to 'odd' was rejected: app:no: not that")


def send_rows(server: Server, **given: str) -> Report:
    """Send eight rows to their addresses, of which four are not accepted, each for another reason."""
    options = SinkOptions.parse({"url": server.url} | dotted(given))

    def refuse(delivery: amqp.Delivery, _: int) -> None:
        if delivery.message.body == b"5":
            delivery.reject("app:no", "not that")

    rejecting(server, refuse)
    nowhere = server.missing()
    rows = tuple(n for n in range(8) if n != UNFIT)
    # By default a row that is no message is an error of the encoding, and does not come here.
    unfit = ((UNFIT, "row 1 is none"),) if "onReject" in given else ()
    bodies = [bytes(200_000) if n == TOO_LARGE else b"%d" % n for n in rows]

    async def outbound() -> AsyncIterator[OutgoingBatch]:
        await trio.lowlevel.checkpoint()
        addresses = [nowhere if n == NOWHERE else "odd" for n in rows]
        yield OutgoingBatch(addresses, [amqp.Message(each) for each in bodies], ROWS, rows, unfit)

    async def main() -> Report:
        return await send_all(outbound(), options, NAME)

    return trio.run(main)


@pytest.mark.parametrize("transactions", ["none", "task", "ledger"])
def test_rows_that_are_not_accepted_are_set_aside_with_the_reason(tmp_path: Path, transactions: str) -> None:
    given = {"ledger": "ledger"} if transactions == "ledger" else {}
    # A container's consumer has a message of a transaction after its commit, and can then reject it to nobody.
    expected = {UNFIT, TOO_LARGE, NOWHERE} | ({REJECTED} if transactions == "none" else set())
    with Server(limits=amqp.Limits(max_message_size=100_000)) as server:
        report = send_rows(
            server,
            onReject="deadletter-path",
            deadletterPath=str(tmp_path),
            transactions=transactions,
            **given,
        )
    assert (report.accepted, report.rejected) == (8 - len(expected), len(expected))
    (file,) = tmp_path.iterdir()
    found = {
        row["n"]: (row["reject_condition"], row["reject_reason"])
        for row in parquet.read_table(file).to_pylist()
    }
    assert set(found) == expected
    assert found[UNFIT] == (None, "row 1 is none")
    assert "100000" in found[TOO_LARGE][1]
    assert found.get(REJECTED, REFUSAL) == REFUSAL
    assert found[NOWHERE][0] == "amqp:not-found"


@lacks("inside")
def test_address_of_rows_that_a_starting_broker_lacks_is_waited_for(server: Server) -> None:
    """The queue is there again after the first link that the broker refuses."""
    server.missing()
    queue = server.queue("out")
    adding: list[threading.Thread] = []

    def add() -> None:
        server.ask(lambda: server.container.nodes.setdefault("out", queue))

    class Returning(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "amqp:not-found" in record.getMessage() and not adding:
                adding.append(threading.Thread(target=add))
                adding[0].start()

    def restart() -> None:
        server.down()
        server.ask(lambda: server.container.nodes.pop("out"))
        server.up()

    options = SinkOptions.parse({"url": server.url, "onReject": "drop", "maxInFlight": "3"})

    async def outbound() -> AsyncIterator[OutgoingBatch]:
        for number in range(30):
            if number == 20:
                await trio.to_thread.run_sync(restart)
            await trio.lowlevel.checkpoint()
            yield OutgoingBatch(["out"], [amqp.Message(b"%d" % number)])

    async def main() -> Report:
        return await send_all(outbound(), options, NAME)

    log, returning = logging.getLogger("trio_amqp10.spark"), Returning()
    log.addHandler(returning)
    try:
        report = trio.run(main)
    finally:
        log.removeHandler(returning)
    (thread,) = adding
    thread.join()
    assert report == Report(30, 30, 0)
    assert {*bodies(server)} == {*numbers(30)}


@lacks("inside")
def test_store_of_rows_that_are_not_accepted_is_opened_beside_the_connections(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections of other tasks share the thread of trio, and opening an object store takes a while."""
    threads: list[threading.Thread] = []

    def open_noted(where: str) -> Store:
        threads.append(threading.current_thread())
        return open_store(where)

    monkeypatch.setattr(rejected_rows, "open_store", open_noted)
    send(server, 1, onReject="deadletter-path", deadletterPath=str(tmp_path))
    (thread,) = threads
    assert thread is not threading.current_thread()


@lacks("conditions")
@pytest.mark.parametrize("unfit", [True, False], ids=["unfit", "rejected"])
def test_rows_that_are_not_accepted_are_written_whenever_there_are_many(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unfit: bool
) -> None:
    monkeypatch.setattr(rejected_rows, "_MOST", 4)
    rejecting(server, lambda delivery, _: delivery.reject("app:no"))
    given = {"onReject": "deadletter-path", "deadletterPath": str(tmp_path)}
    options = SinkOptions.parse({"url": server.url} | given)

    async def outbound() -> AsyncIterator[OutgoingBatch]:
        for _ in range(2):
            await trio.lowlevel.checkpoint()
            if unfit:
                yield OutgoingBatch([], [], ROWS, (), tuple((n, "none") for n in range(8)))
            else:
                yield OutgoingBatch(["odd"] * 8, [amqp.Message(b"%d" % n) for n in range(8)], ROWS)

    async def main() -> Report:
        return await send_all(outbound(), options, NAME)

    assert trio.run(main).rejected == 16
    files = sorted(tmp_path.iterdir())
    assert [parquet.read_metadata(file).num_rows for file in files] == [4, 4, 4, 4]
    found = [row["n"] for file in files for row in parquet.read_table(file).to_pylist()]
    assert sorted(found) == sorted([*range(8)] * 2)


@lacks("inside")
def test_rows_that_cannot_be_set_aside_fail_the_task_at_once(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The error is not taken for a lost connection, after which all would be tried again."""
    monkeypatch.setattr(rejected_rows, "_MOST", 1)
    (tmp_path / "file").touch()
    with pytest.raises(SpoolError, match="cannot be written to"):
        send_rows(
            server,
            onReject="deadletter-path",
            deadletterPath=str(tmp_path / "file" / "rows"),
            reconnect_timeout="1s",
        )
    assert "trying again" not in caplog.text


def test_row_that_is_too_large_fails_the_task_by_default() -> None:
    with (
        Server(limits=amqp.Limits(max_message_size=100_000)) as server,
        pytest.raises(SinkError, match=r"100000.*'onReject' to 'drop' or 'deadletter-path'"),
    ):
        send_rows(server)


def test_message_that_is_always_released_fails_in_time(peer: Peer) -> None:
    with pytest.raises(SinkError, match="the peer released it each time"):
        send(peer, 1, address=peer.releasing(), sendTimeout="500ms")


def rejecting(server: Server, answer: Callable[[amqp.Delivery, int], None]) -> None:
    """Add a node ``odd`` that answers each delivery by its number, from 0."""
    seen = iter(range(10_000))

    async def consume(delivery: amqp.Delivery) -> None:
        answer(delivery, next(seen))

    server.ask(lambda: server.container.consumer("odd")(consume))


@lacks("conditions")
def test_rejected_message_fails_the_task_with_its_condition(server: Server) -> None:
    rejecting(server, lambda delivery, number: delivery.reject("app:no", "not that") if number == 3 else None)
    with pytest.raises(SinkError, match="app:no: not that"):
        send(server, 10, address="odd")


@lacks("conditions")
def test_rejected_message_is_dropped_and_counted_where_that_is_wanted(server: Server) -> None:
    rejecting(server, lambda delivery, number: delivery.reject("app:no") if number % 3 == 0 else None)
    assert send(server, 10, address="odd", onReject="drop") == Report(10, 6, 4)


@lacks("conditions")
def test_released_message_is_sent_again(server: Server) -> None:
    def answer(delivery: amqp.Delivery, number: int) -> None:
        if number < 2:
            delivery.release()
        elif number < 4:
            delivery.modify(delivery_failed=True)

    rejecting(server, answer)
    assert send(server, 10, address="odd") == Report(10, 10, 0)


@lacks("conditions")
def test_message_that_is_undeliverable_there_counts_as_rejected(server: Server) -> None:
    rejecting(
        server, lambda delivery, number: delivery.modify(undeliverable_here=True) if number == 0 else None
    )
    assert send(server, 2, address="odd", onReject="drop") == Report(2, 1, 1)


@lacks("backpressure")
def test_peer_without_credit_fails_in_time(server: Server) -> None:
    server.ask(lambda: server.container.add_queue("small", max_length=3))
    with pytest.raises(SinkError, match="sendTimeout"):
        send(server, 2000, address="small", sendTimeout="500ms")


def test_more_addresses_than_links_are_possible(peer: Peer) -> None:
    options = SinkOptions.parse({"url": peer.url})
    addresses = [peer.address(f"out-{number}") for number in range(110)]

    async def outbound() -> AsyncIterator[OutgoingBatch]:
        for number in range(120):
            yield OutgoingBatch([addresses[number % 110]], [amqp.Message(b"%d" % number)])

    async def main() -> Report:
        return await send_all(outbound(), options, NAME)

    assert trio.run(main).accepted == 120
    assert [peer.held(f"out-{number}") for number in range(110)] == [2] * 10 + [1] * 100


def test_peer_is_reached_through_tls_by_the_authority_that_is_given(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    context.options |= ssl.OP_NO_RENEGOTIATION
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with Server("amqps://127.0.0.1:0", ssl_context=context) as server:
        assert send(server, 5, tls_ca=str(tmp_path / "ca.pem")).accepted == 5
        with pytest.raises((GaveUpError, amqp.AmqpError), match=r"(?i)certificate"):
            send(server, 5, reconnect_timeout="0")
