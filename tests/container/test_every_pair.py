"""Send by every protocol and receive by every protocol, with a restart between."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

import trio_amqp10 as amqp
from trio_amqp10.container.dialects import DIALECTS

from .clients import CLIENTS, Fields

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

URL = "amqp://127.0.0.1:0"
MESSAGE = Fields(
    body=b"\x00tea\xff",
    durable=True,
    priority=7,
    lifetime=600,
    message_id="m-1",
    correlation_id="c-1",
    reply_to="answers",
    headers={"colour": "green"},
)


DRAFT = "1.0-draft-2010"


@asynccontextmanager
async def serving(folder: Path) -> AsyncGenerator[dict[str, int]]:
    """Yield the ports of a container of every dialect, with one queue.

    One port serves the draft in place of AMQP 1.0, and the other all other dialects.
    """
    with amqp.SqliteStore(folder / "store") as store:
        container = amqp.Container("hub", store=store)
        container.add_queue("q")
        async with trio.open_nursery() as nursery:
            (common,) = await nursery.start(partial(container.serve, URL, dialects="all"))
            (draft,) = await nursery.start(partial(container.serve, URL, dialects=[DRAFT]))
            yield {**dict.fromkeys(CLIENTS, common.port), DRAFT: draft.port}
            nursery.cancel_scope.cancel()


def test_every_dialect_has_a_client_here() -> None:
    assert CLIENTS.keys() == {"1.0", *DIALECTS}


@pytest.mark.parametrize("receiver", CLIENTS)
@pytest.mark.parametrize("sender", CLIENTS)
async def test_message_of_one_wire_is_the_same_on_another(sender: str, receiver: str, tmp_path: Path) -> None:
    one, other = CLIENTS[sender], CLIENTS[receiver]
    with trio.fail_after(60):
        async with serving(tmp_path) as ports:
            await one.send(ports[sender], "q", MESSAGE)
        async with serving(tmp_path) as ports, other.receive(ports[receiver], "q") as receiving:
            await receiving.next(keep=False)
            again = await receiving.next(keep=True)
    unset = {each.name: each.default for each in fields(Fields)}
    expected = replace(MESSAGE, redelivered=True, **{name: unset[name] for name in one.lacks | other.lacks})
    assert again.lifetime is not None
    assert 500 < again.lifetime <= 601  # seconds are as fine as some wires have it
    assert replace(again, lifetime=600) == expected


@pytest.mark.parametrize("receiver", CLIENTS)
@pytest.mark.parametrize("sender", CLIENTS)
async def test_message_is_not_delivered_before_the_first_time(
    sender: str, receiver: str, tmp_path: Path
) -> None:
    with trio.fail_after(60):
        async with serving(tmp_path) as ports:
            await CLIENTS[sender].send(ports[sender], "q", Fields(body=b"tea"))
            async with CLIENTS[receiver].receive(ports[receiver], "q") as receiving:
                assert await receiving.next(keep=True) == Fields(body=b"tea")


@pytest.mark.parametrize("wire", CLIENTS)
async def test_delivery_that_is_out_when_its_channel_ends_is_a_failed_attempt(
    wire: str, tmp_path: Path
) -> None:
    with trio.fail_after(60):
        async with serving(tmp_path) as ports:
            for body in (b"received", b"unread"):
                await CLIENTS["1.0"].send(ports["1.0"], "q", Fields(body=body))
            await CLIENTS[wire].leave(ports[wire], "q")
            url = f"amqp://127.0.0.1:{ports['1.0']}"
            counts = {}
            async with amqp.open_connection(url) as connection, connection.open_receiver("q") as receiver:
                for _ in range(2):
                    delivery = await receiver.receive()
                    counts[delivery.message.body] = delivery.message.delivery_count
                    delivery.accept()
    # 10.3 has no way to give back what nobody has seen: to reject it is a failed attempt, too (C 1040-1043)
    assert counts == {b"received": 1, b"unread": int(wire == "10.3")}
