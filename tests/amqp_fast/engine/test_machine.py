"""Two engines back to back, driven at random: neither ever finds fault with the other, and nothing is lost or mixed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.amqp_fast.pairs import Pair
from trio_amqp10.amqp_fast import spec
from trio_amqp10.amqp_fast.engine.events import ChannelFailed, ChannelOpened, HandleFailed
from trio_amqp10.amqp_fast.engine.limits import Limits
from trio_amqp10.amqp_fast.engine.message import Message
from trio_amqp10.amqp_fast.engine.states import ChannelState, HandleState
from trio_amqp10.core.errors import LocalProtocolError

CHUNKS = (0, 13, 1000)


class TwoEngines(RuleBasedStateMachine):
    """A client and a server that do what chance says; each counts by itself."""

    def __init__(self) -> None:
        super().__init__()
        small = Limits(frame_max=1024, channel_max=3, handle_max=6)
        self.pair = Pair(1000, small, small)
        self.pair.run()
        self.count = 0
        self.handles: list[Any] = []
        self.served: dict[int, Any] = {}
        self.sent: dict[int, list[bytes]] = {}
        self.came: dict[int, list[bytes]] = {}
        self.given: dict[int, list[bytes]] = {}
        self.got: dict[int, list[bytes]] = {}
        self.tag = 0
        self.replied: list[int] = []
        self.asked: list[int] = []
        self.acked: list[int] = []

    def body(self, size: int) -> bytes:
        self.count += 1
        return b"%d " % self.count + b"x" * size

    def open_handles(self) -> list[Any]:
        return [
            each
            for each in self.handles
            if each.state is HandleState.OPEN and each.channel.state is ChannelState.OPEN
        ]

    def one(self, number: int) -> Any:
        there = self.open_handles()
        return there[number % len(there)] if there else None

    @rule(restartable=st.booleans(), transacted=st.booleans())
    def open(self, restartable: bool, transacted: bool) -> None:
        if len(self.pair.client._channels) < 3 and len(self.pair.client._handles) < 6:
            channel = self.pair.client.open_channel(
                spec.ChannelOpen(restartable=restartable, transacted=transacted)
            )
            command = spec.HandleOpen(producer=True, consumer=True, browser=True, dest_name="q")
            handle = channel.open_handle(command)
            handle.write(spec.HandleConsume(prefetch=9))
            self.handles.append(handle)
            self.carry(0)

    @precondition(lambda self: self.open_handles())
    @rule(number=st.integers(0, 5), size=st.sampled_from([0, 10, 900, 3000]), confirm=st.booleans())
    def send(self, number: int, size: int, confirm: bool) -> None:
        handle = self.one(number)
        body = self.body(size)
        self.tag += confirm
        handle.send(
            Message(spec.MessageHead(identifier=str(self.count)), body), "", self.tag if confirm else 0
        )
        self.sent.setdefault(id(handle), []).append(body)
        if confirm:
            self.asked.append(self.tag)

    @precondition(lambda self: self.open_handles())
    @rule(number=st.integers(0, 5), size=st.sampled_from([0, 10, 900, 3000]))
    def notify(self, number: int, size: int) -> None:
        handle = self.one(number)
        served = self.served.get(handle.id)
        if served is not None and served.state is HandleState.OPEN:
            body = self.body(size)
            try:
                served.notify(Message(spec.MessageHead(identifier=str(self.count)), body), "q")
            except LocalProtocolError:
                return  # the channel is being closed
            self.given.setdefault(id(handle), []).append(body)

    @precondition(lambda self: self.open_handles())
    @rule(
        number=st.integers(0, 5), message=st.integers(0, 5), what=st.sampled_from(["ack", "commit", "flow"])
    )
    def settle(self, number: int, message: int, what: str) -> None:
        handle = self.one(number)
        if what == "ack":
            handle.channel.write(spec.ChannelAck(message_nbr=message))
        elif what == "flow":
            handle.write(spec.HandleFlow(flow_pause=True))
        elif handle.channel.transacted:
            handle.channel.write(spec.ChannelCommit())

    @precondition(lambda self: self.open_handles())
    @rule(number=st.integers(0, 5), channel=st.booleans(), by_server=st.booleans())
    def close(self, number: int, channel: bool, by_server: bool) -> None:
        self.carry(0)
        handle = self.one(number)
        if handle is None:
            return
        target = handle if not by_server else self.served[handle.id]
        (target.channel if channel else target).close()
        self.carry(0)

    @rule(chunk=st.sampled_from(CHUNKS))
    def carry(self, chunk: int) -> None:
        """Move all octets, take what arrived, and answer what is to be answered, until nothing moves."""
        self.pair.chunk = chunk
        for _ in range(6):
            self.pair.run()
            for arrivals, engine in ((self.came, self.pair.server), (self.got, self.pair.client)):
                for channel in engine.take_touched():
                    while (arrival := channel.next_arrival()) is not None:
                        self.take(arrivals, channel, arrival)

    def take(self, arrivals: dict[int, list[bytes]], channel: Any, arrival: Any) -> None:
        command, handle = arrival.command, arrival.handle
        if isinstance(command, spec.HandleOpen):
            self.served[command.handle_id] = handle
        elif arrival.message is not None:
            ours = next(each for each in reversed(self.handles) if each.id == handle.id)
            arrivals.setdefault(id(ours), []).append(arrival.message.body)
            if getattr(command, "confirm_tag", 0) and handle.state is HandleState.OPEN:
                handle.write(spec.HandleReply(confirm_tag=command.confirm_tag))
        elif isinstance(command, spec.ChannelClose):
            channel.close()
        elif isinstance(command, spec.HandleClose):
            handle.close()
        elif isinstance(command, spec.HandleReply):
            self.replied.append(command.confirm_tag)

    @invariant()
    def neither_finds_fault(self) -> None:
        assert self.pair.client.is_open
        assert self.pair.server.is_open
        for events in self.pair.events.values():
            assert not [each for each in events if isinstance(each, ChannelFailed | HandleFailed)]

    def teardown(self) -> None:
        self.carry(0)
        for handle in self.open_handles():
            assert self.came.get(id(handle), []) == self.sent.get(id(handle), [])
            assert self.got.get(id(handle), []) == self.given.get(id(handle), [])
        assert set(self.replied) <= set(self.asked)
        assert self.pair.client.held == self.pair.server.held == 0
        assert self.pair.client.partial == self.pair.server.partial == 0
        assert self.pair.client.queued == self.pair.server.queued == 0
        assert self.pair.client._handles.keys() == self.pair.server._handles.keys()


TwoEngines.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestTwoEngines = TwoEngines.TestCase


@pytest.mark.parametrize("chunk", CHUNKS)
def test_channels_open_at_both_ends(chunk: int) -> None:
    pair = Pair(chunk)
    pair.run()
    ours, theirs = pair.channels()
    assert ours.id == theirs.id
    assert isinstance(pair.events["server"][-1], ChannelOpened)
