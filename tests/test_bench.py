"""The measurements run, and give figures; what the figures are is for `make bench` to say."""

from __future__ import annotations

from bench import memory, throughput
from trio_amqp10.cli.bench_sides import Side


def test_throughput_measures_both_ends_of_a_pair() -> None:
    side = Side(
        role="", url=None, address="bench", count=200, probes=0, size=100, presettled=False, credit=50
    )
    found = throughput.measure([("ours", "ours")], side, rounds=1)
    assert all(figure > 0 for figure in found["ours", "ours"].values())


def test_memory_measures_links_and_connections() -> None:
    for what, least in (("links", 500), ("connections", 5_000)):
        assert least < memory.run_one(what, 50, ["--trace"]) < 100_000
