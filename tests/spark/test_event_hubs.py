"""Logs that are the partitions of an event hub."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
import trio
from pyspark.errors import StreamingQueryException

import trio_amqp10 as amqp
from trio_amqp10.core.tokens import sign_sas
from trio_amqp10.spark import log_dialects
from trio_amqp10.spark.connection_pool import run_in_pool
from trio_amqp10.spark.log_dialects import LogError
from trio_amqp10.spark.offset_reader import DataLossError, find_at_moments, find_ends, find_starts, read
from trio_amqp10.spark.offset_stream import LogReader
from trio_amqp10.spark.options import LogOptions, OptionError, SinkOptions
from trio_amqp10.testing.azure_emulator import HubOptions
from trio_amqp10.testing.azure_emulator.constants import EPOCH

from .desk import PATIENCE, until
from .hubs import KEY, KEY_NAME, HubServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Options = Callable[..., LogOptions]


@pytest.fixture
def hubs() -> Iterator[HubServer]:
    rules = HubOptions(partition_count=2, max_events=1000, consumer_groups=("spark",))
    with HubServer(clicks=rules, other=HubOptions(partition_count=1)) as running:
        yield running


@pytest.fixture
def options(hubs: HubServer, tmp_path: Path) -> Options:
    return lambda **given: LogOptions.parse(hubs.options(tmp_path, **({"address": "clicks"} | given)))


def rows(options: LogOptions, start: int, stop: int, log: str = "clicks/Partitions/0") -> list[Any]:
    batches = read(options, log, start, stop)
    return [(row["address"], row["seq"], row["body"]) for batch in batches for row in batch.to_pylist()]


def numbered(start: int, stop: int, log: str = "clicks/Partitions/0") -> list[Any]:
    return [(log, number, b"%d" % number) for number in range(start, stop)]


def test_partitions_of_a_hub_are_found_with_where_they_begin_and_end(
    hubs: HubServer, options: Options
) -> None:
    both = ("clicks/Partitions/0", "clicks/Partitions/1")
    assert run_in_pool(find_ends, options()) == dict.fromkeys(both, 0)
    assert run_in_pool(find_starts, options()) == dict.fromkeys(both, 0)
    hubs.fill(0, 1200)
    hubs.fill(1, 3)
    assert run_in_pool(find_ends, options()) == dict(zip(both, (1200, 3), strict=True))
    assert run_in_pool(find_starts, options()) == dict(zip(both, (200, 0), strict=True))


def test_several_hubs_are_read_as_one(hubs: HubServer, options: Options) -> None:
    hubs.fill(0, 3, hub="other")
    found = LogOptions(**(vars(options()) | {"address": None, "addresses": ("other", "clicks")}))
    assert run_in_pool(find_ends, found) == {
        "other/Partitions/0": 3,
        "clicks/Partitions/0": 0,
        "clicks/Partitions/1": 0,
    }
    assert rows(found, 1, 3, "other/Partitions/0") == numbered(1, 3, "other/Partitions/0")


def test_range_of_a_partition_is_read_the_same_however_often(hubs: HubServer, options: Options) -> None:
    hubs.fill(0, 900)
    for group in ("$Default", "spark"):
        assert rows(options(consumerGroup=group, credit="100"), 0, 800) == numbered(0, 800)
    assert rows(options(), 899, 900) == numbered(899, 900)


def test_events_that_the_partition_forgot_are_an_error_or_a_warning(
    hubs: HubServer, options: Options
) -> None:
    hubs.fill(0, 1100)
    with pytest.raises(DataLossError, match=r"messages 90 to 99 .* begins with 100 now"):
        rows(options(), 90, 110)
    assert rows(options(failOnDataLoss="false"), 90, 110) == numbered(100, 110)


def test_partition_that_holds_nothing_any_more_has_lost_what_a_checkpoint_means(
    hubs: HubServer, options: Options
) -> None:
    hubs.fill(0, 10)
    partition = hubs.namespace.hubs["clicks"].partitions["0"]
    partition._events.clear()
    assert run_in_pool(find_starts, options())["clicks/Partitions/0"] == 10
    with pytest.raises(DataLossError, match="begins with 10 now"):
        rows(options(readTimeout="200ms"), 5, 10)


def test_event_that_does_not_come_is_no_loss_where_the_partition_begins_with_it(
    hubs: HubServer, options: Options
) -> None:
    hubs.fill(0, 1)
    given = options(readTimeout="200ms", **{"reconnect.timeout": "100ms"})
    with pytest.raises(amqp.AmqpError, match=r"messages 1 to 4 .* did not come"):
        rows(given, 0, 5)


def test_first_event_of_a_time_is_found(hubs: HubServer, options: Options) -> None:
    log, other = "clicks/Partitions/0", "clicks/Partitions/1"
    hubs.fill(0, 3)
    events = hubs.namespace.hubs["clicks"].partitions["0"]._events
    first = events[0].enqueued
    until(lambda: time.time() * 1000 > events[-1].enqueued + 1)
    between = events[-1].enqueued + 1
    hubs.fill(0, 2)
    given = options()
    assert run_in_pool(find_at_moments, given, {log: first, other: first}) == {log: 0, other: 0}
    assert run_in_pool(find_at_moments, given, {log: between}) == {log: 3}
    assert run_in_pool(find_at_moments, given, {log: between + 3_600_000}) == {log: 5}


def test_event_of_a_time_that_does_not_come_is_an_error(hubs: HubServer, options: Options) -> None:
    hubs.fill(0, 3)
    partition = hubs.namespace.hubs["clicks"].partitions["0"]
    partition.last_enqueued += 60_000  # of an event that is not received
    given = options(readTimeout="200ms", **{"reconnect.timeout": "100ms"})
    with pytest.raises(amqp.AmqpError, match="no event of 'clicks/Partitions/0' came"):
        run_in_pool(find_at_moments, given, {"clicks/Partitions/0": partition.last_enqueued})


def test_no_epoch_is_ever_asked_for(hubs: HubServer, options: Options) -> None:
    hubs.fill(0, 5)
    owner = sign_sas("sb://127.0.0.1/", KEY_NAME, KEY, 4_000_000_000)

    async def main() -> None:
        address = "clicks/ConsumerGroups/spark/Partitions/0"
        async with amqp.open_connection(hubs.url) as connection:
            await connection.put_token("sb://127.0.0.1/", owner)
            async with connection.open_receiver(address, properties={EPOCH: 0}):
                got = await trio.to_thread.run_sync(lambda: rows(options(), 0, 5))
                assert got == numbered(0, 5)
                with pytest.raises(amqp.AmqpError, match="so a receiver without an epoch is refused"):
                    await trio.to_thread.run_sync(lambda: rows(options(consumerGroup="spark"), 0, 5))

    trio.run(main)


@pytest.mark.parametrize(
    ("log", "start", "why"),
    [("clicks/Partitions/0", 50, "argument-error"), ("clicks/Partitions/7", 0, "argument-out-of-range")],
)
def test_place_that_there_is_not_is_an_error_at_once(
    options: Options, log: str, start: int, why: str
) -> None:
    with pytest.raises(amqp.LinkRefusedError, match=why):
        rows(options(), start, start + 10, log)


def test_hub_that_there_is_not_is_an_error(options: Options) -> None:
    with pytest.raises(LogError, match="amqp:not-found"):
        run_in_pool(find_ends, options(address="nothing"))


@pytest.mark.parametrize(("status", "kind"), [(503, OSError), (404, LogError), (None, LogError)])
def test_answer_that_is_none_says_whether_it_may_pass(status: Any, kind: type[Exception]) -> None:
    reply = amqp.Message(None, application_properties={"status-code": status, "status-description": "why"})
    with pytest.raises(kind, match="why"):
        log_dialects._answer(reply, {"name": "clicks"})


def test_key_that_is_wrong_is_an_error_at_once(options: Options) -> None:
    with pytest.raises(amqp.AmqpError, match="signature"):
        run_in_pool(find_ends, options(key="another"))


def test_reader_shares_rows_among_partitions_and_begins_where_it_is_told(
    hubs: HubServer, options: Options
) -> None:
    hubs.fill(0, 100)
    hubs.fill(1, 10)
    zero, one = "clicks/Partitions/0", "clicks/Partitions/1"
    reader = LogReader(options(startingOffsets=f'{{"{zero}": 7}}', maxRowsPerTrigger="20"))
    start = reader.initialOffset()
    assert start == {zero: 7, one: 0}
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert end == {zero: 17, one: 10}
    read_by = [(part.log, part.start, part.stop) for part in reader.partitions(start, end)]  # type: ignore[attr-defined]
    assert read_by == [(zero, 7, 17), (one, 0, 10)]
    assert LogReader(options(startingOffsets="latest")).initialOffset() == {zero: 100, one: 10}


def test_offset_of_a_partition_that_there_is_not_is_refused(options: Options) -> None:
    with pytest.raises(OptionError, match="names 0, and the logs are only clicks/Partitions/0, clicks"):
        LogReader(options(startingOffsets='{"0": 7}')).initialOffset()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"dialect": "kafka"}, "one of rabbitmq, event-hubs"),
        ({"consumerGroup": "audit"}, "is for 'event-hubs'"),
        ({"token": "sas"}, "needs a key for its signature"),
        ({"token": "sas", "username": "name"}, "needs a key for its signature"),
        ({"token": "jwt"}, "one of sas"),
    ],
)
def test_options_that_make_no_sense_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        LogOptions.parse({"url": "amqp://h", "mode": "log", "address": "a"} | given)


def test_key_of_a_token_is_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUBS_KEY", KEY)
    given = {"url": "amqps://h", "address": "a", "token": "sas", "username": "n", "secretEnv": "HUBS_KEY"}
    options = SinkOptions.parse(given)
    assert options.dial_url() == "amqps://h"
    assert KEY not in repr(options)


# With Spark ---------------------------------------------------------------------------------------


def test_hub_is_followed_by_spark_and_a_restart_goes_on(hubs: HubServer, spark: Any, tmp_path: Path) -> None:
    given = hubs.options(
        tmp_path, address="clicks", consumerGroup="spark", maxRowsPerTrigger="100", minPartitions="3"
    )
    out, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")

    def run(**more: str) -> list[int]:
        source = spark.readStream.format("amqp10").options(**(given | more))
        writer = source.load().writeStream.format("parquet").option("path", out)
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        assert query.awaitTermination(PATIENCE)
        return [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]

    hubs.fill(0, 250)
    hubs.fill(1, 30)
    assert run() == [100, 100, 80]
    hubs.fill(1, 5)
    assert run() == [5]
    hubs.fill(0, 1100)  # the first hundred of them are gone before anybody reads them
    with pytest.raises(
        StreamingQueryException, match=r"messages \d+ to \d+ of 'clicks/Partitions/0' are not"
    ):
        run()
    assert sum(run(failOnDataLoss="false", maxRowsPerTrigger="5000")) == 1000
    rows = spark.read.parquet(out).collect()
    assert sorted((row.address, row.seq, bytes(row.body)) for row in rows) == [
        *numbered(0, 250),
        *numbered(350, 1350),
        *numbered(0, 35, "clicks/Partitions/1"),
    ]


def test_rows_are_sent_to_a_hub_in_the_name_of_a_key(hubs: HubServer, spark: Any, tmp_path: Path) -> None:
    given = hubs.options(tmp_path, address="clicks")
    for name in ("mode", "dialect", "columns"):
        del given[name]
    frame = spark.createDataFrame([(f"click {number}",) for number in range(20)], "body string")
    frame.write.format("amqp10").options(bodyType="data", **given).mode("append").save()
    partitions = hubs.namespace.hubs["clicks"].partitions.values()
    sent = [each.body for partition in partitions for each in partition.messages]
    assert sorted(sent) == sorted(b"click %d" % number for number in range(20))
