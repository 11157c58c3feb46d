"""A scripted client of 10.3, which reads methods with the second reader."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tests.amqp_10_3 import naive
from tests.amqp_10_3.pairs import written
from tests.container.method_client import Heard, MethodClient
from tests.container.served import served
from trio_amqp10.amqp091.wire.content import BasicProperties, Content, Properties, write_header
from trio_amqp10.amqp091.wire.fields import FIVE
from trio_amqp10.amqp091.wire.frames import HEADER
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.server.protocol import Amqp103
from trio_amqp10.amqp_10_3.wire.frames import FRAMES, PROTOCOL_HEADER
from trio_amqp10.container import Container

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import trio

    from trio_amqp10.amqp091.wire.methods import Method
    from trio_amqp10.sasl import Server

__all__ = ["Client", "Heard", "bodies", "connect", "dialled", "opened"]

NAMES = {plan.name: [name for name, _ in plan.arguments] for plan in spec.METHODS}


class Client(MethodClient):
    """The other end of one connection.

    Attributes:
        ticket: that publishes and consumers name.
    """

    spec = spec
    naive = naive
    size_at = 4
    contents = frozenset(plan.name for plan in spec.METHODS if plan.content)

    def __init__(self, stream: trio.abc.Stream) -> None:
        super().__init__(stream)
        self.ticket = 0

    def written(self, method: Method, channel: int) -> bytes:
        return written(method, channel)

    def method(self, payload: bytes) -> tuple[str, dict[str, Any]]:
        name, arguments = naive.method(payload)
        return name, dict(zip(NAMES[name], arguments, strict=True))

    def header(self, payload: bytes) -> tuple[int, list[Any]]:
        _, _, size, properties = naive.header(payload)
        return size, properties

    async def carry(
        self,
        method: Method,
        body: bytes = b"",
        properties: Properties | None = None,
        *,
        channel: int = 1,
        cut: int | None = None,
    ) -> None:
        """Write a method with its content; ``cut`` limits the octets of the body."""
        content = Content(properties or BasicProperties(), body)
        octets = written(method, channel)
        octets += FRAMES.frame(HEADER, channel, write_header(content, FIVE, method.plan.class_id))
        await self.stream.send_all(octets + b"".join(FRAMES.body_frames(channel, body[:cut], 4000)))

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
            ticket=self.ticket,
            exchange=exchange,
            routing_key=key,
            mandatory=mandatory,
            immediate=immediate,
        )
        await self.carry(method, body, BasicProperties(**properties), channel=channel)

    async def quiet(self, channel: int = 1) -> bool:
        """Whether nothing is heard before the answer to a test."""
        heard = await self.ask(spec.TestInteger(), channel)
        return heard.name == "test.integer-ok"

    async def refused(self, method: Method, channel: int = 1) -> tuple[str, int]:
        """Say a method that is refused: what is closed, and with which code; a channel is opened again."""
        return await self.closed(await self.ask(method, channel), channel)

    async def open(self, *, prefetch_max: int = 0, tickets: bool = False, **login: Any) -> None:
        """Perform the handshake, and open channel 1."""
        await self.log_in(**login)
        assert (await self.ask(spec.ConnectionOpen(), 0)).name == "connection.open-ok"
        opened = await self.ask(spec.ChannelOpen(prefetch_max=prefetch_max))
        assert opened.name == "channel.open-ok"
        if tickets:
            self.ticket = (await self.ask(ALL))["ticket"]

    async def log_in(self, *, user: str = "guest", password: str = "guest", name: str = "") -> None:
        """Perform the handshake up to the virtual host."""
        await self.stream.send_all(PROTOCOL_HEADER)
        await self.heard("connection.start")
        properties = {"connection_name": name} if name else {}
        response = f"\0{user}\0{password}".encode()
        answer = spec.ConnectionStartOk(client_properties=properties, response=response)
        assert (await self.ask(answer, 0)).name == "connection.tune"
        await self.say(spec.ConnectionTuneOk(channel_max=2047, frame_max=131_072, heartbeat=0), channel=0)

    async def declare(self, queue: str = "q", **arguments: Any) -> None:
        """Write queue.declare, and wait for the confirmation."""
        heard = await self.ask(spec.QueueDeclare(ticket=self.ticket, queue=queue, **arguments))
        assert heard.name == "queue.declare-ok", heard

    async def consume(self, method: Any = spec.BasicConsume, **arguments: Any) -> None:
        """Begin the consumer ``c``, by default of the queue ``q``."""
        request = method(**{"ticket": self.ticket, "queue": "q", "consumer_tag": "c", **arguments})
        heard = await self.ask(request)
        assert heard.name == f"{request.plan.name}-ok", heard


ALL = spec.AccessRequest(passive=True, active=True, write=True, read=True)


@asynccontextmanager
async def dialled(
    container: Container, sasl: Server | None = None, dialect: Amqp103 | None = None
) -> AsyncGenerator[Client]:
    """A client before its handshake."""
    async with served(dialect or Amqp103(container, tickets=False), sasl) as stream:
        yield Client(stream)


@asynccontextmanager
async def opened(
    container: Container | None = None,
    sasl: Server | None = None,
    dialect: Amqp103 | None = None,
    **login: Any,
) -> AsyncGenerator[Client]:
    """A client with channel 1, which needs no tickets by default."""
    async with dialled(container or Container(), sasl, dialect) as client:
        await client.open(**login)
        yield client


async def connect(
    container: Container, number: int, nursery_clients: Any, dialect: Amqp103 | None = None, **login: Any
) -> list[Client]:
    """Several clients of one dialect, each with channel 1, entered in an exit stack."""
    dialect = dialect or Amqp103(container, tickets=False)
    return [
        await nursery_clients.enter_async_context(opened(container, dialect=dialect, **login))
        for _ in range(number)
    ]


async def bodies(client: Any, number: int, name: str = "basic.deliver") -> list[bytes]:
    """The bodies of so many deliveries, which are the next things heard."""
    return [(await client.heard(name)).body for _ in range(number)]
