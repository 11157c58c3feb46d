"""A scripted peer on a container, frame by frame, through memory."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio
from trio.testing import memory_stream_pair

from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.peer.listen import Acceptor
from trio_amqp10.sasl import Server
from trio_amqp10.testing import ScriptedPeer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio_amqp10.container import Container


@asynccontextmanager
async def on_the_wire(container: Container, container_id: str = "peer") -> AsyncGenerator[ScriptedPeer, None]:
    """Yield a scripted peer with an open connection, and a session on channel 0.

    Leaving cuts the transport.
    """
    ours, theirs = memory_stream_pair()
    acceptor = Acceptor(container_id=container.name, sasl=Server(), limits=Limits())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(acceptor.run, ours, container.handle))
        async with ScriptedPeer(theirs) as peer:
            await peer.open(container_id=container_id)
            await peer.begin()
            yield peer
