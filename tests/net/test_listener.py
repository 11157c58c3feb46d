"""A listener of a service."""

from __future__ import annotations

import pytest
import trio

import trio_amqp10 as amqp


async def test_listener_listens_no_more_when_it_is_closed() -> None:
    async with trio.open_nursery() as nursery:
        one, other = await nursery.start(
            amqp.serve, lambda conn: conn.wait_closed(), "amqp://127.0.0.1:0", "amqp://127.0.0.1:0"
        )
        one.close()
        one.close()
        with pytest.raises(OSError, match="cannot connect to"):
            await amqp.open_connection(one.url).__aenter__()
        async with amqp.open_connection(other.url):
            other.close()
