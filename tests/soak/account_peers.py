"""Peers of every protocol that do things at random, and enter in the account what they know of each message.

A peer does one thing at a time, each as a task: one that must wait, as for room in a queue, is busy until it is done or the peer is cut. Messages
are received all the time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import trio
from trio.testing import memory_stream_pair

import trio_amqp10 as amqp
from tests.container.served import accepted
from trio_amqp10 import amqp091, amqp_10_3, amqp_fast
from trio_amqp10.amqp091.server.protocol import Amqp091
from trio_amqp10.amqp_10_3.server.protocol import Amqp103
from trio_amqp10.amqp_fast.server.protocol import AmqpFast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from trio_amqp10.container import Container
    from trio_amqp10.net.dialect import Dialect

    from .account import Account, Fate, World

How = Literal["accept", "release", "reject", "fail"]

REFUSALS: Final = (amqp.DeliveryRejectedError, amqp.DeliveryReleasedError, amqp.DeliveryModifiedError)
LOSSES: Final = (amqp.AmqpError, trio.BrokenResourceError, trio.ClosedResourceError)


@dataclass
class Work:
    """A transaction: what was sent in it, and what was settled how."""

    posts: list[Fate] = field(default_factory=list["Fate"])
    ends: list[tuple[Fate, Any, How]] = field(default_factory=list[tuple["Fate", Any, How]])


class Peer(ABC):
    """One peer, which connects again after each loss.

    Attributes:
        wire: its protocol.
        refusing: whether it learns that a queue does not take a message.
        hows: how it can settle.
        settles_while_busy: whether what it settles does not wait behind a message that waits for room.
        commits_alone: whether a commit takes all that was received, so that nothing may be on its way.
        gone: its connection has ended.
        committing: a commit or a rollback waits for its answer.
        robbed: what others got meanwhile, although this peer had it.
    """

    wire: ClassVar[str]
    refusing: ClassVar[bool] = True
    hows: ClassVar[tuple[How, ...]] = ("accept", "accept", "accept", "release", "reject")
    settles_while_busy: ClassVar[bool] = False
    commits_alone: ClassVar[bool] = False

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.account: Account = world.account
        self.chance = world.chance
        self.name = name
        self.lives = 0
        self.gone = trio.Event()
        self.gone.set()
        self.is_open = self.busy = self.over = self.committing = False
        self.robbed: list[Fate] = []
        self.held: dict[bytes, tuple[Fate, Any, str]] = {}
        self.consumers: dict[str, Any] = {}
        self.work: Work | None = None
        self._deciding: Work | None = None

    def __repr__(self) -> str:
        return f"{self.name}.{self.lives}"

    def consumes(self, queue: str) -> bool:
        return queue in self.consumers

    # -- its life ---------------------------------------------------------------------------

    async def step(self) -> None:
        """Do one thing, or connect."""
        if self.gone.is_set():
            self.gone = trio.Event()
            self._scope = trio.CancelScope()
            self.lives += 1
            self.over = self.busy = self.committing = False
            self.held, self.consumers, self.work, self._deciding = {}, {}, None, None
            self.world.nursery.start_soon(self._live)
        elif self.is_open:
            await self._choose()

    async def _live(self) -> None:
        try:
            with self._scope:
                async with self.connected(self.world.container), trio.open_nursery() as self._nursery:
                    self.is_open = True
                    await trio.sleep_forever()
        except* LOSSES:
            if not self.over:
                raise
        finally:
            self.is_open = False
            self.gone.set()

    @abstractmethod
    def connected(self, container: Container) -> Any:
        """The context of one connection."""

    def cut(self) -> None:
        """Cut the connection, or what will be one."""
        if self.gone.is_set() or self.over:
            return
        self.account.say(f"{self} is cut")
        self.over, self.is_open = True, False
        self._scope.cancel()
        self._let_go()
        self.account.doubt(self)

    def _let_go(self) -> None:
        """Give back what is held, and undo what is not committed."""
        for fate, _, _ in self.held.values():
            self._lose(fate)
        if self._deciding is not None:
            self.account.tear(
                self._deciding.posts, [fate for fate, _, how in self._deciding.ends if how == "accept"]
            )
            for fate, _, how in self._deciding.ends:
                if how != "accept":
                    self._lose(fate)
                    fate.rejected = "maybe" if how == "reject" else fate.rejected
                    if how == "reject" and fate.policy.dead_letter is None and fate.being == "there":
                        fate.being = "maybe"
        if self.work is not None:
            for fate, _, _ in self.work.ends:
                self._lose(fate)
        self.held, self.work, self._deciding = {}, None, None

    def _lose(self, fate: Fate) -> None:
        if fate.holder is self:
            self.account.returned(fate, self, loss=True)

    # -- what it does -----------------------------------------------------------------------

    async def _choose(self) -> None:
        chance = self.chance
        doings: dict[str, float] = {
            "send": 5,
            "settle": 6,
            "consume": 2,
            "leave": 0.4,
            "decide": 2,
            "cut": 0.3,
        }
        doing = chance.choices(list(doings), list(doings.values()))[0]
        if (
            self.busy
            and doing != "cut"
            and (doing != "settle" or self.committing or not self.settles_while_busy)
        ):
            return
        self.world.done[doing] += 1
        if doing == "cut":
            if chance.random() < 0.5:
                await self.world.rest()
            else:
                self.account.in_order = False
            self.cut()
        elif doing == "send":
            self._begin_send()
        elif doing == "settle" and self.held:
            self._settle()
        elif doing == "consume":
            queue = chance.choice(list(self.world.queues))
            if queue not in self.consumers:
                self.account.say(f"{self} consumes {queue}")
                self._do(self._consume, queue, chance.choice([1, 2, 5]))
        elif doing == "leave" and self.consumers and self.may_leave():
            queue = chance.choice(list(self.consumers))
            await self.world.rest()
            if self.is_open:
                self.account.say(f"{self} leaves {queue}")
                self._do(self._leave, queue, self.consumers.pop(queue))
                await self.world.rest()
        elif doing == "decide":
            await self._decide()

    def may_leave(self) -> bool:
        return True

    def _do(self, act: Callable[..., Any], *arguments: Any) -> None:
        self.busy = True

        async def run() -> None:
            try:
                if not self.over:
                    await act(*arguments)
            except AssertionError as wrong:
                self.world.note(wrong)
            except LOSSES:
                if not self.over:
                    raise
            finally:
                self.busy = False

        self._nursery.start_soon(run)

    def _begin_send(self) -> None:
        chance = self.chance
        queue = chance.choice(
            [each for each in self.world.worked if self.refusing or self.world.takes_all(each)]
        )
        in_work = self.work is not None and self.sends_in_work()
        fates: list[Fate] = []
        for _ in range(chance.choice([1, 1, 2, 4])):
            ttl = chance.choice([0.1, 4.0]) if self.expires and chance.random() < 0.15 else None
            group = chance.choice("ab") if queue == "groups" and self.groups else None
            fate = self.account.new(self.name, queue, ttl, group)
            fates.append(fate)
            self.account.say(
                f"{self} sends {fate.name.decode()} to {queue}", "in its transaction" if in_work else ""
            )
        self._do(self._send_all, queue, fates, in_work)

    expires: ClassVar[bool] = True
    groups: ClassVar[bool] = False

    def sends_in_work(self) -> bool:
        return True

    async def _send_all(self, queue: str, fates: list[Fate], in_work: bool) -> None:
        for fate in fates:
            if self.over:
                return
            if in_work:
                assert self.work is not None
                self.work.posts.append(fate)
                await self.post(queue, fate)
            else:
                self.account.asked(fate, self)
                taken = await self.send(queue, fate)
                if self.over:
                    return
                if taken:
                    self.account.accepted(fate, known=self.refusing)
                else:
                    self.account.refused(fate)

    @abstractmethod
    async def send(self, queue: str, fate: Fate) -> bool:
        """Send it, and return whether it was accepted."""

    @abstractmethod
    async def post(self, queue: str, fate: Fate) -> None:
        """Send it in the transaction."""

    async def _consume(self, queue: str, credit: int) -> None:
        self.consumers[queue] = None  # it may get a message before it knows that it consumes
        self.consumers[queue] = consumer = await self.consume(queue, credit)
        self._nursery.start_soon(self._read, queue, consumer)

    async def _read(self, queue: str, consumer: Any) -> None:
        try:
            async for delivery in consumer:
                self._take(queue, delivery)
        except AssertionError as wrong:
            self.world.note(wrong)
        except LOSSES:
            if not self.over and queue in self.consumers:
                raise

    def _take(self, queue: str, delivery: Any) -> None:
        if self.over or not self.keeps(queue):
            return
        name = self.body_of(delivery)[:6]
        fate = self.account.fates[name]
        self.account.say(f"  {self} gets {name.decode()} from {queue}")
        self.account.delivered(fate, queue, self)
        self.held[name] = (fate, delivery, queue)

    def keeps(self, queue: str) -> bool:
        """Whether a message that still comes is held, although the consumer may be leaving."""
        return queue in self.consumers

    @abstractmethod
    async def consume(self, queue: str, credit: int) -> Any:
        """Consume, and return what gives deliveries."""

    def body_of(self, delivery: Any) -> bytes:
        return bytes(delivery.body)

    async def _leave(self, queue: str, consumer: Any) -> None:
        if self.leaving_returns:
            for name, (fate, _, place) in list(self.held.items()):
                if place == queue:
                    del self.held[name]
                    self.account.returned(fate, self, loss=True)
        await self.leave(queue, consumer)

    leaving_returns: ClassVar[bool] = True

    async def leave(self, queue: str, consumer: Any) -> None:
        await consumer.aclose()

    def _settle(self) -> None:
        chance = self.chance
        fate, delivery, _ = self.held[chance.choice(list(self.held))]
        how = chance.choice(self.hows)
        if fate.policy.delivery_limit is not None and "fail" in self.hows and chance.random() < 0.5:
            how = "fail"
        covered = self.covered(delivery, how)
        in_work = self.work is not None and self.settles_in_work(how)
        names = " ".join(name.decode() for name in covered)
        self.account.say(f"{self} {how}s {names}", "in its transaction" if in_work else "")
        for name in covered:
            each, its, _ = self.held.pop(name)
            if in_work:
                assert self.work is not None
                self.work.ends.append((each, its, how))
            else:
                self._end(each, how)
        self.settle(delivery, how, in_work=in_work)

    def covered(self, delivery: Any, how: How) -> list[bytes]:
        return [self.body_of(delivery)[:6]]

    def settles_in_work(self, how: How) -> bool:
        return True

    def _end(self, fate: Fate, how: How) -> None:
        if how == "accept":
            self.account.ended(fate, self)
        else:
            self.account.returned(fate, self, rejected=how == "reject", failed=how == "fail")

    @abstractmethod
    def settle(self, delivery: Any, how: How, *, in_work: bool) -> None:
        """Settle it."""

    # -- transactions -----------------------------------------------------------------------

    async def _decide(self) -> None:
        if self.work is None:
            self._do(self.begin)
            return
        commits = self.chance.random() < 0.7
        if self.commits_alone:
            await self.world.rest()
            if not self.is_open or self.busy:
                return
        self.account.say(f"{self} {'commits' if commits else 'rolls back'}")
        self._do(self._commit if commits else self._rollback)
        if self.commits_alone:
            await self.world.rest()

    async def begin(self) -> None:
        """Begin a transaction, if it can be chosen when."""
        await trio.lowlevel.checkpoint()

    async def _commit(self) -> None:
        assert self.work is not None
        work = self._deciding = self.work
        self.work = self.next_work()
        self.take_all_into(work)
        self.committing, self.robbed = True, []
        for fate in work.posts:
            self.account.asked(fate, self)
        for fate, _, how in work.ends:  # others may get it before the answer comes
            fate.returns += how != "accept"
            fate.rejected = "maybe" if how == "reject" else fate.rejected
        done = await self.commit()
        if self.over:
            return
        self.committing, self._deciding = False, None
        self.account.say(f"  {self} {'has committed' if done else 'is refused'}")
        if not done:
            self._undo(work)
            return
        for fate in work.posts:
            self.account.accepted(fate)
        for fate, _, how in work.ends:
            if fate in self.robbed:
                if how == "accept":
                    raise fate.wrong(f"was accepted by {self} in a transaction, and came to another")
                fate.returns += 1
            else:
                self._end(fate, how)
        for fate, _, _ in self.held.values():
            if fate in self.robbed and fate.holder is not self:
                raise fate.wrong(f"is with {self}, and came to another")

    def _undo(self, work: Work) -> None:
        """A commit was refused."""
        for fate in work.posts:
            fate.history.append("not committed")
            fate.asker = None
            if fate.sights:
                raise fate.wrong("was not committed, and is there")
            fate.being = "gone"
        self.undo(work)

    def undo(self, work: Work) -> None:
        """The channel is closed: all is given back."""
        for fate, _, _ in work.ends:
            self._lose(fate)
        self._let_go()
        self.cut()

    async def _rollback(self) -> None:
        assert self.work is not None
        work, self.work = self.work, self.next_work()
        for fate in work.posts:
            fate.history.append("rolled back")
        self._deciding = Work([], [(fate, its, "release") for fate, its, _ in work.ends])
        self.committing, self.robbed = True, []
        await self.rollback(work)
        if not self.over:
            self.committing, self._deciding = False, None
            self.undo_ends(work)

    def undo_ends(self, work: Work) -> None:
        """After a rollback deliveries are as if they had not been settled."""
        for fate, delivery, _ in work.ends:
            if fate not in self.robbed:
                self.held[fate.name] = (fate, delivery, fate.place)

    def take_all_into(self, work: Work) -> None:  # noqa: B027 - most take nothing
        """Add what a commit takes that was not acknowledged."""

    def next_work(self) -> Work | None:
        """The transaction after this one."""
        return Work()

    @abstractmethod
    async def commit(self) -> bool:
        """Commit; False if nothing is done."""

    @abstractmethod
    async def rollback(self, work: Work) -> None:
        """Roll back."""


class Peer10(Peer):
    """Of AMQP 1.0, or of the draft."""

    wire = "1.0"
    groups = True
    settles_while_busy = True
    hows = ("accept", "accept", "accept", "release", "reject", "fail")

    @asynccontextmanager
    async def connected(self, container: Container) -> AsyncGenerator[None]:
        self._senders: dict[str, amqp.Sender] = {}
        async with AsyncExitStack() as self._stack, container.connect(dialect=self.wire) as self._connection:  # type: ignore[arg-type]
            yield

    def message(self, queue: str, fate: Fate) -> amqp.Message:
        return amqp.Message(
            fate.name,
            durable=True,
            group_id=fate.group,
            ttl=None if fate.ttl > 1e6 else int(fate.ttl * 1000),
            priority=self.chance.choice([0, 4, 9]) if queue == "ranks" else None,
        )

    async def _sender(self, queue: str) -> amqp.Sender:
        if queue not in self._senders:
            self._senders[queue] = await self._connection.open_sender(queue).__aenter__()
        return self._senders[queue]

    async def send(self, queue: str, fate: Fate) -> bool:
        try:
            await (await self._sender(queue)).send(self.message(queue, fate))
        except REFUSALS:
            return False
        return True

    async def post(self, queue: str, fate: Fate) -> None:
        sender = await self._sender(queue)
        await sender.transmit(self.message(queue, fate), transaction=self._transaction)

    def sends_in_work(self) -> bool:
        return self.chance.random() < 0.7

    def settles_in_work(self, how: How) -> bool:
        return self.chance.random() < 0.6

    async def consume(self, queue: str, credit: int) -> amqp.Receiver:
        return await self._connection.open_receiver(queue, credit=credit).__aenter__()

    def may_leave(self) -> bool:
        return self.work is None

    def body_of(self, delivery: Any) -> bytes:
        return bytes(delivery.message.body)

    def settle(self, delivery: Any, how: How, *, in_work: bool) -> None:
        transaction = self._transaction if in_work else None
        if how == "accept":
            delivery.accept(transaction=transaction)
        elif how == "release":
            delivery.release(transaction=transaction)
        elif how == "reject":
            delivery.reject(transaction=transaction)
        else:
            delivery.modify(delivery_failed=True, transaction=transaction)

    async def begin(self) -> None:
        self._opening = self._connection.open_transaction()
        self._transaction = await self._opening.__aenter__()
        self.work = Work()

    def next_work(self) -> None:
        return None

    async def commit(self) -> bool:
        try:
            await self._transaction.commit()
        except amqp.TransactionRolledBackError:
            return False
        return True

    async def rollback(self, work: Work) -> None:
        await self._transaction.rollback()

    def undo(self, work: Work) -> None:
        self.undo_ends(work)

    def undo_ends(self, work: Work) -> None:
        for fate, delivery, _ in work.ends:
            if fate in self.robbed:
                continue
            if delivery.settled:
                self._lose(fate)
            else:
                self.held[fate.name] = (fate, delivery, fate.place)


class PeerDraft(Peer10):
    wire = "1.0-draft-2010"
    groups = False


class ChannelPeer(Peer):
    """Of a protocol whose channels have all transactions, or none, served on a stream of memory."""

    @asynccontextmanager
    async def connected(self, container: Container) -> AsyncGenerator[None]:
        ours, theirs = memory_stream_pair()
        transacted = self.chance.random() < 0.5
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.dialect(container).serve, accepted(ours))
            async with AsyncExitStack() as stack:
                await self.open(stack, theirs, transacted=transacted)
                self.work = Work() if transacted else None
                yield
            nursery.cancel_scope.cancel()

    @abstractmethod
    def dialect(self, container: Container) -> Dialect:
        """The dialect of the server."""

    @abstractmethod
    async def open(self, stack: AsyncExitStack, stream: trio.abc.Stream, *, transacted: bool) -> None:
        """Connect, and open a channel."""


class PeerOfQueues(ChannelPeer):
    """What 0-9-1 and 10.3 have in common."""

    leaving_returns = False
    _channel: Any

    async def post(self, queue: str, fate: Fate) -> None:
        await self._channel.publish("", queue, fate.name, **self.fields(queue, fate))

    def fields(self, queue: str, fate: Fate) -> dict[str, Any]:
        fields: dict[str, Any] = {"delivery_mode": 2}
        if fate.ttl < 1e6:
            fields["expiration"] = str(int(fate.ttl * 1000))
        if queue == "ranks":
            fields["priority"] = self.chance.choice([0, 1, 2, 9])
        return fields

    def keeps(self, queue: str) -> bool:
        return True

    def settle(self, delivery: Any, how: How, *, in_work: bool) -> None:
        if how == "accept":
            delivery.ack()
        else:
            delivery.reject(requeue=how == "release")

    async def commit(self) -> bool:
        try:
            await self._channel.commit()
        except amqp091.ChannelClosedError:
            return False
        return True

    async def rollback(self, work: Work) -> None:
        await self._channel.rollback()


class Peer091(PeerOfQueues):
    wire = "0-9-1"

    def dialect(self, container: Container) -> Dialect:
        return Amqp091(container)

    async def open(self, stack: AsyncExitStack, stream: trio.abc.Stream, *, transacted: bool) -> None:
        connection = await stack.enter_async_context(amqp091.open_connection(stream))
        opening: Any = connection.open_transaction if transacted else connection.open_publisher
        self._channel = await stack.enter_async_context(opening())

    async def send(self, queue: str, fate: Fate) -> bool:
        try:
            await self._channel.publish("", queue, fate.name, **self.fields(queue, fate))
        except amqp091.NackedError:
            return False
        return True

    async def consume(self, queue: str, credit: int) -> Any:
        await self._channel.qos(credit)
        return await self._channel.queue(queue).consume().__aenter__()


class Peer103(PeerOfQueues):
    wire = "10.3"
    refusing = False
    expires = False

    def dialect(self, container: Container) -> Dialect:
        return Amqp103(container, tickets=False)

    async def open(self, stack: AsyncExitStack, stream: trio.abc.Stream, *, transacted: bool) -> None:
        connection = await stack.enter_async_context(amqp_10_3.open_connection(stream))
        opening: Any = connection.open_transaction if transacted else connection.open_channel
        self._channel = await stack.enter_async_context(opening())

    async def send(self, queue: str, fate: Fate) -> bool:
        await self.post(queue, fate)
        await self._channel.declare_queue(
            queue, passive=True
        )  # its answer comes after the message was placed
        return True

    async def consume(self, queue: str, credit: int) -> Any:
        return await self._channel.queue(queue).consume(prefetch=credit).__aenter__()


class PeerFast(ChannelPeer):
    wire = "amqp-fast"
    refusing = False
    expires = False
    hows = ("accept", "accept", "release")
    commits_alone = True

    def dialect(self, container: Container) -> Dialect:
        return AmqpFast(container)

    async def open(self, stack: AsyncExitStack, stream: trio.abc.Stream, *, transacted: bool) -> None:
        self._handles: dict[str, amqp_fast.Handle] = {}
        connection = await stack.enter_async_context(amqp_fast.open_connection(stream))
        self._channel = await stack.enter_async_context(connection.open_channel(transacted=transacted))

    async def _handle(self, queue: str) -> amqp_fast.Handle:
        if queue not in self._handles:
            self._handles[queue] = await self._channel.open_handle(queue).__aenter__()
        return self._handles[queue]

    async def send(self, queue: str, fate: Fate) -> bool:
        await (await self._handle(queue)).send(fate.name, persistent=True)
        return True

    async def post(self, queue: str, fate: Fate) -> None:
        await (await self._handle(queue)).send(fate.name, confirm=False, persistent=True)

    async def consume(self, queue: str, credit: int) -> Any:
        handle = await self._handle(queue)
        await handle.consume(prefetch=credit)
        return handle

    async def leave(self, queue: str, consumer: Any) -> None:
        del self._handles[queue]
        await consumer.aclose()

    def covered(self, delivery: Any, how: How) -> list[bytes]:
        if how == "release":
            return super().covered(delivery, how)
        return [name for name, (_, each, _) in self.held.items() if each.number <= delivery.number]

    def settles_in_work(self, how: How) -> bool:
        return how == "accept"

    def settle(self, delivery: Any, how: How, *, in_work: bool) -> None:
        if how == "accept":
            self._channel.ack(delivery.number)
        else:
            delivery.unget()

    def take_all_into(self, work: Work) -> None:
        for fate, delivery, _ in self.held.values():
            work.ends.append((fate, delivery, "accept"))
        self.held = {}

    async def commit(self) -> bool:
        try:
            await self._channel.commit()
        except amqp_fast.ChannelClosedError:
            return False
        return True

    async def rollback(self, work: Work) -> None:
        for fate, _, _ in (*work.ends, *self.held.values()):
            self._lose(fate)
        self.held = {}
        work.ends.clear()
        await self._channel.rollback()


PEERS: Final = (Peer10, PeerDraft, Peer091, Peer103, PeerFast)
"""One of each protocol."""
