"""Logs are read again by number, and losses are distinguished from gaps."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.spark.connection_pool import run_in_pool
from trio_amqp10.spark.offset_reader import DataLossError, find_at_moments, find_ends, find_starts, read
from trio_amqp10.spark.options import LogOptions, Moment, OptionError

from .desk import until
from .peers import lacks

if TYPE_CHECKING:
    from .logs import LogServer
    from .peers import Logs, Peer


FORGETTING = lacks("forgetting")


def options(logs: Logs, **given: str) -> LogOptions:
    return LogOptions.parse(
        {"url": logs.url, "address": logs.address("log"), "mode": "log", "columns": "seq,body"} | given
    )


def rows(logs: Logs, start: int, stop: int, **given: str) -> list[tuple[int, bytes]]:
    batches = read(options(logs, **given), logs.address("log"), start, stop)
    return [(row["seq"], row["body"]) for batch in batches for row in batch.to_pylist()]


def numbered(start: int, stop: int) -> list[tuple[int, bytes]]:
    return [(number, b"%d" % number) for number in range(start, stop)]


def test_range_is_read_the_same_however_often(logs: Logs) -> None:
    logs.fill("log", 5000)
    for _ in range(2):
        assert rows(logs, 100, 4100, credit="300") == numbered(100, 4100)


def test_ends_and_starts_are_found(logs: Logs) -> None:
    given, log = options(logs), logs.address("log")
    assert run_in_pool(find_ends, given) == run_in_pool(find_starts, given) == {log: 0}
    logs.fill("log", 50)
    assert run_in_pool(find_ends, given) == {log: 50}
    assert run_in_pool(find_starts, given) == {log: 0}


def test_ends_of_several_logs_are_found_at_once(logs: Logs) -> None:
    logs.fill("log", 3)
    log, other = logs.address("log"), logs.address("other")
    given = LogOptions.parse({"url": logs.url, "addresses": f"{log}, {other}", "mode": "log"})
    assert run_in_pool(find_ends, given) == {log: 3, other: 0}


@FORGETTING
def test_log_may_begin_later(log_server: LogServer) -> None:
    log_server.fill("log", 50)
    log_server.logs["log"].forget(20)
    assert run_in_pool(find_ends, options(log_server)) == {"log": 50}
    assert run_in_pool(find_starts, options(log_server)) == {"log": 20}


@FORGETTING
def test_gap_is_no_loss(log_server: LogServer) -> None:
    log_server.fill("log", 30)
    for number in (10, 11, 20):
        del log_server.logs["log"].messages[number]
    assert rows(log_server, 10, 25) == [pair for pair in numbered(12, 25) if pair[0] != 20]


@FORGETTING
def test_messages_that_the_log_forgot_are_an_error_or_a_warning(log_server: LogServer) -> None:
    log_server.fill("log", 30)
    log_server.logs["log"].forget(20)
    with pytest.raises(DataLossError, match=r"messages 10 to 19 .* begins with 20 now"):
        rows(log_server, 10, 25)
    assert rows(log_server, 10, 25, failOnDataLoss="false") == numbered(20, 25)
    with pytest.raises(DataLossError, match="messages 5 to 9"):
        rows(log_server, 5, 10)
    assert rows(log_server, 5, 10, failOnDataLoss="false") == []


@FORGETTING
def test_log_that_is_empty_now_has_lost_the_rows_after_a_checkpoint(log_server: LogServer) -> None:
    log_server.fill("log", 10)
    log_server.logs["log"].forget(10)
    given = {"readTimeout": "200ms"}
    with pytest.raises(DataLossError):
        rows(log_server, 5, 10, **given)
    assert rows(log_server, 5, 10, failOnDataLoss="false", **given) == []


def now() -> int:
    return time.time_ns() // 1_000_000


def test_first_message_of_a_time_is_found(logs: Logs) -> None:
    given, log = options(logs), logs.address("log")
    long_ago = now() - 3_600_000
    assert run_in_pool(find_at_moments, given, {log: long_ago}) == {log: 0}
    logs.fill("log", 20)
    written = now()
    until(lambda: now() // 1000 > written // 1000 + 1)  # RabbitMQ reads times as whole seconds
    between = now()
    logs.fill("log", 5)
    assert run_in_pool(find_at_moments, given, {log: long_ago}) == {log: 0}
    assert run_in_pool(find_at_moments, given, {log: between}) == {log: 20}
    assert run_in_pool(find_at_moments, given, {log: now() + 3_600_000}) == {log: 25}


def test_reader_that_is_left_stops_receiving(logs: Logs) -> None:
    logs.fill("log", 30_000)
    batches = read(options(logs), logs.address("log"), 0, 30_000)
    assert next(batches).num_rows > 0
    batches.close()  # type: ignore[attr-defined]
    assert rows(logs, 0, 10) == numbered(0, 10)


def test_queue_is_refused_and_keeps_its_messages(peer: Peer) -> None:
    peer.put("queue", [b"1", b"2", b"3"])
    given = LogOptions.parse({"url": peer.url, "address": peer.address("queue"), "mode": "log"})
    with pytest.raises(LocalProtocolError, match="is no log"):
        run_in_pool(find_ends, given)
    until(lambda: peer.receivers("queue") == 0)
    assert [message.body for message in peer.take("queue")] == [b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "the logs to read are missing, or given twice"),
        ({"address": "a", "addresses": "b"}, "the logs to read are missing, or given twice"),
        ({"address": "a", "mode": "queue"}, "for 'log'"),
        ({"address": "a", "selector": "x"}, "filter in Spark"),
        ({"address": "a", "startingOffsets": "soon"}, "earliest, latest, a number"),
        ({"address": "a", "startingOffsets": '{"a": -1}'}, "earliest, latest, a number"),
        ({"address": "a", "onDecodeError": "reject"}, "only possible for a stream from a queue"),
        ({"address": "a", "spool": "/s"}, "no option 'spool'"),
        ({"address": "a", "startingOffsets": "7", "startingTimestamp": "7"}, "exclude each other"),
        ({"address": "a", "endingOffsets": "7", "endingTimestamp": "7"}, "exclude each other"),
        ({"address": "a", "startingTimestamp": "yesterday"}, "a time with its zone"),
        ({"address": "a", "startingTimestamp": "2026-11-23T12:00:00"}, "a time with its zone"),
        ({"addressPattern": "/queues/a"}, r"one \*"),
        ({"addressPattern": "a-*"}, r"one \*"),
        ({"addressPattern": "/queues/a-*", "dialect": "event-hubs"}, "for 'rabbitmq'"),
        ({"superStreams": "a", "dialect": "event-hubs"}, "for 'rabbitmq'"),
        ({"address": "a", "partitionKeys": "x"}, "needs option 'superStreams'"),
    ],
)
def test_options_that_make_no_sense_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        LogOptions.parse({"url": "amqp://h", "mode": "log"} | given)


@pytest.mark.parametrize(
    ("text", "found"),
    [("1795432200000", 1795432200000), ("2026-11-23T12:30:00+01:00", 1795433400000)],
)
def test_time_is_milliseconds_or_has_a_zone(text: str, found: int) -> None:
    given = LogOptions.parse({"url": "amqp://h", "mode": "log", "address": "log", "startingTimestamp": text})
    assert given.start_of("log") == Moment(found)


@pytest.mark.parametrize(
    ("given", "check", "message"),
    [
        ({"endingOffsets": "latest"}, LogOptions.check_stream, "no end"),
        ({"endingTimestamp": "7"}, LogOptions.check_stream, "no end"),
        ({"maxRowsPerTrigger": "7"}, LogOptions.check_batch, "no triggers"),
        ({"minRowsPerTrigger": "7"}, LogOptions.check_batch, "no triggers"),
        ({"startingOffsets": "latest"}, LogOptions.check_batch, "has no rows"),
        ({"endingOffsets": "earliest"}, LogOptions.check_batch, "has no rows"),
    ],
)
def test_option_of_a_stream_is_refused_for_a_batch_and_the_reverse(
    given: dict[str, str], check: Any, message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        check(LogOptions.parse({"url": "amqp://h", "mode": "log", "address": "a"} | given))


@pytest.mark.parametrize(
    ("text", "found"), [("Latest", "latest"), ("7", 7), ('{"log": 5}', 5), ('{"other": 5}', "earliest")]
)
def test_starting_offsets_have_several_forms(text: str, found: Any) -> None:
    given = LogOptions.parse({"url": "amqp://h", "mode": "log", "address": "log", "startingOffsets": text})
    assert given.start_of("log") == found
