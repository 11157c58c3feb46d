"""A whole container behind its listener of 0-9-1 and 1.0, and up to four peers that a script moves: see ``container``.

What must be true besides, when they are gone:

- what each was sent is what the second reader takes, and no method was answered with 541 (``reactions``);
- a good client of 0-9-1 declares, publishes with confirms, consumes and gets;
- no exclusive queue and no address for direct replies is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from trio_amqp10 import amqp091
from trio_amqp10.amqp091.server.direct_replies import ReplyNode
from trio_amqp10.amqp091.server.protocol import Amqp091
from trio_amqp10.net.memory_streams import memory_stream_pair

from .container import Play
from .reactions import check_reactions
from .stage import on_stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trio.testing import MockClock

    from trio_amqp10.net.dialect import Dialect


def play(octets: bytes) -> None:
    """Play a script against a container that has no store."""
    on_stage(_Play(octets, stored=False).run)


def play_stored(octets: bytes) -> None:
    """The same against one that has, and whose queues are durable."""
    on_stage(_Play(octets, stored=True).run)


class _Play(Play):
    """One script, on one container that has a broker."""

    async def run(self, clock: MockClock) -> None:
        stored = self.container.journal is not None
        broker = self.container.add_broker()
        broker.declare_queue("a", {"x-dead-letter-exchange": "e"}, durable=stored)
        broker.declare_queue("b", {"x-max-length": 3, "x-overflow": "reject-publish"}, durable=stored)
        broker.declare_exchange("e", "topic", durable=stored)
        broker.declare_exchange("d", "direct", durable=stored, arguments={"alternate-exchange": "e"})
        broker.bind("e", "queue", "b", "#")
        broker.bind("amq.topic", "exchange", "e", "a.#")
        await super().run(clock)

    def dialects(self) -> Sequence[Dialect]:
        return (Amqp091(self.container),)

    def look_at(self, output: bytes, *, whole: bool) -> None:
        if output and not output.startswith(b"AMQP"):  # with a header every peer of 1.0 is answered first
            check_reactions(output, "s", whole=whole)

    async def serve_others(self) -> None:
        ours, theirs = memory_stream_pair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.receive, ours)
            async with amqp091.open_connection(theirs) as connection:
                await self._use(connection)

    async def _use(self, connection: amqp091.Connection) -> None:
        async with connection.open_channel(prefetch=1) as channel, connection.open_publisher() as publisher:
            queue = await channel.declare_queue("good091", exclusive=True)
            await queue.bind("amq.topic", "good.#")
            async with queue.consume() as consumer:
                await publisher.publish("amq.topic", "good.day", b"consumed", mandatory=True)
                delivery = await consumer.receive()
                assert delivery.body == b"consumed"
                delivery.ack()
            await publisher.publish("", "good091", b"got", mandatory=True)
            got = await queue.get()
            assert got is not None
            assert got.body == b"got"
            got.ack()

    def judge(self) -> None:
        super().judge()
        broker = self.container.broker
        assert broker is not None
        owned = [queue.name for queue in broker.queues.values() if getattr(queue, "owner", None) is not None]
        assert not owned, f"exclusive queues without their connections: {owned}"
        replies = [node for node in self.container.nodes.values() if isinstance(node, ReplyNode)]
        assert not replies, f"addresses of direct replies that are gone: {replies}"
