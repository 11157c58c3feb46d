"""Processor time for each message, ours beside python-qpid-proton's, in one interleaved run.

The receiver listens, the sender dials it, each in a process of its own, with no broker between them. Wall time
moves with whatever else the machine does; user and system time of a process, between its first message and
its last, hardly do. So that is what is compared: the ratio of medians, proton's over ours.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trio_amqp10.cli.bench_processes import Side
from trio_amqp10.cli.certs import CertsOptions, certs

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
PROTON = Path(os.environ.get("PEERS", ROOT / ".peers")) / "proton/bin/python"
COMMANDS = {
    "ours": [sys.executable, "-m", "trio_amqp10.cli.bench_processes"],
    "proton": [str(PROTON), str(ROOT / "bench/proton_side.py")],
}
CASES = [
    (size, presettled, count)
    for size, count in ((100, 20_000), (10_240, 5_000))
    for presettled in (False, True)
]
DEADLINE = 120

Result = dict[str, float]


def run_pair(sender: str, receiver: str, side: Side) -> tuple[Result, Result]:
    """One measurement: what the sender found, and what the receiver did."""
    with start(receiver, replace(side, role="receive")) as listening:
        try:
            url = next(told(listening))["url"]
            with start(sender, replace(side, role="send", url=url)) as sending:
                try:
                    sent, received = result(sending), result(listening)
                finally:
                    end(sending)
        finally:
            end(listening)
    return sent, received


def start(who: str, side: Side) -> subprocess.Popen[str]:
    return subprocess.Popen([*COMMANDS[who], side.to_json()], stdout=subprocess.PIPE, text=True)


def end(process: subprocess.Popen[str]) -> None:
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()


def told(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)
    raise SystemExit(f"{process.args!r} ended without a result")


def result(process: subprocess.Popen[str]) -> Result:
    found: Result = next(line["result"] for line in told(process) if "result" in line)
    return found


def median(results: list[Result], what: str) -> float:
    return statistics.median(result[what] for result in results)


def measure(pairs: list[tuple[str, str]], side: Side, rounds: int) -> dict[tuple[str, str], dict[str, float]]:
    """Medians for each pair; the pairs take turns, so that all meet the same machine."""
    sent: dict[tuple[str, str], list[Result]] = {pair: [] for pair in pairs}
    received: dict[tuple[str, str], list[Result]] = {pair: [] for pair in pairs}
    for _, pair in itertools.product(range(rounds), pairs):
        one, other = run_pair(*pair, side)
        sent[pair].append(one)
        received[pair].append(other)
    return {
        pair: {
            "messages_per_second": median(received[pair], "messages_per_second"),
            "sender_us": median(sent[pair], "cpu_us"),
            "receiver_us": median(received[pair], "cpu_us"),
        }
        for pair in pairs
    }


def secured(side: Side, folder: Path) -> Side:
    """The same over TLS, with a certificate that is made here."""
    certs(
        CertsOptions(directory=str(folder), hosts=("127.0.0.1", "localhost"), clients=(), days=1, renew=False)
    )
    both = folder / "both.pem"
    both.write_bytes((folder / "server-key.pem").read_bytes() + (folder / "server.pem").read_bytes())
    return replace(side, certfile=str(both), cafile=str(folder / "ca.pem"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--credit", type=int, default=1000)
    parser.add_argument("--mixed", action="store_true", help="also each of the two against the other")
    parser.add_argument("--tls", action="store_true", help="over TLS, which counts on both sides")
    parser.add_argument("--json", action="store_true", help="one JSON object for each case")
    arguments = parser.parse_args()
    if not PROTON.exists():
        raise SystemExit("proton is not installed; run: tests/interop/install.sh proton")
    pairs = [("ours", "ours"), ("proton", "proton")]
    if arguments.mixed:
        pairs += [("ours", "proton"), ("proton", "ours")]
    if not arguments.json:
        print(f"{'':34}{'sender':>12}{'receiver':>12}{'messages':>14}")
        print(f"{'':34}{'us/message':>12}{'us/message':>12}{'a second':>14}")
    with tempfile.TemporaryDirectory() as folder:
        measure_all(pairs, arguments, Path(folder))


def measure_all(pairs: list[tuple[str, str]], arguments: argparse.Namespace, folder: Path) -> None:
    """All cases, each told when it is known."""
    for size, presettled, count in CASES:
        side = Side(
            role="",
            url=None,
            address="bench",
            count=count,
            probes=0,
            size=size,
            presettled=presettled,
            credit=arguments.credit,
        )
        if arguments.tls:
            side = secured(side, folder / f"{size}-{presettled}")
        found = measure(pairs, side, arguments.rounds)
        ours, proton = found["ours", "ours"], found["proton", "proton"]
        ratios = {key: proton[key] / ours[key] for key in ("sender_us", "receiver_us")}
        if arguments.json:
            cases = {f"{sender}->{receiver}": one for (sender, receiver), one in found.items()}
            case = {"size": size, "presettled": presettled, "tls": arguments.tls}
            print(json.dumps({**case, "pairs": cases, "ratio": ratios}))
            continue
        how = ("pre-settled" if presettled else "unsettled") + (", TLS" if arguments.tls else "")
        print(f"{size:,} octets, {how}, credit {arguments.credit}")
        for (sender, receiver), one in found.items():
            columns = f"{one['sender_us']:12.1f}{one['receiver_us']:12.1f}{one['messages_per_second']:14,.0f}"
            print(f"{f'    {sender} -> {receiver}':34}{columns}")
        print(f"{'    proton / ours':34}{ratios['sender_us']:12.1f}{ratios['receiver_us']:12.1f}", flush=True)


if __name__ == "__main__":
    main()
