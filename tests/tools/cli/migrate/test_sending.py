"""The size of a batch, and targets that do not take one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import trio_amqp10 as amqp
from trio_amqp10.tools.cli.command_runner import CommandError
from trio_amqp10.tools.cli.migrate.figures import Figures
from trio_amqp10.tools.cli.migrate.sending import BATCH, batch_size, check_unused, send_all

from .ends import bodies, managed

if TYPE_CHECKING:
    from trio.testing import MockClock


@pytest.mark.parametrize(
    ("figures", "size"),
    [
        (Figures(ready=9000), BATCH),
        (Figures(ready=3), BATCH),
        (Figures(ready=100, octets=100 * 1024 * 1024), 32),
        (Figures(ready=2, octets=200 * 1024 * 1024), 1),
        (Figures(ready=1, busy=99, octets=100), BATCH),
    ],
)
def test_batch_is_bounded_in_messages_and_in_octets(figures: Figures, size: int) -> None:
    assert batch_size(figures) == size


def test_queue_with_consumers_is_refused() -> None:
    check_unused("there", "q", None)
    check_unused("there", "q", Figures(ready=1))
    with pytest.raises(CommandError, match="there: 'q' has 2 consumers: stop them"):
        check_unused("there", "q", Figures(ready=1, consumers=2))


async def test_messages_go_in_order() -> None:
    container = managed("q")
    async with container.connect() as conn, conn.open_sender("q") as sender:
        await send_all(sender, [amqp.Message(number) for number in range(300)])
    assert await bodies(container, "q") == list(range(300))


async def test_refused_message_is_reported_and_the_others_are_there() -> None:
    container = managed("q", max_length=2, overflow="reject")
    async with container.connect() as conn, conn.open_sender("q") as sender:
        with pytest.raises(CommandError, match="did not accept 1 messages"):
            await send_all(sender, [amqp.Message(number) for number in range(3)])
    assert await bodies(container, "q") == [0, 1]


async def test_full_queue_is_waited_for_only_some_time(autojump_clock: MockClock) -> None:
    container = managed("q", max_length=2)
    async with container.connect() as conn, conn.open_sender("q") as sender:
        with pytest.raises(CommandError, match="took no more messages for 30 s: it may be full"):
            await send_all(sender, [amqp.Message(number) for number in range(3000)])
