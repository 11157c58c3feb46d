"""A pool of connections that tasks of Spark share, in one worker process.

A task lasts a fraction of a second, and a new connection with TLS and a password would take as long again.
So trio runs in a daemon thread for the life of the process. Tasks run their work on connections
in that thread, and a returned connection waits for the next task for a while.

Outside of that thread there is no pool: ``borrow`` dials, and closes the connection at the end.

Knows connections, not their use.
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

_log = logging.getLogger("trio_amqp10.spark")

_IDLE: Final = 30.0
"""Seconds for which an idle connection waits for another task."""

T = TypeVar("T")


@dataclass(eq=False)
class _PooledConnection:
    """A connection, and the cancel scope whose deadline closes it."""

    connection: amqp.Connection
    scope: trio.CancelScope


class _Pool:
    """The idle connections of one trio run, by their options."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._idle: dict[tuple[Any, ...], list[_PooledConnection]] = {}

    async def take(self, options: PeerOptions) -> _PooledConnection:
        """Return an idle connection, or a new one.

        Cancelled: a connection that was being dialled is closed.
        """
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
        """Keep an unused connection until another task takes it, or ``_IDLE`` seconds."""
        kept.scope.deadline = trio.current_time() + _IDLE
        self._idle.setdefault(_key(options), []).append(kept)

    async def _keep(
        self,
        options: PeerOptions,
        failures: list[Exception],
        task_status: trio.TaskStatus[_PooledConnection | None],
    ) -> None:
        """Open a connection, and hold it open until its scope is cancelled.

        A failure must not leave this task, because it would end the nursery of all connections.
        """
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
    """Return the options that make connections differ (the address only with tokens)."""
    names = [each.name for each in fields(PeerOptions) if each.name != "address" or options.has_tokens]
    return tuple([getattr(options, name) for name in names])


_pool: Final[trio.lowlevel.RunVar[_Pool]] = trio.lowlevel.RunVar("trio-amqp10 pool")


@asynccontextmanager
async def borrow(options: PeerOptions) -> AsyncGenerator[amqp.Connection]:
    """Take a connection from the pool: ``async with borrow(options) as connection``.

    The connection is closed, not returned, if the block ends with an exception.

    Raises: as ``dial``.

    Cancelled: the connection is closed.
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
"""The process that runs the pool, and the token of its trio run."""


def run_in_pool(function: Callable[..., Awaitable[T]], *args: Any) -> T:
    """Run an async function in the thread of this process's pool; return its result.

    Raises: the exception of the function.
    """
    return trio.from_thread.run(function, *args, trio_token=_token())


def _token() -> trio.lowlevel.TrioToken:
    global _running  # noqa: PLW0603 - one for each process, made by the first caller
    with _lock:
        # A forked process has the variable, but not the thread.
        if _running is None or _running[0] != os.getpid():
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
