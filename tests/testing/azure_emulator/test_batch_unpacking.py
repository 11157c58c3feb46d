"""A batch is many messages or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import trio_amqp10 as amqp
from trio_amqp10.amqp10.message import Data
from trio_amqp10.testing.azure_emulator import EntityOptions

from .helpers import bus_of, open_client, put

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_batch_is_many_messages_or_none(autojump_clock: MockClock) -> None:
    bus = bus_of(q=None, s=EntityOptions(requires_session=True))

    def batch(*chunks: bytes) -> amqp.Message:
        return amqp.Message.from_payload(amqp.Message(Data(*chunks)).to_payload(), 0x80013700)

    async with open_client(bus) as conn:
        async with conn.open_sender("q") as sender:
            await sender.send(batch(amqp.Message("a").to_payload(), amqp.Message("b").to_payload()))
            with pytest.raises(amqp.DeliveryRejectedError, match="decode-error"):
                await sender.send(batch(amqp.Message("c").to_payload(), b"nonsense"))
            with pytest.raises(amqp.DeliveryRejectedError, match="expected data"):
                await sender.send(amqp.Message.from_payload(amqp.Message("x").to_payload(), 0x80013700))
        with pytest.raises(amqp.DeliveryRejectedError, match="requires sessions"):
            member = amqp.Message("a", group_id="g")
            await put(conn, "s", batch(member.to_payload(), amqp.Message("b").to_payload()))
        assert [len(bus.entities[name]) for name in "qs"] == [2, 0]
