"""A channel of the client: its transactions, and what its end does to its handles."""

from __future__ import annotations

import pytest

from trio_amqp10 import amqp_fast
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.core.errors import LocalProtocolError

from .linked import connected, with_nodes


async def test_transaction_is_committed_or_rolled_back() -> None:
    container = with_nodes()
    async with connected(container) as connection:
        async with connection.open_channel(transacted=True) as channel, channel.open_handle("q") as handle:
            await handle.send(b"one")
            await channel.rollback()
            await handle.send(b"two")
            await channel.commit()
        async with connection.open_channel() as channel, channel.open_handle("q") as handle:
            assert await handle.query() == [range(1, 2)]
            with pytest.raises(LocalProtocolError):
                await channel.commit()


async def test_channel_that_the_server_closes_raises_for_its_handles() -> None:
    container = with_nodes()
    async with connected(container, limits=Limits(txn_limit=1)) as connection:
        async with connection.open_channel(transacted=True) as channel, channel.open_handle("q") as handle:
            await handle.send(b"one")
            with pytest.raises(amqp_fast.ChannelClosedError) as caught:
                await handle.send(b"two")
            assert caught.value.code == 506
        async with connection.open_channel():
            pass
