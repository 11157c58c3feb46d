"""A channel is opened and closed by its block, which raises what no call has raised."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

from trio_amqp10 import amqp091


async def test_channel_error_that_no_call_raised_is_raised_on_leaving(connected: Any) -> None:
    async with connected() as (_, connection):
        with pytest.raises(amqp091.NotFoundError, match=r"basic\.publish"):
            async with connection.open_channel() as channel:
                await channel.publish("nope", "", b"")
                await wait_all_tasks_blocked()
