"""A connection to a container in the same process, through memory.

Knows the order in which the client and the container end; knows nothing of nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from trio_amqp10.amqp10.peer.dial_options import DialOptions
from trio_amqp10.net.waiters import check_trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from trio_amqp10.amqp10.peer.connection import Connection
    from trio_amqp10.amqp10.peer.dialling import Dialling
    from trio_amqp10.sasl import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOptions(DialOptions):
    """The options of ``open_connection``, and the users to accept."""

    users: Server | None = None


class LocalConnection:
    """A connection through memory, which ``async with`` opens and closes."""

    __slots__ = ("_dialling", "_manager", "_nursery", "_patience", "_prepare", "_serve")

    def __init__(
        self,
        prepare: Callable[[], object],
        dialling: Dialling,
        serve: Callable[[], Awaitable[object]],
        patience: float,
    ) -> None:
        self._prepare = prepare
        self._dialling = dialling
        self._serve = serve
        self._patience = patience

    async def __aenter__(self) -> Connection:
        check_trio()
        self._prepare()
        # The nursery is entered by hand, so that an exception of the user's block is not wrapped in a group.
        self._manager = trio.open_nursery()
        self._nursery = await self._manager.__aenter__()
        self._nursery.start_soon(self._serve)
        try:
            return await self._dialling.__aenter__()
        except BaseException:
            self._nursery.cancel_scope.cancel()
            await self._manager.__aexit__(None, None, None)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        scope = self._nursery.cancel_scope
        try:
            await self._dialling.__aexit__(kind, exc, tb)
        except BaseException:
            scope.cancel()
            raise
        finally:
            if exc is not None:
                scope.cancel()
            scope.deadline = min(scope.deadline, trio.current_time() + self._patience)
            await self._manager.__aexit__(None, None, None)
