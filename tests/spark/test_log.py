"""Logs: read again by number, and losses told from gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trio_amqp10.errors import LocalProtocolError
from trio_amqp10.spark.log import DataLossError, find_ends, find_starts, read
from trio_amqp10.spark.options import LogOptions, OptionError
from trio_amqp10.spark.pool import run_in_pool

from .logs import Log, LogServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .server import Server


@pytest.fixture
def peer() -> Iterator[LogServer]:
    with LogServer() as running:
        running.logs["log"] = Log()
        yield running


def options(peer: LogServer, **given: str) -> LogOptions:
    return LogOptions.parse({"url": peer.url, "address": "log", "mode": "log", "columns": "seq,body"} | given)


def rows(peer: LogServer, start: int, stop: int, **given: str) -> list[tuple[int, bytes]]:
    batches = read(options(peer, **given), "log", start, stop)
    return [(row["seq"], row["body"]) for batch in batches for row in batch.to_pylist()]


def numbered(start: int, stop: int) -> list[tuple[int, bytes]]:
    return [(number, b"%d" % number) for number in range(start, stop)]


def fill(peer: LogServer, count: int) -> Log:
    log = peer.logs["log"]
    log.add(*[b"%d" % number for number in range(log.end, log.end + count)])
    return log


def test_range_is_read_the_same_however_often(peer: LogServer) -> None:
    fill(peer, 5000)
    for _ in range(2):
        assert rows(peer, 100, 4100, credit="300") == numbered(100, 4100)


def test_ends_and_starts_are_found(peer: LogServer) -> None:
    given = options(peer)
    assert run_in_pool(find_ends, given) == run_in_pool(find_starts, given) == {"log": 0}
    fill(peer, 50).forget(20)
    assert run_in_pool(find_ends, given) == {"log": 50}
    assert run_in_pool(find_starts, given) == {"log": 20}


def test_ends_of_several_logs_are_found_at_once(peer: LogServer) -> None:
    fill(peer, 3)
    peer.logs["other"] = Log()
    given = LogOptions.parse({"url": peer.url, "addresses": "log, other", "mode": "log"})
    assert run_in_pool(find_ends, given) == {"log": 3, "other": 0}


def test_gap_is_no_loss(peer: LogServer) -> None:
    log = fill(peer, 30)
    for number in (10, 11, 20):
        del log.messages[number]
    assert rows(peer, 10, 25) == [pair for pair in numbered(12, 25) if pair[0] != 20]


def test_messages_that_the_log_forgot_are_an_error_or_a_warning(peer: LogServer) -> None:
    fill(peer, 30).forget(20)
    with pytest.raises(DataLossError, match=r"messages 10 to 19 .* begins with 20 now"):
        rows(peer, 10, 25)
    assert rows(peer, 10, 25, failOnDataLoss="false") == numbered(20, 25)
    with pytest.raises(DataLossError, match="messages 5 to 9"):
        rows(peer, 5, 10)
    assert rows(peer, 5, 10, failOnDataLoss="false") == []


def test_log_that_is_empty_now_has_lost_what_a_checkpoint_means(peer: LogServer) -> None:
    fill(peer, 10).forget(10)
    given = {"readTimeout": "200ms"}
    with pytest.raises(DataLossError):
        rows(peer, 5, 10, **given)
    assert rows(peer, 5, 10, failOnDataLoss="false", **given) == []


def test_reader_that_is_left_stops_receiving(peer: LogServer) -> None:
    fill(peer, 30_000)
    batches = read(options(peer), "log", 0, 30_000)
    assert next(batches).num_rows > 0
    batches.close()  # type: ignore[attr-defined]
    assert rows(peer, 0, 10) == numbered(0, 10)


def test_node_that_is_no_log_is_refused(server: Server) -> None:
    server.queue("log")
    given = LogOptions.parse({"url": server.url, "address": "log", "mode": "log"})
    with pytest.raises(LocalProtocolError, match="'log' is no log"):
        run_in_pool(find_ends, given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "which logs"),
        ({"address": "a", "addresses": "b"}, "which logs"),
        ({"address": "a", "mode": "queue"}, "for 'log'"),
        ({"address": "a", "selector": "x"}, "filter in Spark"),
        ({"address": "a", "startingOffsets": "soon"}, "earliest, latest, a number"),
        ({"address": "a", "startingOffsets": '{"a": -1}'}, "earliest, latest, a number"),
        ({"address": "a", "onDecodeError": "reject"}, "rejects nothing"),
        ({"address": "a", "spool": "/s"}, "no option 'spool'"),
    ],
)
def test_options_that_make_no_sense_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        LogOptions.parse({"url": "amqp://h", "mode": "log"} | given)


@pytest.mark.parametrize(
    ("text", "found"), [("Latest", "latest"), ("7", 7), ('{"log": 5}', 5), ('{"other": 5}', "earliest")]
)
def test_starting_offsets_may_be_said_in_several_ways(text: str, found: Any) -> None:
    given = LogOptions.parse({"url": "amqp://h", "mode": "log", "address": "log", "startingOffsets": text})
    assert given.first_of("log") == found
