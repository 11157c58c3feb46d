"""What channels and handles have in common: answers, cancelled calls, and how they are closed."""

from __future__ import annotations

import math
from functools import partial

import trio

from trio_amqp10.amqp_fast.engine.states import HandleState

from .linked import channelled


async def test_handle_is_closed_as_soon_as_the_server_answers() -> None:
    async with channelled(close_timeout=math.inf) as channel:
        with trio.fail_after(20):
            async with channel.open_handle("q") as handle:
                await handle.send(b"one")
        assert handle.engine.state is HandleState.CLOSED


async def test_call_that_is_cancelled_leaves_the_handle_usable() -> None:
    async with channelled() as channel, channel.open_handle("q") as handle:
        for call in (
            partial(handle.send, b"x"),
            handle.consume,
            handle.receive,
            handle.query,
            partial(handle.browse, 1),
            handle.pause,
            handle.resume,
        ):
            with trio.CancelScope() as scope:
                scope.cancel()
                await call()
            assert scope.cancelled_caught
        assert not handle._answers
        await handle.send(b"one")
        await handle.resume()
        await handle.consume()
        assert (await handle.receive()).body == b"one"
