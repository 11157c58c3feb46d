"""A topic hands its messages to all subscriptions, or to none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import trio_amqp10 as amqp
from trio_amqp10.amqp10.peer.errors import LinkRefusedError
from trio_amqp10.testing.azure_emulator import EntityOptions

from .helpers import ask, bus_of, later, open_client, put, wish

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_topic_hands_messages_to_subscriptions_now_and_later(autojump_clock: MockClock) -> None:
    bus = bus_of()
    bus.add_topic("prices")
    bus.add_subscription("prices", "all")
    bus.add_subscription("prices", "oil", wants=lambda message: message.subject == "oil")
    async with open_client(bus) as conn:
        await put(conn, "prices", amqp.Message(1, subject="oil"), amqp.Message(2, subject="tea"))
        async with (
            conn.open_receiver("prices/subscriptions/ALL") as everything,
            conn.open_receiver("prices/Subscriptions/oil") as oil,
        ):
            assert [(await everything.receive()).message.body for _ in range(2)] == [1, 2]
            delivery = await oil.receive()
            assert delivery.message.body == 1
            delivery.reject()
            _, body = await ask(
                conn, "prices", "schedule-message", wish(later(3, 5, subject="oil"), later(4, 5))
            )
            await ask(
                conn, "prices", "cancel-scheduled-message", {"sequence-numbers": body["sequence-numbers"][1:]}
            )
            message = (await oil.receive()).message
            assert (message.body, message.annotations["x-opt-sequence-number"]) == (3, 2)
            assert (await everything.receive()).message.body == 3
        with pytest.raises(LinkRefusedError, match="takes no messages"):
            await put(conn, "prices/Subscriptions/oil", 5)
        with pytest.raises(LinkRefusedError, match="gives no messages"):
            async with conn.open_receiver("prices"):
                pass
    assert len(bus.entities["prices/Subscriptions/oil/$DeadLetterQueue"]) == 1


async def test_topic_takes_no_message_that_a_subscription_cannot_hold(autojump_clock: MockClock) -> None:
    bus = bus_of()
    bus.add_topic("t")
    bus.add_subscription(
        "t", "s", EntityOptions(requires_session=True), wants=lambda message: message.body == 1
    )
    async with open_client(bus) as conn:
        await put(conn, "t", 2, amqp.Message(1, group_id="g"))
        with pytest.raises(amqp.DeliveryRejectedError, match="requires sessions"):
            await put(conn, "t", 1)
    assert len(bus.entities["t/Subscriptions/s"]) == 1
