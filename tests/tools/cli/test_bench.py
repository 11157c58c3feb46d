"""amqp10 bench measures both sides, with and without a peer."""

from __future__ import annotations

import json

from tests.ports import free_port

from .conftest import (
    amqp10,
    done,
)


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
