"""Is every message where it should be, whatever peers of all protocols do to one container? ``python -m tests.soak.account --seeds N``.

A seed makes peers of AMQP 1.0, its draft, 0-9-1, 10.3 and AMQP/Fast send, take, settle, commit, roll back, and vanish at random, on queues with every
kind of limit. Messages are moved, redriven and purged meanwhile, the time passes, and the container dies at a commit of its store and starts
again. Everything is in memory and on a clock that nobody else moves, so a seed plays the same again.

Beside it there is an account: what became of each message as far as its sender and its receivers know. It knows no queue but by its rules. After
some steps the account is compared with what is in the queues:

* A message that was accepted or committed is in one queue, or with one receiver, or was accepted by one; or it has died by a rule of its queue.
* A message that was refused, rolled back, purged or accepted by a receiver does not come again.
* Of a transaction whose answer was lost, all is done or nothing.
* A message leaves its queue by a rule alone, and where that says so it does.
* Messages of one sender come from one queue in their order; those of a group, and of a queue with a single active consumer, to one consumer.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.container.mortal import Disk, Mortal
from tests.fuzz.stage import on_stage
from trio_amqp10.broker.nodes.message_store import MESSAGES
from trio_amqp10.broker.nodes.policy import QueuePolicy
from trio_amqp10.container import Container
from trio_amqp10.container.management import ManagementError

from .account_peers import PEERS, Peer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

T = TypeVar("T")

DEAD: Final = "dead"
QUEUES: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "waits": {"max_length": 3},
    "rejects": {"max_length": 4, "overflow": "reject"},
    "buries": {"max_octets": 60, "overflow": "reject-dead-letter"},
    "drops": {"max_length": 3, "overflow": "drop-oldest", "bound": "ready"},
    "drops-held": {"max_length": 4, "overflow": "drop-oldest"},
    "expires": {"ttl": 5000},
    "tries": {"delivery_limit": 1},
    "delays": {"redelivery_delay": 2.0, "delivery_limit": 2},
    "ranks": {"max_priority": 3},
    "single": {"single_active": True},
    "groups": {"grouped": True},
    "brief": {"ttl": 3000, "dead_letter": None},
    DEAD: {"dead_letter": None},
}
"""The rules of each queue. All others send their dead letters to the last."""


def rules_of(queue: str) -> dict[str, Any]:
    """Return the rules of a queue, as arguments of ``add_queue``."""
    return {"dead_letter": DEAD, **QUEUES[queue]}


POLICIES: Final = {queue: QueuePolicy(**rules_of(queue)) for queue in QUEUES}
WORKED: Final = tuple(name for name in QUEUES if name != DEAD)
"""The queues that messages are sent to."""

MOMENT: Final = 0.001
"""Seconds by which a message may expire earlier or later: it is moved with the whole milliseconds that are left."""

Being = Literal["gone", "maybe", "there"]


class WrongError(AssertionError):
    """The account and the container do not agree."""


@dataclass(eq=False)
class Fate:
    """What is known of one message.

    Attributes:
        name: its body.
        place: the queue where it is if it is anywhere.
        sender, sent_to: who sent it to which queue.
        being: whether no copy of it exists, or perhaps one, or exactly one.
        asker: the peer that waits for the answer to it.
        holder: the peer that has it and has not settled it.
        sights: how often a receiver got it, or a look into a queue found it.
        order: its place among those of its sender; None before it counts.
        earliest, latest: when it expires, by what its sender knows; for dead letters never.
        exact: whether it certainly dies then.
        returns: how often it came back at most.
        failures: how often it certainly failed.
        rejected: whether it was rejected, and whether that is certain.
        moved: whether it has left the queue that it was sent to.
        died_in: the queue where it died last, or those where it may have.
        history: what happened to it.
    """

    name: bytes
    place: str
    sender: str
    group: str | None
    being: Being = "gone"
    asker: Peer | None = None
    holder: Peer | None = None
    sights: int = 0
    order: int | None = None
    earliest: float = math.inf
    latest: float = math.inf
    ttl: float = math.inf
    sent_to: str = field(init=False)
    exact: bool = True
    returns: int = 0
    failures: int = 0
    rejected: Literal["no", "maybe", "yes"] = "no"
    moved: bool = False
    died_in: set[str] = field(default_factory=set[str])
    history: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.sent_to = self.place

    @property
    def policy(self) -> QueuePolicy:
        return POLICIES[self.place]

    def wrong(self, text: str) -> WrongError:
        return WrongError(f"{self.name.decode()} {text}; it: {'; '.join(self.history)}")


@dataclass(frozen=True)
class Group:
    """The parts of a transaction whose answer is not known: all are done, or none is.

    Attributes:
        posts: the messages that were sent in it.
        ends: those that were accepted in it.
        sights: how often each had been seen before.
    """

    posts: tuple[Fate, ...]
    ends: tuple[Fate, ...]
    sights: dict[bytes, int]


class Account:
    """What became of each message."""

    def __init__(self) -> None:
        self.fates: dict[bytes, Fate] = {}
        self.trace: list[str] = []
        self.allowed: set[tuple[str, str]] = set()
        """From where to where messages are moved now."""
        self.moved: Counter[tuple[str, str]] = Counter()
        self.in_order = True
        """Whether all that was delivered was received: otherwise some may come again, in another order."""
        self._last: dict[tuple[str, str, str | None, Peer], int] = {}
        self._fresh: list[tuple[Peer, Fate]] = []
        """What was settled since the container was last at rest."""
        self._assumed: list[Fate] = []
        self._torn: list[Group] = []
        self._numbers = itertools.count(1)
        self._orders = itertools.count(1)

    def say(self, *words: object) -> None:
        self.trace.append(" ".join(map(str, words)))

    # -- senders ----------------------------------------------------------------------------

    def new(self, sender: str, queue: str, ttl: float | None, group: str | None) -> Fate:
        name = b"m%05d" % next(self._numbers)
        fate = self.fates[name] = Fate(name, queue, sender, group)
        fate.ttl = math.inf if ttl is None else ttl
        return fate

    def asked(self, fate: Fate, asker: Peer) -> None:
        """It is being sent, or the transaction with it is being committed."""
        fate.history.append(f"sent to {fate.place} by {asker}")
        fate.being, fate.asker = "maybe", asker
        fate.order = next(self._orders)
        fate.earliest = trio.current_time() + self._lifetime(fate)

    def accepted(self, fate: Fate, *, known: bool = True) -> None:
        """It was accepted; unless ``known``, nobody said that it is stored."""
        fate.history.append("accepted")
        if not known:
            self._assumed.append(fate)
        fate.asker = None
        fate.latest = trio.current_time() + self._lifetime(fate)
        if fate.policy.overflow == "wait" and fate.policy.max_length:
            fate.exact = False  # it may have been committed, and wait for room
        if not fate.sights:
            fate.being = "there"

    def refused(self, fate: Fate) -> None:
        fate.history.append("refused")
        fate.asker = None
        buried = POLICIES[fate.sent_to].overflow == "reject-dead-letter"
        if fate.sights and not buried:
            raise fate.wrong("was refused, and is there")
        if not fate.sights:
            fate.being = "there" if buried else "gone"
        if buried and not fate.sights:
            fate.died_in = {fate.place}
            self._arrive(fate, DEAD)

    def _lifetime(self, fate: Fate) -> float:
        limit = fate.policy.ttl
        return min(fate.ttl, math.inf if limit is None else limit / 1000)

    # -- receivers --------------------------------------------------------------------------

    def delivered(self, fate: Fate, queue: str, peer: Peer) -> None:
        """A receiver got it from this queue."""
        fate.history.append(f"to {peer} from {queue}")
        if fate.being == "gone":
            raise fate.wrong(f"came to {peer} from {queue}, and must not be anywhere")
        if queue == fate.place and (why := self._must_have_left(fate)):
            raise fate.wrong(f"came to {peer} from {queue}, and {why}")
        if (other := fate.holder) is not None:
            if not other.committing:
                raise fate.wrong(f"came to {peer}, and {other} has it")
            other.robbed.append(fate)
            fate.returns += 1  # the commit is refused, and its peer does not know that yet
        self._see(fate, queue)
        self._check_order(fate, peer)
        if fate.policy.single_active or (fate.policy.grouped and fate.group is not None):
            for each in self.fates.values():
                if each.holder not in (None, peer) and each.place == queue and each is not fate:
                    beside = each.holder.consumes(queue) and not each.holder.committing
                    if beside and (fate.policy.single_active or each.group == fate.group):
                        raise fate.wrong(f"came to {peer}, while {each.holder} has {each.name.decode()}")
        fate.holder = peer

    def _check_order(self, fate: Fate, peer: Peer) -> None:
        policy = fate.policy
        counts = not (policy.max_priority or policy.redelivery_delay or fate.moved)
        if fate.sights > 1 or fate.order is None or not self.in_order or not counts:
            return
        key = (fate.place, fate.sender, fate.group if policy.grouped else None, peer)
        if fate.order < self._last.get(key, 0):
            raise fate.wrong(f"came to {peer} from {fate.place} after a later one of {fate.sender}")
        self._last[key] = fate.order

    def ended(self, fate: Fate, peer: Peer) -> None:
        """Its receiver accepted it."""
        fate.history.append(f"accepted by {peer}")
        fate.holder, fate.being = None, "gone"
        self._fresh.append((peer, fate))

    def returned(
        self, fate: Fate, peer: Peer, *, rejected: bool = False, failed: bool = False, loss: bool = False
    ) -> None:
        """Its receiver gave it back, or is lost."""
        fate.history.append(
            f"{'rejected' if rejected else 'failed' if failed else 'left' if loss else 'returned'} by {peer}"
        )
        fate.holder = None
        fate.returns += 1
        fate.failures += failed
        if rejected:
            fate.rejected = "yes"
            if fate.policy.dead_letter is None:
                fate.being = "gone"
        if rejected or failed:
            self._fresh.append((peer, fate))

    # -- what is lost -----------------------------------------------------------------------

    def tear(self, posts: Iterable[Fate], ends: Iterable[Fate]) -> None:
        """The answer to a commit is lost."""
        parts = tuple(posts), tuple(ends)
        sights = {fate.name: fate.sights for fate in itertools.chain(*parts)}
        for fate in itertools.chain(*parts):
            fate.history.append("in a transaction in doubt")
            if fate.holder is None and fate in parts[1]:
                sights[fate.name] -= 1  # somebody else got it meanwhile
            else:
                fate.holder, fate.being = None, "maybe"
        self._torn.append(Group(*parts, sights))

    def doubt(self, peer: Peer) -> None:
        """A peer is cut: what it just settled may be or not be."""
        for who, fate in self._fresh:
            if who is peer and fate.holder is None:
                fate.history.append(f"in doubt as {peer} is lost")
                fate.being = "maybe" if fate.being == "gone" else fate.being
                fate.rejected = "no" if fate.rejected == "no" else "maybe"
                fate.failures = 0
                fate.returns += 1
        for fate in self.fates.values():
            if fate.asker is peer:
                fate.asker = None
                fate.exact = False
            if peer.consumes(fate.place):
                fate.returns += 1  # it may have been on its way there

    def killed(self) -> None:
        """The container is lost: what is not known may be stored or not."""
        for fate in self.fates.values():
            if fate.being != "gone":
                fate.exact = False
                fate.returns += 1
                fate.failures = 0
        for fate in self._assumed:
            fate.being = "gone" if fate.being == "gone" else "maybe"
        self.rest()

    def rest(self) -> None:
        """All that was sent and settled has arrived."""
        self._fresh.clear()
        self._assumed.clear()
        if not self.in_order:
            self.in_order = True
            self._last.clear()

    def redriven(self) -> None:
        """What has died unseen may be back, without its ttl."""
        for fate in self.fates.values():
            if self._may_die(fate):
                fate.exact = False

    # -- places -----------------------------------------------------------------------------

    def _see(self, fate: Fate, queue: str) -> None:
        """It is in this queue, or was until now."""
        if queue != fate.place:
            self._travel(fate, queue)
        fate.sights += 1
        fate.being = "there"

    def _travel(self, fate: Fate, queue: str) -> None:
        """It went there: was that right?"""
        step = (fate.place, queue)
        if step in self.allowed or (queue in fate.died_in and (DEAD, "") in self.allowed):
            self.moved[step] += 1
            self._arrive(fate, queue)
            return
        targets = {there for here, there in self.allowed if here == fate.place}
        if queue == DEAD and (self._may_die(fate) or any(map(self.is_deadly, targets))):
            fate.died_in = {fate.place, *targets}
            self._arrive(fate, queue)
            return
        raise fate.wrong(f"is in {queue}, and should be in {fate.place}")

    @staticmethod
    def is_deadly(queue: str) -> bool:
        """Whether a message may die in a queue as soon as it is moved there."""
        rules = POLICIES.get(queue)
        return rules is not None and (rules.overflow == "drop-oldest" or rules.ttl is not None)

    def _arrive(self, fate: Fate, queue: str) -> None:
        fate.history.append(f"now in {queue}")
        if queue == DEAD:
            fate.ttl = math.inf
        fate.place = queue
        fate.moved = True
        fate.exact = False
        fate.rejected = "no"
        fate.returns = fate.failures = 0
        fate.earliest = min(fate.earliest, trio.current_time() + self._lifetime(fate))
        if queue == DEAD or (fate.ttl == math.inf and fate.policy.ttl is None):
            fate.earliest = math.inf
        fate.latest = math.inf

    def _may_die(self, fate: Fate) -> bool:
        policy, now = fate.policy, trio.current_time()
        return (
            fate.rejected != "no"
            or now >= fate.earliest - MOMENT
            or policy.overflow == "drop-oldest"
            or (policy.overflow == "reject-dead-letter" and not fate.sights)
            or (policy.delivery_limit is not None and fate.returns >= policy.delivery_limit)
        )

    def _may_vanish(self, fate: Fate) -> bool:
        """Whether it may have died without a dead letter, here or where it is moved to."""
        if fate.policy.dead_letter is None:
            return self._may_die(fate)
        return any(
            here == fate.place and there and POLICIES[there].dead_letter is None and self.is_deadly(there)
            for here, there in self.allowed
        )

    def _must_have_left(self, fate: Fate) -> str:
        """Return why it cannot be in its queue any more; empty if it can."""
        limit = fate.policy.delivery_limit
        if fate.rejected == "yes" and fate.place != DEAD:
            return "was rejected"
        if limit is not None and fate.failures >= limit:
            return "failed too often"
        return ""

    # -- the audit --------------------------------------------------------------------------

    def unseen_in(self, queue: str, ready: list[bytes]) -> list[bytes]:
        """Return what should be in this queue, and is not ready."""
        here = (fate for fate in self.fates.values() if fate.place == queue and fate.holder is None)
        return [fate.name for fate in here if fate.being == "there" and fate.name not in ready]

    def audit(
        self, found: dict[str, list[bytes]], figures: dict[str, dict[str, int]], peers: Sequence[Peer]
    ) -> None:
        """Compare with what is ready in each queue, and the figures of each."""
        places: dict[bytes, str] = {}
        for queue, names in found.items():
            for name in names:
                fate = self.fates[name]
                if name in places:
                    raise fate.wrong(f"is in {queue} and in {places[name]}")
                if fate.being == "gone":
                    raise fate.wrong(f"is in {queue}, and must not be anywhere")
                if fate.holder is not None and not fate.holder.committing:
                    raise fate.wrong(f"is in {queue}, and {fate.holder} has it")
                places[name] = queue
                if fate.holder is None:
                    before = fate.sights
                    self._see(fate, queue)
                    if fate.asker is not None:
                        fate.sights = before  # its answer is still to come
                expired = fate.exact and trio.current_time() >= fate.latest + MOMENT and "has expired"
                if queue == fate.place and (why := self._must_have_left(fate) or expired):
                    raise fate.wrong(f"is in {queue}, and {why}")
        delayed = Counter({queue: each["delayed"] for queue, each in figures.items()})
        hidden: Counter[str] = Counter()
        for queue, each in figures.items():
            limit = POLICIES[queue].max_length
            if limit is not None and POLICIES[queue].overflow == "wait" and each["messages"] >= limit:
                delayed[queue] = len(self.fates)  # what was committed waits for room
        for fate in self.fates.values():
            if (
                fate.name in places
                or fate.being == "gone"
                or fate.holder is not None
                or fate.asker is not None
            ):
                continue
            if delayed[fate.place]:
                hidden[fate.place] += fate.being == "there"
            elif fate.being == "maybe":
                fate.being = "gone"
            elif self._may_vanish(fate):
                fate.history.append("died without a dead letter")
                fate.being = "gone"
            else:
                raise fate.wrong(f"is lost: it should be in {fate.place}")
        for queue, count in hidden.items():
            if count > delayed[queue]:
                raise WrongError(
                    f"{count} messages should be in {queue}, which has {delayed[queue]} that wait"
                )
        if not any(peer.committing for peer in peers):
            self._check_leases(figures, peers)
        self._check_torn(places, delayed)

    def _check_leases(self, figures: dict[str, dict[str, int]], peers: Sequence[Peer]) -> None:
        held = Counter(fate.place for fate in self.fates.values() if fate.holder is not None)
        for queue, each in figures.items():
            if each["leased"] != held[queue]:
                raise WrongError(
                    f"{queue} has leased {each['leased']} messages, and receivers have {held[queue]}"
                )

    def _check_torn(self, places: dict[bytes, str], delayed: Counter[str]) -> None:
        for group in self._torn:
            done: dict[bytes, bool] = {}
            for wanted, fates in ((True, group.posts), (False, group.ends)):
                for fate in fates:
                    if fate.policy.dead_letter is not None and not delayed[fate.place]:
                        seen = fate.name in places or fate.sights > group.sights[fate.name]
                        done[fate.name] = seen is wanted
            if len(set(done.values())) > 1:
                raise WrongError(f"half a transaction: {done}")
        self._torn.clear()


class World:
    """One seed: a container, its peers, and what happens to them.

    Attributes:
        account: of all messages.
        chance: the only source of chance.
        container: the present one.
        over: whether the present container has died.
        done: what was done how often.
    """

    def __init__(self, seed: int, steps: int) -> None:
        self.account = Account()
        self.chance = random.Random(seed)
        self.done: Counter[str] = Counter()
        self.over = False
        self._worked = self.chance.sample(WORKED, 5)
        self._steps = steps
        self._disk = Disk() if self.chance.random() < 0.7 else None
        self._store: Mortal | None = None
        self._scope = trio.CancelScope()
        self.wrong: AssertionError | None = None
        self.container: Container = self._new_container()

    def _new_container(self) -> Container:
        self.over = False
        if self._disk is not None:
            self._store = Mortal(self._disk, None, done=False, die=self._die)
        made = Container("account", store=self._store, wall_clock=trio.current_time)
        made.add_broker()
        for name in reversed(QUEUES):
            made.add_queue(name, durable=None if self._disk is None else True, **rules_of(name))
        return made

    # -- the play ---------------------------------------------------------------------------

    async def play(self, clock: MockClock) -> None:
        """Do all steps, and at last look at everything again."""
        self.clock = clock
        async with trio.open_nursery() as nursery:
            self.nursery = nursery
            self.peers = [kind(self, f"{kind.wire}/{number}") for kind in PEERS for number in range(2)]
            for _ in range(self._steps):
                await self._step()
                self.raise_wrong()
            await self._end()
            nursery.cancel_scope.cancel()

    @property
    def queues(self) -> Iterable[str]:
        """The queues that are consumed from."""
        return [*self._worked, DEAD]

    @property
    def worked(self) -> Iterable[str]:
        """The queues that are sent to."""
        return self._worked

    def takes_all(self, queue: str) -> bool:
        """Whether a queue takes every message at once."""
        policy = POLICIES[queue]
        return (
            (policy.overflow, policy.bound) == ("drop-oldest", "ready")
            if policy.max_length or policy.max_octets
            else True
        )

    def note(self, wrong: AssertionError) -> None:
        """Keep what a task of a peer has found: the first counts."""
        self.wrong = self.wrong or wrong

    def raise_wrong(self) -> None:
        """Raise what a task of a peer has found."""
        if self.wrong is not None:
            raise self.wrong

    async def _step(self) -> None:
        chance = self.chance
        what = chance.random()
        if what < 0.03:
            seconds = chance.choice([0.05, 1, 3, 6])
            self.account.say(f"-- {seconds} seconds pass")
            self.clock.jump(seconds)
        elif what < 0.05:
            await self._alone(self._move)
        elif what < 0.07:
            await self._alone(self._redrive)
        elif what < 0.075:
            await self._alone(self._purge)
        elif what < 0.09 and self._store is not None and self._disk is not None:
            self._arm()
        else:
            await chance.choice(self.peers).step()
        if chance.random() < 0.6:
            await self.rest()
            if chance.random() < 0.3:
                await self.audit()

    def _arm(self) -> None:
        """Let the container die soon."""
        assert self._disk is not None
        last = self._disk.commits + self.chance.choice([1, 1, 2, 3, 8])
        done = self.chance.random() < 0.5
        self.account.say(f"-- it will die after {last - self._disk.commits} commits, the last {done=}")
        assert self._store is not None
        self._store.die_at(last, done=done)

    async def rest(self) -> None:
        """Let everything come to rest, and start the container again if it has died."""
        await wait_all_tasks_blocked()
        self.raise_wrong()
        if self.over:
            await self._restart()
        self.account.rest()

    def _die(self) -> None:
        self.account.say("== it dies")
        self.over = True
        self._scope.cancel()
        self.account.in_order = False
        for peer in self.peers:
            peer.cut()
        self.account.killed()

    async def _restart(self) -> None:
        while not all(peer.gone.is_set() for peer in self.peers):
            self.clock.jump(1)
            await wait_all_tasks_blocked()
        self.done["restart"] += 1
        self.container = self._new_container()
        async with self.container.connect():  # reads the store
            pass
        await wait_all_tasks_blocked()
        await self.audit()

    async def audit(self) -> None:
        """Compare the account with the queues."""
        self.done["audit"] += 1
        await self._ask(self._ready)  # what has expired goes to its next place now
        await wait_all_tasks_blocked()
        found = await self._ask(self._ready)
        self.raise_wrong()
        if self.over or found is None:
            await self.rest()
            return
        figures = {name: self.container.nodes[name].statistics() for name in QUEUES}
        self.account.audit(found, figures, self.peers)

    async def _ask(self, work: Callable[..., Awaitable[T]], *arguments: object) -> T | None:
        """Ask the management; None if the container dies meanwhile, as then there is no answer."""
        if not self.over:
            with trio.CancelScope() as self._scope:
                return await work(*arguments)
        return None

    async def _ready(self) -> dict[str, list[bytes]]:
        """Return the bodies of the messages that are ready in each queue."""
        browse = self.container.management.browse
        return {name: [bytes(each.message.body) for each in await browse(name, 1000)] for name in QUEUES}

    async def _alone(self, work: Any) -> None:
        """Do something while nothing else happens, and compare before and after."""
        await self.rest()
        await self.audit()
        if self.over:
            return
        self.account.moved.clear()
        expected = await self._ask(work)
        await wait_all_tasks_blocked()
        self.raise_wrong()
        if self.over:
            await self._restart()
        else:
            await self.audit()
            if expected is not None and not self.over:
                self._compare_moved(expected)
        self.account.allowed.clear()

    def _compare_moved(self, expected: dict[tuple[str, str], int]) -> None:
        moved = self.account.moved
        for step in expected.keys() | moved.keys():
            said = expected.get(step, 0)
            deadly = self.account.is_deadly(step[1])  # what died there at once was not seen there
            if moved[step] > said or (moved[step] < said and not deadly):
                raise WrongError(f"moved are said to be {expected}, and are {dict(moved)}")

    async def _move(self) -> dict[tuple[str, str], int] | None:
        source, target = self.chance.sample(self._worked, 2)
        count = self.chance.choice([None, 1, 3])
        self.account.say(f"-- move {source} {target} {count}")
        self.account.allowed = {(source, target)}
        self.done["move"] += 1
        try:
            moved = await self.container.management.move(source, target, count)
        except ManagementError as refusal:
            self.account.say("  refused:", refusal)
            return None
        return {(source, target): moved} if moved else {}

    async def _redrive(self) -> dict[tuple[str, str], int] | None:
        self.account.allowed = {(DEAD, "")}
        self.account.say("-- redrive")
        self.account.redriven()
        self.done["redrive"] += 1
        try:
            redriven = await self.container.management.redrive(DEAD, self.chance.choice([None, 2]))
        except ManagementError as refusal:
            self.account.say("  refused:", refusal)
            return None
        return {(DEAD, queue): count for queue, count in redriven.moved.items()}

    async def _purge(self) -> None:
        await self._empty(self.chance.choice(list(self.queues)))

    async def _empty(self, queue: str) -> None:
        ready = (await self._ready())[queue]
        if self.container.nodes[queue].statistics()["delayed"]:  # these are not seen before they are due
            ready += self.account.unseen_in(queue, ready)
        self.account.say("-- purge", queue, len(ready))
        self.done["purge"] += 1
        for name in ready:
            self.account.fates[name].history.append("purged")
            self.account.fates[name].being = "maybe"
        purged = await self.container.management.purge(queue)
        for name in ready:
            self.account.fates[name].being = "gone"
        if purged != len(ready):
            raise WrongError(f"purged {purged} messages of {queue}, which had {len(ready)}")

    async def _end(self) -> None:
        self.account.say("-- the end")
        await self.rest()
        for peer in self.peers:
            peer.cut()
        while not all(peer.gone.is_set() for peer in self.peers):
            self.clock.jump(1)
            await wait_all_tasks_blocked()
        await self.rest()
        self.clock.jump(10)
        await self.rest()
        await self.audit()
        if self._store is not None:
            self._store.die_at(None, done=False)
        while any(fate.being == "there" for fate in self.account.fates.values()):
            for name in QUEUES:
                await self._empty(name)
            await self.rest()
            await self.audit()
        for name in QUEUES:
            queue: Any = self.container.nodes[name]
            left = (len(queue), queue.octets, queue.held.bound_for_death, len(queue.held.deadlines))
            if any(left):
                raise WrongError(f"{name} was purged, and still counts {left}: {queue.statistics()}")
        if self._disk is not None and (rows := len(self._disk.rows(MESSAGES))):
            raise WrongError(f"all queues are empty, and the store has {rows} messages")


def play(seed: int, steps: int) -> World:
    """Play one seed.

    Raises:
        WrongError: the account and the container do not agree.
        Exception: the container or a peer failed.
    """
    made: list[World] = []

    async def run(clock: MockClock) -> None:
        made.append(World(seed, steps))
        await made[0].play(clock)

    try:
        on_stage(run)
    except BaseException as failure:
        if made:
            failure.add_note("\n".join(made[0].account.trace[-40:]))
        raise
    return made[0]


def main() -> None:
    """Play all seeds; fails at the first that goes wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.account", description=__doc__)
    parser.add_argument("--seeds", type=int, default=40, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--steps", type=int, default=150, help="of each")
    options = parser.parse_args()
    done: Counter[str] = Counter()
    messages = 0
    for seed in range(options.seed, options.seed + options.seeds):
        try:
            world = play(seed, options.steps)
        except Exception:
            traceback.print_exc()
            sys.exit(
                f"FAILED: python -m tests.soak.account --seed {seed} --seeds 1 --steps {options.steps} plays it again"
            )
        done += world.done
        messages += len(world.account.fates)
    print(f"{options.seeds} seeds from {options.seed}: {messages} messages, {dict(sorted(done.items()))}")


if __name__ == "__main__":
    main()
