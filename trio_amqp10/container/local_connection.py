"""A connection to a container in the same process, through memory.

Knows the order in which the client and the container end; knows nothing of nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import trio

from trio_amqp10.amqp10.peer.dial_options import DialOptions
from trio_amqp10.amqp10.peer.dialling import Dialling
from trio_amqp10.net.memory_streams import memory_stream_pair
from trio_amqp10.net.waiters import check_trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from trio_amqp10.amqp10.peer.connection import Connection
    from trio_amqp10.net.memory_streams import MemoryStream
    from trio_amqp10.sasl import Server


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOptions(DialOptions):
    """The options of ``open_connection``, and the users to accept."""

    users: Server | None = None


class LocalConnection:
    """A connection through memory, which ``async with`` opens and closes.

    Made by ``Container.connect``.
    """

    __slots__ = (
        "_away_until",
        "_dialling",
        "_manager",
        "_nursery",
        "_patience",
        "_prepare",
        "_serve",
        "_served",
    )

    def __init__(
        self,
        prepare: Callable[[], object],
        options: LocalOptions,
        serve: Callable[[trio.abc.Stream], Awaitable[object]],
        patience: float,
    ) -> None:
        self._prepare = prepare
        self._dialling = Dialling(self._dial, options)
        self._serve = serve
        self._patience = patience
        self._served: MemoryStream | None = None  # the end of the container
        self._away_until = -inf

    def cut(self, seconds: float = 0.0) -> None:
        """Break the connection now, as a network does that fails.

        What the container has written still arrives; what the client has written is lost. A client with ``reconnect`` dials
        again.

        Args:
            seconds: time in which each dial fails, by the clock of trio.
        """
        self._away_until = trio.current_time() + seconds
        if self._served is not None:
            self._served.close()

    def _dial(self) -> trio.abc.Stream:
        left = self._away_until - trio.current_time()
        if left > 0:
            raise ConnectionRefusedError(f"the connection in memory is cut: dial again in {left:g} s")
        self._served, ours = memory_stream_pair()
        self._nursery.start_soon(self._serve, self._served)
        return ours

    async def __aenter__(self) -> Connection:
        check_trio()
        self._prepare()
        # The nursery is entered by hand, so that an exception of the user's block is not wrapped in a group.
        self._manager = trio.open_nursery()
        self._nursery = await self._manager.__aenter__()
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
