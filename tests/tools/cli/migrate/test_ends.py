"""The kind of a broker is found out by asking it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.testing import rabbitmq
from trio_amqp10.tools.cli.command_runner import CommandError
from trio_amqp10.tools.cli.dial_options import DialOptions
from trio_amqp10.tools.cli.migrate.ends import open_end

from .ends import managed

if TYPE_CHECKING:
    from trio.testing import MockClock


async def kind_of(url: str) -> str:
    async with open_end(url, DialOptions()) as end:
        assert end.name in url
        return end.kind


async def served(container: amqp.Container, nursery: trio.Nursery) -> str:
    listeners = await nursery.start(partial(container.serve, "amqp://127.0.0.1:0"))
    return str(listeners[0].url)


async def test_container_with_management_is_one() -> None:
    async with trio.open_nursery() as nursery:
        assert await kind_of(await served(managed(), nursery)) == "container"
        nursery.cancel_scope.cancel()


async def test_container_without_management_is_neither(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        url = await served(amqp.Container(), nursery)
        with pytest.raises(
            CommandError,
            match=r"is neither a container with .*\$management.* was refused.*amqp10 serve --management",
        ):
            await kind_of(url)
        nursery.cancel_scope.cancel()


async def test_broker_with_the_management_of_rabbitmq_is_one() -> None:
    with rabbitmq() as url:
        assert await kind_of(url) == "rabbitmq"
