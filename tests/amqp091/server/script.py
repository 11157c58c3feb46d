"""A client of 0-9-1 that is a script: it says methods, and hears what the second reader makes of the octets."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.amqp091 import naive
from tests.amqp091.pairs import CLIENT_PROPERTIES, written
from tests.container.method_client import Heard, MethodClient
from tests.container.served import served
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.server.protocol import Amqp091
from trio_amqp10.amqp091.wire.content import BasicProperties, Content, write_header
from trio_amqp10.amqp091.wire.fields import USUAL
from trio_amqp10.amqp091.wire.frames import HEADER, PROTOCOL_HEADER, body_frames, frame
from trio_amqp10.container import Container

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from trio_amqp10.amqp091.wire.methods import Method
    from trio_amqp10.sasl import Server

__all__ = [
    "Client",
    "Heard",
    "bodies_of",
    "consuming",
    "delivered",
    "dialled",
    "filled",
    "is_quiet",
    "opened",
    "started",
]

CAPABLE = {
    "capabilities": {
        **CLIENT_PROPERTIES["capabilities"],
        "consumer_cancel_notify": True,
        "publisher_confirms": True,
    }
}


class Client(MethodClient):
    """The other end of one connection."""

    spec = spec
    naive = naive
    size_at = 3
    contents = frozenset({"basic.deliver", "basic.get-ok", "basic.return"})

    def written(self, method: Method, channel: int) -> bytes:
        return written(method, channel)

    def method(self, payload: bytes) -> tuple[str, dict[str, Any]]:
        return naive.method(payload)

    def header(self, payload: bytes) -> tuple[int, list[Any]]:
        return int.from_bytes(payload[4:12], "big"), naive.properties(payload[12:])

    async def publish(
        self,
        exchange: str,
        key: str,
        body: bytes = b"",
        *,
        channel: int = 1,
        mandatory: bool = False,
        immediate: bool = False,
        **properties: Any,
    ) -> None:
        """Write a basic.publish with its content."""
        method = spec.BasicPublish(
            exchange=exchange, routing_key=key, mandatory=mandatory, immediate=immediate
        )
        content = Content(BasicProperties(**properties), body)
        octets = written(method, channel) + frame(HEADER, channel, write_header(content, USUAL))
        await self.stream.send_all(octets + b"".join(body_frames(channel, body, 4088)))

    async def refused(self, method: Method, channel: int = 1) -> int:
        """Say a method that is refused: the code of the close; a channel is opened again."""
        return await self.close_code(await self.ask(method, channel), channel)

    async def close_code(self, heard: Heard | None, channel: int = 1) -> int:
        """The code of a close, which is answered."""
        return (await self.closed(heard, channel))[1]

    async def open(self, *, user: str = "guest", password: str = "guest", **properties: Any) -> None:
        """The handshake, and channel 1."""
        await self.log_in(user=user, password=password, **properties)
        assert (await self.ask(spec.ConnectionOpen(), 0)).name == "connection.open-ok"
        assert (await self.ask(spec.ChannelOpen())).name == "channel.open-ok"

    async def log_in(
        self, *, user: str = "guest", password: str = "guest", frame_max: int = 131_072, **properties: Any
    ) -> None:
        """The handshake, but for the virtual host."""
        await self.stream.send_all(PROTOCOL_HEADER)
        start = await self.hear()
        assert start is not None
        answer = spec.ConnectionStartOk(
            client_properties={**CAPABLE, **properties}, response=f"\0{user}\0{password}".encode()
        )
        tune = await self.ask(answer, 0)
        assert tune.name == "connection.tune"
        await self.say(spec.ConnectionTuneOk(channel_max=2047, frame_max=frame_max, heartbeat=0), channel=0)


@asynccontextmanager
async def dialled(
    container: Container, sasl: Server | None = None, dialect: Amqp091 | None = None
) -> AsyncGenerator[Client]:
    """A client whose handshake is to come."""
    async with served(dialect or Amqp091(container), sasl) as stream:
        yield Client(stream)


@asynccontextmanager
async def opened(
    container: Container | None = None,
    sasl: Server | None = None,
    dialect: Amqp091 | None = None,
    **login: Any,
) -> AsyncGenerator[Client]:
    """A client with channel 1."""
    async with dialled(container or Container(), sasl, dialect) as client:
        await client.open(**login)
        yield client


async def filled(client: Client, *bodies: bytes, name: str = "q", **arguments: Any) -> None:
    durable = arguments.get("x-queue-type") == "quorum"
    await client.ask(spec.QueueDeclare(queue=name, durable=durable, arguments=arguments))
    for body in bodies:
        await client.publish("", name, body)


async def consuming(client: Client, tag: str = "c", name: str = "q", **options: Any) -> None:
    answer = await client.ask(spec.BasicConsume(queue=name, consumer_tag=tag, **options))
    assert answer.name == "basic.consume-ok", answer


async def delivered(client: Client, count: int) -> list[Heard]:
    found: list[Heard] = []
    for _ in range(count):
        heard = await client.hear()
        assert heard is not None
        assert heard.name == "basic.deliver", heard
        found.append(heard)
    return found


async def is_quiet(client: Client, mark: spec.Method | None = None) -> bool:
    """Whether nothing comes before the answer to one more question."""
    heard = await client.ask(mark or spec.QueueDeclare(queue="mark"))
    return heard.name.endswith("-ok") and heard.name != "basic.get-ok"


def bodies_of(found: Iterable[Heard]) -> list[bytes]:
    return [each.body for each in found]


async def started(client: Client) -> set[str]:
    """The mechanisms that the server offers."""
    await client.stream.send_all(PROTOCOL_HEADER)
    start = await client.hear()
    assert start is not None
    assert (start["version_major"], start["version_minor"], start["locales"]) == (0, 9, b"en_US")
    properties = dict(start["server_properties"])
    assert properties[b"product"] == ("S", b"trio-amqp10")
    assert dict(properties[b"capabilities"][1])[b"publisher_confirms"] == ("t", True)
    return set(start["mechanisms"].decode().split())
