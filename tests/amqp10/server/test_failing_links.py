"""Links that fail in any call, or take only small messages: other links go on.

The law, for every kind of node that holds messages: each message that was accepted is held, or was given to a link and
settled, or died; and none is leased without a link that has it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

import trio_amqp10 as amqp
from tests.container.helpers import bodies, queue_of, two
from tests.scaled import scaled
from trio_amqp10.amqp10.engine.sender import SenderLink
from trio_amqp10.amqp10.server.native_message import content_of_message, to_transfer
from trio_amqp10.broker.exchanges.broker_queue import BrokerQueue
from trio_amqp10.broker.nodes.clock import Clock
from trio_amqp10.container import Queue, QueuePolicy, SubscriptionTerms, Topic
from trio_amqp10.testing.azure_emulator import EntityOptions
from trio_amqp10.testing.azure_emulator.entity import Entity

SMALL, LARGE = b"s", bytes(1000)


async def at_once() -> None:
    """A checkpoint that nothing waits at: there is no loop here."""


class Tasks:
    """A peer whose tasks run only when the test runs them."""

    container_id = "peer"
    identity = None

    def __init__(self) -> None:
        self.tasks: list[Any] = []

    def start_soon(self, function: Any, *args: Any) -> None:
        self.tasks.append(function(*args))

    def run(self) -> None:
        with patch.object(trio.lowlevel, "checkpoint", at_once):
            while self.tasks:
                task = self.tasks.pop(0)
                with pytest.raises(StopIteration):
                    task.send(None)


class Broken(Exception):  # noqa: N818
    """The exception that a link raises."""


class Out:
    """An outlet that may fail, and that may take small messages only."""

    target = None
    final = False

    def __init__(
        self, node: Any, peer: Tasks, number: int, limit: int | None, fails: str, copying: bool
    ) -> None:
        self.node, self.peer, self.key, self.max_message_size = node, peer, number, limit
        self.fails = fails
        self.copying = copying
        self.subscription_terms = SubscriptionTerms(
            name=str(number) if number % 2 else "shared", shared=not number % 2
        )
        self.wants = self.wanted if fails == "wants" else None
        self.credit = 0
        self.closed = False
        self.ended = ""
        self.held: list[Any] = []
        self.got = 0

    def call(self, name: str) -> None:
        if self.fails == name:
            raise Broken(name)

    def wanted(self, _message: Any, _origin: Any) -> bool:
        raise Broken("wants")

    def ready(self) -> bool:
        self.call("ready")
        return self.credit > 0 and not self.closed

    def give(self, content: Any, lease: Any, _tag: bytes | None = None) -> None:
        assert self.max_message_size is None or len(to_transfer(content)[0]) <= self.max_message_size
        assert not self.closed
        self.call("give")
        self.credit -= 1
        self.got += 1
        if lease is not None:
            self.held.append(lease)

    def rest(self, _more: int) -> None:
        self.call("rest")

    def outgrow(self, _size: int) -> None:
        self.call("outgrow")
        if not self.held:
            self.close("too large")

    def close(self, condition: str | None = None, _description: str | None = None) -> None:
        self.call("close")
        if not self.closed:
            self.closed = True
            self.ended = condition or ""
            self.node.remove_outlet(self)
            held, self.held = self.held, []
            for lease in held:
                lease.lost()


class In:
    key = "in"
    is_committed = False

    def __init__(self) -> None:
        self.peer = SimpleNamespace(container_id="from", identity=None)
        self.arrivals: list[Any] = []
        self.closed = False

    def take(self) -> Any:
        return self.arrivals.pop(0) if self.arrivals else None

    def close(self, *_: Any) -> None:
        self.closed = True


class Arrived:
    settled = False
    tag = b""

    def __init__(self, message: amqp.Message) -> None:
        self.message = amqp.Message.from_payload(message.to_payload())
        self.state: Any = None

    @property
    def content(self) -> Any:
        return content_of_message(self.message)

    def accept(self) -> None:
        self.state = "accepted"

    def reject(self, *_: Any) -> None:
        self.state = "rejected"


def entity() -> Entity:
    clock = SimpleNamespace(now=lambda: 0.0, wall=lambda: 0.0)
    timer = SimpleNamespace(check=lambda: None)
    return Entity("q", EntityOptions(max_delivery_count=1_000_000), clock, timer)  # type: ignore[arg-type]


def broker_queue() -> BrokerQueue:
    return BrokerQueue(
        "q", {}, durable=False, auto_delete=False, owner=None, clock=Clock(), on_unused=lambda _: None
    )


NODES: dict[str, Any] = {
    "queue": lambda: Queue("q"),
    "single active": lambda: Queue("q", policy=QueuePolicy(single_active=True)),
    "groups": lambda: Queue("q", policy=QueuePolicy(grouped=True)),
    "bounded": lambda: Queue("q", policy=QueuePolicy(max_length=3)),
    "topic": lambda: Topic("q"),
    "entity": entity,
    "rabbitmq": broker_queue,
}

LINKS = st.tuples(
    st.sampled_from([None, 100, 100]),
    st.sampled_from(["", "", "", "ready", "give", "rest", "outgrow", "close", "wants"]),
    st.booleans(),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["attach", "attach", "pull"]), LINKS),
        st.tuples(st.just("send"), st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=4)),
        st.tuples(st.sampled_from(["credit", "accept", "release", "fail", "leave"]), st.integers(0, 9)),
    ),
    max_size=40,
)


class World:
    """A node with its links, and what was sent to it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.node = NODES[kind]()
        self.peer = Tasks()
        self.inlet = In()
        self.node.add_inlet(self.inlet)
        self.outs: list[Out] = []
        self.sent: list[Arrived] = []
        self.settled = 0

    def attach(self, limit: int | None, fails: str, copying: bool) -> None:
        if copying and self.kind in ("topic", "entity"):
            return
        out = Out(self.node, self.peer, len(self.outs), limit, fails, copying)
        self.outs.append(out)
        self.node.add_outlet(out)
        self.on_demand(out)

    def pull(self, limit: int | None, fails: str, copying: bool) -> None:
        """As a get does; its lease is lost when the next thing happens."""
        if self.kind in ("topic", "entity"):
            return
        out = Out(self.node, self.peer, len(self.outs), limit, fails, copying)
        self.outs.append(out)
        out.credit = 1
        before = self.node.available
        got = self.node.pull(out)
        assert got == (out.got > 0)
        if got and not copying:
            assert self.node.leased > 0
        elif self.kind != "groups":
            assert self.node.available == before
        self.run()

    def on_demand(self, out: Out) -> None:
        """As a link does: what is raised ends it."""
        if not out.closed and out in self.node.outlets:
            try:
                self.node.on_demand(out)
            except Broken:
                self.node.end_link(out)
        self.run()

    def run(self) -> None:
        self.peer.run()
        for out in self.outs:
            if out.held and out not in self.node.outlets:  # its link was ended over its head
                held, out.held = out.held, []
                for lease in held:
                    lease.lost()

    def send(self, *messages: tuple[bool, int]) -> None:
        for large, group in messages:
            message = amqp.Message(LARGE if large else SMALL, group_id=str(group))
            self.sent.append(Arrived(message))
            self.inlet.arrivals.append(self.sent[-1])
        self.node.on_arrivals(self.inlet)
        self.run()
        assert not self.inlet.closed

    def act(self, what: str, number: int) -> None:
        if not self.outs:
            return
        out = self.outs[number % len(self.outs)]
        if what == "credit":
            out.credit += 3
        elif what == "leave":
            out.fails = ""
            out.close()
        elif out.held:
            lease = out.held.pop(0)
            if what == "accept":
                self.settled += 1
                lease.accepted()
            elif what == "release":
                lease.released()
            else:
                lease.modified(failed=True, undeliverable_here=False, annotations={"x-opt-longer": "x" * 50})
        self.run()
        self.on_demand(out)

    def check(self) -> None:
        if self.kind == "topic":
            for subscription in self.node.subscriptions.values():
                held = sum(len(out.held) for out in subscription.outlets)
                assert subscription.leased == held
            return
        held = sum(len(out.held) for out in self.outs)
        accepted = sum(each.state == "accepted" for each in self.sent)
        assert len(self.node) == accepted - self.settled
        if self.kind != "entity":  # whose locks outlast their links
            assert self.node.leased == held
            self.check_starving()

    def check_starving(self) -> None:
        """No link waits while there is a message for it, and none is there for which there are only too large ones."""
        if self.kind in ("single active", "groups") or not self.node.available:
            return
        smallest = min(
            entry.length for blocks in self.node._available.all_blocks for entry in blocks.after(-1)
        )
        for out in self.node.outlets:
            if not out.copying and not out.fails and out.credit:
                assert out.max_message_size is not None
                assert smallest > out.max_message_size
                assert out.held


