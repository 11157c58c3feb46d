"""The measurements run, and give figures; what the figures are is for `make bench` to say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench import memory, stream, throughput
from trio_amqp10.cli.bench_processes import Side

if TYPE_CHECKING:
    from pathlib import Path


def test_throughput_measures_both_ends_of_a_pair() -> None:
    side = Side(
        role="", url=None, address="bench", count=200, probes=0, size=100, presettled=False, credit=50
    )
    found = throughput.measure([("ours", "ours")], side, rounds=1)
    assert all(figure > 0 for figure in found["ours", "ours"].values())


def test_throughput_measures_over_tls(tmp_path: Path) -> None:
    side = Side(
        role="", url=None, address="bench", count=200, probes=0, size=100, presettled=False, credit=50
    )
    secured = throughput.secured(side, tmp_path)
    with throughput.start("ours", throughput.replace(secured, role="receive")) as listening:
        assert next(throughput.told(listening))["url"].startswith("amqps://")
        listening.kill()
    found = throughput.measure([("ours", "ours")], secured, rounds=1)
    assert all(figure > 0 for figure in found["ours", "ours"].values())


def test_memory_measures_links_and_connections() -> None:
    for what, least in (("links", 500), ("connections", 5_000)):
        assert least < memory.run_one(what, 50, ["--trace"]) < 100_000


def test_stream_larger_than_memory_leaves_both_ends_small() -> None:
    size = 64 * 1024 * 1024
    found = stream.measure(size, slow=True)
    assert found["receiver"]["size"] == size
    assert found["receiver"]["grown"] < 16 * 1024 * 1024
    assert found["sender"]["grown"] < 16 * 1024 * 1024
