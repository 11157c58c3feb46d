"""A queue is deleted only if it is empty: no message that is accepted meanwhile is deleted with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from tests.container.management.test_death_while_deleting import Hasty
from trio_amqp10.container import Container
from trio_amqp10.container.management import pace
from trio_amqp10.container.management.errors import ManagementError
from trio_amqp10.core.errors import AmqpError

if TYPE_CHECKING:
    from collections.abc import Callable


class Turns(Hasty):
    """Turns of connections, as short as those of the container."""

    def run(self, call: Callable[[], object]) -> None:
        call()


@pytest.mark.parametrize("passes", range(8))
async def test_no_message_is_accepted_while_a_queue_is_deleted_because_it_is_empty(
    passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "current_turns", Turns)
    container = Container(strict=True)
    container.clock.turns = Hasty
    them = container.add_broker()
    them.declare_queue("q")
    for number in range(600):  # to be removed in many turns
        them.bind("amq.direct", "queue", "q", str(number))
    accepted: list[int] = []

    async def send() -> None:
        for _ in range(passes):
            await trio.lowlevel.checkpoint()
        for number in range(20):
            try:
                await container.send("q", number)
            except AmqpError:
                return  # it is deleted
            accepted.append(number)

    async with container.connect(), trio.open_nursery() as nursery:
        nursery.start_soon(send)
        reason = None
        try:
            await container.management.delete("q", if_empty=True)
        except ManagementError as fault:
            reason = fault.reason
        there = container.nodes.get("q")
        assert (reason, there is None, len(accepted)) == (None, True, 0) or (
            (reason, there and len(there)) == ("precondition", len(accepted))
            and len(list(them.bindings)) == 601
        )
        nursery.cancel_scope.cancel()
