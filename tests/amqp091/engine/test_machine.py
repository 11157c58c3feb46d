"""Two engines back to back, driven at random: neither ever finds fault with the other, and both count alike."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.amqp091.pairs import Pair
from trio_amqp10.amqp091 import spec
from trio_amqp10.amqp091.engine.limits import Limits
from trio_amqp10.amqp091.engine.states import ChannelState
from trio_amqp10.amqp091.wire.content import BasicProperties, Content
from trio_amqp10.core.errors import LocalProtocolError

STEPS = 20_000


class World:
    """A client and a server that do what chance says, and keep count of the contents by themselves."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        small = Limits(frame_max=4096, channel_max=4)
        self.pair = Pair(self.chance.choice([0, 13, 4000]), small, small)
        self.pair.run()
        self.client: dict[int, Any] = {}
        self.server: dict[int, Any] = {}
        self.published: dict[int, list[bytes]] = {}
        self.arrived: dict[int, list[bytes]] = {}
        self.moves = 0

    def step(self) -> None:
        actions = [
            self.open,
            self.publish,
            self.consume,
            self.deliver,
            self.settle,
            self.answer,
            self.other,
            self.close,
        ]
        weights = [2, 8, 2, 6, 6, 8, 4, 0.1]
        (action,) = self.chance.choices(actions, weights)
        action()
        self.moves += 1
        if self.chance.random() < 0.3:
            self.carry()

    def carry(self) -> None:
        """Move all octets, and take what arrived."""
        start = len(self.pair.events["server"])
        self.pair.run()
        for event in self.pair.events["server"][start:]:
            if type(event).__name__ == "ChannelOpened":
                self.server[event.channel.number] = event.channel
        for engine in (self.pair.client, self.pair.server):
            engine.take_touched()
        for number, channel in self.server.items():
            while (arrival := channel.next_arrival()) is not None:
                if isinstance(arrival.method, spec.BasicPublish):
                    self.arrived.setdefault(number, []).append(arrival.content.body)
        for channel in self.client.values():
            while (arrival := channel.next_arrival()) is not None:
                assert arrival.request is None or type(arrival.request) in arrival.method.plan.answers

    def one(self, channels: dict[int, Any]) -> Any:
        usable = [channel for channel in channels.values() if channel.state is ChannelState.OPEN]
        return self.chance.choice(usable) if usable else None

    def attempt(self, channel: Any, method: Any, content: Content | None = None) -> bool:
        """Send what may be refused here; the peer must take whatever is not."""
        try:
            channel.send(method, content)
        except LocalProtocolError:
            return False
        return True

    def content(self) -> Content:
        body = self.chance.randbytes(self.chance.choice([0, 1, 10, 4088, 9000]))
        return Content(
            BasicProperties(headers={"n": self.moves}, priority=self.chance.choice([None, 3])), body
        )

    def open(self) -> None:
        if len([c for c in self.client.values() if c.state is not ChannelState.CLOSED]) < 4:
            self.carry()
            channel = self.pair.client.open_channel()
            self.client[channel.number] = channel
            self.published[channel.number], self.arrived[channel.number] = [], []
            self.carry()

    def publish(self) -> None:
        if (channel := self.one(self.client)) is not None:
            content = self.content()
            if self.attempt(channel, spec.BasicPublish(routing_key="q"), content):
                self.published[channel.number].append(content.body)

    def consume(self) -> None:
        if (channel := self.one(self.client)) is not None:
            tag = self.chance.choice(["", "a", "b", "c"])
            chance = self.chance.random
            if tag in channel.numbers.consumers or any(
                isinstance(each, spec.BasicConsume) for each in channel._requests.get(spec.BasicConsume, ())
            ):
                return  # a tag that is used twice ends the connection, and the client cannot know it before the answer
            method = spec.BasicConsume(
                consumer_tag=tag, no_ack=chance() < 0.3, no_wait=bool(tag) and chance() < 0.3
            )
            assert self.attempt(channel, method)

    def deliver(self) -> None:
        if (channel := self.one(self.server)) is not None and channel.numbers.consumers:
            tag = self.chance.choice(list(channel.numbers.consumers))
            method = spec.BasicDeliver(consumer_tag=tag, delivery_tag=channel.numbers.deliveries.last + 1)
            self.attempt(channel, method, self.content())

    def settle(self) -> None:
        side = self.chance.choice([self.client, self.server])
        if (channel := self.one(side)) is not None:
            numbers = channel.numbers.deliveries if side is self.client else channel.numbers.publishes
            tag = self.chance.randint(0, numbers.last + 1)
            kind = self.chance.choice([spec.BasicAck, spec.BasicNack])
            if not tag:
                self.carry()  # "all" is all that the other end knows of, also what is still under way to us
            self.attempt(channel, kind(delivery_tag=tag, multiple=self.chance.random() < 0.3))
            if not tag:
                self.carry()

    def answer(self) -> None:
        """The server answers the oldest request of a channel."""
        if (channel := self.one(self.server)) is None or not channel._owed:
            return
        request = channel._owed[0]
        if isinstance(request, spec.BasicConsume):
            assert self.attempt(
                channel, spec.BasicConsumeOk(consumer_tag=request.consumer_tag or f"made-{self.moves}")
            )
        elif isinstance(request, spec.BasicGet):
            tag = channel.numbers.deliveries.last + 1
            assert self.attempt(channel, spec.BasicGetOk(delivery_tag=tag), self.content())
        else:
            (answer,) = [plan.made for plan in spec.METHODS if type(request) in plan.answers]
            assert self.attempt(channel, answer())

    def other(self) -> None:
        channel = self.one(self.client)
        if channel is None:
            return
        numbers = channel.numbers
        methods = [
            spec.QueueDeclare(queue="q"),
            spec.BasicGet(no_ack=self.chance.random() < 0.5),
            spec.BasicQos(prefetch_count=3),
            spec.TxSelect(),
            spec.TxCommit(),
            spec.TxRollback(),
            spec.ConfirmSelect(no_wait=self.chance.random() < 0.5),
        ]
        if not any(channel._requests.get(each) for each in (spec.TxSelect, spec.ConfirmSelect)):
            self.attempt(channel, self.chance.choice(methods))
        if self.chance.random() < 0.1:
            channel.flow(self.chance.random() < 0.7)
            self.carry()
        assert numbers is channel.numbers

    def close(self) -> None:
        channel = self.one(self.chance.choice([self.client, self.server]))
        if channel is not None:
            self.carry()
            self.check()
            channel.close()
            self.carry()

    def check(self) -> None:
        """Once all is carried, both ends count the same."""
        self.carry()
        for number, ours in self.client.items():
            if ours.state is not ChannelState.OPEN:
                continue
            theirs = self.server[number]
            assert self.arrived[number] == self.published[number]
            assert ours.numbers.deliveries.last == theirs.numbers.deliveries.last
            assert list(ours.numbers.deliveries._out) == list(theirs.numbers.deliveries._out)
            assert list(ours.numbers.publishes._out) == list(theirs.numbers.publishes._out)
            assert ours.flowing in (True, False)
        assert self.pair.client.partial == self.pair.server.partial == 0
        assert self.pair.client.held == self.pair.server.held == 0


@pytest.mark.parametrize("seed", range(4))
def test_two_engines_agree_whatever_they_do(seed: int) -> None:
    world = World(seed)
    for _ in range(STEPS // 4):
        world.step()
    world.check()
    assert world.pair.client.is_open
    assert world.pair.server.is_open
    assert sum(map(len, world.arrived.values()))
