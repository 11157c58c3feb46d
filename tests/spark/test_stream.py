"""Streams from a queue, with a real Spark: its guarantees, and its behaviour."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

import trio_amqp10 as amqp
from trio_amqp10.spark.options import PeerOptions, QueueOptions

from .desk import PATIENCE, dotted, numbered, until
from .peers import lacks

if TYPE_CHECKING:
    from pathlib import Path

    from .failures import Failures
    from .peers import Peer
    from .server import Server


class Pipe:
    """A queue to parquet."""

    def __init__(self, spark: Any, peer: Peer, folder: Path) -> None:
        self.spark = spark
        self.peer = peer
        self.folder = folder
        self.spool = folder / "spool"

    def source(self, **given: str) -> Any:
        options = {"url": self.peer.url, "address": self.peer.address("q"), "spool": str(self.spool)}
        options |= dotted(given)
        return self.spark.readStream.format("amqp10").options(**options).load()

    def start(
        self, *, now: bool = True, once: bool = False, every: str = "100 milliseconds", **given: str
    ) -> Any:
        writer = (
            self.source(**given)
            .writeStream.format("parquet")
            .option("path", str(self.folder / "out"))
            .option("checkpointLocation", str(self.folder / "checkpoint"))
        )
        if once:
            return writer.trigger(once=True).start()
        return (writer.trigger(availableNow=True) if now else writer.trigger(processingTime=every)).start()

    def run(self, *, once: bool = False, **given: str) -> list[int]:
        """Take what is there; the rows of each batch."""
        query = self.start(once=once, **given)
        assert query.awaitTermination(PATIENCE)
        return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]

    def rows(self) -> Any:
        return self.spark.read.parquet(str(self.folder / "out"))

    def bodies(self) -> Counter[bytes]:
        return Counter(bytes(row.body) for row in self.rows().select("body").collect())


@pytest.fixture
def pipe(spark: Any, peer: Peer, tmp_path: Path) -> Pipe:
    return Pipe(spark, peer, tmp_path)


def once(count: int) -> Counter[bytes]:
    return Counter(b"%d" % number for number in range(count))


def test_available_now_takes_what_is_there_in_limited_batches_and_ends(peer: Peer, pipe: Pipe) -> None:
    peer.put("q", numbered(2500))
    assert pipe.run(maxRowsPerTrigger="1000") == [1000, 1000, 500]
    assert peer.held("q") == 0
    assert pipe.bodies() == once(2500)
    peer.put("q", numbered(2510)[2500:])
    assert pipe.run(maxRowsPerTrigger="1000") == [10]
    assert pipe.bodies() == once(2510)


def test_once_takes_what_is_there_in_one_batch_in_the_first_run_and_in_others(peer: Peer, pipe: Pipe) -> None:
    peer.put("q", numbered(2500))
    assert pipe.run(once=True, maxRowsPerTrigger="1000") == [2500]
    assert peer.held("q") == 0
    peer.put("q", numbered(2510)[2500:])
    assert pipe.run(once=True, minRowsPerTrigger="100") == [10]
    assert pipe.run(once=True) == []
    assert pipe.bodies() == once(2510)


def test_octets_limit_a_batch(peer: Peer, pipe: Pipe) -> None:
    peer.put("q", [bytes(10_000)] * 60)
    sizes = pipe.run(maxBytesPerTrigger="200k", credit="20", minPartitions="3")
    assert sum(sizes) == 60
    assert max(sizes) <= 30


def test_queue_is_settled_while_spark_is_idle_and_the_process_ends_with_the_query(
    peer: Peer, pipe: Pipe
) -> None:
    peer.put("q", numbered(10))
    query = pipe.start(now=False)
    until(lambda: query.lastProgress is not None and peer.held("q") == 0)
    peer.put("q", numbered(13)[10:])
    until(lambda: peer.held("q") == 0)
    query.processAllAvailable()
    assert pipe.bodies() == once(13)
    query.stop()
    until(lambda: peer.receivers("q") == 0)
    assert pipe.run() == []  # the spool is free again, and all was consumed


def test_columns_arrive_as_they_were_sent(peer: Peer, pipe: Pipe) -> None:
    sent = amqp.Message("tea", message_id=7, subject="s", application_properties={"n": 1}, durable=True)
    peer.put("q", [sent])
    pipe.run(propertyTypes="true", includeRaw="true", bodyJson="true")
    (row,) = pipe.rows().collect()
    assert (row.body_text, row.body_type, row.body_json) == ("tea", "value", '"tea"')
    assert (row.properties.message_id, row.properties.message_id_type) == ("7", "ulong")
    assert row.application_properties == {"n": "1"}
    assert row.application_properties_types == {"n": "long"}
    assert row.header.durable
    assert (row.address, row.seq, row.peer) == (peer.address("q"), 0, peer.name)
    assert amqp.Message.from_payload(bytes(row.raw)).body == "tea"
    assert abs(row.received_at.timestamp() - time.time()) < 3600 * 24


def test_options_may_change_while_a_batch_is_journaled_and_unfinished(
    peer: Peer, pipe: Pipe, failures: Failures
) -> None:
    peer.put("q", numbered(20))
    pipe.run(columns="seq,body", maxRowsPerTrigger="10")
    peer.put("q", numbered(30)[20:])
    failures.crash("planned")
    with pytest.raises(StreamingQueryException):
        pipe.start(columns="seq,body").awaitTermination(PATIENCE)
    assert pipe.run(columns="body,properties", includeRaw="true", onDecodeError="reject") == [10]
    assert pipe.bodies() == once(30)


CHANGES: tuple[dict[str, str], ...] = (
    {"mode": "queue", "credit": "3", "columns": "body,seq"}
    | {
        "spool.maxBytes": "10k",
        "credit.maxBytes": "1k",
        "spool.flushRows": "1",
        "spool.flushInterval": "1ms",
    },
    {"includeRaw": "true", "propertyTypes": "true", "bodyJson": "true", "selector": "TRUE"}
    | {"spool.transport": "inline", "minPartitions": "3", "maxRowsPerTrigger": "2"},
    {"maps": "false", "propertyColumns": "n long", "onDecodeError": "reject", "sourceColumns": "true"}
    | {"lanes": "2", "backlogDelay": "5s"},
    {"durable": "true", "linkName": "mine", "containerId": "pipeline"}
    | {"dedup": "message-id", "dedup.window": "5000"},
    {"links": "3", "maxBytesPerTrigger": "200"}
    | {"minRowsPerTrigger": "3", "maxTriggerDelay": "1s"}
    | {"availableNowIdle": "1s", "availableNowTimeout": "60s"},
)
"""All options of a stream that may change between runs, each once.

