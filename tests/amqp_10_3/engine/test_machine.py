"""Two engines of 10.3 back to back, driven at random: neither finds fault with the other, and both count alike."""

from __future__ import annotations

from collections import deque
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.amqp_10_3.pairs import Pair
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.engine.states import ChannelState
from trio_amqp10.amqp091.wire.content import BasicProperties, Content
from trio_amqp10.amqp_10_3 import spec
from trio_amqp10.amqp_10_3.wire.properties import (
    FileProperties,
    StreamProperties,
    TestProperties,
    TunnelProperties,
)

SMALL = Limits(frame_max=4096, channel_max=3)
CONSUMES = {
    "basic": (spec.BasicConsume, spec.BasicConsumeOk),
    "file": (spec.FileConsume, spec.FileConsumeOk),
    "stream": (spec.StreamConsume, spec.StreamConsumeOk),
}
PUBLISHES = {
    "basic.publish": BasicProperties(priority=1),
    "stream.publish": StreamProperties(headers={"n": 1}),
    "file.stage": FileProperties(filename="f"),
    "tunnel.request": TunnelProperties(durable=1),
}
bodies = st.sampled_from([b"", b"x", b"y" * 4087, b"z" * 9000])


class TwoEngines(RuleBasedStateMachine):
    """One channel at both ends, and a count of its contents and deliveries kept here."""

    @initialize(chunk=st.sampled_from([0, 7, 4000]))
    def connect(self, chunk: int) -> None:
        self.pair = Pair(chunk, SMALL)
        self.pair.run()
        self.sent: dict[str, deque[tuple[Any, bytes]]] = {"client": deque(), "server": deque()}
        self.open()

    @precondition(lambda self: self.ours.state is ChannelState.CLOSED)
    @rule()
    def open(self) -> None:
        self.ours, self.theirs = self.pair.channels()
        self.tags: dict[str, str] = {}
        self.out: list[int] = []
        self.given = 0
        self.transaction: list[int] | None = None
        for each in self.sent.values():
            each.clear()

    def carry(self) -> None:
        """Move all octets; what arrives is what was sent, in that order."""
        self.pair.run()
        for engine in (self.pair.client, self.pair.server):
            engine.take_touched()
        for target, source in ((self.theirs, "client"), (self.ours, "server")):
            while (arrival := target.next_arrival()) is not None:
                if arrival.method.plan.content and not arrival.method.plan.answers:
                    method, body = self.sent[source].popleft()
                    assert (arrival.method, arrival.content.body) == (method, body)

    def usable(self) -> bool:
        return self.ours.state is ChannelState.OPEN

    @precondition(usable)
    @rule(name=st.sampled_from(sorted(PUBLISHES)), body=bodies)
    def publish(self, name: str, body: bytes) -> None:
        method = spec.METHODS.make(name)
        self.ours.send(method, Content(PUBLISHES[name], body))
        self.sent["client"].append((method, body))

    @precondition(usable)
    @rule(body=bodies)
    def tunnel_back(self, body: bytes) -> None:
        method = spec.TunnelRequest(meta_data={"back": 1})
        self.theirs.send(method, Content(TunnelProperties(), body))
        self.sent["server"].append((method, body))

    @precondition(usable)
    @rule(own=st.sampled_from(sorted(CONSUMES)), tag=st.sampled_from("abc"))
    def consume(self, own: str, tag: str) -> None:
        if tag not in self.tags:
            request, answer = CONSUMES[own]
            self.ours.send(request(consumer_tag=tag))
            self.carry()
            self.theirs.send(answer(consumer_tag=tag))
            self.tags[tag] = own

    @precondition(lambda self: self.usable() and self.tags)
    @rule(data=st.data(), body=bodies)
    def deliver(self, data: st.DataObject, body: bytes) -> None:
        tag = data.draw(st.sampled_from(sorted(self.tags)))
        self.given += 1
        where = {"consumer_tag": tag, "delivery_tag": self.given}
        if self.tags[tag] == "file":
            self.theirs.send(spec.FileDeliver(**where))
        elif self.tags[tag] == "stream":
            method: Any = spec.StreamDeliver(**where)
            self.theirs.send(method, Content(StreamProperties(), body))
            self.sent["server"].append((method, body))
            return
        else:
            assert self.theirs.deliver(tag, "", "", Content(BasicProperties(), body)) == self.given
            self.sent["server"].append((spec.BasicDeliver(**where), body))
        self.out.append(self.given)

    @precondition(lambda self: self.usable() and self.out)
    @rule(data=st.data(), multiple=st.booleans(), rejects=st.booleans())
    def settle(self, data: st.DataObject, multiple: bool, rejects: bool) -> None:
        self.carry()
        tag = data.draw(st.sampled_from(self.out))
        if rejects:
            self.ours.send(spec.BasicReject(delivery_tag=tag))
            settled = [tag]
        else:
            self.ours.send(spec.BasicAck(delivery_tag=tag, multiple=multiple))
            settled = [each for each in self.out if each <= tag] if multiple else [tag]
        self.out = [each for each in self.out if each not in settled]
        if self.transaction is not None:
            self.transaction += settled

    @precondition(usable)
    @rule(ends=st.sampled_from(["commit", "rollback"]))
    def transact(self, ends: str) -> None:
        self.carry()
        if self.transaction is None:
            self.ours.send(spec.TxSelect())
            self.carry()
            self.theirs.send(spec.TxSelectOk())
        else:
            self.ours.send(spec.METHODS.make(f"tx.{ends}"))
            self.carry()
            self.theirs.send(spec.METHODS.make(f"tx.{ends}-ok"))
            if ends == "rollback":
                self.out = sorted(self.out + self.transaction)
        self.transaction = []

    @precondition(usable)
    @rule(body=bodies, ours=st.booleans())
    def ask(self, body: bytes, ours: bool) -> None:
        (self.ours if ours else self.theirs).send(spec.TestContent(), Content(TestProperties(), body))

    @precondition(usable)
    @rule(ours=st.booleans())
    def pause(self, ours: bool) -> None:
        self.carry()
        source, target = (self.ours, self.theirs) if ours else (self.theirs, self.ours)
        source.flow(False)
        self.carry()
        assert not target.flowing
        source.flow(True)
        self.carry()
        assert target.flowing

    @precondition(usable)
    @rule(ours=st.booleans())
    def close(self, ours: bool) -> None:
        self.carry()
        (self.ours if ours else self.theirs).close()
        self.carry()

    @rule()
    def carry_all(self) -> None:
        self.carry()
        assert not self.sent["client"]
        assert not self.sent["server"]
        if self.usable():
            for channel in (self.ours, self.theirs):
                assert list(channel.numbers.deliveries._out) == self.out
                assert channel.numbers.deliveries.last == self.given
        assert self.pair.client.partial == self.pair.server.partial == 0
        assert self.pair.client.held == self.pair.server.held == 0

    @invariant()
    def both_are_open(self) -> None:
        if hasattr(self, "pair"):
            assert self.pair.client.is_open
            assert self.pair.server.is_open


TestTwoEngines = TwoEngines.TestCase
TestTwoEngines.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
