"""amqp10 bench measures both sides, with and without a peer."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from tests.ports import free_port

from .conftest import (
    amqp10,
    done,
    interrupt,
    serving,
    start,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_bench_measures_both_sides_without_a_peer() -> None:
    figures = json.loads(done("bench", "--count", "500", "--size", "64", "--json"))
    assert (figures["count"], figures["size"], figures["presettled"]) == (500, 64, False)
    for name in (
        "messages_per_second",
        "sender_cpu_us",
        "receiver_cpu_us",
        "latency_p50_us",
        "latency_p99_us",
    ):
        assert figures[name] > 0


def test_bench_measures_against_a_peer(queue: str) -> None:
    shown = done("bench", queue, "--count", "200", "--presettled").decode()
    assert "200 messages of 100 octets, sent settled" in shown
    assert "throughput" in shown
    assert "at p99" in shown


def test_bench_fails_when_nobody_listens() -> None:
    assert amqp10("bench", f"amqp://127.0.0.1:{free_port()}/q").returncode == 1


@pytest.mark.parametrize("presettled", [(), ("--presettled",)])
@pytest.mark.parametrize("dialect", ["1.0", "0-9-1"])
def test_bench_refuses_a_queue_that_holds_messages(
    queue: str, dialect: str, presettled: tuple[str, ...]
) -> None:
    done("send", queue, stdin=b"kept\n" * 3)
    url, _, name = queue.rpartition("/")
    target = (queue,) if dialect == "1.0" else (url, name, "--dialect", dialect)
    result = amqp10("bench", *target, "--count", "5", *presettled)
    assert result.returncode == 1
    assert b"holds messages, which the measurement would remove" in result.stderr
    assert b"may hold" not in result.stderr
    assert done("receive", queue, "--until-empty") == b"kept\n" * 3


@pytest.mark.parametrize("dialect", ["1.0", "0-9-1"])
def test_bench_ends_when_its_sender_fails(dialect: str, tmp_path: Path) -> None:
    rights = tmp_path / "rights.toml"
    rights.write_text('[[rights]]\nuser = "ada"\npermissions = "receive"\naddresses = "q"\n')
    with serving("--user", "ada:x", "--rights", str(rights), "--queue", "q") as url:
        place = url.replace("://", "://ada:x@")
        target = (f"{place}/q",) if dialect == "1.0" else (place, "q", "--dialect", dialect)
        result = amqp10("bench", *target, "--count", "5")
    assert result.returncode == 1
    assert b"the sender or the receiver failed; its error is printed above" in result.stderr


@pytest.mark.whole
def test_interrupted_bench_names_the_queue_with_its_messages(queue: str) -> None:
    bench = start("bench", queue, "--count", "10000000")
    name = queue.rpartition("/")[2]
    while not amqp10("browse", queue, "--count", "1").stdout:  # the measurement has not begun
        assert bench.poll() is None
    said = interrupt(bench, signal.SIGINT)[1].decode()
    assert said == (
        f"amqp10: interrupted; '{name}' may hold messages of this measurement: remove them before the next\n"
    )
    assert bench.returncode == 130
