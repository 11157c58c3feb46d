"""How many calls one message takes through a queue and between protocols, and one received chunk to the links it touches.

``python -m bench.path`` prints them, and in how many files they are; ``--list`` prints each call. They are counted with ``sys.setprofile``, in Python
functions of this package, so that they are the same on every machine:

=========  ======================================================================================
message    from the first call of the inlet that is woken (``wake``) to the call of the engine that
           sends the transfer to the receiver, both included; the queue is in memory
chunk      from the call by which the pump hands the engine what it read, the octets of one transfer,
           to the last before the inlet is woken
crossing   from the call by which the pump hands the engine the octets of a publish of AMQP 0-9-1, to
           that of the engine of AMQP 1.0 that sends the message to a receiver
=========  ======================================================================================

Nothing here is a figure of time.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import trio
import trio.testing

import trio_amqp10 as amqp
from trio_amqp10 import amqp091

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import FrameType

WOKEN = "ReceiverInlet.wake"
SENT = "SenderLink.send"
FED = "Pump.feed"
"""The functions between which is counted."""

_PACKAGE = str(Path(amqp.__file__).parent) + "/"


class Call(NamedTuple):
    """One call of a Python function of the package.

    Attributes:
        file: where it is, from the package.
        function: its name, with its class.
        depth: of the stack, from the first that was recorded.
    """

    file: str
    function: str
    depth: int


class Paths(NamedTuple):
    """What was measured.

    Attributes:
        message: the calls of one message through a queue.
        chunk: the calls of one received chunk.
        crossing: the calls of one message from AMQP 0-9-1 to AMQP 1.0.
    """

    message: list[Call]
    chunk: list[Call]
    crossing: list[Call]


class _Recorder:
    """Notes the calls of this package, in the thread that starts it."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._depth = 0

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            self._depth += 1
            path = frame.f_code.co_filename
            if path.startswith(_PACKAGE):
                call = Call(path.removeprefix(_PACKAGE), frame.f_code.co_qualname, self._depth)
                self.calls.append(call)
        elif event == "return":
            self._depth -= 1


async def measure() -> Paths:
    """Send one message through a queue in memory to a receiver that waits, in two ways, and note the calls.

    Cancelled: nothing is measured, and nothing is left.
    """
    same, crossing = await _same_protocol(), await _from_0_9_1()
    return Paths(_message(same), _chunk(same), _crossing(crossing))


async def _same_protocol() -> list[Call]:
    """Send to the queue of a container by AMQP 1.0."""
    container = amqp.Container("path")
    container.add_queue("q")
    async with (
        container.connect() as to,
        container.connect() as back,
        to.open_sender("q") as sender,
        back.open_receiver("q", credit=100) as receiver,
    ):

        async def send() -> None:
            await sender.send(b"x")

        return await _calls(send, receiver)


async def _from_0_9_1() -> list[Call]:
    """Publish to the queue of a container by AMQP 0-9-1."""
    container = amqp.Container("path")
    container.add_queue("q")
    calls: list[Call] = []
    async with trio.open_nursery() as nursery:
        serve = partial(container.serve, "amqp://127.0.0.1:0", dialects="all")
        url = (await nursery.start(serve))[0].url
        async with (
            amqp091.open_connection(url) as client,
            client.open_channel() as channel,
            container.connect() as back,
            back.open_receiver("q", credit=100) as receiver,
        ):

            async def publish() -> None:
                await channel.publish("", "q", b"x")

            calls = await _calls(publish, receiver)
        nursery.cancel_scope.cancel()
    return calls


async def _calls(send: Callable[[], Awaitable[None]], receiver: amqp.Receiver) -> list[Call]:
    """Send a message and receive it; return the calls."""
    for _ in range(20):  # so that nothing happens for the first time
        await send()
        (await receiver.receive()).accept()
    await trio.testing.wait_all_tasks_blocked()
    recorder = _Recorder()
    sys.setprofile(recorder)
    try:
        await send()
        delivery = await receiver.receive()
    finally:
        sys.setprofile(None)
    delivery.accept()
    return recorder.calls


def _message(calls: list[Call]) -> list[Call]:
    woken = _last(calls, WOKEN)
    sent = next(place for place in range(woken, len(calls)) if calls[place].function == SENT)
    return calls[woken : sent + 1]


def _chunk(calls: list[Call]) -> list[Call]:
    woken = _last(calls, WOKEN)
    return calls[_last(calls[:woken], FED) : woken]


def _crossing(calls: list[Call]) -> list[Call]:
    sent = next(place for place, call in enumerate(calls) if call.function == SENT)
    return calls[_last(calls[:sent], FED) : sent + 1]


def _last(calls: list[Call], function: str) -> int:
    """Where this was called last."""
    return max(place for place, call in enumerate(calls) if call.function == function)


def main(arguments: list[str] | None = None) -> None:
    """Print what is measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.path", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print each call")
    listed = parser.parse_args(arguments).list
    for name, path in trio.run(measure)._asdict().items():
        print(f"{name}: {len(path)} calls, {len({call.file for call in path})} files")
        for call in path if listed else ():
            print(f"  {'  ' * (call.depth - path[0].depth)}{call.file} {call.function}")


if __name__ == "__main__":
    main()