These are all options but the spool and those of the peer.
"""


@lacks("selector")
def test_any_option_may_change_between_two_runs(server: Server, pipe: Pipe) -> None:
    of_the_peer = {each.metadata["name"] for each in fields(PeerOptions)}
    known = {each.metadata["name"] for each in fields(QueueOptions)}
    changed = Counter(name for given in CHANGES for name in given)
    assert {*changed} - of_the_peer == known - of_the_peer - {"spool"}
    assert {*changed.values()} == {1}
    sent = 0
    for given in CHANGES:
        server.put("q", numbered(sent + 5)[sent:])
        sent += 5
        assert sum(pipe.run(**given)) == 5, given
    assert pipe.bodies() == once(sent)


def test_batches_may_travel_without_a_shared_disk(peer: Peer, pipe: Pipe) -> None:
    peer.put("q", numbered(500))
    pipe.run(spool_transport="inline", columns="seq,body", minPartitions="2")
    assert pipe.bodies() == once(500)
    assert pipe.rows().columns == ["seq", "body"]


def test_spool_of_another_checkpoint_is_refused(peer: Peer, pipe: Pipe) -> None:
    peer.put("q", numbered(5))
    pipe.run()
    shutil.rmtree(pipe.spool)
    query = pipe.start()
    with pytest.raises(StreamingQueryException, match="the checkpoint belongs to the spool"):
        query.awaitTermination(PATIENCE)


def test_new_checkpoint_on_an_old_spool_begins_with_the_last_batch_of_the_old_one(
    peer: Peer, pipe: Pipe
) -> None:
    peer.put("q", numbered(30))
    assert pipe.run(maxRowsPerTrigger="10") == [10, 10, 10]
    peer.put("q", numbered(35)[30:])
    for folder in ("checkpoint", "out"):
        shutil.rmtree(pipe.folder / folder)
    assert pipe.run() == [15]
    assert pipe.bodies() == Counter(b"%d" % number for number in range(20, 35))


def test_two_queries_with_spools_of_their_own_share_a_queue(spark: Any, peer: Peer, tmp_path: Path) -> None:
    one, two = Pipe(spark, peer, tmp_path / "one"), Pipe(spark, peer, tmp_path / "two")
    peer.address("q")
    queries = [each.start(now=False, credit="10") for each in (one, two)]
    until(lambda: peer.receivers("q") == 2)
    peer.put("q", numbered(300))
    until(lambda: peer.held("q") == 0)
    for query in queries:
        query.processAllAvailable()
        query.stop()
    shares = [each.bodies() for each in (one, two)]
    assert sum(shares, Counter[bytes]()) == once(300)
    assert all(shares)


def test_condition_of_the_peer_is_in_the_error_of_the_query(peer: Peer, pipe: Pipe) -> None:
    query = pipe.start(now=False, address=peer.missing())
    with pytest.raises(StreamingQueryException, match=r"amqp:not-found: no (node|queue) '"):
        query.awaitTermination(PATIENCE)


@lacks("nobody")
def test_wrong_option_is_an_error_that_names_those_there_are(pipe: Pipe) -> None:
    with pytest.raises(Exception, match="no option 'credits' is known here"):
        pipe.source(credits="5")


@lacks("nobody")
def test_password_is_in_no_plan(pipe: Pipe, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pipe.source(url="amqp://ada:enigma@127.0.0.1:1")
    frame.explain(True)
    shown = capsys.readouterr().out
    assert "amqp10" in shown
    assert "enigma" not in shown


def test_full_spool_does_not_stop_a_query_for_good(peer: Peer, pipe: Pipe) -> None:
    peer.put("q", [b"%d" % number + bytes(2000) for number in range(300)])
    sizes = pipe.run(spool_maxBytes="100k", credit="20")
    assert sum(sizes) == 300
    assert len(sizes) > 2


def test_crash_of_the_reader_loses_nothing(peer: Peer, pipe: Pipe, failures: Failures) -> None:
    """At each place where it matters; the ids know what came twice."""
    count = 0
    for place in ("written", "synced", "settled", "offset", "planned"):
        peer.put("q", numbered(count + 60)[count:])
        count += 60
        failures.crash(place)
        query = pipe.start(credit="20", dedup="message-id", maxRowsPerTrigger="100")
        with pytest.raises(StreamingQueryException):
            query.awaitTermination(PATIENCE)
        assert failures.crashed(place), place
    until(lambda: peer.receivers("q") == 0)
    pipe.run(credit="20", dedup="message-id")
    assert pipe.bodies() == once(count)
    assert peer.held("q") == 0


def test_crash_between_disk_and_settlement_repeats_what_was_unsettled_and_no_more(
    peer: Peer, pipe: Pipe, failures: Failures
) -> None:
    peer.put("q", numbered(500))
    failures.crash("synced")
    query = pipe.start(credit="100")
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(PATIENCE)
    until(lambda: peer.receivers("q") == 0)
    pipe.run(credit="100")
    found = pipe.bodies()
    assert {*found} == {*once(500)}
    assert 0 < sum(found.values()) - 500 <= 100


def test_few_rows_wait_for_more_but_not_for_ever(peer: Peer, pipe: Pipe) -> None:
    peer.put("q", numbered(30))
    query = pipe.start(now=False, minRowsPerTrigger="20", maxTriggerDelay="1s", columns="seq,body")
    until(lambda: sum(each["numInputRows"] for each in query.recentProgress) == 30)
    began = time.monotonic()
    peer.put("q", numbered(35)[30:])
    until(lambda: sum(each["numInputRows"] for each in query.recentProgress) == 35)
    assert time.monotonic() - began >= 1.0
    query.stop()
    assert pipe.bodies() == once(35)
