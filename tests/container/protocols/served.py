"""A connection that a dialect serves in memory."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio
from trio.testing import memory_stream_pair

from trio_amqp10.net.dialect import AcceptedConnection
from trio_amqp10.net.login_failures import HostLoginFailures, LoginFailures
from trio_amqp10.net.transport_layers import Transport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio_amqp10.net.dialect import Dialect
    from trio_amqp10.sasl import Server

__all__ = ["accepted", "served"]


def accepted(stream: trio.abc.Stream, sasl: Server | None = None) -> AcceptedConnection:
    """A stream as a listener would have it."""
    return AcceptedConnection(
        stream=stream,
        transport=Transport(stream=stream),
        name="memory",
        host=None,
        private=True,
        began=trio.current_time(),
        opened=lambda: None,
        failures=HostLoginFailures(LoginFailures(None, trio.current_time), None),
        sasl=sasl,
    )


@asynccontextmanager
async def served(dialect: Dialect, sasl: Server | None = None) -> AsyncGenerator[trio.abc.Stream]:
    """The peer's end of a connection."""
    ours, theirs = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(dialect.serve, accepted(ours, sasl))
        try:
            yield theirs
        finally:
            await theirs.aclose()
            nursery.cancel_scope.cancel()
