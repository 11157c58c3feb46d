"""The forms in which each protocol can send a durable message to a queue.

A form sends one message with the given body, and returns once the server has accepted it.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal

import trio

import trio_amqp10 as amqp
from tests.amqp_10_3.server.script import Client as Script103
from tests.container.clients import CLIENTS, Fields
from trio_amqp10 import amqp091, amqp_10_3, amqp_fast
from trio_amqp10.amqp_10_3 import spec as spec103
from trio_amqp10.amqp_10_3.wire.properties import FileProperties

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

Form = Callable[[int, str, bytes], Awaitable[None]]
"""Sends a body to a queue of the server at a port, durable."""

Dialect = Literal["1.0", "1.0-draft-2010"]

LARGE: Final = 700_000
"""Octets that no protocol has in one frame."""


def _whole(protocol: str) -> Form:
    async def send(port: int, queue: str, body: bytes) -> None:
        await CLIENTS[protocol].send(port, queue, Fields(body=body, durable=True))

    return send


def _large(protocol: str) -> Form:
    async def send(port: int, queue: str, body: bytes) -> None:
        await CLIENTS[protocol].send(port, queue, Fields(body=_enlarged(body), durable=True))

    return send


def _enlarged(body: bytes) -> bytes:
    return body + bytes([zlib.crc32(body) & 0xFF]) * LARGE


# -- AMQP 1.0, and its draft of 2010 --------------------------------------------------------------


def _of_format(message_format: int, protocol: Dialect = "1.0") -> Form:
    async def send(port: int, queue: str, body: bytes) -> None:
        payload = amqp.Message(body, durable=True).to_payload()
        async with _sender(port, queue, protocol) as sender:
            await sender.send(amqp.Message.from_payload(payload, message_format))

    return send


async def _unreadable(port: int, queue: str, body: bytes) -> None:
    """Octets that are no sections: whether their sender asked for durability cannot be read."""
    async with _sender(port, queue) as sender:
        await sender.send(amqp.Message.from_payload(b"\xff" + body))


async def _streamed(port: int, queue: str, body: bytes) -> None:
    async with _sender(port, queue) as sender, sender.stream(message=amqp.Message(durable=True)) as stream:
        await stream.send_all(body)
        await stream.send_all(bytes(LARGE))


async def _by_the_relay(port: int, queue: str, body: bytes) -> None:
    async with _sender(port, None) as sender:
        await sender.send(amqp.Message(body, durable=True, to=queue))


async def _posted(port: int, queue: str, body: bytes) -> None:
    async with (
        amqp.open_connection(f"amqp://127.0.0.1:{port}") as connection,
        connection.open_sender(queue) as sender,
        connection.open_transaction() as transaction,
    ):
        await sender.send(amqp.Message(body, durable=True), transaction=transaction)


async def _posted_in_another_format(port: int, queue: str, body: bytes) -> None:
    async with (
        amqp.open_connection(f"amqp://127.0.0.1:{port}") as connection,
        connection.open_sender(queue) as sender,
        connection.open_transaction() as transaction,
    ):
        await sender.send(amqp.Message.from_payload(body, 0x80013700), transaction=transaction)


async def _exactly_once(port: int, queue: str, body: bytes) -> None:
    async with (
        amqp.open_connection(f"amqp://127.0.0.1:{port}", container_id="contract") as connection,
        connection.open_sender(queue, name="contract", guarantee="exactly-once") as sender,
    ):
        await sender.send(amqp.Message(body, durable=True))


@asynccontextmanager
async def _sender(port: int, queue: str | None, protocol: Dialect = "1.0") -> AsyncGenerator[amqp.Sender]:
    async with (
        amqp.open_connection(
            f"amqp://127.0.0.1:{port}", dialect=protocol, sasl=amqp.sasl.Anonymous()
        ) as connection,
        connection.open_sender(queue) as sender,
    ):
        yield sender


# -- AMQP 0-9-1 -----------------------------------------------------------------------------------


async def _committed_091(port: int, queue: str, body: bytes) -> None:
    async with (
        amqp091.open_connection(f"amqp091://127.0.0.1:{port}") as connection,
        connection.open_transaction() as out,
    ):
        await out.publish("", queue, body, properties=amqp091.BasicProperties(delivery_mode=2))


# -- AMQP 10.3 ------------------------------------------------------------------------------------


async def _not_in_a_transaction_103(port: int, queue: str, body: bytes) -> None:
    """10.3 confirms nothing outside a transaction: a later answer on the channel shows that it was taken."""
    async with (
        amqp_10_3.open_connection(f"amqp103://127.0.0.1:{port}") as connection,
        connection.open_channel() as channel,
        connection.open_transaction() as out,
    ):
        await channel.publish("", queue, body, properties=amqp091.BasicProperties(delivery_mode=2))
        await channel.declare_queue("contract-other")
        # What was published before it, is written with it or before.
        await out.publish("", "contract-other", b"", properties=amqp091.BasicProperties(delivery_mode=2))


async def _file_103(port: int, queue: str, body: bytes) -> None:
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        client = Script103(stream)
        await client.open(tickets=True)
        assert (await client.ask(spec103.TxSelect())).name == "tx.select-ok"
        opening = spec103.FileOpen(identifier="i", content_size=len(body))
        assert (await client.ask(opening)).name == "file.open-ok"
        await client.carry(spec103.FileStage(), body, FileProperties(filename="f"))
        await client.say(spec103.FilePublish(ticket=client.ticket, identifier="i", routing_key=queue))
        assert (await client.ask(spec103.TxCommit())).name == "tx.commit-ok"


# -- AMQP/Fast ------------------------------------------------------------------------------------


async def _committed_fast(port: int, queue: str, body: bytes) -> None:
    async with (
        amqp_fast.open_connection(f"amqp-fast://127.0.0.1:{port}") as connection,
        connection.open_channel(transacted=True) as channel,
        channel.open_handle(queue) as handle,
    ):
        await handle.send(body, persistent=True)
        await channel.commit()


async def _to_topic_fast(port: int, topic: str, body: bytes) -> None:
    async with (
        amqp_fast.open_connection(f"amqp-fast://127.0.0.1:{port}") as connection,
        connection.open_channel() as channel,
        channel.open_handle(topic, service="topic") as handle,
    ):
        await handle.send(body, persistent=True)


DURABLE_FORMS: Final[Mapping[str, Mapping[str, Form]]] = {
    "1.0": {
        "whole": _whole("1.0"),
        "in many frames": _large("1.0"),
        "streamed": _streamed,
        "a later version of the format": _of_format(1),
        "the last version of the format": _of_format(0xFF),
        "another format": _of_format(0x80013700),
        "unreadable": _unreadable,
        "by the relay": _by_the_relay,
        "posted in a transaction": _posted,
        "another format in a transaction": _posted_in_another_format,
        "exactly once": _exactly_once,
    },
    "0-9-1": {
        "whole": _whole("0-9-1"),
        "in many frames": _large("0-9-1"),
        "committed": _committed_091,
    },
    "10.3": {
        "committed": _whole("10.3"),
        "in many frames": _large("10.3"),
        "without a transaction": _not_in_a_transaction_103,
        "file": _file_103,
    },
    "amqp-fast": {
        "whole": _whole("amqp-fast"),
        "in many frames": _large("amqp-fast"),
        "committed": _committed_fast,
    },
    "1.0-draft-2010": {
        "whole": _whole("1.0-draft-2010"),
        "in many frames": _large("1.0-draft-2010"),
        "another format": _of_format(0x80013700, "1.0-draft-2010"),
    },
}
"""By protocol and by what the form is."""

DURABLE_TOPIC_FORMS: Final[Mapping[str, Mapping[str, Form]]] = {
    **DURABLE_FORMS,
    "amqp-fast": {"whole": _to_topic_fast},
}
"""The same for a topic."""
