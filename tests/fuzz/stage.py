"""Where scripts are played: a clock that nobody else moves, one order of tasks, ids that are known before.

So a script does the same in every run, on every machine, however busy: what fails once can be replayed.
"""

from __future__ import annotations

import itertools
import logging
import random
import secrets
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import trio
from trio._core import (
    _run as scheduler,
)  # as hypothesis' own plugin for trio does, to have one order of tasks
from trio.testing import MockClock

from trio_amqp10.core.errors import AmqpError
from trio_amqp10.net import read_turns, waiters

from .script import Act, Move

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from trio_amqp10.net.memory_streams import MemoryStream

OUTPUT_KEPT: Final = 64 * 1024
"""Octets of what was written to a puppet that are kept, to be looked at."""

_FULL: Final = 128 * 1024
"""Octets that nobody has read, above which a script's are thrown away: the transport holds twice as many."""

_LOGGER: Final = logging.getLogger("trio_amqp10")


class UndeclaredError(AssertionError):
    """Something failed that the peer may not make fail."""


class _Complaints(logging.Handler):
    """Records that must not be: errors, and whatever has a traceback."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR or record.exc_info:
            self.records.append(record)

    def complain(self) -> None:
        """Raise ``UndeclaredError`` for the first of them, if there is one."""
        for record in self.records:
            cause = record.exc_info[1] if record.exc_info else None
            raise UndeclaredError(f"logged: {record.getMessage()}: {cause!r}"[:300]) from cause


@contextmanager
def numbered() -> Generator[None]:
    """Fresh UUIDs are 1, 2, 3 and so on, and fresh tokens too, so that a script can name what is not made yet."""
    numbers, tokens = itertools.count(1), itertools.count(1)
    before = uuid.uuid4, secrets.token_bytes
    uuid.uuid4 = lambda: uuid.UUID(int=next(numbers))
    secrets.token_bytes = lambda size=32: next(tokens).to_bytes(size or 32)
    try:
        yield
    finally:
        uuid.uuid4, secrets.token_bytes = before


def on_stage(play: Callable[[MockClock], Awaitable[None]]) -> None:
    """Run ``play`` to its end; it gets the clock, which stands still until it moves it.

    Raises:
        UndeclaredError: the library logged an error or a traceback, or ``play`` raised an ``AmqpError``.
        Exception: what else ``play`` raised.
    """
    complaints = _Complaints()
    clock = MockClock()
    level, propagate = _LOGGER.level, _LOGGER.propagate
    _LOGGER.addHandler(complaints)
    _LOGGER.setLevel(logging.WARNING)
    _LOGGER.propagate = False
    before = waiters.perf_counter
    # How long a task has run is not to depend on the machine.
    waiters.perf_counter = read_turns.perf_counter = trio.current_time
    state, allowed = random.getstate(), scheduler._ALLOW_DETERMINISTIC_SCHEDULING
    random.seed(0)
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True
    scheduler._r.seed(0)
    try:
        with numbered():
            trio.run(play, clock, clock=clock)
    except AmqpError as failure:  # elsewhere these are answers to broken octets; here a good client got one
        complaints.complain()
        raise UndeclaredError(repr(failure)) from failure
    except Exception:
        complaints.complain()  # what was logged tells more than what came of it
        raise
    finally:
        waiters.perf_counter = read_turns.perf_counter = before
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = allowed
        random.setstate(state)
        _LOGGER.removeHandler(complaints)
        _LOGGER.setLevel(level)
        _LOGGER.propagate = propagate
    complaints.complain()


class Puppet:
    """The end of a connection that a script moves.

    Args:
        stream: that end.
        nursery: for the task that reads what is written to it.

    Attributes:
        written: octets that were written to it.
        output: the first of them.
    """

    def __init__(self, stream: MemoryStream, nursery: trio.Nursery) -> None:
        self._stream = stream
        self._deaf = trio.CancelScope()
        self.written = 0
        self.output = bytearray()
        nursery.start_soon(self._read)

    async def _read(self) -> None:
        with self._deaf:
            try:
                while octets := await self._stream.receive_some():
                    self.written += len(octets)
                    self.output += octets[: OUTPUT_KEPT - len(self.output)]
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass

    async def move(self, move: Move) -> None:
        """Do what the script says, as far as the transport still lets it."""
        try:
            if move.act in (Act.WRITE, Act.SAY):
                if (
                    self._stream._out.size <= _FULL
                ):  # a write that waits would wait for a clock that stands still
                    await self._stream.send_all(move.octets)
            elif move.act is Act.EOF:
                await self._stream.send_eof()
            elif move.act is Act.CUT:
                await self._stream.aclose()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        if move.act is Act.DEAF:
            self._deaf.cancel()

    def close(self) -> None:
        """It is over."""
        self._stream.close()
