"""Messages through a queue of ``amqp10 serve``: transient beside durable, wall time and the server's processor time.

One sender and one receiver at once, on connections of their own, each message accepted; the server is a process of its own. Rounds
take turns, so that both kinds meet the same machine. The last figure is the wait of a lone durable message
for its ``accepted``: one commit and its way to the disk.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import trio

import trio_amqp10 as amqp

LONE = 200


async def through(url: str, count: int, size: int, *, durable: bool) -> float:
    """Seconds that ``count`` messages take from the first transfer to the last acceptance."""
    message = amqp.Message(bytes(size), durable=durable)

    async def receive() -> None:
        async with amqp.open_connection(url) as conn, conn.open_receiver("bench", credit=1000) as receiver:
            for _ in range(count):
                (await receiver.receive()).accept()

    start = time.perf_counter()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        async with amqp.open_connection(url) as conn, conn.open_sender("bench") as sender:
            deliveries = [await sender.transmit(message) for _ in range(count)]
            for delivery in deliveries:
                assert isinstance(await delivery.outcome(), amqp.Accepted)
    return time.perf_counter() - start


async def alone(url: str, size: int) -> float:
    """Median of the seconds that a durable message waits for its outcome where there is no other."""
    waits: list[float] = []
    async with amqp.open_connection(url) as conn, conn.open_sender("lone") as sender:
        for _ in range(LONE):
            start = time.perf_counter()
            await sender.send(amqp.Message(bytes(size), durable=True))
            waits.append(time.perf_counter() - start)
    return statistics.median(waits)


def processor_time(pid: int) -> float:
    """Seconds of user and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as folder:  # a file system of its own kind may be in memory
        serve = ["serve", "--listen", "amqp://127.0.0.1:0", "--store", str(Path(folder) / "store")]
        command = [sys.executable, "-m", "trio_amqp10", *serve]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = server.stdout.readline().split()[1]
            found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
            for _ in range(arguments.rounds):
                for durable, figures in found.items():
                    before = processor_time(server.pid)
                    seconds = trio.run(lambda: through(url, arguments.count, arguments.size, durable=durable))  # noqa: B023
                    figures.append((seconds, processor_time(server.pid) - before))
            wait = trio.run(alone, url, arguments.size)
            server.terminate()
    print(f"{'':12}{'messages':>12}{'server':>14}")
    print(f"{'':12}{'a second':>12}{'us/message':>14}")
    walls: dict[bool, float] = {}
    costs: dict[bool, float] = {}
    for durable, figures in found.items():
        walls[durable] = statistics.median(seconds for seconds, _ in figures)
        costs[durable] = statistics.median(cost for _, cost in figures)
        rate, cost = arguments.count / walls[durable], costs[durable] / arguments.count * 1e6
        print(f"{'durable' if durable else 'transient':12}{rate:12,.0f}{cost:14.1f}")
    print(f"{'ratio':12}{walls[True] / walls[False]:12.1f}{costs[True] / costs[False]:14.1f}")
    print(f"a lone durable message is accepted after {wait * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
