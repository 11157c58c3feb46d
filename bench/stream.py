"""One message larger than memory, from one process to another: throughput, and how much each of them grows.

Growth is that of the high-water mark of the resident set, from just before the message begins until it is
settled. ``--slow`` has the reader sleep now and then, so that the back-pressure is what is measured.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

import trio

import trio_amqp10 as amqp

BLOCK = 64 * 1024
MIB = 1024 * 1024


def peak() -> int:
    """Octets: the most that was ever resident of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def receive(slow: bool) -> None:
    """Print a URL, read one message there, print what it was and how much we grew."""
    done = trio.Event()

    async def handle(connection: amqp.Connection) -> None:
        async for link in connection.incoming_links():
            assert isinstance(link, amqp.IncomingReceiver)
            async with link.accept(streaming=True) as receiver:
                warm_up = await receiver.receive()
                warm_up.accept()
                before = peak()
                delivery = await receiver.receive()
                size = 0
                async for chunk in delivery.chunks():
                    if slow and size // (4 * MIB) != (size + len(chunk)) // (4 * MIB):
                        await trio.sleep(0.02)
                    size += len(chunk)
                delivery.accept()
                print(json.dumps({"size": size, "grown": peak() - before}), flush=True)
                done.set()
                await receiver.aclose()

    async with trio.open_nursery() as nursery:
        listeners: Any = await nursery.start(amqp.serve, handle, "amqp://127.0.0.1:0")
        print(listeners[0].url, flush=True)
        await done.wait()
        await trio.sleep(0.1)  # the disposition is on its way
        nursery.cancel_scope.cancel()


async def send(url: str, size: int, known: bool) -> dict[str, Any]:
    """Send one message of ``size`` octets; what it took."""
    block = bytes(BLOCK)
    async with amqp.open_connection(url) as connection, connection.open_sender("bench") as sender:
        await sender.send(block)
        before, began = peak(), time.perf_counter()
        async with sender.stream(size if known else None) as body:
            for left in range(size, 0, -BLOCK):
                await body.send_all(block[:left])
        return {"grown": peak() - before, "seconds": time.perf_counter() - began}


def measure(size: int, *, slow: bool = False, known: bool = False) -> dict[str, Any]:
    """Both sides, each in a process of its own."""
    here = [sys.executable, "-m", "bench.stream", "--size", str(size)]
    flags = [*(["--slow"] if slow else []), *(["--known"] if known else [])]
    with subprocess.Popen([*here, *flags, "--one", "receive"], stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        url = receiver.stdout.readline().strip()
        sender = subprocess.run(
            [*here, *flags, "--one", "send", "--url", url], check=True, capture_output=True, text=True
        )
        return {"receiver": json.loads(receiver.stdout.readline()), "sender": json.loads(sender.stdout)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=1024 * MIB, help="octets of the message")
    parser.add_argument("--known", action="store_true", help="say its length beforehand")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", choices=["send", "receive"], help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one == "receive":
        trio.run(receive, arguments.slow)
    elif arguments.one == "send":
        print(json.dumps(trio.run(send, arguments.url, arguments.size, arguments.known)))
    else:
        found = measure(arguments.size, slow=arguments.slow, known=arguments.known)
        if arguments.json:
            print(json.dumps(found))
            return
        sender, receiver = found["sender"], found["receiver"]
        rate = arguments.size / sender["seconds"] / MIB
        print(f"{receiver['size'] / MIB:,.0f} MiB in one message: {rate:,.0f} MiB/s")
        for name, side in found.items():
            print(f"    the {name} grew by {side['grown'] / MIB:.1f} MiB")


if __name__ == "__main__":
    main()
