"""Connections that outlive a task of Spark, in one worker process.

A task comes and goes in a fraction of a second, and to dial for each would cost as much again where TLS
and a password are part of it. So a trio runs in a daemon thread for as long as the process does; what
tasks have to do on connections they have done there, and a connection that one gives back waits a while
for the next.

Outside of that thread nothing is kept: ``borrow`` dials, and closes at the end.

Knows connections; what is done with them is the caller's business.
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from .connections import dial
from .options import PeerOptions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    import trio_amqp10 as amqp

__all__ = ["borrow", "run_in_pool"]

_log = logging.getLogger("trio_amqp10.spark")

_IDLE: Final = 30.0
"""Seconds that a connection waits for another task."""

T = TypeVar("T")


@dataclass(eq=False)
class _PooledConnection:
    """A connection, and the scope that its keeper sleeps in: until the deadline, whoever has it."""

    connection: amqp.Connection
    scope: trio.CancelScope


class _Pool:
    """Connections by where they lead; in one trio."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._idle: dict[tuple[Any, ...], list[_PooledConnection]] = {}

    async def take(self, options: PeerOptions) -> _PooledConnection:
        """One that is idle, or a new one. Cancelled: what was dialled is closed."""
        idle = self._idle.get(_key(options), [])
        while idle:
            kept = idle.pop()
            if not kept.connection.closed and not kept.scope.cancel_called:
                kept.scope.deadline = inf
                return kept
        failures: list[Exception] = []
        made: _PooledConnection | None = await self._nursery.start(self._keep, options, failures)
        if made is None:
            raise failures[0]
        return made

    def give_back(self, options: PeerOptions, kept: _PooledConnection) -> None:
        """Nobody uses it now."""
        kept.scope.deadline = trio.current_time() + _IDLE
        self._idle.setdefault(_key(options), []).append(kept)

    async def _keep(
        self,
        options: PeerOptions,
        failures: list[Exception],
        task_status: trio.TaskStatus[_PooledConnection | None],
    ) -> None:
        """Hold a connection open. What fails must not end the nursery, which is that of all."""
        started = False
        try:
            async with dial(options) as connection:
                with trio.CancelScope() as scope:
                    started = True
                    task_status.started(_PooledConnection(connection, scope))
                    await connection.wait_closed()
        except Exception as failure:
            if started:
                _log.debug("a connection to %s that was kept has ended: %s", options.where, failure)
            else:
                failures.append(failure)
                task_status.started(None)


def _key(options: PeerOptions) -> tuple[Any, ...]:
    """What connections differ by; the address only where it is what a token is for."""
    names = [each.name for each in fields(PeerOptions) if each.name != "address" or options.token is not None]
    return tuple([getattr(options, name) for name in names])


_pool: Final[trio.lowlevel.RunVar[_Pool]] = trio.lowlevel.RunVar("trio-amqp10 pool")


@asynccontextmanager
async def borrow(options: PeerOptions) -> AsyncGenerator[amqp.Connection]:
    """A connection: ``async with borrow(options) as connection``; one that the block leaves by an exception is closed.

    Raises: as ``dial``. Cancelled: it is closed.
    """
    try:
        pool = _pool.get()
    except LookupError:
        async with dial(options) as connection:
            yield connection
        return
    kept = await pool.take(options)
    try:
        yield kept.connection
    except BaseException:
        kept.scope.cancel()
        raise
    pool.give_back(options, kept)


# The thread ---------------------------------------------------------------------------------------

_lock: Final = threading.Lock()
_running: tuple[int, trio.lowlevel.TrioToken] | None = None
"""In which process, and the way in."""


def run_in_pool(function: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Run an async function in the thread of this process's pool, and wait for it.

    Raises: what the function raises.
    """
    return trio.from_thread.run(function, *args, trio_token=_token())


def _token() -> trio.lowlevel.TrioToken:
    global _running  # noqa: PLW0603 - one for each process, whoever comes first
    with _lock:
        if _running is None or _running[0] != os.getpid():  # a fork has the variable and not the thread
            ready: list[trio.lowlevel.TrioToken] = []
            begun = threading.Event()

            async def main() -> None:
                async with trio.open_nursery() as nursery:
                    _pool.set(_Pool(nursery))
                    ready.append(trio.lowlevel.current_trio_token())
                    begun.set()
                    await trio.sleep_forever()

            threading.Thread(target=trio.run, args=(main,), name="amqp10 pool", daemon=True).start()
            begun.wait()
            _running = os.getpid(), ready[0]
        return _running[1]
