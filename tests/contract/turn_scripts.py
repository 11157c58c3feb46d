"""Attacks on the time of a server, by clients of each protocol: few octets that ask for much work.

What they work on is made beforehand (``Stage``), so that an attack is what the attacker sends.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

import trio

import trio_amqp10 as amqp
from trio_amqp10 import amqp091, amqp_10_3, amqp_fast
from trio_amqp10.amqp10.filters import Selector
from trio_amqp10.amqp10.spec.messaging import Source
from trio_amqp10.amqp10.wire.values import Described, Symbol
from trio_amqp10.broker.exchanges.addresses import exchange_address
from trio_amqp10.broker.nodes.form_registry import content_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from trio_amqp10.broker.exchanges.topology import Topology
    from trio_amqp10.container import Container

    Attack = Callable[["Stage"], Awaitable[None]]

BINDINGS: Final = 20_000
RING: Final = 120
QUEUES: Final = 3_000
MESSAGES: Final = 10_000
PUBLISHES: Final = 20
HEADERS: Final = {"number": -1, "kind": "order"}
TERMS: Final = " OR ".join(f"c={number}" for number in range(40))
"""To parse an expression is one step, of 4,096 characters at most."""
UNSETTLED: Final = 1_000
"""Messages that a client of 1.0 has: the engine forgets all deliveries of a connection that ends in one go, at 2 us each."""


class Stage:
    """A container with much to work on.

    Args:
        container: that serves.
        port: where it does, on this host.

    Attributes:
        container, port: as given.
        broker: its exchanges and queues.
    """

    def __init__(self, container: Container, port: int) -> None:
        self.container = container
        self.port = port
        assert container.broker is not None
        self.broker: Topology = container.broker

    def fill(self, name: str, messages: int = MESSAGES) -> None:
        """Have a queue hold messages."""
        for language in ("jms", "sql"):
            Selector("c = 1", dialect=language)  # its parser is made once in a process
        queue = self.broker.declare_queue(name)[0]
        content = content_of(0, amqp.Message("x", application_properties={"c": -1}).to_payload())
        for _ in range(messages):
            assert queue.gather(content, None)

    def make_headers(self) -> None:
        """An exchange of type headers with many bindings that differ, and as many that a message may match at first sight."""
        self.broker.declare_exchange("headers", "headers")
        self.broker.declare_queue("sink")
        for number in range(BINDINGS):
            self.broker.bind("headers", "queue", "sink", "", {"number": number, "kind": "order"})

    def make_ring(self) -> None:
        """Exchanges that are bound to each other, each to all."""
        names = [f"ring{number}" for number in range(RING)]
        for name in names:
            self.broker.declare_exchange(name, "fanout")
        for source in names:
            for destination in names:
                self.broker.bind(source, "exchange", destination)

    def make_fanout(self) -> None:
        """An exchange that many queues are bound to."""
        self.broker.declare_exchange("fanout", "fanout")
        for number in range(QUEUES):
            self.broker.declare_queue(f"copy{number}", {"x-max-length": 10})
            self.broker.bind("fanout", "queue", f"copy{number}")

    def make_topic(self) -> None:
        """An exchange of type topic with patterns that begin as a key does, in thousands of ways, and end otherwise."""
        self.broker.declare_exchange("topic", "topic")
        self.broker.declare_queue("sink")
        for number in range(2**12):
            words = ["a" if number >> bit & 1 else "*" for bit in range(12)]
            self.broker.bind("topic", "queue", "sink", ".".join([*words, "b"]))

    def make_doomed(self) -> None:
        """A queue with many messages and bindings, and an exchange with many bindings."""
        self.fill("doomed")
        self.broker.declare_exchange("doomed", "direct")
        for number in range(BINDINGS // 2):
            self.broker.bind("doomed", "queue", "doomed", f"k{number}")
            self.broker.bind("amq.direct", "queue", "doomed", f"k{number}")


KINDS: Final[Mapping[str, Callable[[Stage], None]]] = {
    "publishes to a headers exchange with many bindings": Stage.make_headers,
    "publishes to exchanges bound to each other": Stage.make_ring,
    "publishes to many queues": Stage.make_fanout,
    "publishes that begin as many patterns do": Stage.make_topic,
    "a selector of many terms over a long queue": lambda stage: stage.fill("long"),
    "many messages given back again and again": lambda stage: stage.fill("long"),
    "many messages acknowledged at once": lambda stage: stage.fill("long"),
    "a connection that ends with many messages unsettled": lambda stage: stage.fill("long"),
    "a connection that ends with many exclusive queues": lambda stage: stage.fill("long", 1),
    "a purge of many messages": lambda stage: stage.fill("long"),
    "deletions of what has many bindings and messages": Stage.make_doomed,
}
"""What is done, and what has to be there before."""


# AMQP 1.0 and its draft of 2010 -------------------------------------------------------------


class _Amqp10:
    def __init__(self, dialect: Literal["1.0", "1.0-draft-2010"]) -> None:
        self._dialect: Literal["1.0", "1.0-draft-2010"] = dialect

    def _dial(self, stage: Stage) -> AbstractAsyncContextManager[amqp.Connection]:
        return amqp.open_connection(
            f"amqp://127.0.0.1:{stage.port}", dialect=self._dialect, sasl=amqp.sasl.Anonymous()
        )

    def publish(self, exchange: str, key: str = "k") -> Attack:
        async def attack(stage: Stage) -> None:
            async with (
                self._dial(stage) as connection,
                connection.open_sender(exchange_address(exchange, key)) as sender,
            ):
                message = amqp.Message("x", application_properties=HEADERS)
                for _ in range(PUBLISHES):
                    await sender.transmit(message)
                await sender.flush()

        return attack

    async def select(self, stage: Stage) -> None:
        selector = Described(Symbol("apache.org:selector-filter:string"), TERMS)
        source = Source(address="long", filter={Symbol("selector"): selector})
        async with (
            self._dial(stage) as connection,
            connection.open_receiver("long", source=source, credit=0) as receiver,
        ):
            receiver.grant(1)
            assert not await receiver.drain()

    async def _take_all(self, receiver: amqp.Receiver) -> list[amqp.Delivery]:
        return [await receiver.receive() for _ in range(UNSETTLED)]

    async def give_back(self, stage: Stage) -> None:
        async with (
            self._dial(stage) as connection,
            connection.open_receiver("long", credit=UNSETTLED) as receiver,
        ):
            for _ in range(2):
                for delivery in await self._take_all(receiver):
                    delivery.release()

    async def acknowledge(self, stage: Stage) -> None:
        async with (
            self._dial(stage) as connection,
            connection.open_receiver("long", credit=UNSETTLED) as receiver,
        ):
            for delivery in await self._take_all(receiver):
                delivery.accept()

    async def leave(self, stage: Stage) -> None:
        async with (
            self._dial(stage) as connection,
            connection.open_receiver("long", credit=UNSETTLED) as receiver,
        ):
            await self._take_all(receiver)


def _amqp10(dialect: Literal["1.0", "1.0-draft-2010"]) -> dict[str, Attack | None]:
    client = _Amqp10(dialect)
    return {
        "publishes to a headers exchange with many bindings": client.publish("headers"),
        "publishes to exchanges bound to each other": client.publish("ring0"),
        "publishes to many queues": client.publish("fanout"),
        "publishes that begin as many patterns do": client.publish("topic", ".".join("a" * 13)),
        "a selector of many terms over a long queue": client.select if dialect == "1.0" else None,
        "many messages given back again and again": client.give_back,
        "many messages acknowledged at once": client.acknowledge,
        "a connection that ends with many messages unsettled": client.leave,
        "a connection that ends with many exclusive queues": None,  # its queues belong to links
        "a purge of many messages": None,  # the protocol has none
        "deletions of what has many bindings and messages": None,
    }


# 0-9-1 --------------------------------------------------------------------------------------


def _dial091(stage: Stage) -> AbstractAsyncContextManager[amqp091.Connection]:
    return amqp091.open_connection(f"amqp091://127.0.0.1:{stage.port}")


def _publish091(exchange: str, key: str = "k") -> Attack:
    async def attack(stage: Stage) -> None:
        async with _dial091(stage) as connection, connection.open_channel() as channel:
            for _ in range(PUBLISHES):
                await channel.publish(exchange, key, b"x", headers=dict(HEADERS))
            await channel.qos(1)  # its answer comes behind all of them

    return attack


async def _take_all(consumer: Any) -> list[Any]:
    return [await consumer.receive() for _ in range(MESSAGES)]


async def _give_back091(stage: Stage) -> None:
    async with (
        _dial091(stage) as connection,
        connection.open_channel() as channel,
        channel.queue("long").consume(prefetch=None) as consumer,
    ):
        await _take_all(consumer)
        for _ in range(3):
            await channel.recover()


async def _acknowledge091(stage: Stage) -> None:
    async with (
        _dial091(stage) as connection,
        connection.open_channel() as channel,
        channel.queue("long").consume(prefetch=None) as consumer,
    ):
        deliveries = await _take_all(consumer)
        deliveries[-1].ack(multiple=True)
        await channel.qos(1)


async def _leave091(stage: Stage) -> None:
    async with _dial091(stage) as connection, connection.open_channel() as channel:
        consumer = await channel.queue("long").consume(prefetch=None).__aenter__()
        await _take_all(consumer)  # and nothing is said of them


async def _purge091(stage: Stage) -> None:
    async with _dial091(stage) as connection, connection.open_channel() as channel:
        assert await channel.queue("long").purge() == MESSAGES


async def _delete091(stage: Stage) -> None:
    async with _dial091(stage) as connection, connection.open_channel() as channel:
        await channel.delete_exchange("doomed")
        await channel.delete_queue("doomed")


# 10.3 ---------------------------------------------------------------------------------------


def _dial103(stage: Stage) -> AbstractAsyncContextManager[amqp_10_3.Connection]:
    return amqp_10_3.open_connection(f"amqp103://127.0.0.1:{stage.port}")


def _publish103(exchange: str, key: str = "k") -> Attack:
    async def attack(stage: Stage) -> None:
        async with _dial103(stage) as connection, connection.open_channel() as channel:
            for _ in range(PUBLISHES):
                await channel.publish(exchange, key, b"x", headers=dict(HEADERS))
            await channel.declare_queue("last")  # its answer comes behind all of them

    return attack


async def _acknowledge103(stage: Stage) -> None:
    async with (
        _dial103(stage) as connection,
        connection.open_channel() as channel,
        channel.queue("long").consume(prefetch=None) as consumer,
    ):
        deliveries = await _take_all(consumer)
        deliveries[-1].ack(multiple=True)
        await channel.declare_queue("last")


async def _leave103(stage: Stage) -> None:
    async with _dial103(stage) as connection, connection.open_channel() as channel:
        consumer = await channel.queue("long").consume(prefetch=None).__aenter__()
        await _take_all(consumer)


async def _purge103(stage: Stage) -> None:
    async with _dial103(stage) as connection, connection.open_channel() as channel:
        assert await channel.queue("long").purge() == MESSAGES


async def _delete103(stage: Stage) -> None:
    async with _dial103(stage) as connection, connection.open_channel() as channel:
        await channel.queue("doomed").delete()


# AMQP/Fast ----------------------------------------------------------------------------------


@asynccontextmanager
async def _handle_fast(stage: Stage, name: str) -> AsyncGenerator[amqp_fast.Handle]:
    async with (
        amqp_fast.open_connection(f"amqp-fast://127.0.0.1:{stage.port}") as connection,
        connection.open_channel() as channel,
        channel.open_handle(name) as handle,
    ):
        yield handle


async def _select_fast(stage: Stage) -> None:
    async with _handle_fast(stage, "long") as handle:
        await handle.consume(prefetch=1, selector=TERMS.encode(), selector_type="text/x-amq-sql")
        await handle.pause()  # it is answered behind


async def _take_all_fast(handle: amqp_fast.Handle) -> list[amqp_fast.Delivery]:
    await handle.consume(prefetch=MESSAGES)
    return [await handle.receive() for _ in range(MESSAGES)]


async def _give_back_fast(stage: Stage) -> None:
    async with _handle_fast(stage, "long") as handle:
        for delivery in await _take_all_fast(handle):
            delivery.unget()


async def _acknowledge_fast(stage: Stage) -> None:
    async with _handle_fast(stage, "long") as handle:
        for delivery in await _take_all_fast(handle):
            delivery.ack()


async def _leave_fast(stage: Stage) -> None:
    async with _handle_fast(stage, "long") as handle:
        await _take_all_fast(handle)


# 0-9-1 and 10.3 -----------------------------------------------------------------------------


def _own(dial: Callable[[Stage], AbstractAsyncContextManager[Any]]) -> Attack:
    async def attack(stage: Stage) -> None:
        before = len(stage.broker.queues)
        async with dial(stage) as connection, connection.open_channel() as channel:
            for number in range(QUEUES):
                await channel.declare_queue(f"own{number}", exclusive=True)
        while len(stage.broker.queues) > before:
            await trio.lowlevel.checkpoint()

    return attack


# All ----------------------------------------------------------------------------------------

ATTACKS: Final[Mapping[str, Mapping[str, Attack | None]]] = {
    "1.0": _amqp10("1.0"),
    "1.0-draft-2010": _amqp10("1.0-draft-2010"),
    "0-9-1": {
        "publishes to a headers exchange with many bindings": _publish091("headers"),
        "publishes to exchanges bound to each other": _publish091("ring0"),
        "publishes to many queues": _publish091("fanout"),
        "publishes that begin as many patterns do": _publish091("topic", ".".join("a" * 13)),
        "a selector of many terms over a long queue": None,  # consumers have none
        "many messages given back again and again": _give_back091,
        "many messages acknowledged at once": _acknowledge091,
        "a connection that ends with many messages unsettled": _leave091,
        "a connection that ends with many exclusive queues": _own(_dial091),
        "a purge of many messages": _purge091,
        "deletions of what has many bindings and messages": _delete091,
    },
    "10.3": {
        "publishes to a headers exchange with many bindings": _publish103("headers"),
        "publishes to exchanges bound to each other": _publish103("ring0"),
        "publishes to many queues": _publish103("fanout"),
        "publishes that begin as many patterns do": _publish103("topic", ".".join("a" * 13)),
        "a selector of many terms over a long queue": None,
        "many messages given back again and again": None,  # a message that was rejected does not come back to its channel
        "many messages acknowledged at once": _acknowledge103,
        "a connection that ends with many messages unsettled": _leave103,
        "a connection that ends with many exclusive queues": _own(_dial103),
        "a purge of many messages": _purge103,
        "deletions of what has many bindings and messages": _delete103,
    },
    "amqp-fast": {
        "publishes to a headers exchange with many bindings": None,  # a handle has a destination, and no exchange
        "publishes to exchanges bound to each other": None,
        "publishes to many queues": None,
        "publishes that begin as many patterns do": None,
        "a selector of many terms over a long queue": _select_fast,
        "many messages given back again and again": _give_back_fast,
        "many messages acknowledged at once": _acknowledge_fast,
        "a connection that ends with many messages unsettled": _leave_fast,
        "a connection that ends with many exclusive queues": None,
        "a purge of many messages": None,
        "deletions of what has many bindings and messages": None,
    },
}
"""By the names of ``protocols.PROTOCOLS``: each kind of attack; None for what the protocol has no word for."""
