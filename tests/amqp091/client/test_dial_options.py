"""Options of dialling: those of the call and of the URL, and those that cannot be."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import memory_stream_pair

from trio_amqp10 import amqp091
from trio_amqp10.core.errors import LocalProtocolError

from .conftest import URL


async def test_connection_asks_for_the_limits_of_call_and_url(brokered: Any) -> None:
    async with brokered() as broker:
        url = f"{URL}?heartbeat=7&channel_max=9&connection_timeout=1000"
        async with amqp091.open_connection(url, channel_max=3, frame_max=8192) as connection:
            assert connection.heartbeat == 7
            assert connection.engine.channel_max == 3
            assert connection.engine.frame_max == 8192
        assert broker.dials == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda: amqp091.open_connection([]),
        lambda: amqp091.open_connection(memory_stream_pair()[0], reconnect=True),
        lambda: amqp091.open_connection(URL, frame_max=100),
        lambda: amqp091.open_connection(URL, cafile="x"),
    ],
)
def test_connection_refuses_options_that_cannot_be(call: Any) -> None:
    with pytest.raises(LocalProtocolError):
        call()
