"""How many calls, in how many files, one message takes through a queue, and one received chunk to the links it touches.

``python -m bench.path`` prints both; ``--list`` prints each call. They are counted with ``sys.setprofile``, in Python
functions of this package, so that they are the same on every machine:

=========  ======================================================================================
message    from the first call of the inlet that is woken (``wake``) to the call of the engine that
           sends the transfer to the receiver, both included; the queue is in memory
chunk      from the call by which the pump hands the engine what it read, the octets of one transfer,
           to the last before the inlet is woken
=========  ======================================================================================

Nothing here is a figure of time.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import trio
import trio.testing

import trio_amqp10 as amqp

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["Call", "Paths", "main", "measure"]

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
    """

    message: list[Call]
    chunk: list[Call]


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
    """Send one message through a queue in memory to a receiver that waits, and note the calls.

    Cancelled: nothing is measured, and nothing is left.
    """
    container = amqp.Container("path")
    container.add_queue("q")
    async with (
        container.connect() as to,
        container.connect() as back,
        to.open_sender("q") as sender,
        back.open_receiver("q", credit=100) as receiver,
    ):
        for _ in range(20):  # so that nothing happens for the first time
            await sender.send(b"x")
            (await receiver.receive()).accept()
        await trio.testing.wait_all_tasks_blocked()
        recorder = _Recorder()
        sys.setprofile(recorder)
        try:
            await sender.send(b"x")
            delivery = await receiver.receive()
        finally:
            sys.setprofile(None)
        delivery.accept()
    return Paths(_message(recorder.calls), _chunk(recorder.calls))


def _message(calls: list[Call]) -> list[Call]:
    woken = _last(calls, WOKEN)
    sent = next(place for place in range(woken, len(calls)) if calls[place].function == SENT)
    return calls[woken : sent + 1]


def _chunk(calls: list[Call]) -> list[Call]:
    woken = _last(calls, WOKEN)
    return calls[_last(calls[:woken], FED) : woken]


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
