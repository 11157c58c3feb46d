"""A dead letter knows the queue where it died, whatever the protocol of its sender; so it can be sent back."""

from __future__ import annotations

from functools import partial

import pytest
import trio

from tests.container.clients import Fields
from trio_amqp10.container import Container

from .protocols import PROTOCOLS

QUEUES = ["added", "declared"]


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_dead_letter_goes_back_to_the_queue_where_it_died(protocol: str, queue: str) -> None:
    container = Container()
    management = container.management
    container.add_queue("dead")
    container.add_queue("added", dead_letter="dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    await management.declare_queue("declared", arguments)
    async with trio.open_nursery() as nursery:
        dialects = [] if protocol == "1.0" else [protocol]
        (listener,) = await nursery.start(partial(container.serve, "amqp://127.0.0.1:0", dialects=dialects))
        client = PROTOCOLS[protocol].client
        await client.send(listener.port, queue, Fields(body=b"tea"))
        for _ in range(2):  # Its second death is in a message that has a history.
            await management.get(queue, outcome="reject")
            [letter] = await management.browse("dead")
            assert letter.died_in == queue
            assert (await management.redrive("dead")).moved == {queue: 1}
        async with client.receive(listener.port, queue) as receiver:
            assert (await receiver.next(keep=False)).body == b"tea"
        nursery.cancel_scope.cancel()
