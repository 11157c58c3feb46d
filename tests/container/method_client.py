"""The base of the scripted clients of 0-9-1 and of 10.3.

They write methods, and read methods with their contents.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import trio

from trio_amqp10.amqp091.wire.frames import BODY, HEADER, METHOD

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from trio_amqp10.amqp091.wire.methods import Method

_HEARTBEAT = 8


class Heard(dict[str, Any]):
    """A method: its name, its channel, its arguments, and what it carries."""

    def __init__(self, channel: int, name: str, arguments: Mapping[str, Any]) -> None:
        super().__init__(arguments)
        self.channel = channel
        self.name = name
        self.body = b""
        self.properties: list[Any] = []

    def __repr__(self) -> str:
        return f"{self.name}{dict(self)!r}{self.body!r}"


class MethodClient(ABC):
    """The other end of one connection.

    Attributes:
        spec: the methods of this protocol.
        naive: the second reader of its frames.
        size_at: where the size of a payload is in its frame: four octets, which end the frame's header.
        contents: names of the methods that carry something.
    """

    spec: ClassVar[Any]
    naive: ClassVar[Any]
    size_at: ClassVar[int]
    contents: ClassVar[Container[str]]

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self._read = b""

    @abstractmethod
    def written(self, method: Method, channel: int) -> bytes:
        """A method frame."""

    @abstractmethod
    def method(self, payload: bytes) -> tuple[str, Mapping[str, Any]]:
        """The name and the arguments of a method, as the second reader reads it."""

    @abstractmethod
    def header(self, payload: bytes) -> tuple[int, list[Any]]:
        """The size of the body, and the properties."""

    async def say(self, *methods: Method, channel: int = 1) -> None:
        """Write methods without a content."""
        await self.stream.send_all(b"".join(self.written(method, channel) for method in methods))

    async def hear(self) -> Heard | None:
        """Return the next method with its content; None at the end of the transport."""
        kind, channel, payload = await self._frame()
        if not kind:
            return None
        assert kind == METHOD
        heard = Heard(channel, *self.method(payload))
        if heard.name in self.contents:
            kind, _, payload = await self._frame()
            assert kind == HEADER
            size, heard.properties = self.header(payload)
            while len(heard.body) < size:
                kind, _, octets = await self._frame()
                assert kind == BODY
                heard.body += octets
        return heard

    async def heard(self, name: str) -> Heard:
        """The next method, which has this name."""
        heard = await self.hear()
        assert heard is not None
        assert heard.name == name, heard
        return heard

    async def ask(self, method: Method, channel: int = 1) -> Heard:
        """Write a method, and return the next one."""
        await self.say(method, channel=channel)
        heard = await self.hear()
        assert heard is not None
        return heard

    async def closed(self, heard: Heard | None, channel: int = 1) -> tuple[str, int]:
        """Answer a close; return its class and code, and open the channel again."""
        assert heard is not None
        kind, _, what = heard.name.partition(".")
        assert what == "close", heard
        if kind == "channel":
            await self.say(self.spec.ChannelCloseOk(), channel=channel)
            assert (await self.ask(self.spec.ChannelOpen(), channel)).name == "channel.open-ok"
        else:
            await self.say(self.spec.ConnectionCloseOk(), channel=0)
        return kind, int(heard["reply_code"])

    async def _frame(self) -> tuple[int, int, bytes]:
        with trio.fail_after(600):
            while True:
                head = self.size_at + 4
                size = head + int.from_bytes(self._read[self.size_at : head], "big") + 1
                if len(self._read) >= size:
                    octets, self._read = self._read[:size], self._read[size:]
                    kind, channel, payload = self.naive.frames(octets)[0]
                    if kind != _HEARTBEAT:
                        return kind, channel, payload
                    continue
                data = await self.stream.receive_some()
                if not data:
                    return 0, 0, b""
                self._read += data
