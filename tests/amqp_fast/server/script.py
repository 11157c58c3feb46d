"""A scripted client of AMQP/Fast, which reads commands with the second reader."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio
from trio.testing import wait_all_tasks_blocked

from tests.amqp_fast import naive
from tests.amqp_fast.pairs import NAMES, block_of, written
from tests.container.served import served
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.message import Message
from trio_amqp10.amqp_fast.server.protocol import AmqpFast
from trio_amqp10.amqp_fast.wire.frames import INITIATION
from trio_amqp10.broker.nodes.queue import Queue
from trio_amqp10.container import Container

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio_amqp10.amqp_fast.wire.commands import Command
    from trio_amqp10.sasl import Server

FIELDS = {plan.id: [name for name, _ in plan.fields] for plan in spec.COMMANDS}
HEAD = [name for name, _ in spec.MessageHead.plan.fields]


class Heard(dict[str, Any]):
    """A command: its name, its fields, and its complete message, if any."""

    def __init__(self, number: int, values: list[Any], fragment: bytes) -> None:
        super().__init__(zip(FIELDS[number], values, strict=True))
        self.name = NAMES[number]
        self.fragment = fragment

    @property
    def head(self) -> dict[str, Any]:
        return dict(zip(HEAD, naive.fields(naive.HEAD, self.fragment)[0], strict=True))

    @property
    def body(self) -> bytes:
        return self.fragment[naive.fields(naive.HEAD, self.fragment)[1] :]

    def __repr__(self) -> str:
        return f"{self.name}{dict(self)!r}{self.fragment!r}"


class Client:
    """The client's end of one connection."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self._read = b""
        self._heard: list[Heard] = []

    async def say(self, *commands: Command, fragment: bytes = b"") -> None:
        """Write commands, and a fragment after the last one."""
        await self.stream.send_all(written(*commands, fragment=fragment))

    async def send(
        self, body: bytes, *, handle: int = 1, confirm: int = 0, name: str = "", **head: Any
    ) -> None:
        """Write HANDLE SEND with a whole message."""
        block = block_of(Message(spec.MessageHead(**head), body))
        command = spec.HandleSend(
            handle_id=handle, confirm_tag=confirm, fragment_size=len(block), dest_name=name
        )
        await self.say(command, fragment=block)

    async def hear(self) -> Heard | None:
        """Return the next command; None at the end of the transport."""
        with trio.fail_after(600):
            while not self._heard:
                data = await self.stream.receive_some()
                if not data:
                    return None
                self._read += data
                try:
                    found = naive.read(self._read)
                except (AssertionError, IndexError):
                    continue  # there is more to come
                self._read = b""
                self._heard = [Heard(*each) for each in found]
        return self._heard.pop(0)

    async def heard(self) -> Heard:
        """Return the next command; the transport must not end."""
        heard = await self.hear()
        assert heard is not None
        return heard

    async def ask(self, command: Command) -> Heard:
        """Write a command, and return the next one."""
        await self.say(command)
        return await self.heard()

    async def quiet(self) -> bool:
        """Whether nothing is heard before the answer to a ping, which would pass by what waits to be written (2.2.9)."""
        await wait_all_tasks_blocked()
        heard = await self.ask(spec.ConnectionPing(respond=True))
        return heard.name == "connection ping"

    async def open(
        self, *, mechanism: str = "NONE", client_name: str = "", channel: bool = True, **responses: Any
    ) -> None:
        """Negotiate, and open channel 1."""
        await self.stream.send_all(INITIATION)
        challenge = await self.hear()
        assert challenge is not None
        assert challenge.name == "connection challenge"
        tune = await self.ask(spec.ConnectionResponse(mechanism=mechanism, responses=responses))
        assert tune.name == "connection tune"
        opening = spec.ConnectionOpen(confirm_tag=1, virtual_path="/", client_name=client_name)
        reply = await self.ask(opening)
        assert reply.name == "connection reply", reply
        if channel:
            await self.say(spec.ChannelOpen(channel_id=1))

    async def handle(self, name: str = "q", number: int = 1, channel: int = 1, **fields: Any) -> None:
        """Open a handle with all access, by default to a queue."""
        access = (
            {}
            if fields.get("service_type") == 3
            else dict.fromkeys(("producer", "consumer", "browser"), True)
        )
        command = spec.HandleOpen(
            channel_id=channel, handle_id=number, dest_name=name, **{**access, **fields}
        )
        await self.say(command)

    async def consume(self, prefetch: int = 10, **fields: Any) -> None:
        """Write HANDLE CONSUME, and wait for the confirmation."""
        command = spec.HandleConsume(**{"handle_id": 1, "confirm_tag": 99, "prefetch": prefetch, **fields})
        heard = await self.ask(command)
        assert (heard.name, heard["reply_code"]) == ("handle reply", 200), heard

    async def got(self) -> tuple[int, bytes]:
        """Return number and body of the next message."""
        heard = await self.hear()
        assert heard is not None
        assert heard.name == "handle notify", heard
        return heard["message_nbr"], heard.body

    async def code(self, command: Command | None = None) -> tuple[str, int]:
        """Return the object that is closed, and the reply code."""
        heard = await (self.hear() if command is None else self.ask(command))
        assert heard is not None
        assert heard.name.endswith("close"), heard
        return heard.name.split()[0], heard["reply_code"]


@asynccontextmanager
async def dialled(
    container: Container, sasl: Server | None = None, dialect: AmqpFast | None = None
) -> AsyncGenerator[Client]:
    """A client before its negotiation."""
    async with served(dialect or AmqpFast(container), sasl) as stream:
        yield Client(stream)


@asynccontextmanager
async def opened(
    container: Container | None = None,
    sasl: Server | None = None,
    dialect: AmqpFast | None = None,
    **login: Any,
) -> AsyncGenerator[Client]:
    """A client with channel 1."""
    async with dialled(container or Container(), sasl, dialect) as client:
        await client.open(**login)
        yield client


TOPIC = {"service_type": 2}


def with_queues(*names: str) -> Container:
    container = Container(strict=True)
    for name in names or ("q",):
        container.add_queue(name)
    return container


def length(container: Container, name: str) -> int:
    """Messages of a queue."""
    queue = container.nodes[name]
    assert isinstance(queue, Queue)
    return len(queue)


async def negotiated(client: Client) -> None:
    await client.stream.send_all(INITIATION)
    await client.hear()
    await client.ask(spec.ConnectionResponse(mechanism="NONE"))
