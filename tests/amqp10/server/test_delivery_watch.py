"""The outcome of a delivery is reported to the lease of its message (3.4, 3.5.3)."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import wait_all_tasks_blocked

import trio_amqp10 as amqp
from tests.container.helpers import bodies, fill, two
from trio_amqp10.amqp10.spec.messaging import Accepted, Modified, Rejected, Released, Source
from trio_amqp10.container import Container

DEFAULTS: list[tuple[str, Any, int | None, int | None]] = [
    ("none", None, 1, None),
    ("accepted", Accepted(), None, None),
    ("released", Released(), 0, None),
    ("rejected", Rejected(), None, 1),
    ("modified", Modified(message_annotations={"x-opt-a": 1}), 0, None),
    ("failed", Modified(delivery_failed=True, message_annotations={"x-opt-a": 1}), 1, None),
]
"""A default-outcome, and the delivery-count of the message in its queue then, or as a dead letter; None where it is not."""


@pytest.mark.parametrize("way", ["link", "session", "connection"])
@pytest.mark.parametrize(
    ("default", "count", "dead"), [row[1:] for row in DEFAULTS], ids=[r[0] for r in DEFAULTS]
)
async def test_queue_applies_the_default_outcome_to_what_is_unsettled_when_its_link_goes(
    way: str, default: Any, count: int | None, dead: int | None
) -> None:
    container = Container()
    queue = container.add_queue("q", dead_letter="dead")
    async with two(container) as (one, other):
        await fill(one, "q", "x")
        async with other.open_session() as session:
            source = Source(address="q", default_outcome=default)
            opening = session.open_receiver("q", source=source)
            receiver = await opening.__aenter__()
            assert receiver.remote.source.default_outcome == default
            delivery = await receiver.receive()
            if way == "link":
                receiver._link.detach()
            elif way == "connection":
                other.pump.cancel()
            if way != "session":
                await wait_all_tasks_blocked()
        await wait_all_tasks_blocked()
        assert delivery.state is None
        assert (queue.available, queue.leased) == ((0, 0) if count is None else (1, 0))
        if count is not None:
            async with one.open_receiver("q") as receiver:
                message = (await receiver.receive()).message
                assert message.delivery_count == count
                annotations = getattr(default, "message_annotations", None)
                assert message.annotations == (annotations or {})
        assert ("dead" in container.nodes) is (dead is not None)
        if dead is not None:
            async with one.open_receiver("dead") as receiver:
                assert (await receiver.receive()).message.delivery_count == dead


async def test_queue_applies_undeliverable_here_by_default_to_no_link_that_comes_under_the_same_name() -> (
    None
):
    container = Container()
    container.add_queue("q")
    async with two(container) as (one, other):
        await fill(one, "q", "x", "y")
        source = Source(address="q", default_outcome=Modified(undeliverable_here=True))
        async with other.open_receiver("q", name="same", source=source, credit=0) as receiver:
            await receiver.receive()
        async with other.open_receiver("q", name="same", source=source) as receiver:
            assert await bodies(receiver, 1) == ["x"]
        async with one.open_receiver("q") as receiver:
            assert await bodies(receiver, 1) == ["y"]


@pytest.mark.parametrize("before", [0, 3])
async def test_dead_letter_of_a_rejected_message_has_its_delivery_count_raised(before: int) -> None:
    container = Container()
    container.add_queue("q", dead_letter="dead")
    async with container.connect() as conn:
        await fill(conn, "q", amqp.Message("x", delivery_count=before))
        async with conn.open_receiver("q") as receiver, conn.open_receiver("dead") as letters:
            (await receiver.receive()).reject("app:bad")
            assert (await letters.receive()).message.delivery_count == before + 1
