"""A container says the same to clients of 0-9-1 as a naive broker, step by step; ``tests/interop`` asks RabbitMQ the same."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scaled import scaled
from trio_amqp10.container import Container

from .broker_steps import MODES, STEPS, play
from .script import opened


@given(st.lists(STEPS, max_size=25))
@settings(max_examples=scaled(60))
def test_container_answers_as_the_model_does_whatever_is_asked(steps: list[tuple[Any, ...]]) -> None:
    async def main() -> None:
        container = Container()
        container.add_broker()
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(opened(container)) for _ in MODES]
            await play(clients, steps)

    trio.run(main)
