"""The process of a lane: ``python -m trio_amqp10.spark.lane_program``.

The parent sends a ``LaneTask`` through the standard input, and keeps the input open. When the input ends, because the parent stops the
lane or was killed, the process writes and settles the messages that have come, and ends within seconds in any case. It reports its
state in lines of JSON on the standard output, and logs to the standard error of the parent.

Knows a receiver and a lane, not Spark.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import pickle
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from trio_amqp10.core.errors import AmqpError

from .lane_spool import LaneSpool
from .spool_receiver import SpoolReceiver

if TYPE_CHECKING:
    from .options import QueueOptions

_FAREWELL: Final = 6.0
"""The most seconds from the end of the input to the end of the process."""
_LOCK_PATIENCE: Final = 10.0
_OBJECTS_BETWEEN_COLLECTIONS: Final = 100_000


class LaneTask(NamedTuple):
    """The work of a lane's process."""

    options: QueueOptions
    lane: str
    emptying: bool


def open_lane(options: QueueOptions, lane: str) -> LaneSpool:
    """Open the spool of a lane with the options of a reader.

    Raises:
        SpoolError, OSError: as ``LaneSpool``.
    """
    # Messages are made by the thousand and die together, so that frequent searches for reference cycles would cost a sixth of the time.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    return LaneSpool(
        options.spool,
        lane,
        max_bytes=options.spool_max_bytes,
        keep=options.kept_rows,
        patience=max(_LOCK_PATIENCE, options.reconnect_timeout),
    )


def main() -> None:
    """Receive until the standard input ends, or, if emptying, the queue is empty."""
    task: LaneTask = pickle.load(sys.stdin.buffer)
    logging.basicConfig(format=f"%(asctime)s lane {task.lane}: %(levelname)s %(message)s")
    # Ctrl-C in a terminal reaches all processes, but the parent decides when this one ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    done = threading.Event()
    threading.Thread(target=_await_end, args=(done,), daemon=True).start()
    receiver = spool = None
    try:
        spool = open_lane(task.options, task.lane)
        receiver = SpoolReceiver(task.options, spool, emptying=task.emptying)
        _report(epoch=spool.epoch.name)
        receiver.wait_until(done.is_set)
        receiver.stop()
        receiver.check()
        if receiver.emptied:
            _report(emptied=True)
    except (AmqpError, OSError) as failure:
        _report(failed=str(failure))
    finally:
        if spool is not None:
            spool.close()
    # All is written. Threads of the store may hang, so they are not waited for.
    sys.stdout.flush()
    os._exit(0)


def _await_end(done: threading.Event) -> None:
    """Wait for the end of the input, and end the process soon after it."""
    sys.stdin.buffer.read()
    done.set()
    time.sleep(_FAREWELL)
    os._exit(1)


def _report(**report: Any) -> None:
    try:
        sys.stdout.write(json.dumps(report) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        return  # the parent is gone


if __name__ == "__main__":
    main()
