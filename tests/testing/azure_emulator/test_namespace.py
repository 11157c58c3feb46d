"""Namespaces: what a key permits, and the names of their entities."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091
from trio_amqp10.amqp10.peer.errors import LinkRefusedError
from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.tokens import sign_sas
from trio_amqp10.sasl.anonymous import Anonymous
from trio_amqp10.testing.azure_emulator import ServiceBus

from .helpers import HOST, ask, bus_of, later, open_client, put, wall, wish

if TYPE_CHECKING:
    from trio.testing import MockClock


async def test_key_permits_what_it_is_for(autojump_clock: MockClock) -> None:
    bus_of()  # the clock
    keys = {"sender": ("k1", "send"), "reader": ("k2", "receive create"), "maker": ("k3", "send create")}
    bus = ServiceBus(keys=keys, wall_clock=wall)
    bus.add_queue("Orders")
    peek = {"from-sequence-number": 1, "message-count": 1}
    async with open_client(bus, "sender", "k1") as conn:
        await put(conn, "orders", "tea")
        with pytest.raises(LinkRefusedError, match="unauthorized-access"):
            async with conn.open_receiver("orders"):
                pass
    async with open_client(bus, "reader", "k2") as conn:
        assert (await ask(conn, "orders", "peek-message", peek))[0] == 200
        assert await ask(conn, "orders", "schedule-message", {}) == (401, "amqp:unauthorized-access")
    async with open_client(bus, "maker", "k3") as conn:
        assert (await ask(conn, "orders", "peek-message", peek))[0] == 401
        assert (await ask(conn, "ORDERS", "schedule-message", wish(later("tea", 5))))[0] == 200
    async with bus.container.connect() as conn:
        # Microsoft's clients for .NET write the resource in lower case, and the audience not.
        token = sign_sas(f"{HOST}/orders", "sender", "k1", wall() + 60)
        await conn.put_token(f"{HOST}/ORDERS", token)
        async with conn.open_sender("amqps://localhost:5672/orders"):
            pass
        with pytest.raises(LinkRefusedError, match="unauthorized-access"):
            async with conn.open_sender("other"):
                pass
    assert "SharedAccessKeyName=reader;SharedAccessKey=k2;" in bus.connection_string(1, "reader")
    with pytest.raises(LocalProtocolError, match="no key 'nobody'"):
        bus.connection_string(1, "nobody")


async def test_address_that_is_not_permitted_is_refused_alike_whether_it_exists(
    autojump_clock: MockClock,
) -> None:
    bus_of()  # the clock
    bus = ServiceBus(keys={"all": ("k", "send receive")}, wall_clock=wall)
    bus.add_queue("Orders")
    async with bus.container.connect() as conn:
        for address in ("ORDERS", "BOOKS", "orders/$MANAGEMENT", "books/$MANAGEMENT"):
            for open_link, doing in ((conn.open_sender, "send to"), (conn.open_receiver, "receive from")):
                shown = re.escape(repr(address.lower()))
                with pytest.raises(LinkRefusedError, match=f"may not {doing} {shown}$"):
                    async with open_link(address):
                        pass


async def test_right_to_send_to_a_topic_tells_nothing_of_its_subscriptions(
    autojump_clock: MockClock,
) -> None:
    bus_of()  # the clock
    bus = ServiceBus(keys={"sender": ("k", "send")}, wall_clock=wall)
    bus.add_topic("news")
    bus.add_subscription("news", "all")
    async with open_client(bus, "sender", "k") as conn:
        async with conn.open_sender("news/$management"):
            pass
        for address in ("news/Subscriptions/all", "news/subscriptions/none", "news/$deadletterqueue"):
            with pytest.raises(LinkRefusedError, match="unauthorized-access"):
                async with conn.open_sender(f"{address}/$management"):
                    pass
            with pytest.raises(LinkRefusedError, match="unauthorized-access"):
                async with conn.open_sender(address):
                    pass


class MssbCbs(Anonymous):
    """The only mechanism of clients on ``uamqp``."""

    name = "MSSBCBS"


@pytest.mark.parametrize("mechanism", [MssbCbs(), Anonymous(), None])
async def test_client_logs_in_by_the_name_that_microsoft_has_for_anonymous(
    mechanism: Anonymous | None,
) -> None:
    bus = ServiceBus(wall_clock=wall)
    bus.add_queue("orders")
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(bus.container.serve, "amqp://127.0.0.1:0"))
        async with amqp.open_connection(listener.url, sasl=mechanism) as conn:
            assert conn.remote.max_frame_size == 65_536
        with pytest.raises(amqp.RemoteProtocolError, match="which is AMQP"):
            await amqp091.open_connection(listener.url).__aenter__()
        nursery.cancel_scope.cancel()
