"""Peers that ask to be the sole connection of their container, and how it refuses them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import memory_stream_pair

import trio_amqp10 as amqp
from tests.amqp10.peer.helpers import acceptor
from tests.naive.peer import ScriptedPeer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

REFUSE: dict[str, Any] = {"container_id": "me", "sole_connection": "refuse-connection"}
CLOSE: dict[str, Any] = {"container_id": "me", "sole_connection": "close-existing"}
PLAIN: dict[str, Any] = {"container_id": "me"}


@asynccontextmanager
async def scripted(container: amqp.Container) -> AsyncGenerator[ScriptedPeer]:
    """A scripted client of the container."""
    ours, theirs = memory_stream_pair()
    peer = ScriptedPeer(theirs)
    async with trio.open_nursery() as nursery:
        accepting = acceptor(
            container_id=container.name,
            offered_capabilities=container.offered_capabilities(),
            vet=container.vet,
        )
        nursery.start_soon(accepting.run, ours, container.handle)
        yield peer
        nursery.cancel_scope.cancel()


async def refused(container: amqp.Container, **options: Any) -> amqp.ConnectionClosedError:
    with pytest.raises(amqp.ConnectionClosedError) as caught:
        async with container.connect(**options):
            raise AssertionError("a connection that should not come to be")
    return caught.value
