"""Headers exchanges and dead letters, for messages of any protocol."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import trio

import trio_amqp10 as amqp
from tests.amqp091.server import script as script091
from tests.amqp_fast.server import script as script_fast
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp10.wire.values import Array, Symbol, Timestamp, ULong
from trio_amqp10.container import Container

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

TIME = datetime.fromtimestamp(1_700_000_000, UTC)
LATER = datetime.fromtimestamp(1_700_000_001, UTC)
HEADERS: dict[str, Any] = {"colour": "red", "n": 7, "when": TIME}

BINDINGS: dict[str, dict[str, Any]] = {
    "text": {"colour": "red"},
    "octets": {"colour": b"red"},
    "number": {"n": 7},
    "time": {"when": TIME},
    "there": {"when": None},
    "all": {"colour": "red", "n": 7, "when": TIME},
    "any": {"x-match": "any", "colour": "green", "n": 7},
    "other text": {"colour": "green"},
    "other number": {"n": 8},
    "other time": {"when": LATER},
    "not there": {"size": None},
    "died of it": {"x-match": "all-with-x", "x-last-death-reason": "maxlen"},
    "died of another": {"x-match": "any-with-x", "x-last-death-reason": "expired"},
    "x is not looked at": {"x-match": "any", "x-last-death-reason": "maxlen"},
}
REACHED = ["text", "octets", "number", "time", "there", "all", "any", "died of it"]


async def publish_091(container: Container) -> None:
    async with script091.opened(container) as client:
        await client.publish("", "w", b"tea", headers=HEADERS)
        await client.ask(spec.QueueDeclare(queue="mark"))


async def send_10(container: Container) -> None:
    properties = {**HEADERS, "when": Timestamp(1_700_000_000_999)}
    async with container.connect() as conn, conn.open_sender("w") as sender:
        await sender.send(amqp.Message(b"tea", application_properties=properties))


async def send_fast(container: Container) -> None:
    async with script_fast.opened(container) as client:
        await client.handle("w")
        await client.send(b"tea", confirm=1, headers=HEADERS)
        await client.heard()


SENDERS = pytest.mark.parametrize("send", [publish_091, send_10, send_fast])


@asynccontextmanager
async def dying(bindings: dict[str, dict[str, Any]]) -> AsyncGenerator[tuple[Container, script091.Client]]:
    """Yield a container with a queue ``w`` whose messages become dead letters at once.

    A headers exchange routes them to queues with these bindings.
    """
    async with script091.opened(container := Container()) as client:
        arguments = {"x-max-length": 0, "x-dead-letter-exchange": "amq.headers"}
        await client.ask(spec.QueueDeclare(queue="w", arguments=arguments))
        for name, each in bindings.items():
            await client.ask(spec.QueueDeclare(queue=name))
            await client.ask(spec.QueueBind(queue=name, exchange="amq.headers", arguments=each))
        yield container, client


@SENDERS
async def test_bindings_match_the_headers_of_a_message_of_any_protocol(send: Any) -> None:
    async with dying(BINDINGS) as (container, client):
        await send(container)
        counts = {
            name: (await client.ask(spec.QueueDeclare(queue=name, passive=True)))["message_count"]
            for name in BINDINGS
        }
        assert [name for name, count in counts.items() if count] == REACHED


@SENDERS
async def test_dead_letter_of_any_protocol_has_its_history_in_0_9_1(send: Any) -> None:
    async with dying({"dead": {}}) as (container, client):
        await send(container)
        got = await client.ask(spec.BasicGet(queue="dead", no_ack=True))
        headers = dict(got.properties[2])
        assert (got.body, got["exchange"], got["routing_key"]) == (b"tea", b"amq.headers", b"w")
        [(letter, entry)] = headers[b"x-death"][1]
        death = dict(entry)
        assert letter == "F"
        assert death.pop(b"time")[0] == "T"
        assert death == {
            b"count": ("l", 1),
            b"reason": ("S", b"maxlen"),
            b"queue": ("S", b"w"),
            b"exchange": ("S", b""),
            b"routing-keys": ("A", [("S", b"w")]),
        }
        for which in (b"first", b"last"):
            assert headers[b"x-" + which + b"-death-queue"] == ("S", b"w")
            assert headers[b"x-" + which + b"-death-reason"] == ("S", b"maxlen")
            assert headers[b"x-" + which + b"-death-exchange"] == ("S", b"")
        assert headers[b"colour"] == ("S", b"red")


@SENDERS
async def test_dead_letter_of_any_protocol_has_its_history_in_1_0(send: Any) -> None:
    async with dying({"dead": {}}) as (container, _):
        await send(container)
        async with container.connect() as conn, conn.open_receiver("dead") as receiver:
            notes = (await receiver.receive()).message.annotations
        deaths = notes["x-opt-deaths"]
        assert (type(deaths), deaths.type) == (Array, "map")
        [death] = deaths
        times = {death.pop(Symbol("first-time")), death.pop(Symbol("last-time"))}
        assert {type(each) for each in times} == {Timestamp}
        assert death == {
            Symbol("queue"): "w",
            Symbol("reason"): Symbol("maxlen"),
            Symbol("count"): ULong(1),
            Symbol("exchange"): "",
            Symbol("routing-keys"): Array(["w"], "string"),
        }
        assert "x-death" not in notes
        assert notes["x-first-death-queue"] == notes["x-last-death-queue"] == "w"
        assert (notes["x-exchange"], notes["x-routing-key"]) == ("amq.headers", "w")


@SENDERS
async def test_dead_letter_of_any_protocol_is_a_message_without_a_history_in_amqp_fast(send: Any) -> None:
    async with dying({"dead": {}}) as (container, _), script_fast.opened(container) as client:
        await send(container)
        await client.handle("dead")
        await client.consume()
        heard = await client.heard()
        assert heard.body == b"tea"


@SENDERS
async def test_message_dies_once_in_a_queue_whatever_protocol_it_came_by(send: Any) -> None:
    """Without a rejection it would go in circles: its history is asked, in any form."""
    async with script091.opened(container := Container()) as client:
        away = {"x-message-ttl": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "other"}
        back = {**away, "x-dead-letter-routing-key": "w"}
        await client.ask(spec.QueueDeclare(queue="w", arguments=away))
        await client.ask(spec.QueueDeclare(queue="other", arguments=back))
        with trio.fail_after(60):
            await send(container)
        for name in ("w", "other"):
            there = await client.ask(spec.QueueDeclare(queue=name, passive=True))
            assert there["message_count"] == 0


async def test_second_death_is_counted_across_protocols() -> None:
    """Rejected by a client of 0-9-1, then by one of 1.0, then seen by both."""
    async with script091.opened(container := Container()) as client, container.connect() as conn:
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        await client.ask(spec.QueueDeclare(queue="w", arguments=arguments))
        back = {**arguments, "x-dead-letter-routing-key": "w"}
        await client.ask(spec.QueueDeclare(queue="dead", arguments=back))
        async with conn.open_sender("w") as sender:
            await sender.send(amqp.Message(b"tea", ttl=60_000))
        for _ in range(2):
            got = await client.ask(spec.BasicGet(queue="w"))
            await client.say(spec.BasicReject(delivery_tag=got["delivery_tag"], requeue=False))
            async with conn.open_receiver("dead") as receiver:
                (await receiver.receive()).reject("amqp:not-found")
        got = await client.ask(spec.BasicGet(queue="w", no_ack=True))
        deaths = [dict(entry) for _, entry in dict(got.properties[2])[b"x-death"][1]]
        found = [(each[b"queue"][1], each[b"count"][1], each.get(b"original-expiration")) for each in deaths]
        assert found == [(b"dead", 2, None), (b"w", 2, ("S", b"60000"))]
