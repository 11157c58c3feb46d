"""A namespace of Event Hubs: its names, and what a token permits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trio_amqp10.amqp10.peer.errors import LinkRefusedError
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.tokens import sign_sas
from trio_amqp10.testing.azure_emulator import EventHubs

from .helpers import (
    HOST,
    put,
    read,
    reading,
    wall,
    with_wall,
)

if TYPE_CHECKING:
    import trio_amqp10 as amqp


# What is sent, and where it goes ------------------------------------------------------------------


# Where receivers begin ----------------------------------------------------------------------------


# Who receives, and who has to go ------------------------------------------------------------------


# What is kept -------------------------------------------------------------------------------------


# What is told, and to whom ------------------------------------------------------------------------


async def test_token_is_good_for_its_hub_or_group_and_what_it_permits() -> None:
    with_wall()
    keys = {"reader": ("a key", "receive"), "sender": ("another", "send")}
    hubs = EventHubs(keys=keys, wall_clock=wall)
    hubs.add_hub("clicks")
    hubs.add_hub("other")

    async def put_token(conn: amqp.Connection, name: str, path: str) -> None:
        await conn.put_token(f"{HOST}/{path}", sign_sas(f"{HOST}/{path}", name, keys[name][0], wall() + 600))

    async def refused(conn: amqp.Connection, address: str) -> bool:
        try:
            async with conn.open_sender(address):
                return False
        except LinkRefusedError as refusal:
            return bool(refusal.condition == "amqp:unauthorized-access")

    async with hubs.container.connect() as conn:
        with pytest.raises(LinkRefusedError, match="amqp:unauthorized-access"):
            await read(conn, "eventhub")
        # So azure-eventhub writes it.
        await put_token(conn, "reader", "clicks/consumergroups/$default")
        async with reading(conn):
            pass
        assert await read(conn, "eventhub") == (401, "amqp:unauthorized-access")
        assert await refused(conn, "clicks")
    async with hubs.container.connect() as conn:
        await put_token(conn, "sender", "clicks")
        assert (await read(conn, "eventhub"))["name"] == "clicks"
        assert await read(conn, "eventhub", "other") == (401, "amqp:unauthorized-access")
        await put(conn, f"{HOST}/clicks/Partitions/1", b"a")
        assert await refused(conn, "other")
        with pytest.raises(LinkRefusedError, match="amqp:unauthorized-access"):
            async with reading(conn):
                pass
    assert len(hubs.hubs["clicks"]) == 1


def test_hub_of_a_name_that_is_taken_is_refused() -> None:
    hubs = EventHubs()
    hubs.add_hub("clicks")
    with pytest.raises(LocalProtocolError):
        hubs.add_hub("Clicks")
    assert list(hubs.hubs) == ["clicks"]
