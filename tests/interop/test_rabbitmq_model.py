"""RabbitMQ says the same to clients of 0-9-1 as the naive broker by which our container is judged, step by step.

The lists of steps are the same in each run.
"""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.amqp091.server.broker_steps import MODES, STEPS, play
from tests.amqp091.server.script import Client
from trio_amqp10.amqp091 import spec

if TYPE_CHECKING:
    from .rabbitmq import Broker

NAMES = ("q1", "q2", "e1", "e2")


@given(steps=st.lists(STEPS, min_size=5, max_size=25))
@settings(max_examples=25, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_broker_answers_as_the_model_does_whatever_is_asked(
    broker: Broker, steps: list[tuple[Any, ...]]
) -> None:
    trio.run(play_once, broker.port, steps)


async def play_once(port: int, steps: list[tuple[Any, ...]]) -> None:
    """Play the steps over connections of their own, with names of their own.

    Raises:
        AssertionError: the broker and the model differ.
    """
    prefix = f"model-{os.urandom(4).hex()}-"
    async with AsyncExitStack() as stack:
        clients: list[Client] = []
        for _ in (*MODES, "to clean up"):
            stream = await stack.enter_async_context(await trio.open_tcp_stream("127.0.0.1", port))
            clients.append(Client(stream))
            await clients[-1].open()
        *players, last = clients
        try:
            with trio.fail_after(60):
                await play(players, steps, prefix)
        finally:
            for name in NAMES:
                made = spec.QueueDelete(queue=prefix + name)
                if name.startswith("e"):
                    made = spec.ExchangeDelete(exchange=prefix + name)
                assert (await last.ask(made)).name.endswith("delete-ok")