@pytest.mark.parametrize("kind", NODES)
@settings(max_examples=scaled(120), deadline=None)
@given(steps=STEPS)
@pytest.mark.logs_errors
def test_node_delivers_or_holds_every_message_whatever_its_links_take_and_whichever_call_of_them_fails(
    kind: str, steps: list[tuple[str, Any]]
) -> None:
    world = World(kind)
    for what, argument in steps:
        if what == "attach":
            world.attach(*argument)
        elif what == "pull":
            world.pull(*argument)
        elif what == "send":
            world.send(*argument)
        else:
            world.act(what, argument)
        world.check()
    for out in world.outs:
        if not out.closed:
            out.fails = ""
            out.close()
    world.run()
    if kind in ("topic", "entity"):
        return
    last = Out(world.node, world.peer, 99, None, "", copying=False)
    last.credit = 10_000
    world.outs.append(last)
    world.node.add_outlet(last)
    world.on_demand(last)
    world.node.on_arrivals(world.inlet)
    while last.held:
        last.held.pop(0).accepted()
        world.settled += 1
    assert not len(world.node)
    assert all(each.state == "accepted" for each in world.sent)


@pytest.mark.parametrize("method", ["send", "sendable"])
@pytest.mark.logs_errors
async def test_queue_gives_a_message_to_the_next_link_when_one_fails_and_no_sender_notices(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(SenderLink, method)
    broken: list[str] = []

    def failing(self: SenderLink, *args: Any, **options: Any) -> Any:
        if self.name in broken:
            raise Broken(method)
        return real(self, *args, **options)

    monkeypatch.setattr(SenderLink, method, failing)
    container = amqp.Container()
    container.add_queue("q")
    async with two(container) as (one, other):
        async with one.open_sender("q") as sender, other.open_receiver("q", name="bad") as bad:
            broken.append("bad")
            async with one.open_receiver("q", name="good") as good:
                for number in range(5):
                    await sender.send(number)
                assert await bodies(good, 5) == list(range(5))
                with pytest.raises(amqp.LinkDetachedError) as detached:
                    await bad.receive()
                assert detached.value.condition == "amqp:internal-error"
        assert queue_of(container).leased == 0
