"""A whole container, and up to four peers that a script moves; and what must be true when they are gone.

Everything runs in memory, and the clock moves only where the script says so. When the script is over, all transports
are cut and time passes, until what has a deadline has met it. Then:

- a good client sends, receives, asks a function, subscribes and commits a transaction as if nothing had been;
- no node has a link, no connection, task or delivery is counted that is not there;
- a message is available, or is held for a terminus that is kept (3.5): no lease is without a holder;
- what a queue counts (messages, octets) is what it has;
- nothing was logged as an error, and nothing was raised that the documentation does not name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trio_amqp10 as amqp
from trio_amqp10.amqp10.engine.limits import Limits
from trio_amqp10.amqp10.engine.unsettled_state import SenderTerminus
from trio_amqp10.amqp10.peer.listen import Acceptor
from trio_amqp10.broker.nodes.topic import Topic
from trio_amqp10.broker.stores.memory_store import MemoryStore
from trio_amqp10.container import Container, FunctionNode, Queue
from trio_amqp10.net.memory_streams import memory_stream_pair
from trio_amqp10.sasl import Server

from .script import Act, Move, unpack
from .stage import Puppet, UndeclaredError, on_stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trio_amqp10.net.dialect import Dialect
    from trio_amqp10.net.memory_streams import MemoryStream

_FILLED: Final = ("q", "q", "q", "q", "limited", "group", "group", "single", "single", "only")
"""Where there is a message before anybody comes."""

_PATIENCE: Final = 600.0
"""Seconds of the clock in which the good client is done: none of its waits is that long."""

_PAUSES: Final = (1.0, 10.0, 70.0, 200.0, 100_000.0)
"""How time passes when the script is over: beyond idle time-outs, transactions, and the longest terminus but ``never``."""


def play(octets: bytes) -> None:
    """Play a script against a container that has no store."""
    on_stage(Play(octets, stored=False).run)


def play_stored(octets: bytes) -> None:
    """The same against one that has, and whose queues are durable."""
    on_stage(Play(octets, stored=True).run)


class Play:
    """One script, on one container."""

    def __init__(self, octets: bytes, *, stored: bool) -> None:
        self._moves = unpack(octets)
        self._octets = len(octets)
        self.container = _container(stored=stored)
        self._puppets: dict[int, Puppet] = {}
        self._written = 0
        self._doing = ""

    def dialects(self) -> Sequence[Dialect]:
        """What is served beside AMQP 1.0."""
        return ()

    def look_at(self, output: bytes, *, whole: bool) -> None:
        """See what a peer was sent, or the beginning of it."""

    async def serve_others(self) -> None:
        """A good client of another dialect, behind the script."""

    async def run(self, clock: MockClock) -> None:
        acceptor = Acceptor(
            container_id=self.container.name,
            sasl=Server(),
            offered_capabilities=self.container.offered_capabilities(),
            vet=self.container.vet,
            limits=Limits(),
        )
        self._reception = acceptor.reception(self.container.handle, self.dialects())
        for address in _FILLED:
            await self.container.send(address, amqp.Message(address, group_id="a", durable=True))
        async with trio.open_nursery() as nursery:
            for move in self._moves:
                if move.act is Act.CLOCK:
                    clock.jump(move.seconds)
                    await wait_all_tasks_blocked()
                else:
                    await self._move(move, nursery)
            await wait_all_tasks_blocked()
            for connection in list(self._puppets):
                await self._leave(connection)
            for pause in _PAUSES:
                clock.jump(pause)
                await wait_all_tasks_blocked()
            if nursery.child_tasks:  # they would be waited for without end
                left = sorted(_place_of(task) for task in nursery.child_tasks)
                raise UndeclaredError(f"not over when all transports are: {', '.join(left)}")
        clock.autojump_threshold = 0
        with trio.move_on_after(_PATIENCE) as scope:
            await self._serve_the_good()
            self._doing = "to use another dialect"
            await self.serve_others()
        if scope.cancelled_caught:
            raise UndeclaredError(f"the good client waits in vain: {self._doing}")
        self.judge()

    async def _move(self, move: Move, nursery: trio.Nursery) -> None:
        puppet = self._puppets.get(move.connection)
        if puppet is None:
            if move.act not in (Act.WRITE, Act.SAY):
                return
            ours, theirs = memory_stream_pair()
            puppet = self._puppets[move.connection] = Puppet(theirs, nursery)
            nursery.start_soon(self.receive, ours)
        await puppet.move(move)
        if move.act is not Act.WRITE:
            await wait_all_tasks_blocked()
        if move.act is Act.CUT:
            await self._leave(move.connection)

    async def receive(self, stream: MemoryStream) -> None:
        """Serve one connection, to its end."""
        await self._reception.receive(stream, _nothing, trio.CancelScope())

    async def _leave(self, connection: int) -> None:
        puppet = self._puppets.pop(connection)
        puppet.close()
        await wait_all_tasks_blocked()
        self._written += puppet.written
        self.look_at(bytes(puppet.output), whole=puppet.written == len(puppet.output))

    # -- afterwards -------------------------------------------------------------------------

    async def _serve_the_good(self) -> None:
        self._doing = "to connect"
        async with self.container.connect(container_id="good") as conn:
            self._doing = "to use a queue of its own"
            await self._use_queue(conn)
            self._doing = "to have an answer of a function"
            if isinstance(self.container.nodes.get("f"), FunctionNode):
                async with conn.open_requester("f") as requester:
                    assert (await requester.request("hello")).body == "hello"
            self._doing = "to send to a topic, and receive it"
            if isinstance(self.container.nodes.get("t"), Topic):
                async with conn.open_receiver("t") as receiver, conn.open_sender("t") as sender:
                    await sender.send("news")
                    assert (await receiver.receive()).message.body == "news"
            await self._empty_queues(conn)

    async def _use_queue(self, conn: amqp.Connection) -> None:
        async with conn.open_sender("good") as sender, conn.open_receiver("good") as receiver:
            await sender.send("plain")
            async with conn.open_transaction() as transaction:
                await sender.send("in a transaction", transaction=transaction)
            for body in ("plain", "in a transaction"):
                delivery = await receiver.receive()
                assert delivery.message.body == body
                delivery.accept()
            await wait_all_tasks_blocked()

    async def _empty_queues(self, conn: amqp.Connection) -> None:
        """What is available can be had, by anybody."""
        for queue in [node for node in self.container.nodes.values() if isinstance(node, Queue)]:
            queue.sweep()
            count = queue.available
            self._doing = f"to have the {count} messages that {queue!r} has available"
            bound = queue.policy.grouped or queue.policy.single_active
            if not count or (bound and queue.leased):
                continue  # a terminus that is kept holds the group, or the turn, of what is leased to it
            async with conn.open_receiver(queue.address) as receiver:
                for _ in range(count):
                    (await receiver.receive()).accept()
                await wait_all_tasks_blocked()
            assert queue.available == 0, f"{queue.available} of {count} are still in {queue!r}"

    def judge(self) -> None:
        """Whether all is as it must be, now that everybody has gone."""
        container = self.container
        figures = container.statistics()
        assert figures["connections"] == figures["working"] == 0, figures
        assert not container._connections.runners, container._connections.runners
        assert self._written <= 64 * self._octets + 256 * 1024, (
            f"{self._written} written about {self._octets}"
        )
        held = sum(
            len(kept.terminus.deliveries())
            for kept in container.termini._retained.values()
            if isinstance(kept.terminus, SenderTerminus)
        )
        leased = 0
        for node in container.nodes.values():
            assert not node.inlets, (node, node.inlets)
            assert not node.outlets, (node, node.outlets)
            assert node.attaching_links == 0, (node, node.attaching_links)
        for queue in self._queues():
            leased += queue.leased
            assert not queue._consumers, (queue, queue._consumers)
            assert not queue._browsers, (queue, queue._browsers)
            assert not any(waiting for _, waiting in queue._waiting), queue
            assert not queue._blocked, queue
            held_by_it = queue.held
            assert held_by_it._dying == held_by_it._coming == 0, (
                queue,
                held_by_it._dying,
                held_by_it._coming,
            )
            if not len(queue):
                assert queue.octets == 0, (queue, queue.octets)
        assert leased <= held, f"{leased} messages are leased, and {held} deliveries are kept"

    def _queues(self) -> Iterator[Queue]:
        for node in list(self.container.nodes.values()):
            if isinstance(node, Queue):
                yield node
            elif isinstance(node, Topic):
                yield from list(node.subscriptions.values())


def _container(*, stored: bool) -> Container:
    """One of each node that there is."""
    container = Container(
        "fuzzed", store=MemoryStore() if stored else None, wall_clock=lambda: 1_700_000_000.0
    )
    container.add_queue("q", dead_letter="dead", delivery_limit=3, durable=stored)
    container.add_queue("limited", max_length=2, overflow="reject")
    container.add_queue("group", grouped=True)
    container.add_queue("single", single_active=True)
    container.add_queue("only", exclusive=True, max_octets=1000, overflow="drop-oldest")
    container.add_topic("t", max_backlog=3)
    container.function("f")(_greet)
    container.add_management()
    return container


def _place_of(task: trio.lowlevel.Task) -> str:
    """The innermost function of ours that a task, or one that it waits for, is in."""
    for nursery in task.child_nurseries:
        for child in nursery.child_tasks:
            return _place_of(child)
    frames = [
        frame.f_code for frame, _ in task.iter_await_frames() if "trio_amqp10" in frame.f_code.co_filename
    ]
    return frames[-1].co_qualname if frames else task.name


def _nothing() -> None:
    """A peer has come in."""


async def _greet(_message: amqp.Message) -> str:
    await trio.lowlevel.checkpoint()
    return "hello"
