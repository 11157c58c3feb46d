"""A client of 0-9-1 that is a script: it says methods, and hears what the second reader makes of the octets."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from tests.amqp091 import naive
from tests.amqp091.pairs import CLIENT_PROPERTIES, written
from tests.container.protocols.served import served
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.content import BasicProperties, Content, write_header
from trio_amqp10.amqp091.fields import USUAL
from trio_amqp10.amqp091.frames import BODY, HEADER, METHOD, PROTOCOL_HEADER, body_frames, frame
from trio_amqp10.container import Container
from trio_amqp10.container.protocols.amqp091.dialect import Amqp091

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio_amqp10.amqp091.methods import Method
    from trio_amqp10.sasl import Server

__all__ = ["Client", "Heard", "dialled", "opened"]

CAPABLE = {
    "capabilities": {
        **CLIENT_PROPERTIES["capabilities"],
        "consumer_cancel_notify": True,
        "publisher_confirms": True,
    }
}


class Heard(dict[str, Any]):
    """A method: its name, its channel, its arguments, and what it carries."""

    def __init__(self, channel: int, name: str, arguments: dict[str, Any]) -> None:
        super().__init__(arguments)
        self.channel = channel
        self.name = name
        self.body = b""
        self.properties: list[Any] = []

    def __repr__(self) -> str:
        return f"{self.name}{dict(self)!r}{self.body!r}"


class Client:
    """The other end of one connection."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self._read = b""

    async def say(self, *methods: Method, channel: int = 1) -> None:
        """Write methods without a content."""
        await self.stream.send_all(b"".join(written(method, channel) for method in methods))

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

    async def hear(self) -> Heard | None:
        """The next method with what it carries; None at the end of the transport."""
        kind, channel, payload = await self._frame()
        if not kind:
            return None
        assert kind == METHOD
        heard = Heard(channel, *naive.method(payload))
        if heard.name in ("basic.deliver", "basic.get-ok", "basic.return"):
            kind, _, header = await self._frame()
            assert kind == HEADER
            heard.properties = naive.properties(header[12:])
            size = int.from_bytes(header[4:12], "big")
            while len(heard.body) < size:
                kind, _, octets = await self._frame()
                assert kind == BODY
                heard.body += octets
        return heard

    async def ask(self, method: Method, channel: int = 1) -> Heard:
        """Say a method, and hear the next one."""
        await self.say(method, channel=channel)
        heard = await self.hear()
        assert heard is not None
        return heard

    async def refused(self, method: Method, channel: int = 1) -> int:
        """Say a method that is refused: the code of the close; a channel is opened again."""
        heard = await self.ask(method, channel)
        return await self.close_code(heard, channel)

    async def close_code(self, heard: Heard | None, channel: int = 1) -> int:
        """The code of a close, which is answered."""
        assert heard is not None
        assert heard.name in ("channel.close", "connection.close"), heard
        if heard.name == "channel.close":
            await self.say(spec.ChannelCloseOk(), channel=channel)
            assert (await self.ask(spec.ChannelOpen(), channel)).name == "channel.open-ok"
        else:
            await self.say(spec.ConnectionCloseOk(), channel=0)
        return int(heard["reply_code"])

    async def _frame(self) -> tuple[int, int, bytes]:
        with trio.fail_after(600):
            while True:
                size = 8 + int.from_bytes(self._read[3:7], "big") if len(self._read) >= 7 else 7
                if len(self._read) >= max(size, 8):
                    octets, self._read = self._read[:size], self._read[size:]
                    kind, channel, payload = naive.frames(octets)[0]
                    if kind != 8:
                        return kind, channel, payload
                    continue
                data = await self.stream.receive_some()
                if not data:
                    return 0, 0, b""
                self._read += data

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
