"""The process of a lane beside the driver: ``python -m trio_amqp10.spark.lane_program``.

Its parent hands over what to do through the standard input, and keeps that open: at its end, because the parent is stopped or was
killed, the process writes and settles what has come and ends, within seconds, whatever holds it up. It says what becomes
of it in lines of JSON on its standard output; what it logs goes where its parent's does.

Knows a receiver and a lane; not Spark.
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

from trio_amqp10.errors import AmqpError

from .lane_spool import LaneSpool
from .spool_receiver import SpoolReceiver

if TYPE_CHECKING:
    from .options import QueueOptions

__all__ = ["LaneTask", "main", "open_lane"]

_FAREWELL: Final = 6.0
"""Seconds from the end of the parent to that of this process, at most."""
_LOCK_PATIENCE: Final = 10.0
_OBJECTS_BETWEEN_COLLECTIONS: Final = 100_000


class LaneTask(NamedTuple):
    """What a lane's process is to do."""

    options: QueueOptions
    lane: str
    emptying: bool


def open_lane(options: QueueOptions, lane: str) -> LaneSpool:
    """The spool of a lane, as the options of a reader say.

    Raises:
        SpoolError, OSError: as ``LaneSpool``.
    """
    # Messages are made by the thousand and die together, and to look through them for cycles is a sixth of the work.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    return LaneSpool(
        options.spool,
        lane,
        max_bytes=options.spool_max_bytes,
        keep=options.kept_rows,
        patience=max(_LOCK_PATIENCE, options.reconnect_timeout),
    )


def main() -> None:
    """Receive until the standard input ends, or, where the queue is only to be emptied, until it is empty."""
    task: LaneTask = pickle.load(sys.stdin.buffer)
    logging.basicConfig(format=f"%(asctime)s lane {task.lane}: %(levelname)s %(message)s")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: the parent decides
    done = threading.Event()
    threading.Thread(target=_await_end, args=(done,), daemon=True).start()
    receiver = spool = None
    try:
        spool = open_lane(task.options, task.lane)
        receiver = SpoolReceiver(task.options, spool, emptying=task.emptying)
        _tell(epoch=spool.epoch.name)
        receiver.wait_until(done.is_set)
        receiver.stop()
        receiver.check()
        if receiver.emptied:
            _tell(emptied=True)
    except (AmqpError, OSError) as failure:
        _tell(failed=str(failure))
    finally:
        if spool is not None:
            spool.close()
    # Nothing is left to be done in order, and threads of the store may wait for what does not come.
    sys.stdout.flush()
    os._exit(0)


def _await_end(done: threading.Event) -> None:
    """The parent writes nothing more: what comes is the end."""
    sys.stdin.buffer.read()
    done.set()
    time.sleep(_FAREWELL)
    os._exit(1)


def _tell(**said: Any) -> None:
    try:
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        return  # the parent is gone


if __name__ == "__main__":
    main()
