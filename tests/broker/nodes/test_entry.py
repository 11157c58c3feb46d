"""The states of a message in a queue: available, acquired by one link, and archived (3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from trio.testing import wait_all_tasks_blocked

from tests.container.helpers import fill, queue_of, two
from trio_amqp10.amqp10.spec.messaging import Received
from trio_amqp10.testing import open_container

if TYPE_CHECKING:
    from trio_amqp10.container import Queue


def counts(queue: Queue) -> tuple[int, int, int]:
    """Messages held, available, and acquired."""
    return len(queue), queue.available, queue.leased


async def test_message_is_available_until_a_link_acquires_it_and_then_for_no_other() -> None:
    async with open_container(["q"]) as container, two(container) as (one, other):
        queue = queue_of(container)
        await fill(one, "q", "x")
        assert counts(queue) == (1, 1, 0)
        async with one.open_receiver("q", credit=0) as holder, other.open_receiver("q", credit=0) as waiting:
            delivery = await holder.receive()
            assert counts(queue) == (1, 0, 1)
            waiting.grant(1)
            await wait_all_tasks_blocked()
            assert waiting.buffered == 0
            delivery.release()
            assert (await waiting.receive()).message.body == "x"
            assert counts(queue) == (1, 0, 1)


@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
async def test_message_stays_acquired_until_its_transfer_is_settled(guarantee: str) -> None:
    async with open_container(["q"]) as container, two(container) as (one, other):
        queue = queue_of(container)
        await fill(one, "q", "x")
        async with (
            one.open_receiver("q", guarantee=guarantee) as holder,
            other.open_receiver("q") as waiting,
        ):
            delivery = await holder.receive()
            state = Received(section_number=0, section_offset=1)
            delivery.link.session.settlement.dispose(delivery, state)
            await wait_all_tasks_blocked()
            assert counts(queue) == (1, 0, 1)
            assert waiting.buffered == 0
            delivery.accept()
            await delivery.wait_settled()
            await wait_all_tasks_blocked()
            assert counts(queue) == (0, 0, 0)
            assert waiting.buffered == 0
